"""LongTail: the paper's splits to the node, and its rules on a generated graph."""

import pytest
import torch
from protocols import check_protocol, fingerprint, named_toy, with_public_split
from torch_geometric.data import Data

from evengraph.splits import LongTail
from evengraph.splits.paper import _cut_tail, _target_sizes
from small_graphs import edges

# Graph, seed, fingerprints of train, validation and test, and directed edges that are left.
SPLITS = [
    ("cora", 5, "bb65a406ccae", "06ef30751c47", "02099b2a1bbb", 7802),
    ("cora", 6, "bb65a406ccae", "2badd6379c77", "320f5da5ed47", 7802),
    ("cora", 7, "bb65a406ccae", "179c5d026696", "49d93e765efd", 7802),
    ("citeseer", 5, "7dbbdb644aba", "ba7937838487", "4d927efb17d6", 5736),
    ("citeseer", 6, "7dbbdb644aba", "134824c41d35", "cf4a3394e6d5", 5736),
    ("citeseer", 7, "7dbbdb644aba", "f834bf8b9b9c", "9419bc5121c3", 5736),
]

# Training nodes of each class in the paper's appendix. There CiteSeer's fourth class has 32,
# which contradicts the paper's own rule: two digits are swapped.
COUNTS = {
    "cora": [341, 158, 73, 34, 15, 7, 3],
    "citeseer": [371, 147, 58, 23, 9, 3],
}


@pytest.mark.parametrize(("name", "seed", "train", "val", "test", "edges_left"), SPLITS)
def test_the_papers_splits(real_graph, name, seed, train, val, test, edges_left):
    task = LongTail(ratio=0.01)(real_graph(name), seed=seed)
    assert fingerprint(task) == (train, val, test)
    assert task.class_counts.tolist() == COUNTS[name]
    assert task.graph.edge_index.shape == (2, edges_left)


def test_all_six_splits_are_there():
    assert len(SPLITS) == 6


SMALL = LongTail(ratio=0.1, val_per_class=5, test_per_class=10)


@pytest.mark.parametrize("public", [False, True])
def test_the_shared_promises(public):
    check_protocol(SMALL, with_public_split(named_toy()) if public else named_toy())


def test_targets_fall_exponentially():
    assert _target_sizes([341, 196, 196, 160, 138, 90, 87], 0.01) == COUNTS["cora"]
    assert _target_sizes([371, 364, 333, 322, 279, 158], 0.01) == COUNTS["citeseer"]
    assert _target_sizes([100, 5, 50], 0.01) == [100, 5, 1]  # never more than there are
    assert _target_sizes([7], 0.5) == [7]


def test_class_sizes_follow_the_targets_and_names_follow_the_classes():
    graph = with_public_split(named_toy())
    pool = ~(graph.val_mask | graph.test_mask)
    sizes = torch.bincount(graph.y[pool])
    order = sizes.argsort(descending=True, stable=True)
    task = SMALL(graph, seed=0)
    assert task.class_counts.tolist() == _target_sizes(sizes[order].tolist(), 0.1)
    assert torch.equal(order[task.graph.y], graph.y)
    assert task.class_names == tuple(graph.class_names[old] for old in order)


def test_public_sets_are_drawn_from_and_training_does_not_depend_on_the_seed():
    graph = with_public_split(named_toy())
    first, second = SMALL(graph, seed=0), SMALL(graph, seed=1)
    for task in (first, second):
        assert (graph.val_mask | ~task.val).all()
        assert (graph.test_mask | ~task.test).all()
        assert torch.bincount(task.graph.y[task.val]).tolist() == [5] * 4
        assert torch.bincount(task.graph.y[task.test]).tolist() == [10] * 4
    assert torch.equal(first.train, second.train)
    assert not torch.equal(first.val, second.val)


def test_removed_nodes_stay_without_edges_and_no_other_edge_goes():
    graph = with_public_split(named_toy())
    task = SMALL(graph, seed=0)
    removed = ~(graph.val_mask | graph.test_mask) & ~task.train
    assert removed.sum() > 50
    assert task.graph.num_nodes == graph.num_nodes
    assert torch.equal(task.graph.x, graph.x)
    touched = removed[graph.edge_index].any(0)
    assert torch.equal(task.graph.edge_index, graph.edge_index[:, ~touched])
    assert not removed[task.graph.edge_index].any()


def test_ratio_one_removes_only_what_exceeds_the_largest_class():
    graph = with_public_split(named_toy())
    task = LongTail(ratio=1, val_per_class=5, test_per_class=10)(graph, seed=0)
    assert torch.equal(task.train, ~(graph.val_mask | graph.test_mask))
    assert torch.equal(task.graph.edge_index, graph.edge_index)


def test_lowest_degree_goes_first_and_equal_degrees_by_id():
    # class 1 is nodes 4 to 7: degrees 2, 0, 1, 0; self-loops count for nothing
    pairs = [(4, 0), (0, 4), (4, 1), (1, 4), (6, 2), (2, 6), (5, 5), (7, 7)]
    graph = Data(x=torch.ones(8, 1), edge_index=edges(pairs), y=torch.tensor([0] * 4 + [1] * 4))
    pool = torch.ones(8, dtype=torch.bool)
    gone = {
        keep: _cut_tail(graph, pool, [4, keep]).nonzero().flatten().tolist() for keep in (1, 2, 3)
    }
    assert gone == {3: [5], 2: [5, 7], 1: [5, 6, 7]}


def test_degrees_are_counted_anew_as_nodes_go():
    # Ten of twelve nodes go, one a round. Node 13 hangs on 12 alone and goes first; that leaves
    # 12 with one edge, so it goes before 2 to 11, which keep two each and come before it by id.
    pairs = [(node, hub) for node in range(2, 12) for hub in (0, 1)] + [(12, 0), (12, 13)]
    both_ways = pairs + [(target, source) for source, target in pairs]
    graph = Data(x=torch.ones(14, 1), edge_index=edges(both_ways))
    graph.y = torch.tensor([0, 0] + [1] * 12)
    removed = _cut_tail(graph, torch.ones(14, dtype=torch.bool), [2, 2])
    assert removed.nonzero().flatten().tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 12, 13]


def test_a_class_without_training_nodes_is_refused():
    graph = with_public_split(named_toy())
    graph.val_mask |= graph.y == 2
    with pytest.raises(ValueError, match="Class 'crabs' has no node that may train"):
        SMALL(graph, seed=0)


@pytest.mark.parametrize("public", [False, True])
def test_a_class_without_enough_nodes_to_test_on_is_refused(public):
    graph = with_public_split(named_toy()) if public else named_toy()
    graph.y[(graph.y == 2).nonzero().flatten()[20 if public else 5 :]] = -1
    with pytest.raises(ValueError, match=r"Class 'crabs' has \d+ labelled nodes for val"):
        LongTail(ratio=0.5, val_per_class=5, test_per_class=10)(graph, seed=0)


def test_a_ratio_that_leaves_a_class_empty_is_refused():
    with pytest.raises(
        ValueError, match="ratio is too small: the last class would keep no training node"
    ):
        LongTail(ratio=0.001, val_per_class=5, test_per_class=10)(named_toy(), seed=0)


@pytest.mark.parametrize("public", [False, True])
def test_a_class_that_is_too_small_is_refused(public):
    graph = with_public_split(named_toy()) if public else named_toy()
    with pytest.raises(
        ValueError,
        match=r"Class '\w+' has \d+ labelled nodes for validation or test, \d+ are needed",
    ):
        LongTail(ratio=0.5, val_per_class=100, test_per_class=100)(graph, seed=0)


@pytest.mark.parametrize("ratio", [0, -1, 2])
def test_bad_ratio(ratio):
    with pytest.raises(ValueError, match=rf"ratio must lie in \(0, 1\], got {ratio}"):
        LongTail(ratio=ratio)


@pytest.mark.parametrize("field", ["val_per_class", "test_per_class"])
def test_bad_set_sizes(field):
    with pytest.raises(ValueError, match=f"{field} must be .* got -1"):
        LongTail(**{field: -1})


def test_exactly_the_surplus_goes_where_removed_nodes_are_the_only_neighbours():
    """Node 11 goes first; then all others are without edges, and it is weighed again."""
    edge_index = torch.tensor([[*range(11)], [11] * 11])
    graph = Data(x=torch.zeros(12, 1), edge_index=edge_index, y=torch.zeros(12).long())
    removed = _cut_tail(graph, torch.ones(12, dtype=torch.bool), [2])
    assert removed.sum() == 10
    assert removed[:9].all()


def test_a_class_may_have_one_training_node():
    graph = with_public_split(named_toy())
    pool = ((graph.y == 2) & ~graph.val_mask & ~graph.test_mask).nonzero().flatten()
    graph.y[pool[1:]] = -1
    task = SMALL(graph, seed=0)
    assert task.class_counts[-1] == 1
    assert task.train[pool[0]]
