"""Encoders of numbers: scaled as they are, or after a logarithm or quantiles if heavy-tailed.

scikit-learn's PowerTransformer and QuantileTransformer were tried with logistic regression on the
tables of two social networks, one column of which ran from 0 to 10^8: they were as good as the
logarithm, and slower; standardising alone, or RobustScaler, lost ten points of balanced accuracy.
The logarithm is understood at once, and orders new values beyond the largest.
Quantiles serve columns that a logarithm does not help: 10^9 plus a heavy tail, a few wild cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from evengraph.tables.cells import Floats, to_numbers
from evengraph.tables.date_forms import check_form, describe_dates, seconds_of

MAX_FEATURE = 1e6
"""Bound of scaled features: an extreme cell in new rows must not dominate all others."""

HEAVY_SKEWNESS, HEAVY_KURTOSIS = 2.0, 10.0
"""Beyond either a column is heavy-tailed; skewness 2 is that of the exponential distribution."""

MIN_DISTINCT = 10
NUM_QUANTILES, CELLS_PER_QUANTILE = 200, 5
"""Quantiles that are saved: of a small table fewer, since they would be nearly all of its cells."""

SHOWN_COLUMNS = 5


class UselessColumnError(ValueError):
    """A column that carries no information; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """Numbers: empty cells get the median, then mean 0 and standard deviation 1."""

    column: str
    median: float
    mean: float
    scale: float

    def __post_init__(self) -> None:
        if self.scale == 0:
            raise ValueError("scale of an encoder must not be 0")

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Compute median, mean and standard deviation."""
        return cls.fit_numbers(str(values.name), to_numbers(values, table))

    @classmethod
    def fit_numbers(cls, column: str, numbers: Floats) -> Self:
        """Fit to numbers, (N,), that need not be a column of a table."""
        from sklearn.preprocessing import StandardScaler

        empty = np.isnan(numbers)
        check_varies(numbers[~empty])
        largest = float(np.nanmax(np.abs(numbers)))  # squares of very large numbers would overflow
        scaled = numbers / largest
        median = float(np.median(scaled[~empty]))  # SimpleImputer sorts, which takes ten times this
        scaler = StandardScaler().fit(np.where(empty, median, scaled)[:, None])
        return cls(
            column=column,
            median=median * largest,
            mean=float(scaler.mean_[0]) * largest,
            scale=float(scaler.scale_[0]) * largest or 1.0,  # below the smallest number
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.column,)

    def parse(self, values: Any, table: str) -> Floats:
        """The column as numbers, NaN where empty, (N,)."""
        return to_numbers(values, table)

    def curve(self, numbers: Floats) -> Floats:
        """The numbers to be scaled, (N,)."""
        return numbers

    def transform(self, values: Any, table: str) -> Floats:
        """The feature of every row, (N, 1)."""
        numbers = self.parse(values, table)
        numbers = self.curve(np.where(np.isnan(numbers), self.median, numbers))
        with np.errstate(over="ignore"):
            scaled = numbers / self.scale - self.mean / self.scale
        clipped: Floats = np.clip(scaled, -MAX_FEATURE, MAX_FEATURE)[:, None]
        return clipped


@dataclass(frozen=True, kw_only=True)
class Date(Number):
    """Dates: seconds since 1970, treated as numbers; `form` is empty for those of ISO 8601."""

    form: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_form(self.form)

    @classmethod
    def fit(cls, values: Any, table: str, form: str = "") -> Self:
        """Compute median, mean and standard deviation of dates in a form."""
        numbers = cls.fit_numbers(str(values.name), seconds_of(values, table, form))
        return replace(numbers, form=form)

    def parse(self, values: Any, table: str) -> Floats:
        """The column as seconds since 1970, NaN where empty, (N,)."""
        return seconds_of(values, table, self.form)


@dataclass(frozen=True, kw_only=True)
class Log(Number):
    """Heavy-tailed numbers: sign(x) log(1 + |x| / unit), then scaled.

    The unit is a small value of the column, so that 10^-9 to 10^-3 is treated like 1 to 10^6.
    """

    unit: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.unit > 0:
            raise ValueError("unit of an encoder must be above 0")

    def curve(self, numbers: Floats) -> Floats:
        """The signed logarithm, (N,)."""
        return signed_log(numbers, self.unit)


@dataclass(frozen=True, kw_only=True)
class Quantile(Number):
    """Heavy-tailed numbers that a logarithm does not help: normal scores of their ranks."""

    quantiles: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.quantiles:
            raise ValueError("quantiles of an encoder must not be empty")

    def curve(self, numbers: Floats) -> Floats:
        """Normal scores, (N,); ties get the middle of their ranks, as in scikit-learn."""
        from scipy.special import ndtri

        quantiles = np.array(self.quantiles)
        ranks = np.linspace(0, 1, len(quantiles))
        upper = np.interp(numbers, quantiles, ranks)
        lower = -np.interp(-numbers, -quantiles[::-1], -ranks[::-1])
        end = 0.5 / len(quantiles)
        scores: Floats = ndtri(np.clip((upper + lower) / 2, end, 1 - end))
        return scores


def fit_number(column: str, numbers: Floats) -> Number:
    """Fit the encoder that suits the tails of a column of numbers, (N,)."""
    plain = Number.fit_numbers(column, numbers)
    known = numbers[~np.isnan(numbers)]
    if not is_heavy_tailed(known) or _has_few_values(known):
        return plain
    fields: dict[str, Any] = {"column": column, "median": plain.median, "mean": 0.0, "scale": 1.0}
    unit = _unit(known)
    if not is_heavy_tailed(signed_log(known[known != 0], unit)):
        return _scaled(Log(**fields, unit=unit), numbers)
    count = max(2, min(NUM_QUANTILES, len(known) // CELLS_PER_QUANTILE))
    quantiles = np.quantile(known, np.linspace(0, 1, count))
    quantiles = np.maximum.accumulate(quantiles)  # rounding must not break their order
    return _scaled(Quantile(**fields, quantiles=tuple(map(float, quantiles))), numbers)


def is_heavy_tailed(numbers: Floats) -> bool:
    """Whether skewness or excess kurtosis of the numbers, (N,), is large."""
    if not len(numbers):
        return False
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    centred = scaled - scaled.mean()
    deviation = centred.std()
    if not deviation:
        return False
    scores = centred / deviation
    squares = scores * scores  # products: powers are ten times slower
    skewness, kurtosis = np.mean(squares * scores), np.mean(squares * squares) - 3
    return bool(abs(skewness) > HEAVY_SKEWNESS or kurtosis > HEAVY_KURTOSIS)


def signed_log(numbers: Floats, unit: float) -> Floats:
    """sign(x) log(1 + |x| / unit) without overflow, (N,)."""
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf, which gives 0
        logs: Floats = np.logaddexp(0.0, np.log(np.abs(numbers)) - np.log(unit))
    return np.sign(numbers) * logs


def describe_numbers(encoders: Iterable[object]) -> list[str]:
    """One sentence each for columns with a logarithm, with quantiles, and with unusual dates."""
    columns = [encoder for encoder in encoders if isinstance(encoder, Number)]
    logs = [encoder.column for encoder in columns if isinstance(encoder, Log)]
    ranks = [encoder.column for encoder in columns if isinstance(encoder, Quantile)]
    titles = {"Logarithm": logs, "Quantiles": ranks}
    dates = describe_dates({date.column: date.form for date in columns if isinstance(date, Date)})
    return dates + [
        f"{title} of {_listed(names)} (heavy-tailed)." for title, names in titles.items() if names
    ]


def check_varies(numbers: Floats) -> None:
    """Raise an error if all numbers are equal."""
    if not len(numbers) or (numbers == numbers[0]).all():
        raise UselessColumnError("it is constant")


def _has_few_values(known: Floats) -> bool:
    first = known[:1000]  # hardly ever more than these are sorted
    return all(len(np.unique(some)) <= MIN_DISTINCT for some in (first, known))


def _unit(known: Floats) -> float:
    """A small absolute value of the column; a typical one if signs differ, to keep one mode."""
    share = 0.5 if known.min() < 0 < known.max() else 0.05
    return float(np.quantile(np.abs(known[known != 0]), share))


def _scaled(encoder: Number, numbers: Floats) -> Number:
    """The encoder with mean and standard deviation of its curve."""
    curve = encoder.curve(np.where(np.isnan(numbers), encoder.median, numbers))
    return replace(encoder, mean=float(curve.mean()), scale=float(curve.std()) or 1.0)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_COLUMNS])
    rest = len(names) - SHOWN_COLUMNS
    return f"{shown} and {rest} more" if rest > 0 else shown
