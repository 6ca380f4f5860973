"""A split by time sees no edge of the future: not as an edge, not as a feature, not in a mean."""

import numpy as np
import pandas as pd
import pytest
import torch

from evengraph.methods import METHODS
from evengraph.pipeline.table_model import TableModel
from evengraph.splits import ByTime
from evengraph.tables import from_frames

METHOD = {"max_epochs": 5}


def accounts(size=80):
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2024-01-01")
    opened = start + pd.to_timedelta(np.arange(size), unit="D")
    nodes = pd.DataFrame(
        {
            "id": range(size),
            "age": rng.integers(18, 80, size),
            "opened": opened.strftime("%Y-%m-%d"),
        }
    )
    nodes["kind"] = np.where(rng.random(size) < 0.4, "bad", "good")
    ends = rng.integers(0, size, (2, 400))
    day = np.maximum(*ends) + rng.integers(0, 10, 400)
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "amount": rng.lognormal(2, 1, 400)})
    edges["weight"] = rng.integers(1, 9, 400)
    edges["type"] = rng.choice(["card", "cash"], 400)
    edges["date"] = (start + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    return nodes, edges


def split(nodes, edges):
    graph = from_frames(nodes, edges, label="kind", time="opened").graph
    return ByTime()(graph, seed=0)


def cutoff(task, nodes):
    known = task.train | task.val
    return nodes["opened"][known.numpy()].max()


def test_later_edges_are_not_seen_in_training():
    nodes, edges = accounts()
    task = split(nodes, edges)
    last = cutoff(task, nodes)
    earlier = edges[edges["date"] <= last]
    assert 0 < len(earlier) < len(edges)
    ends = {frozenset(pair) for pair in earlier[["source", "target"]].itertuples(index=False)}
    seen = {frozenset(pair) for pair in task.past.edge_index.T.tolist()}
    assert seen == {pair for pair in ends if len(pair) == 2}
    hidden = task.hide_test_labels()
    assert torch.equal(hidden.graph.edge_index, task.past.edge_index)
    assert hidden.past is None
    assert task.graph.num_edges > task.past.num_edges


@pytest.mark.parametrize("change", ["removed", "moved", "other amounts", "other types"])
def test_changing_the_future_changes_nothing_in_training(change):
    nodes, edges = accounts()
    task = split(nodes, edges)
    future = edges["date"] > cutoff(task, nodes)
    changed = edges.copy()
    if change == "removed":
        changed = changed[~future].reset_index(drop=True)
    elif change == "moved":
        changed.loc[future, "source"] = 3
    elif change == "other amounts":
        changed.loc[future, ["amount", "weight"]] *= 1000
    else:
        changed.loc[future, "type"] = "cheque"
    other = split(nodes, changed)
    for name in ("x", "edge_index", "edge_weight", "relation_index", "relation_weight"):
        assert torch.equal(task.past[name], other.past[name]), name
    for name in ("unison", "boosting", "gcn"):
        first, second = (METHODS[name](**METHOD).fit(t, seed=0) for t in (task, other))
        assert torch.equal(first.predict_proba(task.past), second.predict_proba(task.past))


def test_changing_the_past_changes_training():
    nodes, edges = accounts()
    task = split(nodes, edges)
    past = edges["date"] <= cutoff(task, nodes)
    changed = edges.copy()
    changed.loc[past, "amount"] *= np.arange(int(past.sum()))
    assert not torch.equal(split(nodes, changed).past.x, task.past.x)


def test_edges_without_a_date_count_as_later():
    nodes, edges = accounts()
    edges.loc[:100, "date"] = None
    task = split(nodes, edges)
    known = edges["date"].notna() & (edges["date"] <= cutoff(task, nodes))
    pairs = {frozenset(p) for p in edges[known][["source", "target"]].itertuples(index=False)}
    assert {frozenset(p) for p in task.past.edge_index.T.tolist()} == {
        p for p in pairs if len(p) > 1
    }


def test_a_model_keeps_the_features_of_that_time():
    nodes, edges = accounts()
    model = TableModel(METHODS["boosting"](**METHOD)).fit(
        nodes, edges, label="kind", time="opened", progress=False
    )
    task = split(nodes, edges)
    new = model.open(nodes, edges).tables.graph
    assert torch.equal(new.x, task.graph.x)
    assert torch.equal(new.relation_index, task.graph.relation_index)
    probabilities = model.predict_proba(nodes, edges)
    assert np.array_equal(probabilities, model.method_.predict_proba(task.graph).numpy())
    mixed = model.method_.predict_task(task)
    assert torch.equal(mixed[task.test], torch.from_numpy(probabilities)[task.test])
    assert torch.equal(mixed[task.val], model.method_.predict_proba(task.past)[task.val])


def test_times_in_different_units():
    nodes, edges = accounts()
    edges["date"] = pd.to_datetime(edges["date"]).dt.year * 1e9
    with pytest.raises(ValueError, match="No edge has a time up to that of the last validation"):
        split(nodes, edges)
