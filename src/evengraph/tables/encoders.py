"""Column encoders: numbers, dates, booleans, categories, lists and vectors as features.

Numbers are scaled as they are, or after a logarithm if heavy-tailed. On the tables of two social
networks PowerTransformer and QuantileTransformer were as good and slower; standardising alone, or
RobustScaler, lost ten points of balanced accuracy. The logarithm also orders new values beyond the
largest. Quantiles serve where it does not help: 10^9 plus a heavy tail, a few wild cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evengraph.core.errors import ArgumentError, listed, short
from evengraph.core.schema import SchemaError, read
from evengraph.core.untrusted import sorted_unique
from evengraph.tables.cells import (
    LISTS,
    Floats,
    Ints,
    canonical_names,
    check_form,
    column_kind,
    date_form,
    distinct_names,
    is_empty,
    location,
    seconds_of,
    text_without,
    to_numbers,
    to_signs,
)
from evengraph.tables.text import (
    Entries,
    Grams,
    MixedAmountsError,
    Text,
    UselessColumnError,
    Words,
    fit_text,
    parse_json,
)

MAX_FEATURE = 1e6  # of scaled features: an extreme cell in new rows must not dominate all others
# Beyond either a column is heavy-tailed; skewness 2 is that of the exponential distribution.
HEAVY_SKEWNESS, HEAVY_KURTOSIS = 2.0, 10.0
# Quantiles that are saved: of a small table fewer, since they would be nearly all of its cells.
NUM_QUANTILES, CELLS_PER_QUANTILE = 200, 5
# How often a category or an item must occur to be saved by its name, which may be a person's; less
# often in a column with few distinct values.
MIN_FREQUENCY, MIN_FREQUENCY_OF_FEW, FEW_VALUES = 5, 2, 10
MAX_CATEGORIES = 50
MOSTLY_COMMON = 0.5  # share of cells with common values from which on these alone are told apart
PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}  # in seconds
MAX_BYTES = 2**30  # of a column's 0/1 features, dense; beyond it only the most frequent are used
NOISE = 2.0**-24  # half of what single precision tells apart, for a feature of 1
LARGEST = 1e100  # in a vector, so that sums of squares stay finite


@dataclass(frozen=True, kw_only=True)
class Number:
    """Numbers: empty cells get the median, then mean 0 and standard deviation 1."""

    column: str
    median: float
    mean: float
    scale: float
    GRAIN: ClassVar[float] = 1.0  # decoded numbers are decimals of it

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def fit_numbers(cls, column: str, numbers: Floats, **others: Any) -> Self:
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
            **others,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.column,)

    def _parse(self, values: Any, table: str) -> Floats:
        return to_numbers(values, table)

    def curve(self, numbers: Floats) -> Floats:
        """The numbers to be scaled, (N,)."""
        return numbers

    def transform(self, values: Any, table: str) -> Floats:
        """The feature of every row, (N, 1)."""
        numbers = self._parse(values, table)
        numbers = self.curve(np.where(np.isnan(numbers), self.median, numbers))
        with np.errstate(over="ignore"):
            scaled = numbers / self.scale - self.mean / self.scale
        return np.asarray(np.clip(scaled, -MAX_FEATURE, MAX_FEATURE)[:, None])

    def decode(self, features: Floats) -> Floats:
        """The numbers that gave some features of single precision, without its noise, (N,)."""
        noise = NOISE * np.maximum(np.abs(features), 1)
        low, numbers, high = (
            self.uncurve((features + part) * self.scale + self.mean) for part in (-noise, 0, noise)
        )
        with np.errstate(all="ignore"):  # where both are equal there is no noise
            steps = 10.0 ** -np.ceil(np.log10(np.abs(high - low) / self.GRAIN)) / self.GRAIN
            rounded = np.round(numbers * steps) / steps
        return np.where(np.isfinite(rounded), rounded, numbers) + 0.0  # no -0

    def uncurve(self, values: Floats) -> Floats:
        """The inverse of `curve`."""
        return values


@dataclass(frozen=True, kw_only=True)
class Date(Number):
    """Dates: seconds since 1970, treated as numbers, and sine and cosine of day, week and year.

    `form` is empty for dates of ISO 8601.
    """

    GRAIN = PERIODS["day"]  # so that midnight stays midnight
    form: str = ""
    cycles: tuple[Literal["day", "week", "year"], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_form(self.form)

    @classmethod
    def fit(cls, values: Any, table: str, form: str) -> Self:
        """Fit to a column; it has the cycles in which it varies."""
        seconds = seconds_of(values, table, form)
        known = seconds[~np.isnan(seconds)]
        length = np.ptp(known) if len(known) else 0.0
        varies = {
            "day": bool((known % PERIODS["day"] != known[:1] % PERIODS["day"]).any()),
            "week": length > 2 * PERIODS["week"],
            "year": length > PERIODS["year"] / 2,
        }
        cycles: Any = tuple(name for name in PERIODS if varies[name])
        return cls.fit_numbers(str(values.name), seconds, form=form, cycles=cycles)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        waves = (f"{self.column}: {w} of the {c}" for c in self.cycles for w in ("sine", "cosine"))
        return (self.column, *waves)

    def _parse(self, values: Any, table: str) -> Floats:
        return seconds_of(values, table, self.form)

    def transform(self, values: Any, table: str) -> Floats:
        """The features of every row, (N, 1 + 2 cycles); 0 in the cycles for an empty cell."""
        parts, seconds = [super().transform(values, table)], self._parse(values, table)
        for cycle in self.cycles:
            angle = 2 * np.pi * (seconds % PERIODS[cycle]) / PERIODS[cycle]
            parts.append(np.nan_to_num(np.stack([np.sin(angle), np.cos(angle)], axis=1)))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, kw_only=True)
class Log(Number):
    """Heavy-tailed numbers: sign(x) log(1 + |x| / unit), then scaled."""

    unit: float  # a small value of the column: 10^-9 to 10^-3 is treated like 1 to 10^6

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.unit > 0:
            raise ValueError("unit must be above 0")

    def curve(self, numbers: Floats) -> Floats:
        """The signed logarithm, (N,)."""
        return _signed_log(numbers, self.unit)

    def uncurve(self, values: Floats) -> Floats:
        """The numbers with these logarithms, (N,)."""
        return np.asarray(np.sign(values) * self.unit * np.expm1(np.abs(values)))


@dataclass(frozen=True, kw_only=True)
class Quantile(Number):
    """Heavy-tailed numbers that a logarithm does not help: normal scores of their ranks."""

    quantiles: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.quantiles:
            raise ValueError("quantiles must not be empty")

    def curve(self, numbers: Floats) -> Floats:
        """Normal scores, (N,); ties get the middle of their ranks, as in scikit-learn."""
        from scipy.special import ndtri

        quantiles = np.array(self.quantiles)
        ranks = np.linspace(0, 1, len(quantiles))
        upper = np.interp(numbers, quantiles, ranks)
        lower = -np.interp(-numbers, -quantiles[::-1], -ranks[::-1])
        end = 0.5 / len(quantiles)
        return np.asarray(ndtri(np.clip((upper + lower) / 2, end, 1 - end)))

    def uncurve(self, values: Floats) -> Floats:
        """The numbers with these scores, (N,)."""
        from scipy.special import ndtr

        ranks = np.linspace(0, 1, len(self.quantiles))
        return np.asarray(np.interp(ndtr(values), ranks, self.quantiles))

    def decode(self, features: Floats) -> Floats:
        """Numbers at these ranks, (N,), whole if most quantiles are, of which some lie between."""
        numbers = self.uncurve(features * self.scale + self.mean)
        whole = np.mean(np.unique(self.quantiles) % 1 == 0) > 0.5
        return np.round(numbers) if whole else numbers


def fit_number(column: str, numbers: Floats) -> Number:
    """Fit the encoder that suits the tails of a column of numbers, (N,)."""
    plain = Number.fit_numbers(column, numbers)
    known = numbers[~np.isnan(numbers)]
    # hardly ever more than the first values are sorted
    few = all(len(np.unique(some)) <= 10 for some in (known[:1000], known))
    if few or not is_heavy_tailed(known):
        return plain
    fields: dict[str, Any] = {"column": column, "median": plain.median, "mean": 0.0, "scale": 1.0}
    # a small absolute value; a typical one if signs differ, to keep one mode
    share = 0.5 if known.min() < 0 < known.max() else 0.05
    unit = float(np.quantile(np.abs(known[known != 0]), share))
    encoder: Number
    if not is_heavy_tailed(_signed_log(known[known != 0], unit)):
        encoder = Log(**fields, unit=unit)
    else:
        count = max(2, min(NUM_QUANTILES, len(known) // CELLS_PER_QUANTILE))
        quantiles = np.quantile(known, np.linspace(0, 1, count))
        quantiles = np.maximum.accumulate(quantiles)  # rounding must not break their order
        encoder = Quantile(**fields, quantiles=tuple(map(float, quantiles)))
    curve = encoder.curve(np.where(np.isnan(numbers), encoder.median, numbers))
    return replace(encoder, mean=float(curve.mean()), scale=float(curve.std()) or 1.0)


def is_heavy_tailed(numbers: Floats) -> bool:
    """Whether skewness or excess kurtosis of the numbers, (N,), is large."""
    if not len(numbers):
        return False
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    centred = scaled - scaled.mean()
    scores = centred / (centred.std() or 1.0)
    squares = scores * scores  # products: powers are ten times slower
    skewness, kurtosis = np.mean(squares * scores), np.mean(squares * squares) - 3
    return bool(abs(skewness) > HEAVY_SKEWNESS or kurtosis > HEAVY_KURTOSIS)


def _signed_log(numbers: Floats, unit: float) -> Floats:
    """sign(x) log(1 + |x| / unit) without overflow, (N,)."""
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf, which gives 0
        logs: Floats = np.logaddexp(0.0, np.log(np.abs(numbers)) - np.log(unit))
    return np.sign(numbers) * logs


def check_scale(scale: float) -> None:
    """Raise ValueError for 0, which features are divided by."""
    if scale == 0:
        raise ValueError("scale must not be 0")


def check_varies(numbers: Floats) -> None:
    """Raise an error if known numbers are all equal, or there are none."""
    if not len(numbers) or (numbers == numbers[0]).all():
        raise UselessColumnError("it is constant")


@dataclass(frozen=True, kw_only=True)
class Boolean:
    """Booleans: 1 for true, -1 for false, 0 for an empty cell."""

    column: str

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Check that the column is not constant."""
        check_varies(to_signs(values, table))
        return cls(column=str(values.name))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.column,)

    def transform(self, values: Any, table: str) -> Floats:
        """The feature of every row, (N, 1)."""
        return to_signs(values, table)[:, None]


@dataclass(frozen=True, kw_only=True)
class Category:
    """One-hot encoding of common values, and one feature for all rare ones; empty is all 0.

    Rare values are not stored: a name or an address among them would be saved with the model.
    """

    column: str
    common: tuple[str, ...]
    rare: bool

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Find the common values."""
        codes, names = distinct_names(values[~is_empty(values)])
        distinct = len(names)
        if distinct == len(codes) > 1:
            raise UselessColumnError("all its values are distinct, like ids")
        if distinct > max(MAX_CATEGORIES, len(codes) / 2):
            raise UselessColumnError(f"{distinct} of its {len(codes)} values are distinct")
        if distinct == 1 and len(codes) == len(values):
            raise UselessColumnError("it is constant")
        least = MIN_FREQUENCY_OF_FEW if distinct <= FEW_VALUES else MIN_FREQUENCY
        order = np.argsort(names)
        counts = np.bincount(codes, minlength=distinct)[order]
        rare = counts < least
        if (~rare).sum() >= MAX_CATEGORIES:  # one feature is that of all rare ones
            rare[np.argsort(counts, kind="stable")[: 1 - MAX_CATEGORIES]] = True
        common = tuple(str(name) for name in names[order[~rare]])
        if not common and distinct > 1:
            raise UselessColumnError(f"none of its {distinct} values occurs {least} times")
        return cls(column=str(values.name), common=common, rare=bool(rare.any()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        categories = (*self.common, "(rare)") if self.rare else self.common
        return tuple(f"{self.column}={name}" for name in categories)

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, len(names)); a new value counts as rare."""
        indices = {name: index for index, name in enumerate(self.common)}
        other = len(self.common) if self.rare else -1
        codes, names = distinct_names(values)
        codes = np.array([*(indices.get(name, other) for name in names), -1], np.int64)[codes]
        codes[is_empty(values)] = -1
        rows = np.flatnonzero(codes >= 0)
        return Entries((len(values), len(self.names)), rows, codes[rows])


class Lists(NamedTuple):
    """The items of a column of lists, one after another: row of each, (I,), and the items."""

    rows: Ints
    items: Any


@dataclass(frozen=True, kw_only=True)
class Items:
    """Lists of items: 1 where a node has an item, 0 elsewhere; unknown items are ignored."""

    column: str
    items: tuple[str, ...]
    separator: str  # empty for JSON and for lists as objects
    nodes: int  # that had a list at fitting
    rare: int  # items left out because too few nodes have them
    beyond: int  # items left out to bound the memory

    @classmethod
    def fit(cls, values: Any, separator: str, lists: Lists) -> Self:
        """Find the items that enough nodes have among the lists of a column."""
        rows, codes, names = _pairs(lists)
        counts = np.bincount(codes, minlength=len(names))
        distinct = int((counts > 0).sum())
        least = MIN_FREQUENCY_OF_FEW if distinct <= FEW_VALUES else MIN_FREQUENCY
        common = np.flatnonzero(counts >= least)
        varying = common[counts[common] < len(values)]
        if not len(varying):
            rare = f"none of its {distinct} items occurs on {least} nodes"
            raise UselessColumnError("every node has the same items" if len(common) else rare)
        most = max(1, MAX_BYTES // (4 * len(values)))
        frequent = varying[np.argsort(-counts[varying], kind="stable")][:most]
        return cls(
            column=str(values.name),
            items=tuple(sorted(str(names[index]) for index in frequent)),
            separator=separator,
            nodes=len(sorted_unique(rows)),
            rare=distinct - len(common),
            beyond=len(varying) - len(frequent),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}={item}" for item in self.items)

    def transform(self, values: Any, table: str) -> Entries:
        """The features of every row, (N, len(items))."""
        rows, codes, names = _pairs(_parse_lists(values, table, self.separator))
        index = pd.Index(self.items, dtype=object).get_indexer(names)[codes]
        known = index >= 0
        return Entries((len(values), len(self.items)), rows[known], index[known])


@dataclass(frozen=True, kw_only=True)
class Vector:
    """Vectors of one length: centred, then divided by one number; an empty cell is the mean."""

    column: str
    mean: tuple[float, ...]
    scale: float

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Compute the mean vector and the standard deviation of all dimensions together."""
        vectors = _vectors(values, table, None)
        vectors = vectors[~np.isnan(vectors).any(axis=1)]
        if not np.abs(vectors).max(initial=0) <= LARGEST:
            where = location(table, values.name)
            raise ValueError(f"{where} holds a vector with a number above {LARGEST:g}.")
        mean = vectors.mean(axis=0)
        scale = float(np.sqrt(((vectors - mean) ** 2).mean()))
        if not scale:
            raise UselessColumnError("it is constant")
        return cls(column=str(values.name), mean=tuple(map(float, mean)), scale=scale)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}[{index}]" for index in range(len(self.mean)))

    def transform(self, values: Any, table: str) -> Floats:
        """The features of every row, (N, len(mean))."""
        scaled = (_vectors(values, table, len(self.mean)) - np.array(self.mean)) / self.scale
        return np.asarray(np.clip(np.nan_to_num(scaled), -MAX_FEATURE, MAX_FEATURE))


def _parse_lists(values: Any, table: str, separator: str) -> Lists:
    rows = np.flatnonzero(~is_empty(values))
    text = text_without(values)
    if text is not None and separator:
        lengths, items = text.split(separator)
        return Lists(np.repeat(rows, lengths), items.rename(values.name))
    cells, lists = values.iloc[rows], list[Any]()
    if text is None:  # a cell may also be a single item
        lists = [cell if isinstance(cell, LISTS) else [cell] for cell in cells.to_numpy(object)]
    else:
        lists = text.lists or parse_json(cells) or []
        if len(lists) < len(cells):  # one by one, to find the first error
            wrong = (place for place, cell in enumerate(cells) if parse_json([cell]) is None)
            place = next(wrong, 0)
            where, cell = location(table, values.name, int(rows[place])), short(cells.iloc[place])
            raise ValueError(f"{where} holds {cell}; expected a list such as [1, 2].")
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    arrays = len(lists) and all(isinstance(cell, np.ndarray) for cell in lists)
    items = np.concatenate(lists) if arrays else list(chain.from_iterable(lists))
    dtype = None if len(items) else object
    column = pd.Series(items, dtype=dtype, name=values.name)
    column.attrs["file"] = table  # for errors
    return Lists(np.repeat(rows, lengths), column)


def _separator(values: Any) -> str:
    text = text_without(values)
    return "" if text is None else text.list_separator or ""


def _pairs(lists: Lists) -> tuple[Ints, Ints, NDArray[Any]]:
    """Row and item of every distinct pair, (P,) each, and the names of the items."""
    codes, names = distinct_names(lists.items)
    named = np.append(names != "", False)[codes]  # not for blanks, nor for -1: missing
    count = max(len(names), 1)
    pairs = sorted_unique(lists.rows[named] * count + codes[named])
    return pairs // count, pairs % count, names


def _are_vectors(lists: Lists) -> bool:
    """Whether lists hold numbers that are not whole or negative, or of one length with repeats."""
    # a list of items such as ids holds whole numbers and each of them once
    if lists.items.dtype.kind not in "iuf" or not len(lists.items):
        return False
    numbers = lists.items.to_numpy(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if (finite < 0).any() or (finite % 1 != 0).any():
        return True
    _, lengths = np.unique(lists.rows, return_counts=True)
    order = np.lexsort((numbers, lists.rows))
    with np.errstate(invalid="ignore"):  # infinity minus itself is no repeat
        repeated = (np.diff(numbers[order]) == 0) & (np.diff(lists.rows[order]) == 0)
    return bool(lengths[0] > 1 and (lengths == lengths[0]).all() and repeated.any())


def _vectors(values: Any, table: str, size: int | None) -> Floats:
    lists = _parse_lists(values, table, "")
    owners, lengths = np.unique(lists.rows, return_counts=True)
    expected = size or int(np.bincount(lengths).argmax())
    numbers = np.asarray(pd.to_numeric(lists.items, errors="coerce"), np.float64)
    wrong = lists.rows[~np.isfinite(numbers)]
    if len(wrong):
        raise ValueError(
            f"{location(table, values.name, int(wrong[0]))} holds a list in which an item is not a "
            "finite number; other rows hold vectors."
        )
    odd = np.flatnonzero(lengths != expected)
    if len(odd):
        raise ArgumentError(
            f"{location(table, values.name, int(owners[odd[0]]))} holds {lengths[odd[0]]} numbers, "
            f"expected {expected}: vectors must have one length; fix the cell or drop the column.",
            argument="drop",
            value=str(values.name),
        )
    vectors = np.full((len(values), expected), np.nan)
    vectors[owners] = numbers.reshape(-1, expected)
    return vectors


ColumnEncoder = (
    Number | Date | Log | Quantile | Boolean | Category | Words | Text | Grams | Items | Vector
)
KINDS: dict[str, type[ColumnEncoder]] = {
    kind.__name__.lower(): kind for kind in get_args(ColumnEncoder)
}


def fit_column(values: Any, table: str, date_order: str | None = None) -> ColumnEncoder:
    """Fit an encoder to a column; text of four words or more on average is long."""
    name, form = str(values.name), date_form(values, table, date_order)
    kind = "date" if form is not None else column_kind(values, table)
    if kind == "empty":
        raise UselessColumnError("it is empty")
    if kind == "date":
        return Date.fit(values, table, form or "")
    if kind == "number":
        return fit_number(name, to_numbers(values, table))
    if kind == "boolean":
        return Boolean.fit(values, table)
    if kind == "list":
        lists = _parse_lists(values, table, separator := _separator(values))
        if _are_vectors(lists):
            return Vector.fit(values, table)
        return Items.fit(values, separator, lists)
    cells = text_without(values)
    if cells is not None and cells.num_words().mean() >= 4:
        return fit_text(values)
    try:
        category = Category.fit(values, table)
        common = np.isin(canonical_names(values).astype(str), category.common).mean()
        if common >= MOSTLY_COMMON or cells is None:
            return category
        return Grams.fit(values, cells) or category
    except UselessColumnError:
        if cells is not None and cells.matches(r"[+-]?\d+(?:,\d+)?").all():
            text = f"the comma in {cells.first(cells.matches('.*,.*'))!r} may be of thousands or of"
            raise UselessColumnError(f"{text} decimals; write a point for decimals") from None
        if cells is not None and (two := cells.two_forms()):
            text = f"it looks like amounts in two forms, such as {two[0]!r} and {two[1]!r}"
            raise MixedAmountsError(f"{text}; write all in one form, such as 5.79") from None
        grams = None if cells is None else Grams.fit(values, cells)
        if grams is None:
            raise
        return grams


def describe_encoders(encoders: Iterable[ColumnEncoder]) -> list[str]:
    """Sentences about unusual dates, heavy-tailed numbers and lists."""
    encoders = list(encoders)
    forms = [f"{e.column} ({e.form})" for e in encoders if isinstance(e, Date) and e.form]
    sentences = [f"Dates: {', '.join(forms)}."] if forms else []
    for encoder in encoders:
        if isinstance(encoder, Date) and encoder.cycles:
            sentences.append(f"Time of {encoder.column} in the {', '.join(encoder.cycles)}.")
        if isinstance(encoder, Grams):
            count = len(encoder.names)
            sentences.append(f"Column {encoder.column!r}: {count} features of its spelling.")
        if isinstance(encoder, Category):
            spelt = Counter(value.lower() for value in encoder.common)
            alike = [value for value in encoder.common if spelt[value.lower()] > 1]
            if alike:
                text = f"{listed(alike[:5])} differ in capitals alone, and are values apart"
                sentences.append(f"Column {encoder.column!r}: {text}.")
    for title, kind in (("Logarithm", Log), ("Quantiles", Quantile)):
        names = [encoder.column for encoder in encoders if isinstance(encoder, kind)]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        sentences += [f"{title} of {shown} (heavy-tailed)."] if names else []
    for encoder in encoders:
        if isinstance(encoder, Vector):
            text = f"vectors of {len(encoder.mean):,} numbers, scaled together"
        elif isinstance(encoder, Items):
            text = f"{len(encoder.items):,} items of {encoder.nodes:,} nodes as 0/1 features"
            text += f"; rare items left out: {encoder.rare:,}" if encoder.rare else ""
            if encoder.beyond:
                text += f"; less frequent items left out to save memory: {encoder.beyond:,}"
        else:
            continue
        sentences.append(f"Column {encoder.column!r}: {text}.")
    return sentences


def as_dict(encoder: ColumnEncoder) -> dict[str, Any]:
    """The encoder as a dict that JSON can hold."""
    return {"kind": type(encoder).__name__.lower(), **asdict(encoder)}


def from_dict(stored: Mapping[str, Any], *path: str | int) -> ColumnEncoder:
    """The encoder from the dict of `as_dict`."""
    kind, fields = stored.get("kind"), {k: v for k, v in stored.items() if k != "kind"}
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"must be one of {', '.join(KINDS)}, got {short(kind)}", *path, "kind")
    return read(KINDS[kind], fields, *path)
