"""Inspections to draw: an ordinary one, one with a lot in it, one of very long names."""

from functools import cache
from typing import Any

import torch

import evengraph as eg

LONG = "Averylongnamewithoutanyspace" * 4


@cache
def _look(classes: int, labelled: int, word: str) -> dict[str, Any]:
    graph = eg.toy(600, 1800, 30, classes)
    graph.class_names = [f"{word}{number}" for number in range(classes)]
    graph.x[:, 3] = graph.y
    graph.feature_names = [f"{word}{place}" for place in range(30)]
    seen = torch.zeros(600, dtype=torch.bool)
    seen[:labelled] = True
    return eg.inspect_graph(graph, labelled=seen).as_dict()


def look(classes: int = 4, labelled: int = 120, word: str = "topic ") -> dict[str, Any]:
    """A graph of 600 nodes that were looked at; one column leaks."""
    return dict(_look(classes, labelled, word))
