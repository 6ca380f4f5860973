"""Virtual nodes of classes: who is at risk, who is linked to which, and the larger graph."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops import synthesis as virtual
from evengraph.ops.sparse import Sparse, undirected_adjacency
from evengraph.ops.synthesis import VirtualNodes, link_probabilities
from small_graphs import dense_adjacency, dense_row, dense_symmetric, normal, random_edges

# Who is linked, worked by hand.


def test_the_uncertain_ones_of_a_class_are_at_risk():
    # nodes 0 and 1 are predicted to be of class 0, whose mean uncertainty is 0.3; 2 of class 1
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1], [0.2, 0.8, 0.0]])
    predicted, counts = torch.tensor([0, 0, 1]), torch.tensor([20, 20, 2])
    found = link_probabilities(probabilities, predicted, probabilities, counts)
    expected = torch.tensor([[0, 0, 0], [0, 0.2 * 0.8, 0.2 * 0.2], [0, 0, 0]])
    torch.testing.assert_close(found, expected)


def test_a_rare_class_keeps_whom_it_has_won():
    probabilities = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    predicted = torch.tensor([0, 0])
    for counts, risk in (([20, 20], 0.2), ([2, 20], 0.02)):
        found = link_probabilities(probabilities, predicted, probabilities, torch.tensor(counts))
        assert found[1].tolist() == pytest.approx([0, risk])


def test_neighbours_may_say_what_else_a_node_is():
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1]])
    neighbours = torch.tensor([[2.0, 0, 0], [1.0, 0, 3.0]])
    predicted, counts = torch.tensor([0, 0]), torch.tensor([5, 5, 5])
    found = link_probabilities(probabilities, predicted, neighbours, counts)
    assert found[1].tolist() == pytest.approx([0, 0, 0.2])
    lonely = link_probabilities(probabilities, predicted, torch.zeros(2, 3), counts)
    assert not lonely.any()


@given(st.integers(0, 999), st.integers(2, 5))
def test_chances_are_probabilities_and_never_of_the_own_class(seed, num_classes):
    stream = torch.Generator().manual_seed(seed)
    probabilities = (3 * torch.randn(12, num_classes, generator=stream)).softmax(1)
    predicted = torch.randint(num_classes, (12,), generator=stream)
    counts = torch.randint(1, 9, (num_classes,), generator=stream)
    found = link_probabilities(probabilities, predicted, probabilities, counts)
    assert (found >= 0).all()
    assert (found.sum(1) <= 1).all()
    assert not found[torch.arange(12), predicted].any()


# The larger graph.

EDGES = random_edges(40, 90)
NODES, LABELS, COUNTS = torch.tensor([5, 0, 9]), torch.tensor([0, 2, 1]), torch.tensor([1, 1, 1])


def virtual_nodes(variant="BAT1", how="row", x=None):
    x = normal(40, 6, dtype=torch.float32) if x is None else x
    matrix = undirected_adjacency(EDGES, 40)
    return VirtualNodes(matrix, x, NODES, LABELS, COUNTS, variant, how)


def drawn_by(logits, variant):
    """Classes that a node may be instead, in the place where chances are made of them."""
    seen = []

    def spy(*args):
        seen.append(args)
        return link_probabilities(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(virtual, "link_probabilities", spy)
        virtual_nodes(variant).link(logits)
    return seen[0]


def test_what_is_known_is_not_guessed():
    logits = 3 * normal(40, 3, dtype=torch.float32)
    probabilities, predicted, instead, counts = drawn_by(logits, "BAT0")
    assert torch.equal(predicted[NODES], LABELS)
    others = torch.ones(40).bool()
    others[NODES] = False
    assert torch.equal(predicted[others], logits.argmax(1)[others])
    assert instead is probabilities
    assert counts is COUNTS
    torch.testing.assert_close(probabilities, logits.softmax(1))


def test_neighbours_are_asked_for_what_they_are_predicted_to_be():
    _, predicted, instead, _ = drawn_by(3 * normal(40, 3, dtype=torch.float32), "BAT1")
    matrix = dense_adjacency(EDGES, 40, undirected=True)
    hot = torch.eye(3, dtype=torch.float64)[predicted]
    torch.testing.assert_close(instead.double(), matrix @ hot)


@pytest.mark.parametrize("how", ["row", "symmetric"])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_larger_graph_and_its_features(how, sparse, monkeypatch):
    x, logits = normal(40, 6, dtype=torch.float32), normal(40, 3, dtype=torch.float32)
    links = torch.zeros(40, 3)
    links[[0, 7, 7, 30], [1, 0, 2, 1]] = 1
    monkeypatch.setattr(virtual, "link_probabilities", lambda *args: links)
    linked, means = virtual_nodes(how=how, x=Sparse.from_dense(x) if sparse else x).link(logits)
    larger = torch.zeros(43, 43, dtype=torch.float64)
    larger[:40, :40] = dense_adjacency(EDGES, 40, undirected=True)
    larger[:40, 40:], larger[40:, :40] = links, links.t()
    expected = {"row": dense_row, "symmetric": dense_symmetric}[how](larger)
    torch.testing.assert_close((linked @ torch.eye(43)).double(), expected, rtol=1e-5, atol=1e-6)
    predicted = logits.argmax(1)
    predicted[NODES] = LABELS
    for label in range(3):
        torch.testing.assert_close(means[label], x[predicted == label].mean(0))


def test_links_are_drawn_anew_and_without_gradients():
    graph, logits = virtual_nodes(), normal(40, 3, dtype=torch.float32).requires_grad_()
    drawn = [graph.link(logits) for _ in range(5)]
    assert len({tuple(linked.nodes.tolist()) for linked, _ in drawn}) > 1
    assert not any(means.requires_grad or linked.weights.requires_grad for linked, means in drawn)
