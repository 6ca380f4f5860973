"""check_dataset: a graph that breaks a rule is told which."""

import pytest
import torch

from evengraph.datasets import DATASETS, Counts, Dataset, fetch, load, toy
from evengraph.testing import check_dataset

COUNTS = Counts(60, 120, 10, 3)


@pytest.fixture
def register(monkeypatch):
    def add(loader, **fields):
        monkeypatch.setitem(DATASETS, "mine", Dataset("Mine", COUNTS, loader=loader, **fields))

    return add


def small(folder=None, **options):
    return toy(60, 120, 10, 3, **options)


def test_a_good_one_passes(register):
    check_dataset("toy")
    register(small, class_names=("a", "b", "c"))
    check_dataset("mine")
    assert load("mine").name == "mine"
    assert load("mine", seed=3).x.shape == (60, 10)
    with pytest.raises(ValueError, match="'mine', which is generated"):
        fetch("mine")


def changed(**tensors):
    def loader(folder):
        data = small()
        for key, value in tensors.items():
            data[key] = value(data[key])
        return data

    return loader


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"x": lambda x: x.double()}, "x must be float32"),
        ({"x": lambda x: x / 0}, "x must be finite"),
        ({"edge_index": lambda e: e.int()}, "edge_index must be int64"),
        ({"edge_index": lambda e: e + 50}, "edge_index must name nodes"),
        ({"edge_index": lambda e: e[:, torch.arange(120) // 2 * 2]}, "both directions"),
        ({"y": lambda y: y.int()}, "y must be int64"),
        ({"x": lambda x: torch.rand_like(x)}, "two loads must give the same graph"),
    ],
)
def test_a_bad_one_is_told_why(register, change, rule):
    register(changed(**change))
    with pytest.raises(AssertionError, match=f"Data set 'mine': .*{rule}"):
        check_dataset("mine")


def test_counts_and_class_names(register):
    register(lambda folder: toy(61, 120, 10, 3))
    with pytest.raises(ValueError, match="61 nodes"):
        check_dataset("mine")
    register(small, class_names=("a", "b"))
    with pytest.raises(AssertionError, match="a name per class"):
        check_dataset("mine")
