import pickle

import numpy
import pytest
import torch

from evengraph.datasets import toy
from evengraph.methods import GCN
from evengraph.pipeline.executor import Job, LoadedGraph, NamedGraph, failure_of
from evengraph.splits import Natural


def make_job(graph):
    return Job(label="gcn", graph=graph, protocol=Natural(), method=GCN(), seed=0)


def test_a_loaded_graph_is_sent_as_arrays_that_are_made_once():
    graph = toy(60, 200, 8, 2)
    graph.class_names = ["no", "yes"]
    source = LoadedGraph(graph)
    assert source.load() is graph
    first, second = source.__getstate__(), source.__getstate__()
    assert isinstance(first["x"], numpy.ndarray)
    assert first["x"] is second["x"]  # joblib maps an array once
    again = pickle.loads(pickle.dumps(source)).load()
    assert again.class_names == ["no", "yes"]
    for name in ("x", "edge_index", "y"):
        assert torch.equal(again[name], graph[name])


def test_read_only_arrays_become_tensors_that_can_be_written():
    source = LoadedGraph(toy(60, 200, 8, 2))
    arrays = dict(source.__getstate__())
    arrays["x"] = arrays["x"].copy()
    arrays["x"].flags.writeable = False
    other = LoadedGraph.__new__(LoadedGraph)
    other.__setstate__(arrays)
    other.load().x[0, 0] = 7.0
    assert arrays["x"][0, 0] != 7.0


def test_a_named_graph_is_loaded_once(monkeypatch):
    from evengraph.pipeline import executor as jobs

    jobs._load_once.cache_clear()
    names = []
    monkeypatch.setattr(jobs, "load", lambda name, root: names.append(name) or toy(60, 200, 8, 2))
    assert NamedGraph("toy").load() is NamedGraph("toy").load()
    assert names == ["toy"]
    jobs._load_once.cache_clear()


def test_a_task_is_not_copied_where_it_is_already():
    graph = toy(60, 200, 8, 2)
    assert make_job(LoadedGraph(graph)).make_task("cpu").graph.x is graph.x


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ValueError("no\nand why"), "ValueError", "no"),
        (KeyError(), "KeyError", "KeyError"),
        (RuntimeError("odd shapes"), "RuntimeError", "odd shapes"),
        (RuntimeError("can't allocate memory"), "MemoryError", "GCN ran out of memory: can't"),
    ],
)
def test_a_failure_has_one_line(error, kind, reason):
    failure = failure_of(make_job(NamedGraph("toy")), error)
    assert failure.kind == kind
    assert failure.reason.startswith(reason)
    assert "\n" not in failure.reason
    assert type(failure.error).__name__ == kind
