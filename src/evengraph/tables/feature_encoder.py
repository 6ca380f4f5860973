"""FeatureEncoder: the columns of a nodes table to one matrix, the same way every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.tables.cells import kind_of, numbers, table_name
from evengraph.tables.column_encoders import (
    Boolean,
    Category,
    ColumnEncoder,
    Date,
    NothingToLearn,
    Number,
    Text,
    as_dict,
    check_columns,
    fit_location,
    from_dict,
    is_long,
)
from evengraph.tables.notes import Note, NoteKind
from evengraph.tables.structure import STRUCTURAL, structural_features

VERSION = 2


@dataclass(frozen=True, kw_only=True)
class FeatureEncoder:
    """Turns rows into features with what it found in the rows that it was fitted to.

    Numbers are imputed with the median and scaled, dates are numbers, booleans 1 and -1, short
    text is one-hot, long text hashed TF-IDF. A column that is empty or the same everywhere is left
    out. Without any column the features come from the edges: log degree, log PageRank and the
    clustering coefficient.

    Args:
        columns: One encoder for each column in use.
        structural: Scaling of the features from the edges; empty when there are columns.
        plain: Columns that are features already: taken as they are, only imputed; name to median.
        notes: What was left out and why.
    """

    columns: tuple[ColumnEncoder, ...] = ()
    structural: tuple[Number, ...] = ()
    plain: tuple[tuple[str, float], ...] = ()
    notes: tuple[Note, ...] = ()

    @classmethod
    def fit(cls, nodes: Any, columns: Sequence[str], *, edge_index: Tensor) -> Self:
        """Learn from the rows of a table.

        Args:
            nodes: A pandas DataFrame, a row a node.
            columns: The columns to use.
            edge_index: Both directions of every edge, used where no column is left.

        Shapes:
            edge_index: (2, E)
        """
        table = table_name(nodes, "nodes")
        check_columns(nodes, columns, table)
        encoders: list[ColumnEncoder] = []
        notes = []
        for column in columns:
            try:
                encoders.append(_fit_column(nodes[column], table))
            except NothingToLearn as reason:
                text = f"Column {column!r} was left out: {reason}."
                notes.append(Note(NoteKind.FEATURES, text))
        if encoders:
            return cls(columns=tuple(encoders), notes=tuple(notes))
        text = "No feature columns: degree, PageRank and clustering are the features."
        notes.append(Note(NoteKind.FEATURES, text))
        found = structural_features(edge_index, len(nodes))
        structural = []
        for name, values in zip(STRUCTURAL, found.T, strict=True):
            try:
                structural.append(fit_location(name, values))
            except NothingToLearn:  # a ring: every node alike; the feature is 0 throughout
                middle = float(values[0])
                number = Number(column=name, median=middle, mean=middle, scale=1.0)
                structural.append(number)
        return cls(structural=tuple(structural), notes=tuple(notes))

    @classmethod
    def as_they_are(cls, names: Sequence[str], features: Any) -> Self:
        """An encoder of features that are numbers already and are not scaled.

        Args:
            names: A name for each feature.
            features: Array to take medians from, for empty cells.

        Shapes:
            features: (N, F)
        """
        medians = [0.0] * len(names)
        for index in np.flatnonzero(np.isnan(features).any(axis=0)):
            known = features[~np.isnan(features[:, index]), index]
            medians[index] = float(np.median(known)) if len(known) else 0.0
        return cls(plain=tuple(zip(names, medians, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each feature, in order, (F,)."""
        if self.plain:
            return tuple(name for name, _ in self.plain)
        return tuple(n for encoder in self.columns or self.structural for n in encoder.names)

    @property
    def hashed(self) -> NDArray[np.bool_]:
        """Which features are buckets of hashed words, some of which stay empty, (F,)."""
        if not self.columns:
            return np.zeros(len(self.names), dtype=bool)
        kinds = [isinstance(encoder, Text) for encoder in self.columns]
        return np.repeat(kinds, [len(encoder.names) for encoder in self.columns])

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return tuple(name for name, _ in self.plain) or tuple(e.column for e in self.columns)

    def transform(self, nodes: Any, *, edge_index: Tensor | None = None) -> Tensor:
        """The features of every row.

        Args:
            nodes: A pandas DataFrame with the columns that `needs` names; others are not read.
            edge_index: Both directions of every edge; needed by features from the edges.

        Shapes:
            edge_index: (2, E)
            returns: float32, (N, F)
        """
        table = table_name(nodes, "nodes")
        check_columns(nodes, self.needs, table)
        parts: list[NDArray[Any]] = [e.transform(nodes[e.column], table) for e in self.columns]
        if self.plain:
            parts.append(self._plain(nodes, table))
        if self.structural:
            if edge_index is None:
                raise ValueError("edge_index must be given: the features come from the edges.")
            found = structural_features(edge_index, len(nodes))
            means = np.array([number.mean for number in self.structural])
            parts.append((found - means) / [number.scale for number in self.structural])
        features = np.concatenate([part.astype(np.float32) for part in parts], axis=1)
        return torch.from_numpy(features)

    def _plain(self, nodes: Any, table: str) -> NDArray[np.float32]:
        """Columns that are features already, (N, F)."""
        block = nodes[list(self.needs)].to_numpy()
        if block.dtype.kind not in "biuf" or np.isinf(block).any():
            # one by one, to say which cell is wrong
            block = np.stack([numbers(nodes[name], table) for name in self.needs], axis=1)
        medians = np.array([median for _, median in self.plain], dtype=np.float32)
        block = block.astype(np.float32)
        return np.where(np.isnan(block), medians, block)

    def check(self, nodes: Any) -> None:
        """Refuse rows that cannot be read, as `transform` does, edges or none."""
        for one in self.columns:
            one.transform(nodes[one.column], table_name(nodes, "nodes"))

    def as_dict(self) -> dict[str, Any]:
        """The encoder as JSON can hold it."""
        return {
            "version": VERSION,
            "columns": [as_dict(encoder) for encoder in self.columns],
            "structural": [as_dict(encoder) for encoder in self.structural],
            "plain": [list(pair) for pair in self.plain],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The encoder that `as_dict` stored."""
        if stored.get("version") != VERSION:
            raise ValueError(
                f"version of the stored encoder must be {VERSION}, got {stored.get('version')!r}; "
                "it was written by another version of evengraph: train again."
            )
        structural = tuple(from_dict(item) for item in stored["structural"])
        return cls(
            columns=tuple(from_dict(item) for item in stored["columns"]),
            structural=tuple(item for item in structural if isinstance(item, Number)),
            plain=tuple((str(name), float(median)) for name, median in stored["plain"]),
            notes=tuple(Note(NoteKind.FEATURES, text) for text in stored["notes"]),
        )


def _fit_column(values: Any, table: str) -> ColumnEncoder:
    kind = kind_of(values, table)
    if kind == "empty":
        raise NothingToLearn("it is empty")
    if kind == "text":
        return (Text if is_long(values) else Category).fit(values, table)
    by_kind = {"number": Number, "date": Date, "boolean": Boolean}
    encoder: ColumnEncoder = by_kind[kind].fit(values, table)  # type: ignore[attr-defined]
    return encoder
