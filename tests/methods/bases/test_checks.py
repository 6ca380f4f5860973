"""Validation of parameters and graphs."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest
import torch

from evengraph.methods import UNREAL, GraphSMOTE
from evengraph.methods.bases.method import (
    check_graph,
    check_params,
    describe_large,
    same_graph,
)
from small_graphs import small_task


def test_a_graph_without_numbers_is_refused():
    graph = small_task().graph
    check_graph(graph)
    graph.x = torch.full_like(graph.x, 3e38)  # the sum of finite numbers may be infinite
    check_graph(graph)
    for values in ([torch.nan], [torch.inf], [torch.inf, -torch.inf]):
        graph.x = torch.zeros_like(graph.x)
        graph.x[2, : len(values)] = torch.tensor(values)
        with pytest.raises(ValueError, match="node 2 has a NaN or an infinity"):
            check_graph(graph)


def test_same_graph():
    graph = small_task().graph
    assert same_graph(graph, graph)
    assert same_graph(graph, graph.clone())
    labels = graph.clone()
    labels.y = -labels.y
    assert same_graph(graph, labels)  # labels do not matter
    for change in (
        {"x": graph.x + 1},
        {"x": graph.x[:, 1:]},
        {"edge_index": graph.edge_index[:, 1:]},
        {"edge_index": graph.edge_index.flip(0)},
    ):
        other = graph.clone()
        other.update(change)
        assert not same_graph(graph, other)


@dataclass(kw_only=True)
class Params:
    limits: ClassVar = {"width": 1, "rate": "positive", "share": "fraction", "weight": 0}
    width: int = 3
    rate: float = 0.1
    share: float = 0.5
    weight: float = 1.0
    kind: Literal["a", "b"] = "a"
    deep: bool = False
    free: float = 0.0


@dataclass(kw_only=True)
class More(Params):
    limits: ClassVar = {"depth": (2, 9), "reach": 1}
    depth: int = 2
    reach: int | Literal["auto"] = "auto"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("width", 0, "be at least 1, got 0"),
        ("width", 1.5, "be an integer, got 1.5"),
        ("width", "3", "be an integer, got '3'"),
        ("width", True, "be an integer, got True"),
        ("rate", math.nan, "be above 0, got nan"),
        ("rate", math.inf, "be finite, got inf"),
        ("share", -0.1, r"lie in \[0, 1\), got -0.1"),
        ("share", math.nan, r"lie in \[0, 1\), got nan"),
        ("weight", math.nan, "be at least 0, got nan"),
        ("weight", math.inf, "be finite, got inf"),
        ("rate", 0, "be above 0"),
        ("share", 1, r"lie in \[0, 1\)"),
        ("weight", -1, "be at least 0, got -1"),
        ("kind", "c", "be one of a, b, got 'c'"),
        ("deep", 1, "be True or False"),
        ("depth", 1, "be at least 2"),
        ("depth", 10, "be at most 9, got 10"),
        ("depth", 2.5, "be an integer, got 2.5"),
        ("reach", 0, "be at least 1"),
        ("reach", 1.5, "be an integer, got 1.5"),
        ("reach", "far", "be a number or auto, got 'far'"),
    ],
)
def test_check_params(name, value, rule):
    check_params(More(free=-5.0))
    check_params(More(reach=2))
    with pytest.raises(ValueError, match=f"{name} must {rule}"):
        check_params(More(**{name: value}))


def test_features_that_overflow_are_told():
    assert describe_large(torch.tensor([[3.0, -1e6]])) == ""
    assert describe_large(torch.empty(0, 2)) == ""
    assert "as large as 2e+25: scale them" in describe_large(torch.tensor([[1.0, -2e25]]))


@pytest.mark.parametrize("method", [GraphSMOTE(max_epochs=2), UNREAL(max_epochs=2, rounds=2)])
def test_a_method_that_overflows_says_why(method):
    task = small_task()
    graph = task.graph.clone()
    graph.x = graph.x * 1e25
    with pytest.raises(FloatingPointError, match=r"as large as .e\+25: scale them"):
        method.fit(replace(task, graph=graph), seed=0).predict(graph)
