"""Edges: features of nodes from their columns, relations by type and direction."""

import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch

from evengraph.core.schema import read
from evengraph.tables import TableColumns
from evengraph.tables.edges import (
    MAX_RELATIONS,
    EdgeFeatures,
    EdgeRows,
    common_types,
    make_relations,
)
from evengraph.tables.notes import Notes

SIZE = 7


def payments(rows=60, seed=0):
    """Payments between seven nodes, some to themselves; the last node has none."""
    rng = np.random.default_rng(seed)
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D")
    amount = rng.lognormal(3, 2, rows)
    amount[5] = np.nan
    return pd.DataFrame(
        {
            "source": rng.integers(0, SIZE - 1, rows),
            "target": rng.integers(0, SIZE - 1, rows),
            "amount": amount,
            "day": dates.strftime("%Y-%m-%d"),
            "kind": rng.choice(["gift", "rent", "loan"], rows),
            "odd": ["no words"] * rows,
            "flag": rng.integers(0, 2, rows).astype(bool),
        }
    )


def fitted(edges, **options):
    notes = Notes()
    columns = TableColumns(source="source", target="target", **options)
    return EdgeFeatures.fit(edges, columns, notes), notes


def looped(edges, node, ends):
    """Every aggregate of a node, by a loop over the rows that one of `ends` names it in."""
    others = [row for row in edges.to_dict("records") if row["source"] != row["target"]]
    rows = [row for row in others for end in ends if row[end] == node]
    amounts = [row["amount"] for row in rows if not math.isnan(row["amount"])]
    days = pd.to_datetime(edges["day"])
    newest = max((pd.Timestamp(row["day"]) for row in rows), default=days.min())
    flags = [1 if row["flag"] else -1 for row in rows]
    return {
        "count": len(rows),
        "mean(amount)": sum(amounts) / len(amounts) if amounts else math.nan,
        "sum(amount)": sum(amounts),
        "recency(day)": (days.max() - newest).days,
        **{f"count(kind={k})": sum(row["kind"] == k for row in rows) for k in KINDS},
        "mean(flag)": sum(flags) / len(flags) if flags else math.nan,
    }


KINDS = ("gift", "loan", "rent")


@pytest.mark.parametrize("directed", [False, True])
def test_every_aggregate_against_a_loop(directed):
    edges = payments()
    features, notes = fitted(edges, directed=directed)
    ends = edges["source"].to_numpy(), edges["target"].to_numpy()
    made = features.compute(edges, *ends, SIZE)
    ways = {"out.": ["source"], "in.": ["target"]} if directed else {"": ["source", "target"]}
    expected = {
        f"edges.{way}{name}": [looped(edges, node, names)[name] for node in range(SIZE)]
        for way, names in ways.items()
        for name in looped(edges, 0, names)
    }
    assert list(made) == list(features.names) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(made[name], values, err_msg=name)
    apart = ", out- and in-edges apart" if directed else ""
    assert notes == [
        "Left out column 'odd' of edges: it is constant.",
        f"{8 * (1 + directed)} features of nodes from edges: count, mean and sum of amount, "
        f"recency of day, count per kind, mean of flag{apart}.",
    ]


def test_what_is_aggregated():
    features, _ = fitted(payments(), directed=True)
    assert read(EdgeFeatures, asdict(features)) == features
    edges = payments().assign(code=lambda t: t["flag"] + 1, step=range(60))
    features, _ = fitted(edges, type="code", edge_time="step")
    assert "edges.count(code=1)" in features.names
    assert "edges.recency(step)" in features.names
    assert "edges.sum(step)" not in features.names
    plain = payments()[["source", "target"]]
    assert fitted(plain)[0] is None
    degrees, notes = fitted(plain, directed=True)
    assert degrees.names == ("edges.out.count", "edges.in.count")
    assert notes == ["2 features of nodes from edges: count, out- and in-edges apart."]


def test_useless_and_broken_columns_are_left_out():
    useless = {"key": [f"k{i}" for i in range(60)], "empty": None, "lists": [[1]] * 60}
    edges = payments()[["source", "target"]].assign(**useless)
    features, notes = fitted(edges)
    assert features is None
    told = [note.partition(":")[0] for note in notes]
    assert told == [f"Left out column {name!r} of edges" for name in useless]
    numbers = {f"c{i}": np.arange(60) * (i + 1) for i in range(40)}
    wide = payments()[["source", "target"]].assign(**numbers)
    features, notes = fitted(wide)
    assert len(features.names) == 49
    assert sum("at most 50 features" in note for note in notes) == 16


def test_new_tables_may_lack_a_value_but_not_a_column():
    edges = payments()
    features, _ = fitted(edges)
    rows = edges[edges["kind"] == "gift"].reset_index(drop=True)
    made = features.compute(rows, rows["source"].to_numpy(), rows["target"].to_numpy(), SIZE)
    assert made["edges.count(kind=rent)"].tolist() == [0] * SIZE
    with pytest.raises(ValueError, match="edges has no column 'day'"):
        features.compute(edges.drop(columns="day"), *np.zeros((2, 60), dtype=int), SIZE)


def test_dates_in_other_forms():
    edges = payments()
    other = edges.assign(day=pd.to_datetime(edges["day"]).dt.strftime("%d/%m/%Y"))
    ends = edges["source"].to_numpy(), edges["target"].to_numpy()
    made = [fitted(table)[0].compute(table, *ends, SIZE) for table in (edges, other)]
    assert made[0]["edges.recency(day)"].tolist() == made[1]["edges.recency(day)"].tolist()
    stored = asdict(fitted(other)[0])
    stored["columns"][-1]["form"] = "a"
    with pytest.raises(ValueError, match="form of dates must be one of"):
        read(EdgeFeatures, stored)


SOURCE, TARGET = np.array([0, 0, 1, 2, 0]), np.array([1, 1, 2, 0, 3])
TYPES = pd.DataFrame({"type": ["a", "a", "b", "a", "c"]})


def relations_of(source=SOURCE, target=TARGET, weight=None, **columns):
    rows = EdgeRows(TYPES, source, target, weight)
    return make_relations(rows, 4, TableColumns(type="type", **columns))


def arcs(relations):
    return {tuple(arc) for arc in relations.arcs.T.tolist()}


def test_types_directions_and_weights():
    relations = relations_of(relations=("a", "b"))
    assert relations.names == ("a", "b")
    assert arcs(relations) == {(0, 0, 1), (0, 1, 0), (0, 2, 0), (0, 0, 2), (1, 1, 2), (1, 2, 1)}
    assert relations.weight is None
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    relations = relations_of(weight=weight, directed=True)
    assert relations.names == ("out", "in")
    found = dict(zip(map(tuple, relations.arcs.T.tolist()), relations.weight.tolist(), strict=True))
    out = {(0, 0, 1): 3.0, (0, 1, 2): 3.0, (0, 2, 0): 4.0, (0, 0, 3): 5.0}
    assert found == out | {(1, b, a): value for (_, a, b), value in out.items()}
    assert relations_of() is None
    assert relations_of(relations=("a",)) is None
    empty = np.array([], dtype=np.int64)
    relations = relations_of(empty, empty, directed=True)
    assert relations.arcs.shape == (3, 0)
    assert relations.arcs.dtype == torch.int64
    notes = Notes()
    assert common_types(pd.Series(["b", "a", "b", None, "a"]), notes) == ("a", "b")
    assert not notes
    assert common_types(pd.Series(["a", "b", "a"]), notes) == ("a",)
    assert notes.pop() == "No two types of edges are common: there are no relations."
    many = pd.Series([f"t{i:02}" for i in range(14) for _ in range(2 + i)] + ["rare"])
    assert common_types(many, notes) == tuple(f"t{i:02}" for i in range(14 - MAX_RELATIONS, 14))
    assert notes == ["Edges of the 10 most common of 15 types are relations."]
