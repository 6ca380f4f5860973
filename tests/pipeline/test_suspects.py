"""Suspects: ranked by probability, with what speaks for the class and not against it."""

from types import SimpleNamespace

import numpy as np
import pytest

from evengraph.pipeline.explanation import ColumnPart, Influence, reasons_for, suspects


def column(name, origin, contribution):
    return ColumnPart(column=0, name=name, origin=origin, contribution=contribution)


def labelled(node, label, distance, contribution):
    return Influence(
        node=node,
        id=str(node),
        label=label,
        distance=distance,
        shared_clusters=(),
        contribution=contribution,
        along_paths=None,
        within_clusters=None,
    )


def explanation(predicted):
    """Of a node whose amount and neighbours' score speak for class 1."""
    sign = 1 if predicted == 1 else -1
    parts = [("amount", "own", 2.0), ("age", "own", -3.0), ("score", "mean of neighbours", 1.0)]
    near = [(7, 0, 1, 0.9), (8, 1, 2, 0.5), (9, 1, 1, -0.5), (6, 1, None, 0.7)]
    return SimpleNamespace(
        predicted=predicted,
        columns=tuple(column(name, origin, sign * value) for name, origin, value in parts),
        labelled=tuple(labelled(*node[:3], sign * node[3]) for node in near),
        class_names=("honest", "fraud"),
        ids=tuple(f"n{index}" for index in range(10)),
    )


@pytest.mark.parametrize("predicted", [0, 1])
def test_reasons_speak_for_the_class_whatever_is_predicted(predicted):
    found = reasons_for(explanation(predicted), positive=1)
    assert found == ["amount", "score (mean of neighbours)", "n8 (fraud, 2 steps away)"]


def test_small_reasons_are_left_out():
    one = explanation(1)
    one.columns = (column("amount", "own", 2.0), column("age", "own", 0.01))
    one.labelled = ()
    assert reasons_for(one, positive=1) == ["amount"]
    one.columns = (column("age", "own", -1.0),)
    assert reasons_for(one, positive=1) == []


def test_the_highest_come_first_and_are_explained(monkeypatch):
    asked = []

    def explain(method, graph, node, **others):
        asked.append(node)
        return explanation(1)

    monkeypatch.setattr("evengraph.pipeline.explanation.explain", explain)
    tables = SimpleNamespace(
        graph=SimpleNamespace(num_nodes=4),
        ids=np.array(["a", "b", "c", "d"]),
        encoder=SimpleNamespace(names=("amount",)),
    )
    nodes = SimpleNamespace(tables=tables, rows=np.array([1, 2, 3]))
    found = suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=2)
    assert [one.id for one in found] == ["c", "d"]
    assert asked == [2, 3]
    assert len(suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=9)) == 3
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        suspects(None, nodes, np.array([0.2, 0.9, 0.9]), positive=1, count=0)
