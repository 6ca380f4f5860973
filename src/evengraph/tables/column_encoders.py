"""Encoders of one column: fitted once with scikit-learn, then plain values that JSON can hold.

`transform` uses only those values, so that new rows are encoded exactly as the rows at fitting.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from evengraph.core.stored_types import check_types
from evengraph.tables.cells import (
    Floats,
    column_kind,
    distinct_names,
    is_empty,
    text_without,
    to_numbers,
    to_signs,
)
from evengraph.tables.date_forms import date_form
from evengraph.tables.entries import Entries
from evengraph.tables.list_encoders import Items, Vector, fit_list
from evengraph.tables.number_encoders import (
    Date,
    Log,
    Number,
    Quantile,
    UselessColumnError,
    check_varies,
    fit_number,
)
from evengraph.tables.text_encoders import Text, Words, fit_text

MAX_CATEGORIES = 50
FEW_VALUES = 10
MIN_FREQUENCY, MIN_FREQUENCY_OF_FEW = 5, 2
"""How often a category must occur to be saved by its name, which may be a person's; less often in a
column with few distinct values."""


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
        from sklearn.preprocessing import OneHotEncoder

        codes, names = distinct_names(values[~is_empty(values)])
        distinct = len(names)
        if distinct == len(codes) > 1:
            raise UselessColumnError("all its values are distinct, like ids")
        if distinct > max(MAX_CATEGORIES, len(codes) / 2):
            raise UselessColumnError(f"{distinct} of its {len(codes)} values are distinct")
        if distinct == 1 and len(codes) == len(values):
            raise UselessColumnError("it is constant")
        least = MIN_FREQUENCY_OF_FEW if distinct <= FEW_VALUES else MIN_FREQUENCY
        encoder = OneHotEncoder(min_frequency=least, max_categories=MAX_CATEGORIES)
        order = np.argsort(names)  # numbers in the order of the names are sorted faster than names
        encoder.fit(np.argsort(order)[codes][:, None])
        infrequent = encoder.infrequent_categories_[0]
        rare = set() if infrequent is None else set(infrequent)
        common = tuple(str(names[order[i]]) for i in encoder.categories_[0] if i not in rare)
        if not common and distinct > 1:
            raise UselessColumnError(f"none of its {distinct} values occurs {least} times")
        return cls(column=str(values.name), common=common, rare=bool(rare))

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


ColumnEncoder = Number | Date | Log | Quantile | Boolean | Category | Words | Text | Items | Vector
KINDS: dict[str, type[ColumnEncoder]] = {
    kind.__name__.lower(): kind
    for kind in (Number, Date, Log, Quantile, Boolean, Category, Words, Text, Items, Vector)
}


def as_dict(encoder: ColumnEncoder) -> dict[str, Any]:
    """The encoder as a dict that JSON can hold."""
    return {"kind": type(encoder).__name__.lower(), **asdict(encoder)}


def from_dict(stored: dict[str, Any]) -> ColumnEncoder:
    """The encoder from the dict of `as_dict`."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind of an encoder must be one of {', '.join(KINDS)}, got {kind!r}.")
    try:
        encoder = KINDS[kind](**fields)
    except TypeError as error:
        raise ValueError(f"The stored encoder of kind {kind!r} is incomplete: {error}.") from None
    check_types(encoder)
    return encoder


def fit_column(values: Any, table: str, date_order: str | None = None) -> ColumnEncoder:
    """Fit an encoder to a column; text of four words or more on average is long."""
    form = date_form(values, table, date_order)
    if form is not None:
        return Date.fit(values, table, form)
    kind: str = column_kind(values, table)
    if kind == "empty":
        raise UselessColumnError("it is empty")
    if kind == "text":
        cells = text_without(values)
        kind = "text" if cells is not None and cells.num_words().mean() >= 4 else "category"
    if kind == "number":
        return fit_number(str(values.name), to_numbers(values, table))
    if kind == "text":
        return fit_text(values, table)
    if kind == "list":
        return fit_list(values, table)
    return KINDS[kind].fit(values, table)
