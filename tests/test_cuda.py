"""On a GPU: the same values as on the CPU, and the same bits every time."""

import subprocess
import sys
import warnings
from contextlib import contextmanager

import pytest
import torch
from torch_geometric.utils import to_undirected

from evengraph import metrics
from evengraph.core.rng import generator, seeded
from evengraph.datasets import toy
from evengraph.fast.unignn import UnifiedNetwork, connect
from evengraph.methods import GCN, METHODS, Auto, UniGNN, Unison, fit_many
from evengraph.metrics.multiclass import stopping_score
from evengraph.ops.pseudo import balanced_pseudo_labels
from evengraph.ops.semantic import (
    cluster_means,
    kmeans,
    semantic_propagate,
    unit_rows,
)
from evengraph.ops.sparse import adjacency, propagation_matrix, sparsify
from evengraph.ops.structural import structural_adjacency
from evengraph.pipeline.table_model import TableModel
from evengraph.training import loop
from small_graphs import QUICK, normal, random_edges, rare_task, small_task

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def with_gradient(function, x):
    x = x.clone().requires_grad_()
    value = function(x)
    weight = normal(*value.shape, seed=1, dtype=value.dtype).to(value.device)
    return value.detach().cpu(), torch.autograd.grad(value, x, weight)[0].cpu()


def assert_same(on_cpu, on_gpu, x):
    for ours, theirs in zip(
        with_gradient(on_cpu, x), with_gradient(on_gpu, x.to(GPU)), strict=True
    ):
        torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", ["symmetric", "row"])
@pytest.mark.parametrize("width", [1, 3, 64, 200])
def test_products(how, width, dtype):
    matrix = adjacency(to_undirected(random_edges(300, 3000), num_nodes=300), 300)
    on_cpu = propagation_matrix(matrix, CPU, how=how, dtype=dtype)
    on_gpu = propagation_matrix(matrix, GPU, how=how, dtype=dtype)
    x = normal(300, width, dtype=dtype)
    assert_same(lambda x: on_cpu @ x, lambda x: on_gpu @ x, x)


def test_rows_and_columns_of_a_matrix():
    matrix = adjacency(to_undirected(random_edges(200, 600), num_nodes=200), 200)
    nodes = torch.tensor([7, 3, 150, 0])
    occupied, some = propagation_matrix(matrix, CPU).rows(nodes).without_empty_columns()
    near, on_gpu = propagation_matrix(matrix, GPU).rows(nodes.to(GPU)).without_empty_columns()
    assert torch.equal(near.cpu(), occupied)
    x = normal(occupied.numel(), 5, dtype=torch.float32)
    assert_same(lambda x: some @ x, lambda x: on_gpu @ x, x)


@pytest.mark.parametrize("nodes", [None, [3, 50, 7]])
def test_semantic_propagation(nodes):
    assignment = torch.randint(12, (100,), generator=generator(0))
    chosen = None if nodes is None else torch.tensor(nodes)
    on_gpu = None if nodes is None else chosen.to(GPU)
    assert_same(
        lambda x: semantic_propagate(x, assignment, chosen),
        lambda x: semantic_propagate(x, assignment.to(GPU), on_gpu),
        normal(100, 9, dtype=torch.float32),
    )


def test_structural_adjacency():
    edge_index = random_edges(100, 200)
    on_gpu = structural_adjacency(edge_index.to(GPU), 100, 3)
    assert on_gpu.is_cuda
    assert torch.equal(on_gpu.cpu().to_dense(), structural_adjacency(edge_index, 100, 3).to_dense())


def inertia(x, assignment, k):
    means = cluster_means(x, assignment, k)
    return float((x - means[assignment]).square().sum())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("starts", [1, 4])
@pytest.mark.parametrize("scale", [lambda x: x, unit_rows])
def test_kmeans(sparse, starts, scale):
    x = toy(600, 1200, 200, 4).x
    form = sparsify if sparse else (lambda x: x)
    on_cpu = kmeans(scale(form(x)), 20, 0, starts=starts)
    on_gpu = kmeans(scale(form(x.to(GPU))), 20, 0, starts=starts)
    assert on_gpu.is_cuda
    assert on_gpu.unique().tolist() == list(range(20))
    rows = scale(x)
    assert inertia(rows, on_gpu.cpu(), 20) == pytest.approx(inertia(rows, on_cpu, 20), rel=0.02)
    assert torch.equal(on_gpu, kmeans(scale(form(x.to(GPU))), 20, 0, starts=starts))


def test_pseudo_labels():
    values = normal(80, 4, dtype=torch.float32).softmax(1)
    counts, unlabelled = torch.tensor([9, 4, 2, 1]), torch.arange(80) > 15
    on_cpu = balanced_pseudo_labels(values, counts, unlabelled, 0.4)
    on_gpu = balanced_pseudo_labels(values.to(GPU), counts.to(GPU), unlabelled.to(GPU), 0.4)
    for ours, theirs in zip(on_cpu, on_gpu, strict=True):
        assert torch.equal(ours, theirs.cpu())


def test_metrics():
    task = small_task()
    values = normal(task.graph.num_nodes, 3, dtype=torch.float32).softmax(1)
    expected = metrics.evaluate(task, values)
    for one in (task, task.to(GPU)):
        found = metrics.evaluate(one, values.to(GPU))
        assert found.pop("confusion_matrix") == expected["confusion_matrix"]
        for name, value in found.items():
            assert value == pytest.approx(expected[name], abs=1e-6), name


@contextmanager
def no_synchronisation():
    """Raise an error where the GPU is waited for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_the_validation_score_does_not_synchronise():
    for task in (small_task(), rare_task()):
        logits = normal(task.graph.num_nodes, task.num_classes, dtype=torch.float32)
        there, values = task.to(GPU), logits.to(GPU)
        metrics.validation_score(values, there)  # reads the counts of the classes once
        with no_synchronisation():
            found = metrics.validation_score(values, there)
        expected = metrics.validation_score(logits, task).item()
        assert found.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["gcn", "unignn", "mlp", "iceberg"])
def test_a_rare_class_selects_the_epoch_on_the_gpu(name):
    task = rare_task().to(GPU)
    method = METHODS[name](max_epochs=30, patience=30).fit(task, seed=1)
    score = float(metrics.validation_score(method.predict_proba(task.graph), task))
    assert method.history_[0].best_score == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize(
    "reading",
    [
        {"stop_on": "loss"},
        {"stop_on": "accuracy", "ranked_by": "log_odds"},
        {"mean_loss": True, "unit_rows": True},
    ],
)
def test_readings_of_unignn_on_the_gpu(reading):
    """The best score is that of the fitted model."""
    task = small_task().to(GPU)
    settings = {"max_epochs": 30, "clusters_per_class": 4, "cluster_starts": 3, **reading}
    method = UniGNN(**settings, recluster_every=7).fit(task, seed=1)
    expected = float(stopping_score(method.stop_on, method.predict_proba(task.graph).log(), task))
    assert method.history_[0].best_score == pytest.approx(expected, abs=1e-3)


def network_and_inputs(graph, device, **settings):
    method = UniGNN(hidden=16, clusters_per_class=4, **settings)
    graph = graph.to(device)
    method.num_features_, method.num_classes_, method.device_ = graph.num_features, 3, CPU
    method.alpha_, method.num_nodes_ = 2, 150
    with seeded(0):
        net = method._new_network()
    net.clusters_0.copy_(torch.arange(150) % 12)
    net.clusters_1.copy_(torch.arange(150) % 7)
    return UnifiedNetwork(method, net.to(device)), connect(method, graph.to(device))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("share", [False, True])
def test_the_network_of_unignn_and_its_gradients(dense, share):
    graph = small_task().graph.clone()
    if dense:
        graph.x = normal(150, 20, dtype=torch.float32)
    answers = []
    for device in (CPU, GPU):
        net, inputs = network_and_inputs(graph, device, share_embeddings=share)
        logits = net.forward(inputs, net.stored)
        weight = normal(*logits.shape, seed=1, dtype=logits.dtype).to(device)
        gradients = torch.autograd.grad((logits * weight).sum(), list(net.parameters()))
        answers.append([logits, *gradients])
    for ours, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_fitting_twice_gives_the_same_bits(name):
    task = small_task().to(GPU)
    method = METHODS[name](max_epochs=30, **QUICK.get(name, {}))
    answers = [method.fit(task, seed=0).predict_proba(task.graph) for _ in range(2)]
    assert answers[0].is_cuda
    assert torch.equal(*answers)
    torch.testing.assert_close(answers[0].sum(1).cpu(), torch.ones(task.graph.num_nodes))


@pytest.mark.parametrize("name", METHODS)
def test_the_gpus_random_state_is_left_alone(name):
    torch.rand(1, device=GPU)
    before = torch.cuda.get_rng_state()
    METHODS[name](max_epochs=3, **QUICK.get(name, {})).fit(small_task().to(GPU), seed=0)
    assert torch.equal(torch.cuda.get_rng_state(), before)


@pytest.mark.parametrize("method", [Unison(max_epochs=5), Auto(max_epochs=5)])
def test_a_graph_on_the_cpu_is_predicted_by_a_model_on_the_gpu(method):
    task = small_task()
    model = TableModel(method).fit(task.graph, device=GPU)
    assert model.method_.device_.type == "cuda"
    frame = model.predict(task.graph)
    assert frame["probability"].between(0, 1).all()
    if (committee := model.method_.predict_members(task.graph)) is not None:
        assert {part.device for part in committee} == {CPU}
        assert frame["agreement"].between(0, 1).all()


def test_members_on_both_devices_are_joined():
    task = small_task()
    method = Auto(candidates="logistic", max_epochs=3).fit(task.to(GPU), seed=0)
    method.members_.append(Unison(max_epochs=3).fit(task.to(GPU), seed=0))
    method.weights_ = [0.5, 0.5]
    for graph in (task.graph, task.to(GPU).graph):
        committee = method.predict_members(graph)
        predicted = method.predict(graph)
        assert committee.agreement(predicted).device == predicted.device == graph.x.device


def test_seeding_before_the_gpu_is_first_used_leaves_its_state_alone():
    code = (
        "import torch\n"
        "from evengraph.core.rng import seeded\n"
        "torch.manual_seed(1)\n"
        "{}\n"
        "print(torch.rand(3, device='cuda').tolist())"
    )
    drawn = [
        subprocess.run(
            [sys.executable, "-c", code.format(line)], capture_output=True, text=True, check=True
        ).stdout
        for line in ("pass", "with seeded(5): pass")
    ]
    assert drawn[0] == drawn[1]


# other numbers than on the CPU
DRAWS_ON_THE_CARD = {"embedsmote", "graphsmote", "graphens", "graphsha", "bat", "imgagn"}


NO_DROPOUT = {"labelpropagation", "boosting", "logistic", "auto", "unreal"}


@pytest.mark.parametrize("name", sorted({*METHODS} - DRAWS_ON_THE_CARD - NO_DROPOUT))
def test_the_first_loss_is_that_of_the_cpu(name):
    """Before any step and without dropout, only rounding may differ."""
    task = small_task()
    losses = [
        METHODS[name](max_epochs=0, dropout=0.0).fit(one, seed=0).history_[0].loss[0]
        for one in (task, task.to(GPU))
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("kind", [GCN, UniGNN])
def test_runs_side_by_side_end_as_alone(kind):
    task = small_task().to(GPU)
    fields = {"max_epochs": 40, "patience": 15, "hidden": 16}
    together, told = [kind(**fields) for _ in range(5)], []
    fit_many(together, [task] * 5, seeds=range(5), on_fit=told.append)
    assert sorted(told) == [0, 1, 2, 3, 4]
    for seed, method in enumerate(together):
        alone = kind(**fields).fit(task, seed=seed)
        ours, theirs = method.history_[0], alone.history_[0]
        assert ours.loss[:10] == pytest.approx(theirs.loss[:10], rel=1e-2)
        assert ours.epochs == theirs.epochs
        found, expected = (one.predict_proba(task.graph) for one in (method, alone))
        torch.testing.assert_close(found, expected, rtol=0, atol=0.05)


@pytest.mark.parametrize("every", [1, 7, 50])
def test_a_recorded_epoch_beside_clustering_gives_the_same_bits(every):
    task = small_task().to(GPU)
    answers = []
    for _ in range(2):
        method = UniGNN(max_epochs=60, clusters_per_class=3, recluster_every=every)
        answers.append(method.fit(task, seed=0).predict_proba(task.graph))
    assert torch.equal(*answers)


RECORDABLE = {
    "unignn": {"recluster_every": 7, "clusters_per_class": 3},
    "renode": {},
    "renode with TAM": {"margin": "tam"},
    "renode on a plain network": {"network": "plain"},
    "focal": {},
    "balancedsoftmax": {"margin": "tam"},
    "gcn": {},
    "gcn with means": {"backbone": "sage"},
    "gcn with attention": {"backbone": "gat", "network": "plain"},
    "oversampling": {},
    "smote": {"sound": True},
    "mlp": {},
    "lte4g": {"reconstruct": True},
    "unreal": {},
    "unreal with attention": {"backbone": "gat"},
    "iceberg": {},
    "doublebalancing": {"loss": "renode"},
}


def recorded_fit(name, **fields):
    method = name.split()[0]
    settings = {**QUICK.get(method, {}), **RECORDABLE[name], "max_epochs": 40, **fields}
    if method == "unreal":
        settings.pop("dropout", None)
    task = small_task().to(GPU)
    fitted = METHODS[method](**settings).fit(task, seed=3)
    return fitted, fitted.predict_proba(task.graph)


@pytest.mark.parametrize("name", RECORDABLE)
def test_replaying_a_recorded_epoch_is_training(name, monkeypatch):
    fields = {"dropout": 0.0, "learning_rate": 0.01}  # noise is drawn in another order
    counted, record = [], loop.RecordedStep
    monkeypatch.setattr(loop, "RecordedStep", lambda *call: counted.append(1) or record(*call))
    recorded, found = recorded_fit(name, **fields)
    assert counted
    monkeypatch.setattr("evengraph.training.loop.RECORD_AFTER", 10**6)
    stepwise, expected = recorded_fit(name, **fields)
    for ours, theirs in zip(recorded.history_, stepwise.history_, strict=True):
        assert len(ours.loss) == len(theirs.loss)
        assert ours.loss == pytest.approx(theirs.loss, rel=0.02, abs=1e-4)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.05)


@pytest.mark.parametrize("name", ["unignn", "gcn", "renode", "mlp", "iceberg"])
def test_a_recorded_epoch_draws_new_noise_every_time(name):
    fitted, _ = recorded_fit(name, learning_rate=1e-12, weight_decay=0.0, dropout=0.5)
    replayed = fitted.history_[0].loss[loop.RECORD_AFTER + 1 :]
    assert len(set(replayed)) > len(replayed) / 2


def test_an_error_after_recording_leaves_no_gradients():
    def fail(history):
        if history.epochs == 20:
            raise RuntimeError("enough")

    method = METHODS["renode"](max_epochs=40)
    with pytest.raises(RuntimeError, match="enough"):
        method.fit(small_task().to(GPU), seed=0, on_epoch=fail)
    assert all(weight.grad is None for weight in method.net_.parameters())
    METHODS["renode"](max_epochs=40).fit(small_task().to(GPU), seed=0)  # the GPU is as before
