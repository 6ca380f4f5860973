"""Relations of edges by type and direction."""

import numpy as np
import pandas as pd
import torch

from evengraph.tables.edges import MAX_RELATIONS, common_types, make_relations
from evengraph.tables.notes import Notes

SOURCE, TARGET = np.array([0, 0, 1, 2, 0]), np.array([1, 1, 2, 0, 3])
TYPES = np.array(["a", "a", "b", "a", "c"], dtype=object)


def arcs(relations):
    return {tuple(arc) for arc in relations.arcs.T.tolist()}


def test_types():
    relations = make_relations(SOURCE, TARGET, 4, types=("a", "b"), type_of=TYPES)
    assert relations.names == ("a", "b")
    assert arcs(relations) == {(0, 0, 1), (0, 1, 0), (0, 2, 0), (0, 0, 2), (1, 1, 2), (1, 2, 1)}
    assert relations.weight is None


def test_directions_and_weights():
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    relations = make_relations(SOURCE, TARGET, 4, directed=True, weight=weight)
    assert relations.names == ("out", "in")
    found = dict(zip(map(tuple, relations.arcs.T.tolist()), relations.weight.tolist(), strict=True))
    out = {(0, 0, 1): 3.0, (0, 1, 2): 3.0, (0, 2, 0): 4.0, (0, 0, 3): 5.0}
    assert found == out | {(1, b, a): value for (_, a, b), value in out.items()}


def test_one_kind_of_edges_is_no_relation():
    assert make_relations(SOURCE, TARGET, 4) is None
    assert make_relations(SOURCE, TARGET, 4, types=("a",), type_of=TYPES) is None
    empty = np.array([], dtype=np.int64)
    relations = make_relations(empty, empty, 4, directed=True)
    assert relations.arcs.shape == (3, 0)
    assert relations.arcs.dtype == torch.int64


def test_common_types():
    notes = Notes()
    assert common_types(pd.Series(["b", "a", "b", None, "a"]), notes) == ("a", "b")
    assert not notes
    assert common_types(pd.Series(["a", "b", "a"]), notes) == ("a",)
    assert notes.pop() == "No two types of edges are common: there are no relations."
    many = pd.Series([f"t{i:02}" for i in range(14) for _ in range(2 + i)] + ["rare"])
    assert common_types(many, notes) == tuple(f"t{i:02}" for i in range(14 - MAX_RELATIONS, 14))
    assert notes == ["Edges of the 10 most common of 15 types are relations."]
