"""Refitting: all labels but those of validation are learnt from."""

from evengraph.pipeline.model_info import Refit, all_labels
from small_graphs import small_task


def test_labels_outside_validation_are_for_training():
    task = small_task()
    task.graph.y[3] = -1
    full = all_labels(task)
    assert full.val.equal(task.val)
    assert not full.test.any()
    assert full.train.equal((task.graph.y >= 0) & ~task.val)
    assert Refit.of(task) == (int(full.train.sum()), int(task.val.sum()), int(task.train.sum()))
