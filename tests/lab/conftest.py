"""A made-up store, to read from and to write to."""

import shutil
from pathlib import Path

import pytest

from evengraph.lab.results import load_experiments
from evengraph.lab.store import Store
from made_up import fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """A store of three experiments, to read from."""
    return fill(Store(tmp_path_factory.mktemp("filled") / "store.sqlite"))


@pytest.fixture
def copied(filled, tmp_path):
    """The same store in a file of its own."""
    return Store(Path(shutil.copy(filled.path, tmp_path)))


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "store.sqlite")


@pytest.fixture(scope="session")
def experiments(filled):
    """The experiments of the filled store: a comparison, an ablation, curves."""
    return load_experiments(filled)


@pytest.fixture(scope="session")
def comparison(experiments):
    """Four methods in three settings."""
    return experiments[0]
