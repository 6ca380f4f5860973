"""Prototypes against a plain version of the rule, with and without the public code's slips."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import neighbours as prototypes
from evengraph.ops.neighbours import class_prototypes, similar_nodes
from evengraph.ops.sparse import from_scipy, undirected_adjacency
from small_graphs import dense_adjacency, edge_lists, edges, normal

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
        patch.setattr(prototypes, "SIMILAR", size)
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


def test_the_likeliest_neighbours_come_first_and_labelled_ones_never():
    situation = STAR | {"edge_index": edges([(0, 1), (0, 3), (4, 0), (0, 5)]), "target": 3}
    for sound in (False, True):
        value = of_situation(situation, sound=sound)
        assert value[0].nonzero().flatten().tolist() == [0, 3, 4]


@given(st.integers(13, 30), st.integers(0, 999), st.integers(0, 1), st.integers(0, 12))
def test_similar_nodes_are_the_ten_best(num_nodes, seed, skip, node):
    x = normal(num_nodes, 4, seed=seed).abs()
    edge_index = edges([(node, (node + 1) % num_nodes)])
    matrix = from_scipy(undirected_adjacency(edge_index, num_nodes), CPU, torch.float32)
    linked = dense_adjacency(edge_index, num_nodes, undirected=True).tolist()
    found = similar_nodes(x, matrix, torch.tensor([node]), skip)
    assert found.tolist() == sorted(plain_similar(x, linked, node, skip, 10))


def test_a_node_without_features_resembles_nobody(monkeypatch):
    matrix = from_scipy(undirected_adjacency(edges([(0, 1)]), 4), CPU, torch.float32)
    x = torch.tensor([[1.0, 0], [1, 0], [1, 1], [0, 0]])
    monkeypatch.setattr(prototypes, "SIMILAR", 1)
    assert similar_nodes(x, matrix, torch.tensor([0]), 0).tolist() == [2]
    assert similar_nodes(x, matrix, torch.tensor([0]), 1).tolist() == [3]


def test_nobody_is_similar_to_nobody():
    matrix = from_scipy(undirected_adjacency(edges([]), 2), CPU, torch.float32)
    assert similar_nodes(torch.ones(2, 1), matrix, torch.zeros(0, dtype=torch.long), 1).numel() == 0


def test_neighbours_are_left_aside_whatever_the_signs_of_the_features(monkeypatch):
    monkeypatch.setattr(prototypes, "SIMILAR", 1)
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-0.5, 1.0]])
    graph = from_scipy(undirected_adjacency(edges([(0, 1)]), 3), CPU, torch.float32)
    assert prototypes.similar_nodes(x, graph, torch.tensor([0]), 0).tolist() == [2]
