from dataclasses import replace

import pytest
import torch

from evengraph.methods import GCN, METHODS, IceBerg, ImGAGN, fit_many
from evengraph.methods.bases import method as costs
from evengraph.methods.bases.method import TYPICAL_EPOCHS, check_memory, estimate, stored_width
from small_graphs import small_task


def test_costs_grow_with_the_graph():
    small, large = (estimate("gcn", size, 20 * size, 64, 64) for size in (1000, 10_000))
    assert 0 < 9 * small.memory < large.memory < 11 * small.memory
    assert 0 < 9 * small.seconds < large.seconds < 11 * small.seconds
    assert estimate("gcn", 1000, 20_000, 500, 500).memory > 2 * small.memory
    assert estimate("gcn", 1000, 200_000, 64, 64).memory > 2 * small.memory


def test_most_methods_are_measured():
    known = [name for name in METHODS if estimate(name, 1000, 20_000, 64, 64) is not None]
    assert len(known) > 20
    assert {"gcn", "unignn", "unison", "iceberg", "mlp", "boosting"} <= set(known)
    assert estimate("nothing", 1, 1, 1, 1) is None
    assert TYPICAL_EPOCHS > 0


def test_a_fit_that_cannot_fit_is_refused_before_it_starts(monkeypatch):
    task = small_task()
    monkeypatch.setattr(costs, "free_memory", lambda device: 1000)
    monkeypatch.setattr(GCN, "_fit", lambda *_: pytest.fail("it started"))
    for fit in (
        lambda: GCN().fit(task, seed=0),
        lambda: fit_many([GCN()], [task], seeds=[0]),
    ):
        with pytest.raises(
            MemoryError, match=r"^GCN needs about [\d.]+ .iB .* and 1000 B are free\.$"
        ):
            fit()


def test_an_estimate_may_be_off(monkeypatch):
    task = small_task()
    needed = GCN()._memory_needed(task)
    monkeypatch.setattr(costs, "free_memory", lambda device: int(needed / 1.9))
    check_memory(GCN(), task)
    monkeypatch.setattr(costs, "free_memory", lambda device: int(needed / 2.1))
    with pytest.raises(MemoryError):
        check_memory(GCN(), task)


def test_pairs_of_labelled_nodes_count():
    task = small_task()
    counts = task.class_counts
    pairs = int(((counts.max() - counts) * counts).sum())
    method = ImGAGN(minority=2)
    assert method._memory_needed(task) >= 1200 * pairs > 0


def test_sparse_features_need_less_memory_unless_a_method_stores_them_as_dense():
    task = small_task()
    graph = task.graph.clone()
    graph.x = torch.zeros(graph.num_nodes, 5000)
    graph.x[:, :3] = 1.0
    wide = replace(task, graph=graph)
    assert stored_width(graph.x) == stored_width(graph.x.numpy()) == 12
    assert stored_width(torch.ones(5, 7)) == 7
    few = GCN()._memory_needed(wide)
    assert few < 2 * GCN()._memory_needed(task)
    assert IceBerg()._memory_needed(wide) > 10 * few
