"""PC-softmax: trained as GCN, its probabilities divided by class sizes."""

import torch
from oracles import check_chosen, task_with

from evengraph.methods import GCN, PCSoftmax
from evengraph.pipeline.model_info import load_model


def test_it_trains_as_gcn_and_divides_by_class_sizes():
    task = task_with(9, 4, 1)
    fields = {"max_epochs": 15, "patience": 100, "dropout": 0.0}
    plain, ours = (kind(**fields).fit(task, seed=3) for kind in (GCN, PCSoftmax))
    assert ours.history_[0].loss == plain.history_[0].loss
    ours.net_ = plain.net_  # the best epochs may differ
    odds = plain.predict_proba(task.graph) / torch.tensor([9, 4, 1])
    expected = odds / odds.sum(1, keepdim=True)
    torch.testing.assert_close(ours.predict_proba(task.graph), expected)


def test_equal_classes_make_it_a_gcn():
    task = task_with(6, 6, 6)
    plain, ours = (kind(max_epochs=15).fit(task, seed=3) for kind in (GCN, PCSoftmax))
    torch.testing.assert_close(ours.predict_proba(task.graph), plain.predict_proba(task.graph))


def test_the_best_epoch_is_that_of_the_compensated_answer():
    task = task_with(9, 4, 1)
    check_chosen(PCSoftmax(max_epochs=30).fit(task, seed=3), task)


def test_class_sizes_are_kept_with_a_model(tmp_path):
    task = task_with(9, 4, 1)
    method = PCSoftmax(max_epochs=5).fit(task, seed=0)
    method.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(task.graph), method.predict_proba(task.graph))
