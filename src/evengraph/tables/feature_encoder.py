"""FeatureEncoder: turns the columns of a nodes table into one feature matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.tables.cells import check_columns, table_name, to_numbers
from evengraph.tables.column_encoders import (
    ColumnEncoder,
    as_dict,
    fit_column,
    from_dict,
)
from evengraph.tables.edge_features import EdgeFeatures
from evengraph.tables.entries import fill
from evengraph.tables.indicators import find_indicators, indicator_features, select_indicators
from evengraph.tables.list_encoders import Items, describe_lists
from evengraph.tables.notes import Note, NoteKind, Notes
from evengraph.tables.number_encoders import Date, Number, UselessColumnError, describe_numbers
from evengraph.tables.structure import STRUCTURAL, structural_features
from evengraph.tables.text_encoders import Text

VERSION = 2


@dataclass(frozen=True, kw_only=True)
class FeatureEncoder:
    """Encodes rows with statistics of the rows that it was fitted to.

    Numbers are imputed with the median and scaled, heavy-tailed ones after a logarithm; dates are
    numbers, booleans 1 and -1, short text is one-hot encoded, long text becomes TF-IDF, lists are
    multi-hot encoded, vectors scaled as a whole, and many columns of 0 and 1 stay as they are.
    Empty and constant columns are left out. Without any column the features are computed from the
    edges: log degree, log PageRank and the clustering coefficient.

    Args:
        columns: One encoder per column in use.
        structural: Scaling of the features from the edges; empty if there are columns.
        indicators: Columns of 0 and 1, if there are many.
        plain: Columns that are features already, only imputed: name and median of each.
        edges: Columns that are made of the edges table first.
        notes: What was left out and why.
    """

    columns: tuple[ColumnEncoder, ...] = ()
    structural: tuple[Number, ...] = ()
    indicators: tuple[str, ...] = ()
    plain: tuple[tuple[str, float], ...] = ()
    edges: EdgeFeatures | None = None
    notes: tuple[Note, ...] = ()

    @classmethod
    def fit(
        cls,
        nodes: Any,
        columns: Sequence[str],
        *,
        edge_index: Tensor,
        date_order: str | None = None,
    ) -> Self:
        """Fit an encoder to columns of a nodes table, or to its edges if no column is useful.

        `date_order` is that of `from_frames`.

        Shapes:
            edge_index: (2, E), both directions of every edge
        """
        check_columns(nodes, columns, "nodes")
        encoders: list[ColumnEncoder] = []
        notes = Notes()
        indicators: tuple[str, ...] = ()
        flags = find_indicators(nodes, columns)
        if flags:
            indicators, note = select_indicators(flags, len(nodes))
            notes.add(NoteKind.FEATURES, note)
        for column in columns:
            if column in flags:
                continue
            try:
                encoders.append(fit_column(nodes[column], table_name(nodes, "nodes"), date_order))
            except UselessColumnError as reason:
                notes.add(NoteKind.FEATURES, f"Left out column {column!r}: {reason}.")
        for sentence in (*describe_numbers(encoders), *describe_lists(encoders)):
            notes.add(NoteKind.FEATURES, sentence)
        if encoders or indicators:
            return cls(columns=tuple(encoders), indicators=indicators, notes=tuple(notes))
        text = "No feature columns: using degree, PageRank and clustering coefficient."
        notes.add(NoteKind.FEATURES, text)
        features = structural_features(edge_index, len(nodes))
        structural = []
        for name, values in zip(STRUCTURAL, features.T, strict=True):
            try:
                structural.append(Number.fit_numbers(name, values))
            except UselessColumnError:  # as in a ring, where all nodes are alike: encoded as 0
                value = float(values[0])
                structural.append(Number(column=name, median=value, mean=value, scale=1.0))
        return cls(structural=tuple(structural), notes=tuple(notes))

    @classmethod
    def passthrough(cls, names: Sequence[str], features: Any) -> Self:
        """An encoder of numbers that are features already: only empty cells become medians.

        Shapes:
            names: (F,); features: (N, F)
        """
        medians = [0.0] * len(names)
        for index in np.flatnonzero(np.isnan(features).any(axis=0)):
            known = features[~np.isnan(features[:, index]), index]
            medians[index] = float(np.median(known)) if len(known) else 0.0
        return cls(plain=tuple(zip(names, medians, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, (F,)."""
        if self.plain:
            return tuple(name for name, _ in self.plain)
        encoders = (*self.columns, *self.structural)
        return tuple(n for encoder in encoders for n in encoder.names) + self.indicators

    @property
    def item_names(self) -> tuple[str, ...]:
        """Names of the features that are items of lists, such as `tags=red`."""
        lists = [encoder for encoder in self.columns if isinstance(encoder, Items)]
        return tuple(name for encoder in lists for name in encoder.names)

    @property
    def hashed(self) -> NDArray[np.bool_]:
        """Which features are buckets of hashed words, some of which may be empty, (F,)."""
        if not self.columns:
            return np.zeros(len(self.names), dtype=bool)
        is_text = [isinstance(encoder, Text) for encoder in self.columns]
        sizes = [len(encoder.names) for encoder in self.columns]
        return np.repeat([*is_text, False], [*sizes, len(self.indicators)])

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which features are a column of numbers, transformed or not; dates are none, (F,)."""
        columns = (e for e in self.columns if isinstance(e, Number) and not isinstance(e, Date))
        found = {encoder.column for encoder in columns}
        return np.array([name in found for name in self.names], dtype=bool)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns that a nodes table must have, beside those made of the edges."""
        made = () if self.edges is None else self.edges.names
        columns = (*(encoder.column for encoder in self.columns), *self.indicators)
        plain = tuple(name for name, _ in self.plain)
        return plain or tuple(column for column in columns if column not in made)

    def transform(self, nodes: Any, *, edge_index: Tensor | None = None) -> Tensor:
        """Encode every row of a nodes table; columns other than `input_columns` are ignored.

        Shapes:
            edge_index: (2, E), both directions of every edge; required by features from the edges
            returns: float32, (N, F)
        """
        table = table_name(nodes, "nodes")
        check_columns(nodes, self.input_columns, "nodes")
        # Written in order and by all threads: what comes next jumps from row to row, which costs
        # five times as much in memory that is still to be mapped, as NumPy's zeros are.
        features = torch.empty(len(nodes), len(self.names)).zero_().numpy()
        fill(
            features, (encoder.transform(nodes[encoder.column], table) for encoder in self.columns)
        )
        if self.indicators:
            features[:, -len(self.indicators) :] = indicator_features(nodes, self.indicators, table)
        if self.plain:
            features[:] = self._plain_features(nodes, table)
        if self.structural:
            if edge_index is None:
                raise ValueError("edge_index is required: the features come from the edges.")
            structural = structural_features(edge_index, len(nodes))
            means = np.array([number.mean for number in self.structural])
            features[:] = (structural - means) / [number.scale for number in self.structural]
        return torch.from_numpy(features)

    def _plain_features(self, nodes: Any, table: str) -> NDArray[np.float32]:
        """Columns that are features already, (N, F)."""
        names = list(self.input_columns)
        features = nodes[names].to_numpy()
        if features.dtype.kind not in "biuf" or np.isinf(features).any():
            # column by column, so that an error names the cell
            features = np.stack([to_numbers(nodes[name], table) for name in names], axis=1)
        medians = np.array([median for _, median in self.plain], dtype=np.float32)
        with np.errstate(over="ignore"):  # too large a number is infinite, which is told later
            features = features.astype(np.float32)
        return np.where(np.isnan(features), medians, features)

    def check_rows(self, nodes: Any) -> None:
        """Raise the errors that `transform` would raise about cells, without needing edges."""
        table = table_name(nodes, "nodes")
        for encoder in self.columns:
            if encoder.column in self.input_columns:
                encoder.transform(nodes[encoder.column], table)
        columns = [column for column in self.indicators if column in nodes.columns]
        indicator_features(nodes, columns, table)

    def as_dict(self) -> dict[str, Any]:
        """The encoder as a dict that JSON can hold."""
        return {
            "version": VERSION,
            "columns": [as_dict(encoder) for encoder in self.columns],
            "structural": [as_dict(encoder) for encoder in self.structural],
            "indicators": list(self.indicators),
            "plain": [list(pair) for pair in self.plain],
            "notes": list(self.notes),
            **({} if self.edges is None else {"edges": self.edges.as_dict()}),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The encoder from the dict of `as_dict`."""
        if stored.get("version") != VERSION:
            raise ValueError(
                f"version of the stored encoder must be {VERSION}, got {stored.get('version')!r}; "
                "another version of evengraph wrote it: train again."
            )
        structural = tuple(from_dict(item) for item in stored["structural"])
        return cls(
            columns=tuple(from_dict(item) for item in stored["columns"]),
            structural=tuple(item for item in structural if isinstance(item, Number)),
            indicators=tuple(map(str, stored.get("indicators", ()))),
            plain=tuple((str(name), float(median)) for name, median in stored["plain"]),
            edges=EdgeFeatures.from_dict(stored["edges"]) if "edges" in stored else None,
            notes=tuple(Note(NoteKind.FEATURES, text) for text in stored["notes"]),
        )
