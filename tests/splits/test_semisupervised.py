"""SemiSupervised: twenty positive and eighty negative labels, as many to validate on."""

import pytest
import torch
from protocols import check_protocol, named_toy
from torch_geometric.data import Data

from evengraph.splits import SemiSupervised


def fraud_graph(rare=0):
    """60 nodes of one class, 240 of the other, 10 without a label."""
    y = torch.cat([torch.full((60,), rare), torch.full((240,), 1 - rare), torch.full((10,), -1)])
    graph = Data(x=torch.ones(310, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    graph.class_names = ["fraud", "fine"] if rare == 0 else ["fine", "fraud"]
    return graph


def test_the_shared_promises():
    check_protocol(SemiSupervised(), fraud_graph())


@pytest.mark.parametrize("rare", [0, 1])
def test_the_rarer_class_is_the_positive_one(rare):
    task = SemiSupervised()(fraud_graph(rare), seed=3)
    found = [
        torch.bincount(task.graph.y[mask])[[rare, 1 - rare]].tolist()
        for mask in (task.train, task.val, task.test)
    ]
    assert found == [[20, 80], [20, 80], [20, 80]]


def test_sizes_can_be_set():
    task = SemiSupervised(positives=5, negatives=7)(fraud_graph(), seed=0)
    assert task.class_counts.tolist() == [5, 7]
    assert int(task.test.sum()) == 300 - 24


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match="semisupervised is for two classes, this graph has 4"):
        SemiSupervised()(named_toy(), seed=0)
    with pytest.raises(ValueError, match=r"Class 'fraud' has 60 labelled nodes .* 61 are needed"):
        SemiSupervised(positives=30)(fraud_graph(), seed=0)
    with pytest.raises(ValueError, match="positives must be at least 1, got 0"):
        SemiSupervised(positives=0)
