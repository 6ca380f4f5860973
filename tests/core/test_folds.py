"""Folds: the task itself first, then every training node held out once, every class evenly."""

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import generator
from evengraph.core.task import folds
from small_graphs import small_task


def six_to_two():
    task = small_task()
    place = torch.randperm(len(task.train), generator=generator(0)) / len(task.train)
    return replace(task, train=place < 0.6, val=(place >= 0.6) & (place < 0.8), test=place >= 0.8)


TASK = six_to_two()
POOL = TASK.train | TASK.val


@given(limit=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_label_is_held_out_at_most_once(limit, seed):
    first, *others = folds(TASK, limit, generator(seed))
    assert first is TASK
    assert len(others) == min(limit - 1, round(int(TASK.train.sum()) / int(TASK.val.sum())))
    held = sum(part.val.long() for part in (first, *others))
    assert torch.equal(held, POOL.long())
    for part in others:
        assert torch.equal(part.train | part.val, POOL)
        assert not (part.train & part.val).any()
        assert torch.equal(part.test, TASK.test)


@given(limit=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_class_is_divided_evenly(limit, seed):
    _, *others = folds(TASK, limit, generator(seed))
    for label in range(TASK.num_classes):
        sizes = [int((part.graph.y[part.val] == label).sum()) for part in others]
        assert max(sizes) - min(sizes) <= 1
        assert all((part.graph.y[part.train] == label).any() for part in others)


def test_a_seed_draws_them():
    first, again, other = (folds(TASK, 3, generator(seed))[1].val for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_class_without_validation_nodes_is_never_left_without_training_nodes():
    train = TASK.train.clone()
    train[((TASK.graph.y == 0) & train).nonzero()[1:]] = False
    task = replace(TASK, train=train, val=TASK.val & (TASK.graph.y != 0))
    assert all((part.graph.y[part.train] == 0).any() for part in folds(task, 5, generator(0)))


def test_one_is_the_task_alone():
    assert folds(TASK, 1, generator(0)) == [TASK]
    few = replace(TASK, train=TASK.val, val=TASK.train)
    assert folds(few, 5, generator(0)) == [few]  # parts would be smaller than validation
    assert len(folds(TASK, 9, generator(0))) == 4
