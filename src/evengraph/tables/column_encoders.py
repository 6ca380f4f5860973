"""One column of a table to numbers: fitted once, then plain values that JSON can hold.

What fitting found (with scikit-learn) is all that `transform` uses, so that rows of next week go
through exactly what the rows of today went through.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evengraph.tables.cells import Floats, booleans, empty, names_of, numbers, place, seconds

MOST_CATEGORIES = 50
FEW_VALUES = 10
LEAST_OFTEN, LEAST_OFTEN_OF_FEW = 5, 2
"""How often a category must come to be kept by its name, which may be a person's; less often where
a column has few different values."""

TEXT_BUCKETS = 256
LARGEST = 1e6
"""No feature is larger: a cell of next week that is out of all bounds must not swamp the rest."""


class NothingToLearn(ValueError):
    """A column that cannot help; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """Numbers: empty cells get the median, then mean 0 and deviation 1."""

    column: str
    median: float
    mean: float
    scale: float

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Find median, mean and deviation."""
        return cls(column=str(values.name), **_location(cls.read(values, table)))

    @staticmethod
    def read(values: Any, table: str) -> Floats:
        """The cells as numbers."""
        return numbers(values, table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.column,)

    def transform(self, values: Any, table: str) -> Floats:
        """The feature of every row, (N, 1)."""
        found = self.read(values, table)
        found = np.where(np.isnan(found), self.median, found)
        with np.errstate(over="ignore"):
            scaled = found / self.scale - self.mean / self.scale
        bounded: Floats = np.clip(scaled, -LARGEST, LARGEST)[:, None]
        return bounded


@dataclass(frozen=True, kw_only=True)
class Date(Number):
    """Dates: seconds since 1970, treated as numbers."""

    @staticmethod
    def read(values: Any, table: str) -> Floats:
        """The cells as seconds."""
        return seconds(values, table)


@dataclass(frozen=True, kw_only=True)
class Boolean:
    """True is 1, false is -1, an empty cell 0."""

    column: str

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Nothing to find, but a column that never changes is refused."""
        _refuse_constant(booleans(values, table))
        return cls(column=str(values.name))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (self.column,)

    def transform(self, values: Any, table: str) -> Floats:
        """The feature of every row, (N, 1)."""
        return booleans(values, table)[:, None]


@dataclass(frozen=True, kw_only=True)
class Category:
    """A column for each common value, and one for all others if some were rare; empty is all 0.

    Rare values are not kept: a name or an address among them would travel with the model.
    """

    column: str
    common: tuple[str, ...]
    rare: bool

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Find the values that come often enough, the most common ones."""
        from sklearn.preprocessing import OneHotEncoder

        names = names_of(values[~empty(values)])
        different = len(set(names))
        if different == len(names) > 1:
            raise NothingToLearn("no value comes twice, as with an id")
        if different > max(MOST_CATEGORIES, len(names) / 2):
            raise NothingToLearn(f"{different} of {len(names)} values are different")
        if different == 1 and len(names) == len(values):
            raise NothingToLearn("it has the same value everywhere")
        least = LEAST_OFTEN_OF_FEW if different <= FEW_VALUES else LEAST_OFTEN
        encoder = OneHotEncoder(min_frequency=least, max_categories=MOST_CATEGORIES)
        encoder.fit(names.astype(object)[:, None])
        found = encoder.infrequent_categories_[0]
        rare = set() if found is None else set(found)
        common = tuple(str(name) for name in encoder.categories_[0] if name not in rare)
        if not common and different > 1:
            raise NothingToLearn(f"none of its {different} values comes {least} times")
        return cls(column=str(values.name), common=common, rare=bool(rare))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        named = (*self.common, "(rare)") if self.rare else self.common
        return tuple(f"{self.column}={name}" for name in named)

    def transform(self, values: Any, table: str) -> Floats:
        """The features of every row, (N, common and perhaps 1); a new value is a rare one."""
        places = {name: index for index, name in enumerate(self.common)}
        other = len(self.common) if self.rare else -1
        found = np.array([places.get(name, other) for name in names_of(values)], dtype=np.int64)
        found[empty(values)] = -1
        features = np.zeros((len(values), len(self.names)))
        rows = np.flatnonzero(found >= 0)
        features[rows, found[rows]] = 1
        return features


@dataclass(frozen=True, kw_only=True)
class Text:
    """Long text: words hashed into buckets, TF-IDF, length 1; empty cells are all 0."""

    column: str
    idf: tuple[float, ...]

    @classmethod
    def fit(cls, values: Any, table: str) -> Self:
        """Find how rare the words of each bucket are."""
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = _hashed(values, TEXT_BUCKETS)
        if not counts.nnz:
            raise NothingToLearn("it holds no words")
        idf = TfidfTransformer().fit(counts).idf_
        return cls(column=str(values.name), idf=tuple(float(value) for value in idf))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{self.column}#{bucket}" for bucket in range(len(self.idf)))

    def transform(self, values: Any, table: str) -> NDArray[np.float32]:
        """The features of every row, (N, buckets)."""
        from sklearn.preprocessing import normalize

        weighted = _hashed(values, len(self.idf)).multiply(np.array(self.idf)[None])
        unit = normalize(weighted.tocsr()).astype(np.float32)  # dense only when small
        return np.asarray(unit.toarray())


ColumnEncoder = Number | Date | Boolean | Category | Text
KINDS: dict[str, type[ColumnEncoder]] = {
    "number": Number,
    "date": Date,
    "boolean": Boolean,
    "category": Category,
    "text": Text,
}


def as_dict(encoder: ColumnEncoder) -> dict[str, Any]:
    """An encoder as JSON can hold it."""
    kind = next(name for name, known in KINDS.items() if known is type(encoder))
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(encoder).items()}
    return {"kind": kind, **plain}


def from_dict(stored: dict[str, Any]) -> ColumnEncoder:
    """The encoder that `as_dict` stored."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    kind = fields.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"kind of an encoder must be one of {', '.join(KINDS)}, got {kind!r}.")
    try:
        return KINDS[kind](**fields)
    except TypeError as error:
        raise ValueError(f"The stored encoder of kind {kind!r} is not whole: {error}.") from None


def is_long(values: Any) -> bool:
    """Whether text is prose: four words a cell or more, on the whole."""
    cells = values[~empty(values)]
    return bool(np.mean([len(str(cell).split()) for cell in cells]) >= 4)


def fit_location(column: str, found: Floats) -> Number:
    """An encoder of numbers that are no column of a table."""
    return Number(column=column, **_location(found))


def check_columns(table: Any, columns: Any, name: str) -> None:
    """Refuse a table without one of these columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(
            f"{place(name, missing[0])} is missing; there are "
            f"{', '.join(map(str, table.columns)) or 'none'}."
        )


def _location(found: Floats) -> dict[str, float]:
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    _refuse_constant(found[~np.isnan(found)])
    largest = float(np.nanmax(np.abs(found)))  # squares of very large numbers would overflow
    imputer = SimpleImputer(strategy="median").fit(found[:, None] / largest)
    scaler = StandardScaler().fit(imputer.transform(found[:, None] / largest))
    return {
        "median": float(imputer.statistics_[0]) * largest,
        "mean": float(scaler.mean_[0]) * largest,
        "scale": float(scaler.scale_[0]) * largest,
    }


def _refuse_constant(found: NDArray[Any]) -> None:
    if not len(found) or (found == found[0]).all():
        raise NothingToLearn("it has the same value everywhere")


def _hashed(values: Any, buckets: int) -> Any:
    """How often words of each bucket come in every cell, sparse, (N, buckets)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=buckets, alternate_sign=False, norm=None)
    return hashing.transform(np.where(empty(values), "", names_of(values)))
