"""Inspection: measurements against loops and NetworkX, leaks, findings and advice."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch_geometric.data import Data

import evengraph as eg
from evengraph.inspection import measures
from evengraph.inspection.inspection import (
    HETEROPHILY_METHODS,
    Inspection,
    avoids_neighbours,
    find,
    percent,
    recommend,
)
from evengraph.inspection.measures import (
    LEAST_EVIDENCE,
    Components,
    Degrees,
    Edges,
    Features,
    Homophily,
    Labels,
    Leak,
    Reach,
    component_ids,
    count_components,
    count_degrees,
    count_edges,
    count_labels,
    describe_columns,
    group_values,
    label_signal,
    leaks_in_features,
    leaks_in_table,
    measure_features,
    measure_homophily,
    measure_reach,
    read_edges,
    sample_rows,
)
from evengraph.methods import GCN, METHODS, DoubleBalancing
from evengraph.splits import Natural
from small_graphs import edge_lists
from snapshots import check_snapshot


@st.composite
def labelled_graphs(draw, max_nodes=12, most_classes=3):
    """Edges as they come, labels with gaps, and which of the labels may be used."""
    edge_index, num_nodes = draw(edge_lists(max_nodes))
    num_classes = draw(st.integers(1, most_classes))
    label = st.integers(-1, num_classes - 1)
    labels = draw(st.lists(label, min_size=num_nodes, max_size=num_nodes))
    labels[0] = draw(st.integers(0, num_classes - 1))  # somebody is labelled
    seen = draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    seen[0] = True
    graph = Data(edge_index=edge_index, y=torch.tensor(labels), num_nodes=num_nodes)
    graph.class_names = [f"class {number}" for number in range(num_classes)]
    return graph, torch.tensor(seen)


def as_networkx(edge_index, num_nodes):
    """Without direction, repeats and self-loops."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((a, b) for a, b in np.asarray(edge_index).T.tolist() if a != b)
    return graph


@given(edge_lists())
def test_edges_against_sets(found):
    edge_index, num_nodes = found[0].numpy(), found[1]
    neighbours, edges = read_edges(edge_index, num_nodes)
    arcs = list(zip(*edge_index.tolist(), strict=True))
    pairs = {tuple(sorted(arc)) for arc in arcs if arc[0] != arc[1]}
    assert {tuple(pair) for pair in neighbours.pairs.T.tolist()} == pairs
    assert edges.pairs == len(pairs) == count_edges(edge_index, num_nodes)
    assert edges.repeated == len(arcs) - len(set(arcs))
    assert edges.to_itself == sum(a == b for a, b in arcs)
    assert edges.one_way == sum(((a, b) in arcs) != ((b, a) in arcs) for a, b in pairs)
    assert edges.directed is (edges.one_way > 0)
    graph = as_networkx(edge_index, num_nodes)
    for node in range(num_nodes):
        row = neighbours.indices[neighbours.indptr[node] : neighbours.indptr[node + 1]]
        assert sorted(row.tolist()) == sorted(graph.neighbors(node))


@given(edge_lists(), st.data())
def test_degrees_and_components_against_networkx(found, data):
    edge_index, num_nodes = found[0].numpy(), found[1]
    neighbours, _ = read_edges(edge_index, num_nodes)
    graph = as_networkx(edge_index, num_nodes)
    degrees = [degree for _, degree in graph.degree]
    counted = count_degrees(neighbours)
    assert counted.median == np.median(degrees)
    assert counted.mean == pytest.approx(np.mean(degrees))
    assert counted.largest == max(degrees)
    assert counted.isolated == degrees.count(0)
    assert counted.isolated_share == degrees.count(0) / num_nodes

    mask = data.draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    parts = list(nx.connected_components(graph))
    bare = [part for part in parts if not any(mask[node] for node in part)]
    counts = count_components(component_ids(neighbours), np.array(mask))
    assert counts.count == len(parts)
    assert counts.largest == max(map(len, parts))
    assert counts.unlabelled == len(bare)
    assert counts.unlabelled_nodes == sum(map(len, bare))


def test_edges_have_two_rows():
    with pytest.raises(ValueError, match="two rows"):
        read_edges(np.zeros((3, 4), dtype=np.int64), 3)


@given(labelled_graphs())
def test_homophily_against_counting(found):
    graph, seen = found
    labels, known = graph.y.numpy(), (seen & (graph.y >= 0)).numpy()
    number = len(graph.class_names)
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    homophily = measure_homophily(neighbours.pairs, labels, known, number)
    more = measure_homophily(neighbours.pairs, labels, known, 10**6)  # as many classes take no more
    assert more.adjusted == homophily.adjusted
    edges = [
        (labels[a], labels[b])
        for a, b in as_networkx(graph.edge_index, graph.num_nodes).edges
        if known[a] and known[b]
    ]
    ends = [end for edge in edges for end in edge]
    assert homophily.edges == len(edges)
    if not edges:
        assert homophily.edge is homophily.by_chance is homophily.adjusted is None
    else:
        same = sum(a == b for a, b in edges) / len(edges)
        chance = sum((ends.count(c) / len(ends)) ** 2 for c in range(number))
        assert homophily.edge == pytest.approx(same)
        assert homophily.by_chance == pytest.approx(chance)
        if len(set(ends)) > 1:
            assert homophily.adjusted == pytest.approx((same - chance) / (1 - chance))
        else:
            assert homophily.adjusted is None
    for label in range(number):
        others = [b for a, b in edges if a == label] + [a for a, b in edges if b == label]
        assert homophily.neighbours[label] == len(others)
        share = homophily.per_class[label]
        assert share == (pytest.approx(others.count(label) / len(others)) if others else None)


@given(labelled_graphs())
def test_class_sizes_against_counting(found):
    graph, seen = found
    labels, known = graph.y.tolist(), (seen & (graph.y >= 0)).tolist()
    counted = count_labels(np.where(known, labels, -1), graph.class_names)
    for label in range(len(graph.class_names)):
        pairs = list(zip(labels, known, strict=True))
        assert counted.labelled[label] == pairs.count((label, True))
    sizes = [size for size in counted.labelled if size]
    assert counted.ratio == max(sizes) / min(sizes)
    assert counted.num_labelled + counted.num_unlabelled == graph.num_nodes
    assert counted.labelled_share == sum(known) / graph.num_nodes


def reach_of(graph, known, hops):
    neighbours, _ = read_edges(graph.edge_index.numpy(), graph.num_nodes)
    number = len(graph.class_names)
    return measure_reach(neighbours, graph.y.numpy(), known, number, hops)


def distances(graph, sources):
    """From the nearest source, infinite where there is no path."""
    plain = as_networkx(graph.edge_index, graph.num_nodes)
    found = nx.multi_source_dijkstra_path_length(plain, sources) if sources else {}
    return [found.get(node, np.inf) for node in range(graph.num_nodes)]


@given(labelled_graphs(max_nodes=14), st.integers(1, 5))
def test_reach_against_shortest_paths(found, hops):
    graph, seen = found
    known = (seen & (graph.y >= 0)).numpy()
    reach = reach_of(graph, known, hops)
    others = np.flatnonzero(~known)
    assert reach.nodes == len(others)
    groups = [
        {int(node) for node in np.flatnonzero(known & (graph.y.numpy() == label))}
        for label in range(len(graph.class_names))
    ]
    for label, sources in enumerate(groups):
        away = np.array(distances(graph, sources))[others]
        assert reach.per_class[label] == tuple((away <= h).sum() for h in range(1, hops + 1))
    away = np.array(distances(graph, set().union(*groups)))[others]
    assert reach.any_class == tuple((away <= h).sum() for h in range(1, hops + 1))
    assert reach.beyond == (away > hops).sum()


@pytest.mark.parametrize("number", [63, 64, 65, 130])
def test_more_classes_than_bits_of_a_word(number):
    """A path along which every second node is labelled, each with a class of its own."""
    nodes = 2 * number
    path = np.stack([np.arange(nodes - 1), np.arange(1, nodes)])
    labels = np.where(np.arange(nodes) % 2 == 0, np.arange(nodes) // 2, -1)
    neighbours, _ = read_edges(path, nodes)
    reach = measure_reach(neighbours, labels, labels >= 0, number, 3)
    assert reach.per_class[0] == (1, 1, 2)
    assert reach.per_class[-1] == (2, 2, 3)
    assert set(reach.per_class[2:-2]) == {(2, 2, 4)}
    assert reach.any_class == (number, number, number)
    assert len(reach.per_class) == number


def test_hops_are_checked():
    neighbours, _ = read_edges(np.zeros((2, 0), dtype=np.int64), 2)
    with pytest.raises(ValueError, match="hops must be at least 1, got 0"):
        measure_reach(neighbours, np.array([0, -1]), np.array([True, False]), 1, 0)


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.5, np.nan, np.inf])


def measure(x, labels=None):
    labels = np.zeros(len(x), dtype=np.int64) if labels is None else np.array(labels)
    return measure_features(x, labels, labels >= 0, int(labels.max(initial=0)) + 1)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float32, shape, elements=VALUES)
    ),
    st.sampled_from([2, 5, 1000]),
)
def test_features_against_a_loop(x, chunk):
    before, measures.CHUNK_ENTRIES = measures.CHUNK_ENTRIES, chunk
    try:
        found = measure(x)
    finally:
        measures.CHUNK_ENTRIES = before
    rows = [tuple("nan" if v != v else v + 0.0 for v in row) for row in x.tolist()]
    full = [row for row in rows if any(value != 0 for value in row)]
    assert found.count == x.shape[1]
    assert found.missing == (~np.isfinite(x)).sum()
    assert found.empty_nodes == len(rows) - len(full)
    assert found.duplicate_nodes == len(full) - len(set(full))
    constant = [np.isfinite(column).all() and len(set(column.tolist())) == 1 for column in x.T]
    assert found.constant == sum(constant)


def test_features_by_hand():
    x = np.array([[0.0, 1, 0], [0, 2, 0]])
    assert (measure(x).count, measure(x).constant) == (3, 2)
    x = np.array([[1.0, 2], [1, 2], [1, 2], [3, 4], [3, 4], [5, 6]])
    found = measure(x, [0, 1, -1, 0, 0, 1])
    assert found.duplicate_nodes == 3
    assert found.conflicting_nodes == 2
    found = measure(np.zeros((4, 0), dtype=np.float32))
    assert found.count == found.constant == found.empty_nodes == found.duplicate_nodes == 0


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.bool_])
def test_other_kinds_of_numbers(kind):
    found = measure(np.array([[0, 1], [1, 1], [1, 1]], dtype=kind))
    assert (found.constant, found.duplicate_nodes, found.missing) == (1, 1, 0)


NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(1)
LABELS = RNG.choice(3, size=600, p=[0.7, 0.25, 0.05])
SOME = np.where(RNG.random(600) < 0.6, LABELS, -1)


def leaks(columns, labels=SOME, names=()):
    x = np.stack(columns, axis=1).astype(np.float32)
    return leaks_in_features(x, labels, NAMES, names)


def one(column, **options):
    """The leak of a column that stands between two harmless ones."""
    found = leaks([RNG.normal(size=600), column, RNG.integers(3, size=600)], **options)
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    "copied", [LABELS, 2 - LABELS, 10.5 + LABELS, np.array([4, 9, -1])[LABELS]]
)
def test_a_copy_of_the_label(copied):
    leak = one(copied)
    assert (leak.column, leak.kind, leak.strength) == ("feature 1", "copy", 1.0)


def test_how_strongly_a_column_tells_the_label():
    noisy = np.where(RNG.random(600) < 0.01, 1, LABELS)
    leak = one(noisy, names=["x", "y_copy", "z"])
    assert (leak.column, leak.kind) == ("y_copy", "label")
    assert 0.95 <= leak.strength < 1
    assert one(LABELS + 0.1 * RNG.normal(size=600)).kind == "label"
    leak = one(np.where(LABELS == 1, RNG.integers(1, 4, size=600), 0))
    assert (leak.kind, leak.class_name) == ("class", "b")


def test_honest_features_pass():
    assert one(np.where(RNG.random(600) < 0.25, RNG.integers(3, size=600), LABELS)) is None
    assert one(LABELS + RNG.normal(size=600)) is None
    assert one(np.ones(600)) is None
    few = np.full(600, -1)
    few[[np.flatnonzero(label == LABELS)[place] for label in range(3) for place in range(4)]] = 0
    few = np.where(few == 0, LABELS, -1)
    assert one(LABELS, labels=few) is None
    assert one(RNG.random(600)) is None
    assert one(np.arange(600) // 2) is None


def table(**columns):
    import pandas as pd

    words = np.array(["fraud", "fine", "unsure"])[LABELS]
    plain = {"key": [f"n{place}" for place in range(600)]}
    plain["topic"] = np.where(SOME >= 0, words, "")
    plain["amount"] = RNG.normal(size=600)
    plain["city"] = RNG.choice(["Rome", "Bonn"], size=600)
    plain["title"] = [f"a text about {place}" for place in range(600)]
    return pd.DataFrame(plain | columns)


def kinds(frame):
    return {leak.column: leak.kind for leak in leaks_in_table(frame, "topic", "key")}


def test_leaks_of_a_table():
    words = np.array(["fraud", "fine", "unsure"])[LABELS]
    frame = table(
        copied=words,
        code=np.array([7, 1, 3])[LABELS],
        nearly=np.where(RNG.random(600) < 0.01, "fine", words),
        closed_on=[f"day {i % 9}" if label == 1 else None for i, label in enumerate(LABELS)],
        again=[f"n{place}" for place in range(600)],
        row=np.arange(600) * 17,
        when=np.arange("2020-01-01", "2021-08-23", dtype="datetime64[D]"),
        flag=RNG.random(600) < 0.5,
    )
    expected = {"copied": "copy", "code": "copy", "nearly": "label", "closed_on": "class"}
    assert kinds(frame) == expected | {"again": "id", "row": "id"}
    assert kinds(table()) == {}
    amounts = [f"{value:.4f}" for value in RNG.lognormal(6, 1, size=600)]
    assert kinds(table(balance=amounts)) == {}
    assert kinds(table(balance=[f"{value:,.2f}" for value in RNG.lognormal(9, 1, 600)])) == {}
    times = [f"2026-01-{1 + n // 24:02}T{n % 24:02}:00:00" for n in range(600)]
    assert kinds(table(paid_at=times)) == {}
    assert kinds(table(serial=[str(1000 + number) for number in range(600)])) == {"serial": "id"}
    mixed = [1, "two", None, 3.5, [4]] * 120
    frame = table(empty=[None] * 600, mixed=mixed, half=[1.5, None] * 300)
    frame.loc[3, "topic"] = None
    assert kinds(frame) == {}
    assert kinds(frame.assign(topic="")) == {}


UNKNOWN = SOME < 0
FRAUD = (SOME == 1) & (np.random.default_rng(2).random(600) < 0.9)  # most of the labelled


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (np.where(FRAUD, np.arange(600) % 4 + 3, np.arange(600) % 3), "3 to 6"),
        (np.where(FRAUD, "open", "none"), "'open'"),
        ([f"2024-01-{place % 28}:{place}" if f else "" for place, f in enumerate(FRAUD)], "filled"),
        # honest: nodes without a label have them as well, or nodes of other classes
        (np.where(FRAUD | (UNKNOWN & (LABELS == 1)), 3, np.arange(600) % 3), None),
        (np.where(UNKNOWN, 0, np.arange(600) % 4 + 3), None),
        ([f"word {place}" for place in range(600)], None),
    ],
)
def test_values_that_only_labelled_nodes_of_a_class_have(cells, found):
    cells = np.asarray(cells)
    plain = {"topic": np.where(UNKNOWN, "", LABELS.astype(str)), "key": np.arange(600).astype(str)}
    frame = pytest.importorskip("pandas").DataFrame(plain | {"told": cells.astype(str)})
    kinds = [leak for leak in leaks_in_table(frame, "topic", "key") if leak.kind == "unseen"]
    assert len(kinds) == (found is not None)
    for leak in kinds:
        size, others = int((SOME == 1).sum()), int(((SOME >= 0) & (SOME != 1)).sum())
        assert leak.values.startswith(found)
        assert leak.counts == (int(FRAUD.sum()), size, 0, others, 0, int(UNKNOWN.sum()))
        assert leak.class_name == "1"
    if cells.dtype.kind in "iu":
        assert {leak.kind for leak in leaks([cells])} == ({"unseen"} if found else set())


def test_a_score_that_is_too_good_is_doubted():
    graph = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=600)
    graph.y = torch.from_numpy(np.where(UNKNOWN, -1, LABELS == 1).astype(np.int64))
    graph.x = torch.from_numpy(np.stack([FRAUD, RNG.random(600)], 1)).float()
    (warning,) = eg.inspection.leak_warnings(graph, ["told", "other"])
    assert warning.startswith("Column 'told': ")
    scores = {"positive_average_precision": 94.9, "balanced_accuracy": 99.9}
    assert eg.inspection.doubt(graph, scores) == ""
    text = eg.inspection.doubt(graph, {"positive_average_precision": 97.0}, ["told", "other"])
    assert "average precision of 97.0" in text
    assert "Column 'told' alone removes" in text


def test_a_column_that_is_not_there():
    frame = table()
    with pytest.raises(ValueError, match=r"column 'Topic'; it has: key, topic, amount"):
        leaks_in_table(frame, "Topic", "key")
    with pytest.raises(ValueError, match="column 'name'"):
        leaks_in_table(frame, "topic", "name")


# The signal of one column.


def signal(table):
    """From the counts of classes, by group."""
    groups, classes = (np.repeat(part.ravel(), table.ravel()) for part in np.indices(table.shape))
    return label_signal(groups, classes, table.shape[1])


@pytest.mark.parametrize("dense", [measures.DENSE, 0])
@given(st.lists(st.lists(st.integers(0, 8), min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_a_column_tells_against_leaving_one_out(dense, rows):
    table = np.array(rows)
    nodes = [
        (group, label)
        for group, row in enumerate(rows)
        for label in range(3)
        for _ in range(row[label])
    ]

    def hits(classes):
        """Nodes that a strict majority of the others of their group, all of it theirs, tells."""
        right = 0
        for group, label in nodes:
            votes = dict.fromkeys(set(classes.values()), 0)
            for other, its in nodes:
                votes[classes[its]] += other == group
            votes[classes[label]] -= 1
            mine = votes.pop(classes[label])
            right += mine > max(votes.values(), default=0)
        return right

    def gain(classes):
        sizes = [sum(classes[label] == c for _, label in nodes) for c in set(classes.values())]
        if not nodes or len(nodes) - max(sizes) < LEAST_EVIDENCE:
            return 0.0
        return (hits(classes) - max(sizes)) / (len(nodes) - max(sizes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "DENSE", dense)
        told = signal(table)
    assert told.label == pytest.approx(gain({0: 0, 1: 1, 2: 2}))
    for label in range(3):
        assert told.by_class[label] == pytest.approx(gain({c: c == label for c in range(3)}))


def test_a_copy_is_one_to_one():
    assert signal(np.diag([20, 30, 40])).copy
    assert signal(np.array([[0, 12], [0, 0], [15, 0]])).copy
    assert not signal(np.array([[20, 0], [20, 0], [0, 20]])).copy  # two values for a class
    assert not signal(np.array([[20, 1], [0, 20]])).copy
    assert not signal(np.array([[20, 0]])).copy  # a single class
    assert not signal(np.diag([20, 3])).copy  # three nodes are no evidence
    assert signal(np.vstack([np.tile([1, 0], (30, 1)), np.tile([0, 1], (30, 1))])).label <= 0


def test_few_values_stay_and_many_are_cut_into_ranges():
    values = np.array([3.0, 1.0, np.nan, 3.0, np.nan])
    assert group_values(values, 2).tolist() == [1, 0, 2, 1, 2]
    many = np.random.default_rng(0).permutation(6400).astype(float)
    groups = group_values(many, 2)
    assert np.bincount(groups).tolist() == [100] * 64
    assert (np.diff(groups[np.argsort(many)]) >= 0).all()
    assert len(set(group_values(many[:100], 2).tolist())) == 20  # at least five in each


def test_rare_classes_are_sampled_whole(monkeypatch):
    monkeypatch.setattr(measures, "MOST_ROWS", 60)
    labels = np.array([0] * 500 + [1] * 12 + [-1] * 50 + [2] * 20)
    rows = sample_rows(labels, 3)
    assert np.bincount(labels[rows]).tolist() == [20, 12, 20]
    assert len(set(rows.tolist())) == len(rows)
    assert (rows == sample_rows(labels, 3)).all()


GRAPH = Inspection(
    name="",
    num_nodes=1000,
    labels=Labels(
        names=("fine", "fraud"),
        labelled=(340, 12),
        num_labelled=352,
        num_unlabelled=648,
        labelled_share=0.352,
        ratio=340 / 12,
    ),
    homophily=Homophily(
        edges=500,
        edge=0.81,
        by_chance=0.5,
        adjusted=0.62,
        per_class=(0.9, 0.5),
        neighbours=(900, 100),
    ),
    edges=Edges(pairs=2000, repeated=0, to_itself=0, one_way=0, directed=False),
    degrees=Degrees(median=3, mean=4.0, largest=50, isolated=0, isolated_share=0.0),
    components=Components(count=1, largest=1000, unlabelled=0, unlabelled_nodes=0),
    reach=Reach(
        hops=4,
        nodes=648,
        per_class=((600, 640, 648, 648), (100, 402, 500, 640)),
        any_class=(610, 645, 648, 648),
        beyond=0,
    ),
    features=Features(
        count=10,
        **dict.fromkeys(("constant", "missing", "empty_nodes"), 0),
        **dict.fromkeys(("duplicate_nodes", "conflicting_nodes"), 0),
    ),
    leaks=(),
)


def changed(**changes: Any) -> Inspection:
    """The graph with other measurements, given as whole parts or as the values that differ."""
    parts = {
        name: replace(getattr(GRAPH, name), **change) if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(GRAPH, **parts)


UNSURE = {
    "labels": {"names": ("fine", "fraud", "?"), "labelled": (340, 12, 9)},
    "homophily": {"per_class": (0.9, 0.5, 0.5), "neighbours": (900, 100, 100)},
    "reach": {"nodes": 0},
}
NO_EDGES = {
    "edges": {"pairs": 0},
    "degrees": {"isolated": 1000, "isolated_share": 1.0},
    "homophily": {"edges": 0, "edge": None, "adjusted": None},
    "components": {"count": 1000, "unlabelled": 648, "unlabelled_nodes": 648},
}
LEAKS = tuple(Leak(column=f"c{n}", kind="class", class_name="fine") for n in range(40))
COUNTS = {"values": "3 to 6", "counts": (11, 12, 0, 340, 0, 648)}
CASES = {
    "less uneven": {"labels": {"ratio": 9.94}},
    "just very uneven": {"labels": {"ratio": 10.0}},
    "balanced": {"labels": {"labelled": (10, 12), "ratio": 1.2}},
    "one class": {"labels": {"labelled": (340, 0), "ratio": 1.0}},
    "one node of a class": {"labels": {"labelled": (340, 1)}},
    "a class that may mean unlabelled": UNSURE,
    "every node labelled": {"reach": {"nodes": 0}, "labels": {"num_unlabelled": 0}},
    "less alike": {"homophily": {"edge": 0.6, "adjusted": 0.2}},
    "unlike": {"homophily": {"edge": 0.12, "adjusted": -0.7}},
    "alike by chance": {"homophily": {"edge": 0.95, "by_chance": 0.94, "adjusted": 0.05}},
    "one edge between labels": {"homophily": {"edges": 1, "adjusted": None}},
    "a class unlike": {"homophily": {"per_class": (0.9, 0.1), "neighbours": (960, 40)}},
    "near": {"reach": {"per_class": ((600, 640, 648, 648), (100, 600, 600, 640))}},
    "few out of reach": {"reach": {"beyond": 5}},
    "isolated": {"degrees": {"isolated": 200, "isolated_share": 0.2}},
    "components": {"components": {"count": 9, "unlabelled": 2, "unlabelled_nodes": 10}},
    "no edges": NO_EDGES,
    "one way": {"edges": {"one_way": 1000, "directed": True}},
    "a loop": {"edges": {"to_itself": 1}},
    "repeats": {"edges": {"repeated": 1234}},
    "no features": {"features": {"count": 0}},
    "missing values": {"features": {"missing": 3}},
    "equal nodes": {"features": {"duplicate_nodes": 20}},
    "constants": {"features": {"count": 16, "constant": 3}},
    "a leak": {"leaks": (Leak(column="y", kind="label"),)},
    "a copy": {"leaks": (Leak(column="feature 17", kind="copy"),)},
    "unseen": {"leaks": (Leak(column="y", kind="unseen", class_name="fraud", **COUNTS),)},
    "classes spelled in two ways": {"labels": {"names": ("fraud", "Fraud")}},
    "an id": {"leaks": (Leak(column="row", kind="id"),)},
    "many leaks": {"leaks": LEAKS},
}


def told(**changes):
    return [f"{one.level} ({one.topic}): {one.text}" for one in find(changed(**changes))]


def test_findings_are_told_as_before():
    """All of one graph, and what is new and gone where some measurements differ."""
    usual = told()
    lines = [*usual]
    for name, changes in CASES.items():
        found = told(**changes)
        lines += ["", name, *(f"+ {line}" for line in found if line not in usual)]
        lines += [f"- {line}" for line in usual if line not in found]
    check_snapshot(Path(__file__).with_name("findings.txt"), "\n".join(lines) + "\n")


def test_the_gravest_stand_first_and_all_are_sentences():
    findings = find(GRAPH)
    levels = [finding.level for finding in findings]
    assert levels == sorted(levels, key=("warning", "note", "good").index)
    assert {"warning", "note", "good"} == set(levels)
    for finding in findings:
        assert re.fullmatch(r"[A-Z0-9'].*\.", finding.text)
        assert "  " not in finding.text


def test_percent_never_rounds_to_none_or_all():
    assert [percent(share) for share in (0, 0.5, 1)] == ["0%", "50%", "100%"]
    assert [percent(share) for share in (0.004, 0.996)] == ["less than 1%", "more than 99%"]


def advised(**changes):
    return " ".join(recommend(changed(**changes)))


def test_advice():
    assert set(HETEROPHILY_METHODS.split(",")) <= METHODS.keys()
    plain = advised()
    assert plain.startswith(
        "Classes are imbalanced and many nodes are far from labels: use the default, which selects "
    )
    assert ", or compare them with GCN. " in plain
    for kind in METHODS.values():
        tried = kind.portfolio and kind is not DoubleBalancing  # not where a class is rare
        assert (kind.title in plain) == bool(tried or kind is GCN), kind.title
    assert "correct for 97% of the labelled nodes" in plain
    near = {"reach": {"per_class": ((648,) * 4,) * 2}}
    even = {"labels": {"labelled": (10, 12), "ratio": 1.2}}
    assert advised(**near, **even) == "A plain GCN may be enough; compare it with the default."
    assert advised(**near).startswith("Classes are imbalanced: use the default, ")
    assert advised(**even).startswith("Many nodes are far from labels: use the default, ")
    assert advised(homophily={"adjusted": 0.0}).startswith("Compare methods on GraphSAGE, ")
    assert avoids_neighbours(changed(homophily={"adjusted": 0.0}))
    none = advised(edges={"pairs": 0})
    assert none.startswith("Without edges, use the default, which includes models of features ")
    few = {"homophily": {"adjusted": 0.0, "edges": 3}}
    assert advised(**few).startswith("Classes are imbalanced")
    assert not avoids_neighbours(changed(**few))
    leak = (Leak(column="y_copy", kind="copy"), Leak(column="row", kind="id"))
    assert advised(leaks=leak).startswith("First remove 'y_copy' from the features. Classes are")
    single = {"labels": {"labelled": (3, 0), "ratio": 1.0}}
    assert advised(**single) == "Label nodes of at least two classes before training."


def graph_of(labels, pairs=((0, 1),), **more):
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    return Data(edge_index=edge_index, y=torch.tensor(labels), num_nodes=len(labels), **more)


def test_names_and_weights():
    graph = graph_of([0, 1, -1], class_names=["x", "y"])
    assert eg.inspect_graph(graph).labels.names == ("x", "y")
    graph.class_names = ["p", "q", "r"]
    assert eg.inspect_graph(graph).labels.labelled == (1, 1, 0)
    graph = graph_of([0, 0, 1, 1], [(0, 1), (2, 3)])
    assert eg.inspect_graph(graph).homophily.edges == 2
    graph.y[3] = -1
    assert eg.inspect_graph(graph).homophily.edges == 1
    graph = eg.toy(60, 150, 10, 3)
    plain = eg.inspect_graph(graph).edges
    assert (plain.weighted, plain.relations) == (False, ())
    graph.edge_weight = torch.rand(graph.num_edges)
    graph.relation_names = ("card", "cash")
    edges = eg.inspect_graph(graph).edges
    assert (edges.weighted, edges.relations) == (True, ("card", "cash"))


@given(labelled_graphs())
def test_any_graph_becomes_plain_json(found):
    graph, _ = found
    inspection = eg.inspect_graph(graph)
    plain = inspection.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["num_nodes"] == graph.num_nodes
    assert plain["findings"]
    assert plain["recommendation"]


def test_a_toy_graph_with_few_labels():
    graph = eg.toy()
    task = Natural()(graph, seed=5)
    before = graph.y.where(task.train, -1), graph.x.clone(), graph.edge_index.clone()
    graph.y[~task.train] = -1
    found = eg.inspect_graph(graph, hops=3)
    for old, new in zip(before, (graph.y, graph.x, graph.edge_index), strict=True):
        assert torch.equal(old, new)
    assert found.name == "toy"
    assert found.labels.labelled == tuple(task.class_counts.tolist())
    assert found.labels.names[4] == "class 4"
    assert found.reach.hops == len(found.reach.any_class) == 3
    assert found.homophily.edge > 0.6
    assert found.edges.pairs == 4000
    assert found.leaks == ()


def test_a_leak_under_the_name_of_the_column():
    import pandas as pd

    graph = eg.toy(400, 1600, 20, 2)
    graph.x[:, 7] = graph.y
    assert [leak.column for leak in eg.inspect_graph(graph).leaks] == ["feature 7"]
    graph.feature_names = [f"f{place}" for place in range(20)]
    assert [leak.column for leak in eg.inspect_graph(graph).leaks] == ["f7"]
    table = pd.DataFrame({"topic": graph.y.numpy(), "closed": graph.y.numpy() == 1})
    found = eg.inspect_graph(graph, table=table, label="topic")
    assert [leak.column for leak in found.leaks] == ["closed"]
    assert found.recommendation[0] == "First remove 'closed' from the features."
    harmless = table.assign(closed=np.arange(400) % 2)
    found = eg.inspect_graph(graph, table=harmless, label="topic")
    assert [leak.column for leak in found.leaks] == ["f7"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"graph": graph_of([-1, -1])}, "No node has a label"),
        ({"graph": graph_of([0, -2])}, "labels must be -1 .* got -2"),
        ({"graph": Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=2)}, "graph.y"),
        ({"graph": Data(y=torch.tensor([0]), num_nodes=1)}, "graph.edge_index must hold"),
        ({"graph": graph_of([0, 1], [(0, 2)])}, "ids from 0 to 1, got 2"),
        ({"graph": graph_of([0, 1], [(-1, 0)])}, "ids from 0 to 1, got -1"),
        ({"graph": graph_of([0, 1], x=torch.zeros(3, 2))}, "graph.x must be a dense .* 2 rows"),
        ({"graph": graph_of([0, 1], class_names=["one"])}, "must hold 2 names, got 1"),
        ({"hops": 0}, "hops must be at least 1"),
        ({"table": object()}, "label must name"),
    ],
)
def test_mistakes(change, words):
    arguments = {"graph": graph_of([0, 1])} | change
    with pytest.raises(ValueError, match=words):
        eg.inspect_graph(arguments.pop("graph"), **arguments)


def test_every_column_is_described(tmp_path):
    size = 400
    place = np.arange(size)
    table = pd.DataFrame({"id": place, "kind": np.where(place % 4 == 0, "rare", "common")})
    table["copy"] = np.where(place % 4 == 0, "x", "y")
    table["noise"] = np.where(place % 3 == 0, "", (place * 7 % 50).astype(str))
    table["same"] = "z"
    edges = pd.DataFrame({"source": place, "target": (place + 1) % size})
    encoder = eg.from_frames(table, edges, label="kind", id="id").encoder
    found = {one["name"]: one for one in describe_columns(table, "kind", "id", encoder)}
    assert list(found) == ["copy", "noise", "same"]
    assert found["copy"]["link"] == pytest.approx(1, abs=0.01)
    assert found["noise"]["link"] < 0.3
    assert (found["noise"]["kind"], found["noise"]["values"]) == (
        "number",
        "0 to 49, median 24.5 ████████",
    )
    assert found["noise"]["missing"] == pytest.approx(1 / 3, abs=0.01)
    assert found["same"]["becomes"] == "left out"
    assert found["copy"]["values"] == "y 75%, x 25%"
