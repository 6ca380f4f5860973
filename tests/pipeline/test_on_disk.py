"""Methods learn packed graphs as they learn them in memory."""

import pytest
import torch

from evengraph.core.task import Task
from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.methods import GCN, METHODS, MLP, Boosting, IceBerg, Logistic, Unison
from evengraph.methods.bases.disk_model import DiskModel
from evengraph.metrics import balanced_accuracy, confusion_matrix
from evengraph.pipeline import on_disk
from evengraph.pipeline.loading import load_model
from evengraph.pipeline.on_disk import (
    DiskGraph,
    disk_methods,
    fair_sizes,
    sample_nodes,
    select_nodes,
)
from evengraph.splits import Natural

QUICK = {"max_epochs": 15}
MODELS = [
    Unison(members=2, hidden=16, **QUICK),
    Unison(members=1, hidden=16, components=9, **QUICK),  # fewer than features
    IceBerg(hidden=16, **QUICK),
    MLP(hidden=16, **QUICK),
    Logistic(hops=2, degree=True, max_epochs=5),
    Logistic(max_epochs=5),
    Boosting(hops=2, degree=True, max_epochs=10),
    Boosting(hops=0, columns=5, max_epochs=10),
]


def opened(graph, folder, memory=10**7):
    return DiskGraph.open(pack_graph(graph, folder), memory)


def whole(disk, method):
    return torch.cat([probabilities for _, probabilities in disk.predict(method)])


@pytest.mark.parametrize("method", MODELS, ids=repr)
def test_a_graph_that_fits_gives_the_result_of_memory(tmp_path, method):
    graph = toy(300, 900, 12, 3)
    task = Natural(train=0.3, val=0.2)(graph, seed=0)
    disk = opened(graph, tmp_path / "graph")
    split = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    assert torch.equal(split.train, task.train)
    here, there = (type(method)(**method.get_params()) for _ in range(2))
    expected = here.fit(task, seed=3, progress=False).predict_proba(graph)
    disk.fit(there, split, seed=3, progress=False)
    torch.testing.assert_close(whole(disk, there), expected, rtol=1e-3, atol=1e-4)
    there.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    torch.testing.assert_close(whole(disk, again), expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(again.predict_proba(graph), expected, rtol=1e-3, atol=1e-4)
    assert torch.equal(there.labelled_.nodes, here.labelled_.nodes)
    torch.testing.assert_close(there.labelled_.signatures, here.labelled_.signatures)


@pytest.mark.parametrize(
    "method", [Unison(members=2), IceBerg(), MLP(), Logistic(hops=1), Boosting()], ids=repr
)
def test_a_sample_of_rows_learns_about_as_well(tmp_path, monkeypatch, method):
    monkeypatch.setattr(on_disk, "LARGEST", 300)
    monkeypatch.setattr(on_disk, "SMALLEST", 300)
    monkeypatch.setattr("evengraph.methods.iceberg.FULL", 100)
    monkeypatch.setattr("evengraph.methods.mlp.FULL", 100)
    method.max_epochs = min(method.max_epochs, 30)
    disk = opened(toy(3000, 15_000, 16, 3), tmp_path / "graph")
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    disk.fit(method, task, seed=0, progress=False)
    assert len(method.labelled_.nodes) == 300
    test = task.test.nonzero().squeeze(1)
    predicted = disk.predict_nodes(method, test).argmax(1)
    assert balanced_accuracy(confusion_matrix(task.graph.y[test], predicted, 3)) > 0.5


def test_test_labels_are_hidden(tmp_path):
    disk = opened(toy(200, 400, 6, 2), tmp_path / "graph")
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    flipped = disk.labels()
    flipped.y = torch.where(task.test, 1 - flipped.y, flipped.y)
    other = Task(flipped, task.train, task.val, task.test, 2)
    results = []
    for each in (task, other):
        method = Unison(members=1, hidden=8, max_epochs=5)
        results.append(whole(disk, disk.fit(method, each, progress=False)))
    assert torch.equal(*results)


def test_only_methods_of_rows_are_taken(tmp_path):
    names = disk_methods()
    assert set(names) == {name for name, kind in METHODS.items() if issubclass(kind, DiskModel)}
    assert {"unison", "iceberg", "mlp", "logistic", "boosting"} <= set(names)
    disk = opened(toy(60, 100, 4, 2), tmp_path / "graph")
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    with pytest.raises(
        ValueError, match="GCN needs the whole graph in memory; for a graph on disk"
    ):
        disk.fit(GCN(), task)
    method = disk.fit(Logistic(max_epochs=1), task, progress=False)
    wider = opened(toy(60, 100, 5, 2), tmp_path / "wider")
    with pytest.raises(ValueError, match="must have 4 features as in training, got 5"):
        list(wider.predict(method))


def test_losses_that_need_edges_are_refused(tmp_path):
    disk = opened(toy(60, 100, 4, 2), tmp_path / "graph")
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    with pytest.raises(ValueError, match="loss must not be 'renode'"):
        disk.fit(IceBerg(loss="renode"), task, progress=False)


def test_a_second_fit_propagates_nothing(tmp_path):
    stages = []
    packed = pack_graph(toy(100, 200, 5, 2), tmp_path / "graph")
    disk = DiskGraph.open(packed, 10**6, progress=lambda stage, share: stages.append(stage))
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    disk.fit(IceBerg(max_epochs=1), task, progress=False)
    count = len(stages)
    assert count > 0
    disk.fit(IceBerg(max_epochs=2), task, seed=1, progress=False)
    assert len(stages) == count


def test_rare_classes_keep_their_nodes():
    assert fair_sizes([1000, 3, 50], 100) == [49, 3, 48]
    assert fair_sizes([5, 6], 100) == [5, 6]
    disk_task = Natural(train=0.5, val=0.2)(toy(1000, 2000, 4, 3), seed=0)
    nodes = sample_nodes(disk_task, 90, seed=0)
    assert torch.equal(nodes, nodes.unique())
    part = select_nodes(disk_task, nodes)
    assert (int(part.train.sum()), int(part.val.sum())) == (90, 90)
    assert len(nodes) == 270
    assert torch.equal(part.graph.y, disk_task.graph.y[nodes])


def test_large_graphs_leave_out_the_semantic_view():
    assert Unison.disk_defaults(1_000, 10**9) == {}
    assert Unison.disk_defaults(10**7, 10**12) == {"views": "structural,ego"}
    assert Unison.disk_defaults(10**6, 10**9) == {"views": "structural,ego"}
    assert IceBerg.disk_defaults(10**7, 10**9) == {}


def test_a_semantic_view_that_does_not_fit_is_refused(tmp_path):
    disk = opened(toy(300, 600, 4, 2), tmp_path / "graph", memory=100_000)
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    with pytest.raises(ValueError, match="semantic view of 300 nodes takes about 879 KiB"):
        disk.fit(Unison(), task, progress=False)
