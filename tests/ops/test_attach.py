"""Propagation with new nodes against a dense matrix of all nodes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.sparse import Sparse, adjacency, propagation_matrix
from evengraph.ops.synthesis import AttachedGraph, GraphWithCopies, StackedFeatures
from small_graphs import dense_adjacency, dense_row, edge_lists, edges, normal

KINDS = st.fixed_dictionaries(
    {
        "both_ways": st.booleans(),
        "loop": st.sampled_from([0.0, 1.0]),
        "how": st.sampled_from(["row", "symmetric"]),
    }
)


@st.composite
def attachments(draw):
    """Weights among a few nodes, some without any, and edges to new ones, some twice or at 0."""
    num_known, num_new = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    kept = draw(st.lists(st.booleans(), min_size=num_known**2, max_size=num_known**2))
    known = normal(num_known, num_known, seed=draw(st.integers(0, 99))).abs()
    known = known * torch.tensor(kept).reshape(num_known, num_known)
    weight = st.sampled_from([0.0, 0.3, 1.0, 2.0])
    ends = st.tuples(st.integers(0, num_known - 1), st.integers(0, max(num_new - 1, 0)), weight)
    links = draw(st.lists(ends, max_size=8)) if num_new else []
    nodes, new = (torch.tensor([link[i] for link in links], dtype=torch.long) for i in (0, 1))
    weights = torch.tensor([link[2] for link in links], dtype=torch.float64)
    return known, nodes, new, weights, num_new


def dense_attached(known, nodes, new, weights, num_new, *, both_ways, loop, how):
    """The matrix of all nodes, normalised; a node whose row has no weights counts for nothing."""
    num_known = known.shape[0]
    size = num_known + num_new
    matrix = torch.zeros(size, size, dtype=torch.float64)
    matrix[:num_known, :num_known] = known
    for place in range(num_new):
        matrix[num_known + place, num_known + place] = loop
    for node, place, weight in zip(nodes.tolist(), new.tolist(), weights, strict=True):
        matrix[num_known + place, node] += weight
        if both_ways:
            matrix[node, num_known + place] += weight
    sums = [matrix[row].sum() for row in range(size)]
    result = torch.zeros(size, size, dtype=torch.float64)
    for row in range(size):
        for column in range(size):
            if how == "row" and sums[row] > 0:
                result[row, column] = matrix[row, column] / sums[row]
            if how == "symmetric" and sums[row] > 0 and sums[column] > 0:
                result[row, column] = matrix[row, column] / (sums[row] * sums[column]).sqrt()
    return result


def value_and_gradients(make, weights, x):
    weights, x = weights.clone().requires_grad_(), x.clone().requires_grad_()
    value = make(weights) @ x
    upstream = normal(*value.shape, seed=5)
    gradients = torch.autograd.grad(value, [weights, x], upstream, allow_unused=True)
    return [
        value.detach(),
        *(
            torch.zeros_like(of) if gradient is None else gradient
            for gradient, of in zip(gradients, (weights, x), strict=True)
        ),
    ]


@given(attachments(), KINDS, st.integers(1, 3))
def test_products_and_gradients_equal_the_dense_matrix(attachment, kind, width):
    known, nodes, new, weights, num_new = attachment
    x = normal(known.shape[0] + num_new, width)
    sparse, sums = Sparse.from_dense(known), known.sum(1)
    ours = value_and_gradients(
        lambda weights: AttachedGraph(sparse, sums, nodes, new, weights, num_new, **kind),
        weights,
        x,
    )
    theirs = value_and_gradients(
        lambda weights: dense_attached(known, nodes, new, weights, num_new, **kind), weights, x
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other)


@given(attachments(), KINDS, KINDS, st.integers(0, 3), st.data())
def test_new_nodes_can_be_attached_to_a_graph_that_has_some(first, one, other, more, data):
    known, nodes, new, weights, num_new = first
    inner = AttachedGraph(
        Sparse.from_dense(known), known.sum(1), nodes, new, weights, num_new, **one
    )
    size = known.shape[0] + num_new
    assert inner.shape == (size, size)
    links = st.tuples(st.integers(0, size - 1), st.integers(0, max(more - 1, 0)))
    drawn = data.draw(st.lists(links, max_size=5)) if more else []
    ends, starts = (torch.tensor([link[i] for link in drawn], dtype=torch.long) for i in (0, 1))
    ones = torch.ones(len(drawn), dtype=torch.float64)
    matrix = dense_attached(*first, **one)
    x = normal(size + more, 2)
    outer = AttachedGraph(inner, matrix.sum(1), ends, starts, ones, more, **other)
    assert outer.shape == (size + more, size + more)
    expected = dense_attached(matrix, ends, starts, ones, more, **other) @ x
    torch.testing.assert_close(outer @ x, expected)


@pytest.mark.parametrize("how", ["row", "symmetric"])
@pytest.mark.parametrize("both_ways", [True, False])
def test_a_row_without_weights_gives_zeros(how, both_ways):
    known = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).double()
    weights = torch.tensor([1.0, 0.5]).double().requires_grad_()
    x = normal(6, 2).requires_grad_()
    nodes, new = torch.tensor([0, 1]), torch.tensor([0, 0])
    value = (
        AttachedGraph(
            Sparse.from_dense(known), known.sum(1), nodes, new, weights, 3, both_ways, how=how
        )
        @ x
    )
    assert torch.equal(value[[2, 4, 5]], torch.zeros(3, 2).double())
    assert (value[[0, 1, 3]] != 0).all()
    by_weights, by_x = torch.autograd.grad(value.sum(), [weights, x])
    assert torch.isfinite(by_weights).all()
    assert torch.isfinite(by_x).all()
    assert torch.equal(by_x[[2, 4, 5]], torch.zeros(3, 2).double())


def test_rows_of_known_nodes_stay_as_they_were_when_nothing_is_heard():
    binary = adjacency(edges([(0, 1), (1, 0), (1, 2), (2, 1)]), 3)
    known = propagation_matrix(binary, torch.device("cpu"), how="row", dtype=torch.float64)
    ones = torch.ones(3, dtype=torch.float64)
    attached = AttachedGraph(
        known, ones, torch.tensor([0, 2]), torch.tensor([1, 1]), ones[:2], 2, False, 1.0
    )
    x = normal(5, 2)
    value = attached @ x
    dense = dense_row(dense_adjacency(edges([(0, 1), (1, 2)]), 3, undirected=True))
    torch.testing.assert_close(value[:3], dense @ x[:3])
    torch.testing.assert_close(value[3], x[3])  # nobody but itself
    torch.testing.assert_close(value[4], (x[0] + x[2] + x[4]) / 3)


def test_both_ways_is_an_average_of_neighbours_old_and_new():
    known = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    attached = AttachedGraph(
        Sparse.from_dense(known),
        known.sum(1),
        torch.tensor([1]),
        torch.tensor([0]),
        torch.tensor([2.0]),
        1,
    )
    x = torch.tensor([[2.0], [4.0], [10.0]])
    assert (attached @ x).flatten().tolist() == [3.0, 6.5, 4.0]


@st.composite
def graphs_and_copies(draw):
    edge_index, size = draw(edge_lists())
    seeds = draw(st.lists(st.integers(0, size - 1), max_size=8))
    return dense_adjacency(edge_index, size, undirected=True) + torch.eye(size), seeds


@given(graphs_and_copies(), st.sampled_from([None, "row", "symmetric"]))
def test_repeating_nodes_repeats_rows_and_columns(drawn, how):
    matrix, seeds = drawn
    index = [*range(matrix.shape[0]), *seeds]
    expected = matrix[index][:, index]
    graph, seeds = Sparse.from_dense(matrix), torch.tensor(seeds, dtype=torch.long)
    repeated = GraphWithCopies(graph, seeds)
    if how is not None:
        sums = expected.sum(1)
        if how == "row":
            expected = expected / sums.unsqueeze(1)
        else:
            expected = expected * (sums.unsqueeze(1) * sums) ** -0.5
        repeated = GraphWithCopies.normalised(Sparse.from_dense(matrix.float()), seeds, how)
    x = normal(len(index), 3).to(torch.float64 if how is None else torch.float32).requires_grad_()
    value, weight = repeated @ x, normal(len(index), 3, seed=1)
    (gradient,) = torch.autograd.grad((value * weight).sum(), x)
    assert repeated.shape == (len(index), len(index))
    torch.testing.assert_close(value.double(), expected @ x.double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), expected.t() @ weight, rtol=1e-5, atol=1e-5)


def test_thousands_of_copies_of_one_node_stay_linear():
    graph = Sparse.from_dense(torch.eye(3))
    repeated = GraphWithCopies(graph, torch.zeros(20_000, dtype=torch.long))
    assert (repeated @ torch.ones(20_003, 1))[0].item() == 20_001


@pytest.mark.parametrize("sparse", [True, False])
def test_features_of_known_and_new_nodes(sparse):
    known, new = normal(5, 4).relu(), normal(2, 4, seed=1).requires_grad_()
    weight = normal(4, 3, seed=2)
    stacked = StackedFeatures(Sparse.from_dense(known) if sparse else known, new)
    assert stacked.shape == (7, 4)
    expected = torch.cat([known, new]) @ weight
    torch.testing.assert_close(stacked @ weight, expected)
    (ours,) = torch.autograd.grad((stacked @ weight).square().sum(), new)
    (theirs,) = torch.autograd.grad(expected.square().sum(), new)
    torch.testing.assert_close(ours, theirs)
