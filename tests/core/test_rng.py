"""Seeds: set for a while, then the caller's state comes back."""

import random

import numpy as np
import pytest
import torch

from evengraph.core.rng import generator, seeded


def draw():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


@pytest.mark.parametrize("seed", [3, 0, -1, 2**32 + 5, 2**40])
def test_the_same_seed_gives_the_same_numbers_everywhere(seed):
    with seeded(seed):
        first = draw()
    with seeded(seed):
        assert draw() == first
    with seeded(4):
        assert not set(draw()) & set(first)


def test_the_callers_state_comes_back_also_after_an_error(random_state):
    def fail():
        draw()
        assert random_state() != before
        raise KeyError

    before = random_state()
    with seeded(3):
        draw()
    assert random_state() == before
    with pytest.raises(KeyError), seeded(3):
        fail()
    assert random_state() == before


def test_a_generator_is_a_stream_of_its_own(random_state):
    before = random_state()
    numbers = torch.rand(5, generator=generator(7))
    assert torch.equal(numbers, torch.rand(5, generator=generator(7)))
    assert not torch.equal(numbers, torch.rand(5, generator=generator(8)))
    assert random_state() == before
