"""`fit` and `predict_proba`, which are final: what they reject, whatever the method."""

from dataclasses import replace
from math import inf, nan

import pytest
import torch
from torch_geometric.data import Data

from evengraph.methods import GCN, Logistic
from evengraph.testing import small_task
from evengraph.testing.contract import with_graph


def _without(task, mask, label):
    return replace(task, **{mask: getattr(task, mask) & (task.graph.y != label)})


def _changed(task, name, place, value):
    values = task.graph[name] if name in task.graph else torch.ones(task.graph.num_edges)
    values = values.clone()
    values[place] = value
    return with_graph(task, **{name: values})


def _with_weight(task, weight):
    return _changed(task, "edge_weight", 5, weight)


INVALID = {
    "no_training_node_of_a_class": (
        "Class 1 has no training node",
        lambda task: _without(task, "train", 1),
    ),
    "no_training_node_of_a_named_class": (
        "Class 1 (bees)",
        lambda task: _without(replace(task, class_names=("ants", "bees", "crabs")), "train", 1),
    ),
    "no_validation_nodes": ("val set is empty", lambda task: replace(task, val=task.val & False)),
    "no_training_nodes": ("training node", lambda task: replace(task, train=task.train & False)),
    "a_feature_that_is_nan": ("node 7", lambda task: _changed(task, "x", (7, 3), nan)),
    "a_feature_that_is_infinite": ("node 7", lambda task: _changed(task, "x", (7, 3), inf)),
    "integer_features": ("graph.x", lambda task: with_graph(task, x=task.graph.x.long())),
    "features_of_one_axis": ("graph.x", lambda task: with_graph(task, x=task.graph.x[:, 0])),
    "no_features": ("graph.x", lambda task: with_graph(task, x=None, num_nodes=150)),
    "a_negative_edge_weight": ("got -1.0 for edge 5", lambda task: _with_weight(task, -1.0)),
    "an_edge_weight_that_is_nan": ("got nan for edge 5", lambda task: _with_weight(task, nan)),
    "an_infinite_edge_weight": ("got inf for edge 5", lambda task: _with_weight(task, inf)),
    "too_few_edge_weights": (
        "graph.edge_weight",
        lambda task: with_graph(task, edge_weight=torch.ones(3)),
    ),
    "unlabelled_training_nodes": (
        "Some train nodes have no label",
        lambda task: _changed(task, "y", task.train.nonzero()[0], -1),
    ),
    "unlabelled_validation_nodes": (
        "Some val nodes have no label",
        lambda task: _changed(task, "y", task.val.nonzero()[0], -1),
    ),
}


@pytest.mark.parametrize("kind", [GCN, Logistic])
@pytest.mark.parametrize("name", INVALID)
def test_a_task_that_cannot_be_learnt_is_told_in_a_sentence(name, kind):
    words, edit = INVALID[name]
    method = kind()
    with pytest.raises(ValueError, match=r"\.$") as error:
        method.fit(edit(small_task()), seed=0)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert not method.is_fitted


def test_only_a_fitted_method_predicts_and_only_graphs_of_its_features():
    task, method = small_task(), GCN(max_epochs=2)
    with pytest.raises(RuntimeError, match="GCN is not fitted yet; call fit"):
        method.predict_proba(task.graph)
    graph = Data(x=torch.ones(4, 7), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match=r"64.*7"):
        method.fit(task, seed=0).predict_proba(graph)
