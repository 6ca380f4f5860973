"""Batching: which methods share a batch, and what a batch of one is."""

from evengraph.fast.replicas import fit_as_batch, share_batch
from evengraph.methods import GCN, METHODS, Reweight, UniGNN
from small_graphs import small_task

BATCHED = {
    "gcn",
    "reweight",
    "balancedsoftmax",
    "logitadjustment",
    "pcsoftmax",
    "classbalanced",
    "unignn",
}


def test_methods_that_can_be_batched():
    assert {name for name, kind in METHODS.items() if kind().batching()} == BATCHED
    assert GCN(backbone="sage").batching() is None


def test_a_batch_has_one_class_and_the_same_parameters():
    assert share_batch(GCN(), GCN())
    assert not share_batch(GCN(), Reweight())
    assert not share_batch(GCN(), GCN(hidden=8))
    assert not share_batch(METHODS["mlp"](), METHODS["mlp"]())


def test_parameters_that_may_differ():
    assert share_batch(UniGNN(), UniGNN(threshold=0.7, clusters_per_class=3))
    assert not share_batch(UniGNN(), UniGNN(alpha=1))


def test_a_cpu_fits_one_method_at_a_time():
    assert not fit_as_batch(GCN(), small_task(), seed=0)
