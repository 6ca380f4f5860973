"""What is measured of a graph: edges, classes, distances from labels, features, leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from evengraph.core.untrusted import sorted_unique
from evengraph.tables.cells import CLOCK, column_kind, date_form, seconds_of, to_numbers

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Matrix = NDArray[Any]

BITS = 64
CHUNK_ENTRIES = 4_000_000  # processed at a time, so that x is never copied as a whole


@dataclass(frozen=True)
class Neighbours:
    """The undirected graph, without repeated edges and self-loops."""

    num_nodes: int
    pairs: Ints  # (2, P), the smaller node first
    indptr: Ints  # (N + 1,), and (2 P,), the rows of a symmetric CSR matrix
    indices: Ints


@dataclass(frozen=True, kw_only=True)
class Edges:
    """How the edges are listed."""

    pairs: int  # distinct pairs of different nodes, in either direction
    repeated: int  # repeats of an earlier edge in the same direction
    to_itself: int  # self-loops
    one_way: int  # pairs listed in one direction only
    directed: bool  # whether there is such a pair
    weighted: bool = False
    relations: tuple[str, ...] = ()  # kinds of edges that are averaged apart


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """Numbers of neighbours."""

    median: float  # of all nodes, isolated ones included
    mean: float
    largest: int
    isolated: int  # nodes without neighbours
    isolated_share: float


@dataclass(frozen=True, kw_only=True)
class Components:
    """Connected components."""

    count: int  # an isolated node is one
    largest: int  # nodes in the largest component
    unlabelled: int  # components without a labelled node
    unlabelled_nodes: int  # nodes in these


def read_edges(edge_index: Ints, num_nodes: int) -> tuple[Neighbours, Edges]:
    """Build the undirected graph of edges, (2, E), in any order, and count them."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"graph.edge_index must have two rows, got shape {edge_index.shape}.")
    source, target = edge_index.astype(np.int64, copy=False)
    if source.size and not 0 <= edge_index.min() <= edge_index.max() < num_nodes:
        bad = edge_index.min() if edge_index.min() < 0 else edge_index.max()
        ids = f"node ids from 0 to {num_nodes - 1}"
        raise ValueError(f"graph.edge_index must hold {ids}, got {bad}.")
    arcs = sorted_unique(source * num_nodes + target)
    first, second = np.divmod(arcs, num_nodes)
    different = first != second
    first, second = first[different], second[different]
    keys = _pairs(first, second, num_nodes)
    pairs = np.stack(np.divmod(keys, num_nodes))
    both = np.concatenate([keys, pairs[1] * num_nodes + pairs[0]])
    both.sort()
    row, indices = np.divmod(both, num_nodes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=num_nodes))])
    one_way = 2 * len(keys) - len(first)  # a pair listed in both directions has two arcs
    edges = Edges(
        pairs=len(keys),
        repeated=source.size - len(arcs),
        to_itself=int((source == target).sum()),
        one_way=one_way,
        directed=one_way > 0,
    )
    return Neighbours(num_nodes, pairs, indptr, indices), edges


def count_edges(edge_index: Ints, num_nodes: int) -> int:
    """Number of distinct pairs of different nodes in edges, (2, E), in either direction."""
    source, target = edge_index.astype(np.int64, copy=False)
    different = source != target
    return len(_pairs(source[different], target[different], num_nodes))


def count_degrees(neighbours: Neighbours) -> Degrees:
    degrees = np.diff(neighbours.indptr)
    isolated = int((degrees == 0).sum())
    return Degrees(
        median=float(np.median(degrees)),
        mean=float(degrees.mean()),
        largest=int(degrees.max()),
        isolated=isolated,
        isolated_share=isolated / neighbours.num_nodes,
    )


def component_ids(neighbours: Neighbours) -> Ints:
    ones = np.ones(len(neighbours.indices), dtype=np.int8)
    shape = (neighbours.num_nodes, neighbours.num_nodes)
    matrix = sp.csr_matrix((ones, neighbours.indices, neighbours.indptr), shape=shape)
    ids: Ints = connected_components(matrix, directed=False)[1].astype(np.int64)
    return ids


def count_components(component: Ints, labelled: Bools) -> Components:
    """Count components, and those without a labelled node."""
    sizes = np.bincount(component)
    without = np.bincount(component[labelled], minlength=len(sizes)) == 0
    return Components(
        count=len(sizes),
        largest=int(sizes.max()),
        unlabelled=int(without.sum()),
        unlabelled_nodes=int(sizes[without].sum()),
    )


def _pairs(source: Ints, target: Ints, num_nodes: int) -> Ints:
    """One key per pair of joined nodes, sorted."""
    small, large = np.minimum(source, target), np.maximum(source, target)
    return sorted_unique(small * num_nodes + large)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Numbers of unlabelled nodes near labelled ones."""

    hops: int  # largest distance counted
    nodes: int  # unlabelled nodes
    per_class: tuple[tuple[int, ...], ...]  # within 1, 2, ... hops of a label of the class
    any_class: tuple[int, ...]  # within 1, 2, ... hops of any labelled node
    beyond: int  # further than `hops` from every labelled node


def measure_reach(
    neighbours: Neighbours, labels: Ints, labelled: Bools, num_classes: int, hops: int
) -> Reach:
    """Search breadth-first from the labelled nodes of 64 classes at once: one bit per class."""
    if hops < 1:
        raise ValueError(f"hops must be at least 1, got {hops}.")
    others = ~labelled
    near = np.zeros((hops, len(labels)), dtype=np.bool_)
    per_class: list[tuple[int, ...]] = []
    rows = np.flatnonzero(np.diff(neighbours.indptr))  # reduceat does not support empty rows
    for first in range(0, num_classes, BITS):
        width = min(BITS, num_classes - first)
        members = labelled & (labels >= first) & (labels < first + width)
        state = np.zeros(len(labels), dtype=np.uint64)
        state[members] = np.uint64(1) << (labels[members] - first).astype(np.uint64)
        counts = np.zeros((hops, width), dtype=np.int64)
        for hop in range(hops):
            if len(rows):
                bits = state[neighbours.indices]
                state[rows] |= np.bitwise_or.reduceat(bits, neighbours.indptr[rows])
            near[hop] |= state != 0
            unlabelled = state[others]
            each = (np.uint64(1 << bit) for bit in range(width))
            counts[hop] = [np.count_nonzero(unlabelled & bit) for bit in each]
        per_class += [tuple(column) for column in counts.T.tolist()]
    within = tuple(near[:, others].sum(1).tolist())
    nodes = int(others.sum())
    return Reach(
        hops=hops,
        nodes=nodes,
        per_class=tuple(per_class),
        any_class=within,
        beyond=nodes - within[-1],
    )


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Class sizes."""

    names: tuple[str, ...]  # one per class
    labelled: tuple[int, ...]  # labelled nodes of each class
    num_labelled: int  # all labelled nodes
    num_unlabelled: int  # all other nodes
    labelled_share: float
    ratio: float | None  # largest class over smallest, among classes with a labelled node


@dataclass(frozen=True, kw_only=True)
class Homophily:
    """Whether neighbours share a class, over edges between labelled nodes.

    The adjusted share is that of Platonov et al., "Characterizing Graph Datasets", NeurIPS 2023.
    """

    edges: int  # between labelled nodes
    edge: float | None  # share of them that join nodes of one class
    by_chance: float | None  # expected share if the ends of edges were paired at random
    adjusted: float | None  # `edge` rescaled so that chance is 0 and certainty 1
    per_class: tuple[float | None, ...]  # share of its nodes' neighbours that are of the class
    neighbours: tuple[int, ...]  # number of neighbours behind that share


def count_labels(labels: Ints, names: Sequence[str]) -> Labels:
    counts = np.bincount(labels[labels >= 0], minlength=len(names))
    present = counts[counts > 0]
    total = int(counts.sum())
    return Labels(
        names=tuple(names),
        labelled=tuple(counts.tolist()),
        num_labelled=total,
        num_unlabelled=len(labels) - total,
        labelled_share=total / len(labels),
        ratio=float(present.max() / present.min()) if len(present) else None,
    )


def measure_homophily(pairs: Ints, labels: Ints, labelled: Bools, num_classes: int) -> Homophily:
    """Compare the classes of the two ends of every pair of neighbours, (2, P)."""
    both = labelled[pairs[0]] & labelled[pairs[1]]
    first, second = labels[pairs[0][both]], labels[pairs[1][both]]
    ends = np.bincount(np.concatenate([first, second]), minlength=num_classes)
    same = 2 * np.bincount(first[first == second], minlength=num_classes)  # from both ends
    count = int(both.sum())
    edge = float(same.sum() / ends.sum()) if count else None
    chance = float(((ends / ends.sum()) ** 2).sum()) if count else None
    adjusted = None
    if edge is not None and chance is not None and (ends > 0).sum() > 1:
        adjusted = (edge - chance) / (1 - chance)
    shares = (float(s / e) if e else None for s, e in zip(same, ends, strict=True))
    return Homophily(
        edges=count,
        edge=edge,
        by_chance=chance,
        adjusted=adjusted,
        per_class=tuple(shares),
        neighbours=tuple(ends.tolist()),
    )


@dataclass(frozen=True, kw_only=True)
class Features:
    """Measurements of the columns of x."""

    count: int
    constant: int  # columns with the same value in every row
    missing: int  # NaN and infinite entries
    empty_nodes: int  # nodes whose features are all zero
    duplicate_nodes: int  # nodes with the features of an earlier node, unless all zero
    conflicting_nodes: int  # labelled nodes with a duplicate of another class


def measure_features(x: Matrix, labels: Ints, labelled: Bools, num_classes: int) -> Features:
    """Measure all features, (N, F), in one pass."""
    same, missing, prints, full = _read(x)
    # labelled nodes of which another of the same features is of another class
    _, group = np.unique(prints[full], return_inverse=True)
    num_groups, known = int(group.max(initial=-1)) + 1, labelled[full]
    pairs = np.unique(group[known] * num_classes + labels[full][known])
    classes = np.bincount(pairs // num_classes, minlength=num_groups)
    return Features(
        count=x.shape[1],
        constant=int((same & (missing == 0)).sum()),
        missing=int(missing.sum()),
        empty_nodes=int((~full).sum()) if x.shape[1] else 0,
        duplicate_nodes=len(group) - num_groups,
        conflicting_nodes=int((classes[group[known]] > 1).sum()),
    )


def _read(x: Matrix) -> tuple[Bools, Ints, NDArray[np.uint64], Bools]:
    """Per column, whether all rows are equal, and how many are not finite; row hashes.

    The last tells which rows have an entry other than 0, (N,).
    """
    num_nodes, width = x.shape
    same, missing = np.ones(width, np.bool_), np.zeros(width, np.int64)
    prints, full = np.zeros(num_nodes, np.uint64), np.zeros(num_nodes, np.bool_)
    keys = np.random.default_rng(0).integers(2**63, size=(width,), dtype=np.uint64)
    keys = keys * np.uint64(2) + np.uint64(1)  # odd, and distinct for each column
    step = max(CHUNK_ENTRIES // max(width, 1), 1)
    for start in range(0, num_nodes, step):
        rows = slice(start, start + step)
        chunk = x[rows]
        full[rows] = (chunk != 0).any(1)
        prints[rows] = _fingerprints(chunk, keys)
        missing += (~np.isfinite(chunk)).sum(0)
        same &= (chunk == x[0]).all(0)
    return same, missing, prints, full


def _fingerprints(chunk: Matrix, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash per row; two different rows collide with probability of about 10^-19."""
    plain = chunk.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    return np.asarray(pd.util.hash_array(plain.ravel()).reshape(chunk.shape) @ keys, np.uint64)


SUSPICIOUS = 0.95  # share of the error that a leaking column removes
LEAST_ROWS = 20  # with fewer rows, every column looks like an id
DISTINCT = 0.99  # share of distinct values from which a column looks like an id
BLOCK = 256  # columns to copy at a time
MOST_VALUES = 64  # a column with more distinct values is cut into this many ranges
LEAST_IN_RANGE = 5
LEAST_EVIDENCE = 10  # labelled nodes of a class below which a perfect fit may be luck
DENSE = 2**20  # pairs of a group and a class that are counted in an array
MOST_ROWS = 20_000  # rows to use, labelled and unlabelled each; more would not change the result
LEAST_SHARE = 0.5  # of a class must have values that no unlabelled node has
LEAST_EXPECTED = 10  # unlabelled nodes that should have them, if classes were as among the labels
RARELY = 0.1  # as often as in the class: what unlabelled and other nodes may have of them


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A column that should not be among the features."""

    column: str
    # "copy" of the label, predicts the "label" or one "class", looks like an "id", or has values in
    # one class that are "unseen" among unlabelled nodes
    kind: str
    strength: float | None = None  # share of the error that it removes, for "label" and "class"
    class_name: str | None = None  # the class that it predicts
    values: str | None = None  # those unseen, in words
    # labelled nodes of the class that have these, of how many; all others alike; unlabelled alike
    counts: tuple[int, ...] | None = None


def leaks_in_features(
    x: Matrix,
    labels: Ints,
    names: Sequence[str],
    column_names: Sequence[str],
    least: float = SUSPICIOUS,
) -> list[Leak]:
    """Check every column of x by itself; labels are -1 for nodes whose class may not be used.

    A column leaks that removes at least a share of `least` of the error.
    """
    rows, unlabelled = sample_rows(labels, len(names)), _sample_unlabelled(labels)
    classes, every = labels[rows], np.concatenate([rows, unlabelled])
    leaks = list[Leak]()
    for start in range(0, x.shape[1], BLOCK):
        block = np.ascontiguousarray(x[:, start : start + BLOCK][every].T)
        for index, values in enumerate(block, start):
            name = column_names[index] if column_names else f"feature {index}"
            groups = _filled_groups(values[: len(rows)], len(names))
            leak = _label_leak(name, groups, classes, names, least)
            if leak is None and len(unlabelled):
                groups = _filled_groups(values, len(names))
                leak = _unseen_leak(name, groups, labels[every], names)
            leaks += [leak] if leak else []
    return leaks


def leaks_in_table(table: Any, label: str, id: str | None) -> list[Leak]:
    """Check every column of a node table by itself, before encoding."""
    for name in (label, id):
        if name is not None and name not in table.columns:
            known = ", ".join(map(str, table.columns))
            raise ValueError(f"the table must have a column {name!r}; it has: {known}.")
    labels, names = _encoded(table[label])
    rows = sample_rows(labels, len(names))
    every = np.concatenate([rows, _sample_unlabelled(labels)])
    leaks = list[Leak]()
    for name, column in table.drop(columns=[label] if id is None else [label, id]).items():
        leak, cells = None, _cells(column)
        if names:
            groups = _groups(cells.iloc[rows], len(names))
            leak = _label_leak(str(name), groups, labels[rows], names)
        if leak is None and len(every) > len(rows) > 0:
            part = cells.iloc[every]
            empty = (part.isna() | (part.astype(object) == "")).to_numpy()
            # cells that differ may still be filled in for one class alone, such as dates
            for groups in (_groups(part, len(names)), empty.astype(np.int64)):
                leak = leak or _unseen_leak(str(name), groups, labels[every], names, part)
        if leak is None and _looks_like_id(column, cells, None if id is None else table[id]):
            leak = Leak(column=str(name), kind="id")
        leaks += [leak] if leak else []
    return leaks


def _encoded(values: Any) -> tuple[Ints, list[str]]:
    """The class of every row, -1 for an empty cell, and the names of the classes."""
    texts = values.astype(object).where(values.notna(), "").astype(str).str.strip()
    labels, names = pd.factorize(texts.where(texts != ""))
    return labels.astype(np.int64), [str(name) for name in names]


KINDS = {"Log": "Number", "Quantile": "Number", "Items": "List", "Boolean": "True or false"}
CURVES = {"Log": "logarithm", "Quantile": "ranks", "Category": "one per value"}


def describe_columns(table: Any, label: str, id: str | None, encoder: Any) -> list[dict[str, Any]]:
    """Type, missing cells, values and link to the label of every column, and its features."""
    labels, names = _encoded(table[label])
    rows = sample_rows(labels, len(names))
    encoded = {one.column: one for one in encoder.columns}
    found = []
    for name, column in table.drop(columns=[label] if id is None else [label, id]).items():
        cells, one = _cells(column), encoded.get(name)
        filled = cells.notna() & (cells.astype(object) != "")
        kind, becomes = type(one).__name__ if one else "", "left out"
        if one is not None:
            count = len(one.names)
            becomes = f"{count} feature{'s' * (count != 1)}"
            becomes += f", {CURVES[kind]}" if kind in CURVES else ""
        groups = _groups(cells.iloc[rows], len(names))
        about: dict[str, Any] = {
            "name": str(name),
            "kind": KINDS.get(kind, kind).lower(),
            "becomes": becomes,
        }
        link = _shared_information(groups, labels[rows])
        about |= {"missing": float(1 - filled.mean()), "link": link}
        found.append(about | {"values": _values(cells[filled], kind in CURVES)})
    return found


def _shared_information(groups: Ints, classes: Ints) -> float:
    """The share of the entropy of the classes that groups remove, less what chance would."""
    if not len(groups):
        return 0.0
    table = np.zeros((groups.max() + 1, classes.max() + 1))
    np.add.at(table, (groups, classes), 1)
    table = table[table.any(axis=1)]

    def entropy(counts: NDArray[Any]) -> Any:
        shares = counts / counts.sum(axis=-1, keepdims=True)
        return -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=-1)

    whole = float(entropy(table.sum(axis=0)))
    rest = float((table.sum(axis=1) * entropy(table)).sum() / table.sum())
    chance = (table.shape[0] - 1) * (table.shape[1] - 1) / (2 * table.sum())
    return max(whole - rest - chance, 0.0) / whole if whole else 0.0


BARS = "▁▂▃▄▅▆▇█"


def _values(cells: Any, logarithmic: bool) -> str:
    """Range, median and histogram of numbers, or the most frequent values with their shares."""
    if not len(cells):
        return ""
    dates = pd.api.types.is_datetime64_any_dtype(cells)
    if dates or (pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells)):
        form = "%Y-%m-%d" if dates else ".4g"
        low, middle, high = (format(value, form) for value in cells.quantile([0, 0.5, 1]))
        numbers = (cells.astype("int64") if dates else cells).to_numpy(dtype=np.float64)
        if logarithmic:
            numbers = np.sign(numbers) * np.log1p(np.abs(numbers))
        counts = np.histogram(numbers, len(BARS))[0]
        bars = "".join(BARS[level] for level in (counts * 7 + counts.max() - 1) // counts.max())
        return f"{low} to {high}, median {middle} {bars}"
    counts = cells.astype(str).value_counts()
    top = ", ".join(f"{one[:20]} {count / len(cells):.0%}" for one, count in counts[:3].items())
    return f"{top}, {len(counts) - 3:,} more" if len(counts) > 3 else top


def _cells(column: Any) -> Any:
    """A column as numbers or dates if its encoder would read it so; otherwise as it is."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        form = date_form(column, "nodes", "dmy")
        kind = "date" if form is not None else column_kind(column, "nodes")
        if kind == "date" and form != CLOCK:
            seconds = seconds_of(column, "nodes", form or "")
            return pd.Series(pd.to_datetime(seconds, unit="s"), column.index)
        return column if kind != "number" else pd.Series(to_numbers(column, "nodes"), column.index)
    except ValueError:  # mixed
        return column


def _sample_unlabelled(labels: Ints) -> Ints:
    rows = np.flatnonzero(labels < 0)
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))


def _unseen_leak(
    column: str, groups: Ints, labels: Ints, names: Sequence[str], cells: Any = None
) -> Leak | None:
    """A class most of which has values that hardly any other node has, labelled or not.

    Unlabelled nodes, -1 in `labels`, are a mixture of the classes, so what most of a class has must
    be found among them, unless they hold none of it or the column was filled in once the label was
    known. A value that one node has tells nothing.
    """
    count, known = len(names), labels >= 0
    sizes, number = np.bincount(labels[known], minlength=count), int(known.sum())
    pairs, mine = _distinct(groups[known] * count + labels[known])
    group, label = np.divmod(pairs, count)
    width = int(groups.max(initial=0)) + 1
    rest = np.bincount(groups[known], minlength=width)[group] - mine
    unlabelled = np.bincount(groups[~known], minlength=width)[group]
    size, others = sizes[label], number - sizes[label]
    own = (mine > 1) & (rest * size <= RARELY * mine * others) & (unlabelled <= RARELY * mine)
    have, also, without = (
        np.bincount(label[own], part[own], minlength=count) for part in (mine, rest, unlabelled)
    )
    expected = (have + also) * (len(labels) - number) / number
    leaks = (np.minimum(sizes, number - sizes) >= LEAST_EVIDENCE) & (have >= LEAST_SHARE * sizes)
    leaks &= expected >= LEAST_EXPECTED
    if not leaks.any():
        return None
    best = int(leaks.argmax())
    chosen = np.isin(groups, group[own & (label == best)])
    shares = (have[best], sizes[best], also[best], number - sizes[best], without[best])
    return Leak(
        column=column,
        kind="unseen",
        class_name=names[best],
        values=None if cells is None else _words_for(cells[chosen]),
        counts=(*map(int, shares), len(labels) - number),
    )


def _words_for(cells: Any) -> str:
    if pd.api.types.is_numeric_dtype(cells) and cells.notna().all():
        low, high = f"{cells.min():g}", f"{cells.max():g}"
        return low if low == high else f"{low} to {high}"
    texts = list(dict.fromkeys("empty" if pd.isna(c) or c == "" else repr(c) for c in cells))
    return " or ".join(texts) if len(texts) < 4 else "filled in"


def _label_leak(
    column: str, groups: Ints, classes: Ints, names: Sequence[str], least: float = SUSPICIOUS
) -> Leak | None:
    label, by_class, copy = label_signal(groups, classes, len(names))
    if copy:
        return Leak(column=column, kind="copy", strength=1.0)
    if label >= least:
        return Leak(column=column, kind="label", strength=label)
    best = int(by_class.argmax())
    if by_class[best] < least:
        return None
    strength = float(by_class[best])
    return Leak(column=column, kind="class", strength=strength, class_name=names[best])


def _filled_groups(values: NDArray[Any], num_classes: int) -> Ints:
    filled = np.flatnonzero(values)
    some = group_values(values[filled], num_classes)
    groups = np.full(len(values), some.max(initial=-1) + 1)
    groups[filled] = some
    return groups


def _groups(column: Any, num_classes: int) -> Ints:
    if pd.api.types.is_datetime64_any_dtype(column):
        column = column.astype("int64")
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return group_values(column.to_numpy(dtype=np.float64, na_value=np.nan), num_classes)
    texts = column.astype(object).where(column.notna(), "").astype(str)
    return np.asarray(pd.factorize(texts)[0], dtype=np.int64)


def _looks_like_id(column: Any, cells: Any, ids: Any) -> bool:
    """Whether a column holds integers or single words that hardly ever repeat, or the ids."""
    known, types = column.dropna(), pd.api.types
    if (
        len(known) < LEAST_ROWS
        or types.is_bool_dtype(cells)
        or types.is_datetime64_any_dtype(cells)
    ):
        return False
    if ids is not None and bool((known.astype(str) == ids[known.index].astype(str)).all()):
        return True
    if types.is_numeric_dtype(cells):
        known = cells.dropna()
        possible = (known == np.floor(known)).all()
    else:  # texts of several words are distinct as well, and may be informative
        known = known.astype(str)
        possible = known.str.contains(r"\s", regex=True).mean() <= 1 - DISTINCT
    return bool(possible and known.nunique() >= DISTINCT * len(known))


class LabelSignal(NamedTuple):
    """How well a column predicts the label, as shares of the error of the largest class."""

    label: float  # strength for all classes, at most 1
    by_class: NDArray[np.float64]  # strength for each class against the rest, (C,)
    copy: bool  # whether values and classes correspond one to one


def sample_rows(labels: Ints, num_classes: int) -> Ints:
    """Labelled rows, at most about MOST_ROWS, including all of the rare classes."""
    most = max(MOST_ROWS // max(num_classes, 1), LEAST_EVIDENCE)
    rng = np.random.default_rng(0)
    sampled = []
    for label in range(num_classes):
        rows = np.flatnonzero(labels == label)
        sampled.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
    return np.sort(np.concatenate(sampled)) if sampled else np.empty(0, dtype=np.int64)


def group_values(values: NDArray[Any], num_classes: int) -> Ints:
    """Group id of each value, NaN apart; many distinct values are cut into ranges."""
    distinct, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) > max(MOST_VALUES, 2 * num_classes):
        ranges = max(min(MOST_VALUES, len(values) // LEAST_IN_RANGE), 1)
        middle = np.cumsum(counts) - counts / 2  # equal values stay together
        of_value = np.minimum((middle * ranges / len(values)).astype(np.int64), ranges - 1)
        of_value[np.isnan(distinct)] = ranges
        group = of_value[group]
    return group.astype(np.int64)


def label_signal(groups: Ints, classes: Ints, num_classes: int) -> LabelSignal:
    """Measure how well groups of equal values predict the label; one group and class per node.

    A node is predicted by the other nodes of its group, so a unique value predicts nothing.
    """
    pairs, counts = _distinct(groups * num_classes + classes)
    group, label = np.divmod(pairs, num_classes)
    sizes, totals = np.bincount(groups), np.bincount(classes, minlength=num_classes)
    number = len(groups)
    order = np.lexsort((counts, group))
    last = np.flatnonzero(np.diff(group[order], append=-1))  # the largest count of each group
    ordered = np.concatenate([[0], counts[order]])
    second = np.where(np.diff(last, prepend=-1) > 1, ordered[last], 0)
    gain = _gain(_hits(ordered[last + 1], second).sum(), totals.max(initial=0), number)
    others, unmixed = sizes[group] - counts, _hits(sizes, np.zeros_like(sizes))
    hits = _hits(np.maximum(counts, others), np.minimum(counts, others)) - unmixed[group]
    hits = unmixed.sum() + np.bincount(label, hits, minlength=num_classes)  # (C,)
    bases = np.maximum(totals, number - totals)
    by_class = (hits - bases) / np.maximum(number - bases, 1)
    by_class[np.minimum(totals, number - totals) < LEAST_EVIDENCE] = 0.0
    copy = len(pairs) == (sizes > 0).sum() == (totals > 0).sum() > 1
    if number - totals.max(initial=0) < LEAST_EVIDENCE:
        gain, copy = 0.0, False
    return LabelSignal(label=gain, by_class=by_class, copy=bool(copy))


def _distinct(codes: Ints) -> tuple[Ints, Ints]:
    if codes.max(initial=0) > DENSE:
        return np.unique(codes, return_counts=True)
    counts = np.bincount(codes)
    present = np.flatnonzero(counts)
    return present, counts[present]


def _hits(top: Ints, second: Ints) -> Ints:
    return np.where((top >= 2) & (top - 1 > second), top, 0)


def _gain(hits: int, base: int, number: int) -> float:
    return float((hits - base) / (number - base)) if number > base else 0.0
