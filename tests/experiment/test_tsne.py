"""Where the nodes of a run lie in a plane."""

import sys
from dataclasses import replace

import pytest

from evengraph.datasets import toy
from evengraph.lab.reproduce import embed_nodes, resolve
from evengraph.lab.store import JobSpec
from evengraph.methods import GCN
from evengraph.pipeline.tsne import place_nodes
from evengraph.splits import Natural

pytest.importorskip("sklearn")

FIELDS = {"max_epochs": 2, "clusters_per_class": 3, "hidden": 8}


@pytest.fixture(scope="module")
def job():
    protocol = {"train": 0.2, "val": 0.2}
    return JobSpec(
        dataset="toy",
        imbalance="natural",
        imbalance_fields=protocol,
        method="unignn",
        method_fields=FIELDS,
        seed=1,
    )


def test_every_node_has_a_place_a_class_and_a_cluster(job, monkeypatch):
    monkeypatch.setattr("evengraph.pipeline.tsne.MOST_NODES", 300)
    found = embed_nodes(job)
    task = resolve(job).make_task("cpu")
    count = len(found["x"])
    assert 150 < count <= 300
    step = -(-task.graph.num_nodes // 300)
    assert found["classes"] == task.graph.y[::step].tolist()
    assert found["train"] == task.train[::step].tolist()
    for axis in ("x", "y"):
        assert len(found[axis]) == count
        assert min(found[axis]) == 0
        assert max(found[axis]) == 100
    assert set(found["clusters"]) <= set(range(15))
    assert found == embed_nodes(job)


def test_a_method_without_embeddings_is_laid_out_by_its_probabilities(monkeypatch):
    monkeypatch.setattr("evengraph.pipeline.tsne.MOST_NODES", 100)
    task = Natural(train=0.3, val=0.3)(toy(100, 400, 10, 2), seed=0)
    method = GCN(max_epochs=2).fit(task, seed=0)
    found = place_nodes(method, task)
    assert found["of"] == "probabilities"
    assert found["clusters"] is None
    assert found["predicted"] == method.predict(task.graph).tolist()
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(ValueError, match="needs scikit-learn"):
        place_nodes(method, task)


def test_a_method_without_embeddings_has_no_map(job):
    plain = replace(job, method="gcn", method_fields={"max_epochs": 2})
    assert embed_nodes(plain) is None
