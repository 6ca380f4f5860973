"""fit_many: the same as fitting each in turn."""

import pytest
import torch

from evengraph.methods import GCN, UniGNN
from evengraph.methods.many import fit_many
from small_graphs import small_task


def test_many_fits_equal_single_ones():
    task = small_task()
    methods = [GCN(max_epochs=5), UniGNN(max_epochs=5, clusters_per_class=3), GCN(max_epochs=3)]
    told = []
    fit_many(methods, [task] * 3, seeds=[1, 2, 3], on_fit=told.append)
    assert told == [0, 1, 2]
    for method, seed in zip(methods, [1, 2, 3], strict=True):
        alone = type(method)(**{**vars_of(method)}).fit(task, seed=seed)
        assert torch.equal(method.predict_proba(task.graph), alone.predict_proba(task.graph))


def vars_of(method):
    import dataclasses

    return dataclasses.asdict(method)


def test_an_object_keeps_one_fit_only():
    method = GCN(max_epochs=1)
    with pytest.raises(ValueError, match="different objects"):
        fit_many([method, method], [small_task()] * 2, seeds=[0, 1])


def test_there_is_room_for_one_at_least():
    with pytest.raises(ValueError, match="slots must be at least 1, got 0"):
        fit_many([GCN()], [small_task()], seeds=[0], slots=0)
