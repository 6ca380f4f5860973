"""Folds: every label is held out once, and every class is divided evenly."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.folds import folds
from evengraph.core.rng import generator
from small_graphs import small_task

TASK = small_task()


def pool(task):
    return task.train | task.val


@given(number=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_label_is_held_out_once(number, seed):
    parts = folds(TASK, number, generator(seed))
    smallest = torch.bincount(TASK.graph.y[pool(TASK)]).min()
    assert len(parts) == min(number, smallest)
    assert torch.equal(sum(part.val.long() for part in parts), pool(TASK).long())
    for part in parts:
        assert torch.equal(pool(part), pool(TASK))
        assert torch.equal(part.test, TASK.test)


@given(number=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_class_is_divided_evenly(number, seed):
    parts = folds(TASK, number, generator(seed))
    for label in range(TASK.num_classes):
        sizes = [int((part.graph.y[part.val] == label).sum()) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert all((part.graph.y[part.train] == label).any() for part in parts)


def test_a_seed_draws_them():
    first, again, other = (folds(TASK, 3, generator(seed))[0].val for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("number", [1, 5])
def test_a_class_with_one_label_leaves_the_task_as_it_is(number):
    single = ((TASK.graph.y == 0) & TASK.train).nonzero()[1:]
    train = TASK.train.clone()
    train[single] = False
    task = replace(TASK, train=train, val=TASK.val & (TASK.graph.y != 0))
    assert folds(task, number, generator(0)) == [task]
