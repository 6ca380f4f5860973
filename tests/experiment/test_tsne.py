"""Where the nodes of a run lie in a plane."""

from dataclasses import replace

import pytest

from evengraph.core.store import JobSpec
from evengraph.experiment.stored import resolve
from evengraph.experiment.tsne import embed_nodes

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
    monkeypatch.setattr("evengraph.experiment.tsne.MOST_NODES", 300)
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


def test_a_method_without_embeddings_has_no_map(job):
    plain = replace(job, method="gcn", method_fields={"max_epochs": 2})
    assert embed_nodes(plain) is None
