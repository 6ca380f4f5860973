"""Task: what it accepts, what it hides, what it leaves alone."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import (
    Task,
    bare_graph,
    check_edge_weight,
    check_relations,
    class_labels,
    count_relations,
    edge_weight,
    folds,
    hold_out,
    keep_edges,
    node_mask,
    scored_nodes,
    split_masks,
)
from evengraph.methods import Logistic
from small_graphs import graph_of, small_task, task_of


def make(y=(0, 1, 0, 1, -1), **changes):
    graph = graph_of(torch.ones(5, 2), [(0, 1), (1, 0)], list(y))
    return replace(task_of(graph, [0, 1], [2], [3], num_classes=2), **changes)


def mask(*nodes, size=5):
    return torch.tensor([node in nodes for node in range(size)])


def test_counts_are_of_training_or_validation_nodes():
    assert make().class_counts.tolist() == [1, 1]
    assert make(train=mask(0), num_classes=4).class_counts.tolist() == [1, 0, 0, 0]
    assert make(train=mask(0, 4)).class_counts.tolist() == [1, 0]  # node 4 has no label
    assert make().val_counts == (1, 0)
    assert make(train=mask(0), val=mask(1, 2, 4), num_classes=3).val_counts == (1, 1, 0)


def test_labels_outside_train_and_validation_are_hidden():
    task = make()
    hidden = task.hide_test_labels()
    assert hidden.graph.y.tolist() == [0, 1, 0, -1, -1]
    assert task.graph.y.tolist() == [0, 1, 0, 1, -1]
    assert hidden.graph.x is task.graph.x  # labels alone are copied
    assert hidden.num_classes == 2


def test_to_gives_a_copy():
    task = make(class_names=("a", "b"))
    moved = task.to("cpu")
    moved.graph.y[0] = 1
    assert task.graph.y.tolist() == [0, 1, 0, 1, -1]
    assert moved.class_names == ("a", "b")
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(moved, name), getattr(task, name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": mask(0, 2)}, "train, val and test must not share nodes"),
        ({"val": mask(2, 3)}, "train, val and test must not share nodes"),
        ({"test": mask(0)}, "train, val and test must not share nodes"),
        ({"val": torch.tensor([2])}, r"val must be a bool mask of shape \(5,\), got torch.int64"),
        ({"test": mask(3)[:4]}, r"test must be a bool mask .* of shape \(4,\)"),
        ({"num_classes": 1}, "labels must be below num_classes=1, got 1"),
        ({"y": (0, 1, 0, 1, -5)}, "labels must be -1 for unlabelled or a class, got -5"),
        ({"class_names": ("a",)}, "class_names must hold 2 names, got 1"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize("y", [torch.zeros(4, dtype=torch.long), None])
def test_a_graph_needs_one_label_per_node(y):
    graph = make().graph.clone()
    graph.y = y
    with pytest.raises(ValueError, match=r"graph\.y must hold one label for each of the 5 nodes"):
        Task(graph, mask(0), mask(1), mask(2), num_classes=2)


def test_a_task_of_a_graph_with_masks():
    y = torch.tensor([[0], [1], [0], [1], [0], [1]], dtype=torch.int32)
    masks = torch.eye(3, dtype=torch.bool).repeat_interleave(2, dim=0)
    graph = Data(x=torch.eye(6), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    graph.train_mask, graph.val_mask, graph.test_mask = masks.unbind(1)
    graph.class_names = ["a", "b"]
    task = Task.from_graph(graph)
    assert task.graph.y.tolist() == [0, 1] * 3
    assert graph.y is y
    assert (task.num_classes, task.class_names) == (2, ("a", "b"))
    assert task.train_nodes.tolist() == [0, 1]
    assert task.test.nonzero().flatten().tolist() == [4, 5]


of_eight = partial(mask, size=8)


def graph(**parts):
    y = parts.pop("y", torch.tensor([0, 0, 0, 0, 1, 1, 1, -1]))
    return Data(x=torch.eye(8), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y, **parts)


def nodes(*found):
    return [one.nonzero().flatten().tolist() for one in found]


def split(data, **options):
    return nodes(*split_masks(data, class_labels(data), 0, **options))


def test_masks_of_the_graph_are_the_split_without_unlabelled_nodes():
    data = graph(train_mask=of_eight(0, 4, 7), val_mask=of_eight(1, 5))
    assert split(data)[2] == [2, 3, 6]  # without test nodes the other labelled ones
    assert nodes(scored_nodes(data)) == [[2, 3, 6]]
    data.test_mask = of_eight(2, 6)
    assert split(data) == [[0, 4], [1, 5], [2, 6]]
    assert data.train_mask[7]  # the caller's graph is unchanged


def test_without_validation_nodes_some_training_nodes_are_held_out_and_it_is_said():
    data = graph(train_mask=of_eight(0, 1, 2, 4, 5), test_mask=of_eight(3, 6))
    with pytest.warns(UserWarning, match="no val_mask: 20% of the training nodes"):
        train, val, test = split(data)
    assert sorted(train + val) == [0, 1, 2, 4, 5]
    assert [node < 4 for node in val] == [True, False]  # one of each class
    assert test == [3, 6]
    with pytest.warns(UserWarning, match="no val_mask") as caught:
        Logistic().fit(data)
    assert caught[0].filename == __file__  # the line that calls fit


def test_without_masks_all_labelled_nodes_are_for_training():
    with pytest.warns(UserWarning, match="no val_mask"):
        train, val, test = split(graph())
    assert sorted(train + val) == [0, 1, 2, 3, 4, 5, 6]
    assert test == nodes(scored_nodes(graph()))[0] == []
    whole = graph(y=torch.tensor([0, 1] * 4))
    with pytest.raises(ValueError, match="every node has a label"):
        split(whole)


def test_a_column_of_several_splits_is_chosen():
    several = torch.stack([of_eight(0, 4), of_eight(1, 5)], dim=1)
    data = graph(train_mask=several, val_mask=several.flip(1), test_mask=of_eight(2, 6))
    assert split(data, split=1) == [[1, 5], [0, 4], [2, 6]]
    with pytest.raises(ValueError, match=r"train_mask holds 2 splits.*from_graph\(graph, split=0"):
        split(data)
    with pytest.raises(ValueError, match="split must lie between 0 and 1, got 2"):
        split(data, split=2)


def test_a_mask_may_hold_zeros_and_ones_or_be_a_column():
    wanted = of_eight(0, 4)
    for given_mask in (wanted.to(torch.uint8), wanted.long(), wanted[:, None]):
        assert node_mask(graph(train_mask=given_mask), "train").equal(wanted)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train_mask": torch.tensor([0, 4])}, "must be a mask of 8 nodes, not indices"),
        ({"train_mask": of_eight(0)[:2]}, r"must be a mask of 8 nodes, got shape \(2,\)"),
        ({"y": None}, "this graph has none"),
        ({"y": torch.rand(8)}, "classes as integers, got torch.float32"),
        ({"y": torch.zeros(8, 2).long()}, r"one label for each of the 8 nodes, got shape"),
    ],
)
def test_what_is_no_mask_and_what_are_no_labels(parts, message):
    with pytest.raises(ValueError, match=message):
        split(graph(**parts))


def test_labels_may_be_a_column():
    y = torch.tensor([0, 1] * 4, dtype=torch.int32)
    assert class_labels(graph(y=y[:, None])).tolist() == y.tolist()
    assert class_labels(graph(y=y)).dtype == torch.long


def test_every_class_keeps_a_training_node():
    labels = torch.tensor([0] * 10 + [1])
    drawn = hold_out(labels, torch.ones(11, dtype=torch.bool), 0.2, seed=3)
    assert int(drawn.sum()) == 2
    assert not drawn[10]
    assert drawn.equal(hold_out(labels, torch.ones(11, dtype=torch.bool), 0.2, seed=3))


EDGES = torch.tensor([[0, 1, 2], [1, 0, 1]])
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])


def graph_of_graphs(**values):
    return Data(**{"x": torch.eye(3), "edge_index": EDGES, "y": torch.zeros(3)} | values)


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_weights_under_both_names(name, shape):
    weight = edge_weight(graph_of_graphs(**{name: WEIGHTS.view(shape)}))
    assert torch.equal(weight, WEIGHTS)


@pytest.mark.parametrize("attributes", [torch.ones(3, 2), torch.ones(3, dtype=torch.long), "text"])
def test_other_attributes_are_no_weights(attributes):
    assert edge_weight(graph_of_graphs(edge_attr=attributes)) is None
    assert edge_weight(graph_of_graphs()) is None


def test_a_bare_graph_holds_features_and_edges_alone():
    relations = torch.tensor([[0, 1], [0, 1], [1, 2]])
    full = graph_of_graphs(
        edge_attr=WEIGHTS, relation_index=relations, num_relations=2, name="pets"
    )
    bare = bare_graph(full, y=torch.ones(3))
    assert set(bare.keys()) == {
        "x", "edge_index", "edge_weight", "relation_index", "num_relations", "y"
    }  # fmt: skip
    assert count_relations(bare) == 2
    assert set(bare_graph(graph_of_graphs()).keys()) == {"x", "edge_index"}
    assert count_relations(graph_of_graphs()) == 0


def test_relations_are_checked():
    with pytest.raises(ValueError, match=r"shape \(3, R\)"):
        check_relations(graph_of_graphs(relation_index=EDGES, num_relations=2))
    index = torch.tensor([[0, 4], [0, 1], [1, 2]])
    for number in ({"num_relations": 4}, {}):
        with pytest.raises(ValueError, match="num_relations must be above 4"):
            check_relations(graph_of_graphs(relation_index=index, **number))


def test_keep_some_edges():
    relations = torch.tensor([[0, 1, 1], [0, 1, 1], [1, 2, 0]])
    full = graph_of_graphs(
        edge_attr=torch.arange(6.0).view(3, 2),
        edge_weight=WEIGHTS,
        relation_index=relations,
        relation_weight=WEIGHTS,
        num_relations=2,
    )
    part = keep_edges(full, torch.tensor([True, True, False]))
    assert part.edge_index.tolist() == [[0, 1], [1, 0]]
    assert part.edge_attr.tolist() == [[0, 1], [2, 3]]
    assert part.edge_weight.tolist() == [1, 2]
    assert part.relation_index.T.tolist() == [[0, 0, 1], [1, 1, 0]]
    assert part.relation_weight.tolist() == [1, 3]
    assert full.edge_index is EDGES


def test_relations_between_nodes_that_lose_an_edge_are_dropped():
    edges = torch.tensor([[0, 0, 1], [1, 1, 2]])  # the second edge may be of either relation
    relations = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 2, 0]])
    full = graph_of_graphs(
        edge_index=edges, relation_index=relations, relation_time=torch.arange(4.0)
    )
    part = keep_edges(full, torch.tensor([True, False, True]))
    assert part.relation_index.T.tolist() == [[0, 1, 2]]
    assert part.relation_time.tolist() == [2]
    known = keep_edges(full, torch.tensor([True, False, True]), full.relation_time <= 0)
    assert known.relation_index.T.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_an_error_names_what_holds_the_weights(name):
    with pytest.raises(ValueError, match=rf"graph.{name} must hold .*, got -1.0 for edge 0"):
        check_edge_weight(graph_of_graphs(**{name: -WEIGHTS}))


def six_to_two():
    task = small_task()
    place = torch.randperm(len(task.train), generator=generator(0)) / len(task.train)
    return replace(task, train=place < 0.6, val=(place >= 0.6) & (place < 0.8), test=place >= 0.8)


TASK = six_to_two()
POOL = TASK.train | TASK.val


@given(number=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_label_is_held_out_once_and_every_class_divided_evenly(number, seed):
    parts = folds(TASK, number, generator(seed))
    assert len(parts) == number
    assert torch.equal(sum(part.val.long() for part in parts), POOL.long())
    for part in parts:
        assert torch.equal(part.train, POOL & ~part.val)
        assert torch.equal(part.test, TASK.test)
        assert part.graph is TASK.graph
    for label in range(TASK.num_classes):
        sizes = [int((part.graph.y[part.val] == label).sum()) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("left", [1, 2])
def test_every_class_is_always_learnt_from(left):
    train = TASK.train.clone()
    train[((TASK.graph.y == 0) & train).nonzero()[left:]] = False
    task = replace(TASK, train=train, val=TASK.val & (TASK.graph.y != 0))
    parts = folds(task, 5, generator(0))
    assert all((part.graph.y[part.train] == 0).any() for part in parts)
    held = sum(int((part.graph.y[part.val] == 0).sum()) for part in parts)
    assert held == (0 if left == 1 else 2)


def test_labels_of_other_nodes_have_no_influence_on_folds():
    graph = TASK.graph.clone()
    graph.y = torch.where(POOL, graph.y, (graph.y + 1) % 3)
    first, second = (folds(task, 3, generator(1)) for task in (TASK, replace(TASK, graph=graph)))
    assert all(torch.equal(a.val, b.val) for a, b in zip(first, second, strict=True))
