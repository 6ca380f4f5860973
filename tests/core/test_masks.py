"""Masks and labels of PyG graphs."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

from evengraph.core import task as masks
from evengraph.core.task import class_labels, hold_out, node_mask, scored_nodes, split_masks


@pytest.fixture(autouse=True)
def _not_yet_warned():
    masks._warn_held_out.cache_clear()


def mask(*nodes):
    values = torch.zeros(8, dtype=torch.bool)
    values[list(nodes)] = True
    return values


def graph(**parts):
    y = parts.pop("y", torch.tensor([0, 0, 0, 0, 1, 1, 1, -1]))
    return Data(x=torch.eye(8), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y, **parts)


def nodes(*found):
    return [one.nonzero().flatten().tolist() for one in found]


def split(data, **options):
    return nodes(*split_masks(data, class_labels(data), 0, **options))


def test_masks_of_the_graph_are_the_split_without_unlabelled_nodes():
    data = graph(train_mask=mask(0, 4, 7), val_mask=mask(1, 5), test_mask=mask(2, 6))
    assert split(data) == [[0, 4], [1, 5], [2, 6]]
    assert data.train_mask[7]  # the caller's graph is unchanged


def test_without_test_nodes_the_other_labelled_nodes_are_tested_on():
    data = graph(train_mask=mask(0, 4), val_mask=mask(1, 5))
    assert split(data)[2] == [2, 3, 6]
    assert nodes(scored_nodes(data)) == [[2, 3, 6]]


def test_without_validation_nodes_some_training_nodes_are_held_out_and_it_is_said_once():
    data = graph(train_mask=mask(0, 1, 2, 4, 5), test_mask=mask(3, 6))
    with pytest.warns(UserWarning, match="no val_mask: 20% of the training nodes"):
        train, val, test = split(data)
    assert sorted(train + val) == [0, 1, 2, 4, 5]
    assert [node < 4 for node in val] == [True, False]  # one of each class
    assert test == [3, 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert split(data)[1] == val


def test_without_masks_all_labelled_nodes_are_for_training():
    with pytest.warns(UserWarning, match="no val_mask"):
        train, val, test = split(graph())
    assert sorted(train + val) == [0, 1, 2, 3, 4, 5, 6]
    assert test == nodes(scored_nodes(graph()))[0] == []
    whole = graph(y=torch.tensor([0, 1] * 4))
    with pytest.raises(ValueError, match="every node has a label"):
        split(whole)


def test_a_column_of_several_splits_is_chosen():
    several = torch.stack([mask(0, 4), mask(1, 5)], dim=1)
    data = graph(train_mask=several, val_mask=several.flip(1), test_mask=mask(2, 6))
    assert split(data, split=1) == [[1, 5], [0, 4], [2, 6]]
    with pytest.raises(ValueError, match=r"train_mask holds 2 splits.*from_graph\(graph, split=0"):
        split(data)
    with pytest.raises(ValueError, match="split must lie between 0 and 1, got 2"):
        split(data, split=2)


@pytest.mark.parametrize("kind", [torch.uint8, torch.long])
def test_a_mask_may_hold_zeros_and_ones(kind):
    assert node_mask(graph(train_mask=mask(0, 4).to(kind)), "train").equal(mask(0, 4))
    assert node_mask(graph(train_mask=mask(0, 4)[:, None]), "train").equal(mask(0, 4))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.tensor([0, 4]), "must be a mask of 8 nodes, not indices"),
        (torch.tensor([True, False]), r"must be a mask of 8 nodes, got shape \(2,\)"),
    ],
)
def test_what_is_no_mask(value, message):
    with pytest.raises(ValueError, match=message):
        node_mask(graph(train_mask=value), "train")


def test_labels_may_be_a_column():
    y = torch.tensor([0, 1] * 4, dtype=torch.int32)
    assert class_labels(graph(y=y[:, None])).tolist() == y.tolist()
    assert class_labels(graph(y=y)).dtype == torch.long


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "this graph has none"),
        (torch.rand(8), "classes as integers, got torch.float32"),
        (torch.zeros(8, 2, dtype=torch.long), r"one label for each of the 8 nodes, got shape"),
    ],
)
def test_what_are_no_labels(y, message):
    with pytest.raises(ValueError, match=message):
        class_labels(graph(y=y))


def test_every_class_keeps_a_training_node():
    labels = torch.tensor([0] * 10 + [1])
    drawn = hold_out(labels, torch.ones(11, dtype=torch.bool), 0.2, seed=3)
    assert int(drawn.sum()) == 2
    assert not drawn[10]
    assert drawn.equal(hold_out(labels, torch.ones(11, dtype=torch.bool), 0.2, seed=3))
