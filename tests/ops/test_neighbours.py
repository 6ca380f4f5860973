"""Nearest neighbours by cosine, against all pairs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from evengraph.ops import neighbours
from evengraph.ops.neighbours import (
    class_prototypes,
    nearest_neighbours,
    neighbour_graph,
    similar_nodes,
)
from evengraph.ops.sparse import from_scipy, undirected_adjacency
from small_graphs import dense_adjacency, edge_lists, edges, normal


def blobs(rows, columns=16, centres=12, spread=0.3):
    random = torch.Generator().manual_seed(0)
    means = torch.randn(centres, columns, generator=random)
    group = torch.randint(centres, (rows,), generator=random)
    return means[group] + spread * torch.randn(rows, columns, generator=random)


def all_pairs(x, count):
    cosines = normalize(x, dim=1) @ normalize(x, dim=1).T
    cosines.fill_diagonal_(-2)
    return cosines.topk(count).indices


def recall(found, expected):
    pairs = zip(found.tolist(), expected.tolist(), strict=True)
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in pairs])


def test_small_graphs_are_exact():
    x = blobs(300)
    assert recall(nearest_neighbours(x, 7), all_pairs(x, 7)) == 1


def test_lists_find_nearly_all(monkeypatch):
    x = blobs(3_000)
    monkeypatch.setattr(neighbours, "EXACT", 100)
    found = nearest_neighbours(x, 10)
    assert recall(found, all_pairs(x, 10)) > 0.9
    assert not (found == torch.arange(3_000).unsqueeze(1)).any()


def test_equal_rows_share_a_list_without_comparing_all_pairs(monkeypatch):
    monkeypatch.setattr(neighbours, "EXACT", 100)
    largest = []
    search = neighbours._nearest_among

    def spy(x, rows, among, count):
        largest.append(rows.numel() * among.numel())
        return search(x, rows, among, count)

    monkeypatch.setattr(neighbours, "_nearest_among", spy)
    found = nearest_neighbours(torch.ones(4_000, 3), 5)
    assert (found >= 0).all()
    assert max(largest) < 4_000**2 / 2


def use_lists(monkeypatch, lists):
    monkeypatch.setattr(neighbours, "nearest_mean", lambda x, means: lists)
    monkeypatch.setattr(neighbours, "cluster_means", lambda x, ids, k: torch.ones(k, 16))


def test_lists_may_be_empty(monkeypatch):
    x, lists = blobs(300), torch.arange(300) % 3 + 10
    monkeypatch.setattr(neighbours, "EXACT", 100)
    use_lists(monkeypatch, lists)
    assert recall(nearest_neighbours(x, 7), all_pairs(x, 7)) == 1


def test_cosines_in_memory_are_limited(monkeypatch):
    x = blobs(3_000)
    monkeypatch.setattr(neighbours, "EXACT", 100)
    expected = nearest_neighbours(x, 10)
    monkeypatch.setattr(neighbours, "AT_ONCE", 20_000)
    largest = []
    product = torch.Tensor.__matmul__

    def spy(self, other):
        largest.append(self.shape[0] * other.shape[1])
        return product(self, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", spy)
    assert recall(nearest_neighbours(x, 10), expected) > 0.999
    assert 0 < max(largest) <= 20_000


def test_fewer_rows_than_neighbours():
    assert nearest_neighbours(torch.eye(3), 10).shape == (3, 2)


def test_the_graph_is_undirected():
    matrix = neighbour_graph(blobs(200), 5)
    assert (matrix != matrix.T).nnz == 0
    assert matrix.diagonal().sum() == 0
    assert matrix.getnnz(axis=1).min() >= 5
    assert set(matrix.data) == {1.0}


@pytest.mark.parametrize("rows", [1, 2])
def test_tiny_graphs(rows):
    assert neighbour_graph(torch.ones(rows, 2), 5).shape == (rows, rows)


def test_too_few_in_the_lists_that_are_searched(monkeypatch):
    lists = torch.tensor([0] * 9 + [1])
    monkeypatch.setattr(neighbours, "EXACT", 1)
    monkeypatch.setattr(neighbours, "PROBES", 1)
    use_lists(monkeypatch, lists)
    found = nearest_neighbours(blobs(10), 3)
    assert found[9].tolist() == [-1, -1, -1]
    assert (found[:9] >= 0).all()


CPU = torch.device("cpu")


@st.composite
def situations(draw):
    """Few distinct probabilities, so that many are equal; features without equal angles."""
    edge_index, num_nodes = draw(edge_lists(max_nodes=16).filter(lambda graph: graph[1] > 2))
    num_classes = draw(st.integers(1, 3))
    nodes = draw(st.permutations(range(num_nodes)))[: draw(st.integers(num_classes, num_nodes))]
    more = len(nodes) - num_classes
    extra = draw(st.lists(st.integers(0, num_classes - 1), min_size=more, max_size=more))
    grid = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    size = num_nodes * num_classes
    likely = draw(st.lists(grid, min_size=size, max_size=size))
    return {
        "embeddings": 2.0 ** torch.arange(num_nodes).double().unsqueeze(1),  # a mean tells whose
        "probabilities": torch.tensor(likely).reshape(num_nodes, num_classes),
        "x": normal(num_nodes, 3, seed=draw(st.integers(0, 999))).abs(),
        "edge_index": edge_index,
        "nodes": nodes,
        "labels": [*range(num_classes), *extra],
        "target": draw(st.integers(0, 10)),
    }


def plain_similar(x, linked, node, skip, size):
    """Neither the node nor its neighbours, the most similar first."""
    rows = x.tolist()
    others = [i for i in range(len(rows)) if i != node and not linked[node][i]]

    def cosine(i):
        lengths = math.hypot(*rows[i]) * math.hypot(*rows[node])
        return sum(a * b for a, b in zip(rows[i], rows[node], strict=True)) / lengths

    return sorted(others, key=cosine, reverse=True)[skip : skip + size]


def plain_members(situation, label, *, sound, size):
    """The nodes whose embeddings make up a prototype."""
    nodes, labels = situation["nodes"], situation["labels"]
    x, target = situation["x"], situation["target"]
    linked = dense_adjacency(situation["edge_index"], x.shape[0], undirected=True).tolist()
    likely = situation["probabilities"][:, label].tolist()

    def best(pool, count):
        return sorted(pool, key=lambda node: (-likely[node], node))[: max(count, 0)]

    own = [node for node, given in zip(nodes, labels, strict=True) if given == label]
    fill = target - len(own)
    if fill <= 0:
        return own
    near = {i for node in own for i in range(x.shape[0]) if linked[node][i]}
    near -= set(nodes if sound else own)
    members = own + best(near, fill)
    skip = 0 if sound else 1
    alike = {i for node in own for i in plain_similar(x, linked, node, skip, size)}
    wanted = (target if sound else fill) - len(members)
    return members + best(alike - set(nodes) - set(members) if sound else alike, wanted)


def of_situation(situation, *, sound):
    num_nodes = situation["x"].shape[0]
    binary = undirected_adjacency(situation["edge_index"], num_nodes)
    return class_prototypes(
        situation["embeddings"],
        situation["probabilities"],
        situation["x"],
        from_scipy(binary, CPU, torch.float32),
        torch.tensor(situation["nodes"]),
        torch.tensor(situation["labels"]),
        situation["target"],
        sound=sound,
    )


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize("size", [1, 2, 10])
@given(situation=situations())
def test_prototypes_equal_the_plain_version(sound, size, situation):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "SIMILAR", size)
        value = of_situation(situation, sound=sound)
    for label, row in enumerate(value):
        members = plain_members(situation, label, sound=sound, size=size)
        expected = sum(2.0**node for node in members) / len(members)
        assert row.item() == pytest.approx(expected, rel=1e-12)


# Node 0 is labelled and knows 1. By features it resembles 2 most, then 3, then 4. Node 5 is
# labelled, too, of the other class.
STAR = {
    "embeddings": torch.eye(6).double(),
    "probabilities": torch.tensor([[1.0, 0], [0.2, 0], [0.9, 0], [0.8, 0], [0.7, 0], [0, 1]]),
    "x": torch.tensor([[1.0, 0], [1, 0.1], [1, 0.2], [1, 0.3], [1, 0.4], [0, 1]]),
    "edge_index": edges([(0, 1)]),
    "nodes": [0, 5],
    "labels": [0, 1],
}


@pytest.mark.parametrize(
    ("target", "sound", "members"),
    [
        (1, False, [0]),
        (2, False, [0, 1]),
        (3, False, [0, 1]),  # two were missing, and the list of two is not shorter than that
        (3, True, [0, 1, 2]),
        (4, False, [0, 1, 3]),  # one short of three, and 2, the most similar, is left out
        (4, True, [0, 1, 2, 3]),
        (9, False, [0, 1, 3, 4, 5]),  # though 5 is labelled for the other class
        (9, True, [0, 1, 2, 3, 4]),
    ],
)
def test_what_the_public_code_leaves_out(target, sound, members):
    value = of_situation(STAR | {"target": target}, sound=sound)
    assert value[0].nonzero().flatten().tolist() == members
    torch.testing.assert_close(value.sum(1), torch.ones(2).double())


def test_a_node_without_features_resembles_nobody(monkeypatch):
    matrix = from_scipy(undirected_adjacency(edges([(0, 1)]), 4), CPU, torch.float32)
    x = torch.tensor([[1.0, 0], [1, 0], [1, 1], [0, 0]])
    monkeypatch.setattr(neighbours, "SIMILAR", 1)
    assert similar_nodes(x, matrix, torch.tensor([0]), 0).tolist() == [2]
    assert similar_nodes(x, matrix, torch.tensor([0]), 1).tolist() == [3]


def test_nobody_is_similar_to_nobody():
    matrix = from_scipy(undirected_adjacency(edges([]), 2), CPU, torch.float32)
    assert similar_nodes(torch.ones(2, 1), matrix, torch.zeros(0, dtype=torch.long), 1).numel() == 0


def test_neighbours_are_left_aside_whatever_the_signs_of_the_features(monkeypatch):
    monkeypatch.setattr(neighbours, "SIMILAR", 1)
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-0.5, 1.0]])
    graph = from_scipy(undirected_adjacency(edges([(0, 1)]), 3), CPU, torch.float32)
    assert similar_nodes(x, graph, torch.tensor([0]), 0).tolist() == [2]
