"""FeatureEncoder: turns the columns of a nodes table into one feature matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.errors import short
from evengraph.core.schema import SchemaError, read
from evengraph.ops.context import triangles
from evengraph.tables.cells import (
    Floats,
    canonical_name,
    check_columns,
    distinct_names,
    location,
    table_name,
    to_numbers,
)
from evengraph.tables.edges import EdgeFeatures
from evengraph.tables.encoders import (
    MAX_BYTES,
    Boolean,
    ColumnEncoder,
    Date,
    Number,
    as_dict,
    describe_encoders,
    fit_column,
    from_dict,
)
from evengraph.tables.links import LinkFeatures
from evengraph.tables.notes import Note, NoteKind, Notes
from evengraph.tables.text import MixedAmountsError, UselessColumnError, fill

VERSION = 2
MIN_COLUMNS = 50  # of 0 and 1 are a list of items, spread over columns; fewer are numbers


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
        links: Columns that are made of rows that share a value first.
        others: Columns that tables of other kinds are made into first.
        units: Columns of numbers that are shown otherwise: `date`, of seconds, or `flag`, of signs.
        notes: What was left out and why.
    """

    columns: tuple[ColumnEncoder, ...] = ()
    structural: tuple[Number, ...] = ()
    indicators: tuple[str, ...] = ()
    plain: tuple[tuple[str, float], ...] = ()
    edges: EdgeFeatures | None = None
    links: LinkFeatures | None = None
    others: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()
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
        encoders, notes = list[ColumnEncoder](), Notes()
        flags, indicators = _find_indicators(nodes, columns, notes)
        for column in columns:
            if column in flags:
                continue
            try:
                encoders.append(fit_column(nodes[column], table_name(nodes, "nodes"), date_order))
            except UselessColumnError as reason:
                left = "Warning: left" if isinstance(reason, MixedAmountsError) else "Left"
                notes.add(NoteKind.FEATURES, f"{left} out column {column!r}: {reason}.")
        for sentence in describe_encoders(encoders):
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
        """An encoder of features, (N, F), that are ready: only empty cells become medians."""
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
    def numbers(self) -> NDArray[np.bool_]:
        """Which features are a column of numbers, transformed or not; dates are none, (F,)."""
        plain = (e for e in self.columns if isinstance(e, Number) and not isinstance(e, Date))
        found = {encoder.column for encoder in plain}
        return np.array([name in found for name in self.names], dtype=bool)

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that are made of edges and links."""
        return tuple(n for part in (self.edges, self.links) if part is not None for n in part.names)

    @property
    def of_rows(self) -> NDArray[np.bool_]:
        """Which features depend on their row alone, not on other rows or edges, (F,)."""
        columns = {*self.made, *self.others}
        made = {n for e in self.columns if e.column in columns for n in e.names}
        made |= {encoder.column for encoder in self.structural}
        return np.array([name not in made for name in self.names], dtype=bool)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns that a nodes table must have, beside those made of the edges."""
        made = {*self.made, *self.others}
        columns = (*(encoder.column for encoder in self.columns), *self.indicators)
        plain = tuple(name for name, _ in self.plain)
        return plain or tuple(column for column in columns if column not in made)

    def unit(self, column: str) -> str:
        """How a column of numbers is to be shown: as a `date`, `flag`, `age`, or as it is."""
        known = {one.column: "flag" for one in self.columns if isinstance(one, Boolean)}
        known |= dict(self.units)
        if self.links is not None and self.links.times == "dates":
            known |= {f"{link}: age of the last": "age" for link in self.links.links}
        number = column.rpartition(": mean ")[2]
        return known.get(column, known.get(number, ""))

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
        fill(features, (item.transform(nodes[item.column], table) for item in self.columns))
        if self.indicators:
            flags = _indicator_features(nodes, self.indicators, table)
            features[:, -len(self.indicators) :] = flags
        if self.plain:
            numbers = nodes[list(self.input_columns)].to_numpy()
            if numbers.dtype.kind not in "biuf" or np.isinf(numbers).any():
                # column by column, so that an error names the cell
                cells = [to_numbers(nodes[name], table) for name in self.input_columns]
                numbers = np.stack(cells, axis=1)
            with np.errstate(over="ignore"):  # too large a number is infinite, which is told later
                numbers = numbers.astype(np.float32)
            medians = np.array([median for _, median in self.plain], dtype=np.float32)
            features[:] = np.where(np.isnan(numbers), medians, numbers)
        if self.structural:
            if edge_index is None:
                raise ValueError("edge_index is required: the features come from the edges.")
            structural = structural_features(edge_index, len(nodes))
            means = np.array([number.mean for number in self.structural])
            features[:] = (structural - means) / [number.scale for number in self.structural]
        return torch.from_numpy(features)

    def check_rows(self, nodes: Any) -> None:
        """Raise the errors that `transform` would raise about cells, without needing edges."""
        table = table_name(nodes, "nodes")
        for encoder in self.columns:
            if encoder.column in self.input_columns:
                encoder.transform(nodes[encoder.column], table)
        columns = [column for column in self.indicators if column in nodes.columns]
        _indicator_features(nodes, columns, table)

    def as_dict(self) -> dict[str, Any]:
        """The encoder as a dict that JSON can hold."""
        return {
            "version": VERSION,
            "columns": [as_dict(encoder) for encoder in self.columns],
            "structural": [as_dict(encoder) for encoder in self.structural],
            "indicators": list(self.indicators),
            "plain": [list(pair) for pair in self.plain],
            "notes": list(self.notes),
            **({} if self.edges is None else {"edges": asdict(self.edges)}),
            **({} if self.links is None else {"links": asdict(self.links)}),
            **({"others": list(self.others)} if self.others else {}),
            **({"units": [list(pair) for pair in self.units]} if self.units else {}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The encoder from the dict of `as_dict`."""
        if not isinstance(stored, Mapping):
            raise SchemaError("must be an object")
        if stored.get("version") != VERSION:
            raise SchemaError(
                f"must be {VERSION}, got {short(stored.get('version'))}; another version of "
                "evengraph wrote it: train again.",
                "version",
            )
        parts = read(_Stored, stored)
        encoders = {
            name: tuple(from_dict(item, name, place) for place, item in enumerate(items))
            for name, items in (("columns", parts.columns), ("structural", parts.structural))
        }
        if not all(isinstance(item, Number) for item in encoders["structural"]):
            raise SchemaError("must be numbers", "structural")
        others = {k: v for k, v in vars(parts).items() if k not in ("version", *encoders)}
        notes = tuple(Note(NoteKind.FEATURES, text) for text in parts.notes)
        return cls(**others | encoders | {"notes": notes})

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        """As part of a larger object it is read by `from_dict`."""
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(cls.from_dict)


@dataclass(kw_only=True)
class _Stored:
    """The form in files; encoders are read by their kind."""

    version: int
    columns: list[dict[str, Any]]
    structural: list[dict[str, Any]]
    plain: tuple[tuple[str, float], ...]
    notes: list[str]
    indicators: tuple[str, ...] = ()
    edges: EdgeFeatures | None = None
    links: LinkFeatures | None = None
    others: tuple[str, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


# Many columns of 0 and 1 are a list of items, spread over columns.

ONES, ZEROS = ("1", "1.0", "true"), ("0", "0.0", "false", "")


def _find_indicators(
    nodes: Any, columns: Sequence[str], notes: Notes
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The columns of 0, 1 (or false, true) and empty cells, with the 1s of each, if many."""
    if len(columns) < MIN_COLUMNS:
        return {}, ()
    first, known = nodes.iloc[0].to_dict(), {*ONES, *ZEROS, "none", "nan"}
    likely = [column for column in columns if canonical_name(first[column]).lower() in known]
    sums = {column: float(values.sum()) for column, values in _indicators(nodes, likely)}
    counts = {column: int(count) for column, count in sums.items() if not np.isnan(count)}
    if len(counts) < MIN_COLUMNS:
        return {}, ()
    varying = [column for column, count in counts.items() if 0 < count < len(nodes)]
    most = max(1, MAX_BYTES // (4 * len(nodes)))
    frequent = set(sorted(varying, key=lambda column: -counts[column])[:most])
    names = ", ".join(list(counts)[:2])
    note = f"{len(frequent):,} columns of 0 and 1 ({names}, ...) as 0/1 features"
    if len(varying) < len(counts):
        note += f"; constant ones left out: {len(counts) - len(varying):,}"
    if len(frequent) < len(varying):
        note += f"; less frequent ones left out to save memory: {len(varying) - len(frequent):,}"
    notes.add(NoteKind.FEATURES, f"{note}.")
    return counts, tuple(column for column in varying if column in frequent)


def _indicator_features(nodes: Any, columns: Sequence[str], table: str) -> NDArray[np.float32]:
    """1 and 0 as they are, 0 for an empty cell, (N, F); anything else raises an error."""
    features = np.empty((len(columns), len(nodes)), dtype=np.float32)
    for index, (_, values) in enumerate(_indicators(nodes, columns)):
        features[index] = values
    wrong = np.argwhere(np.isnan(features))
    if len(wrong):
        column, row = columns[wrong[0, 0]], int(wrong[0, 1])
        raise ValueError(
            f"{location(table, column, row)} holds {canonical_name(nodes[column].iloc[row])!r}; "
            "expected 0, 1 or an empty cell."
        )
    return features.T


def _indicators(nodes: Any, columns: Sequence[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Each of some columns as 1, 0 and, for any other cell, NaN."""
    table = nodes[list(columns)]
    table.attrs = {}  # which pandas copies with every column
    for column in columns:
        yield column, _read_indicator(table[column])


def _read_indicator(values: Any) -> NDArray[np.float32]:
    if values.dtype.kind in "biuf":
        numbers = np.nan_to_num(values.to_numpy(np.float32), nan=0.0)
        return np.where((numbers == 0) | (numbers == 1), numbers, np.float32(np.nan))
    try:
        codes, names = distinct_names(values)
    except ValueError:  # lists
        codes, names = np.zeros(len(values), np.int64), np.array(["a list"])
    if len(names) > len(ONES + ZEROS) * 2:
        return np.full(len(values), np.nan, dtype=np.float32)
    known = {**dict.fromkeys(ONES, 1.0), **dict.fromkeys(ZEROS, 0.0)}
    numbers = [*(known.get(name.lower(), np.nan) for name in names), 0.0]  # 0: missing
    return np.array(numbers, dtype=np.float32)[codes]


# Features from the edges, for tables without columns.

STRUCTURAL = ("log_degree", "log_pagerank", "clustering")
DAMPING = 0.85


def structural_features(edge_index: Tensor, num_nodes: int) -> Floats:
    """Log degree, log of N times PageRank, and clustering coefficient of every node, (N, 3)."""
    ends = edge_index.cpu().numpy()  # both directions of every edge, no repeats, no self-loops
    adjacency = sp.csr_array((np.ones(ends.shape[1]), tuple(ends)), shape=(num_nodes, num_nodes))
    degree = np.bincount(ends[0], minlength=num_nodes).astype(np.float64)
    clustering = triangles(adjacency) / np.maximum(degree * (degree - 1) / 2, 1)
    rank = num_nodes * pagerank(adjacency)
    return np.stack([np.log1p(degree), np.log(rank), clustering], axis=1)


def pagerank(adjacency: Any, tolerance: float = 1e-12, max_steps: int = 200) -> Floats:
    """PageRank of every node, summing to 1, (N,)."""
    num_nodes = adjacency.shape[0]
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    isolated = degree == 0  # the random walk continues at any node
    share = 1 / np.where(isolated, 1, degree)
    rank = np.full(num_nodes, 1 / num_nodes)
    for _ in range(max_steps):
        moved = adjacency.T @ (rank * share) + rank[isolated].sum() / num_nodes
        previous, rank = rank, DAMPING * moved + (1 - DAMPING) / num_nodes
        if np.abs(rank - previous).sum() < tolerance:
            break
    return rank
