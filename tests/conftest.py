"""What all tests share: quiet imports, repeatable examples, the real graphs where there are any."""

import os

# Small matrices, and several processes may share the machine: one thread each. NumPy's BLAS reads
# it when it is imported, and so do processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

import pickle
import random
import signal
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # run GPU kernels without a GPU; set before any import

with warnings.catch_warnings():
    # PyTorch Geometric compiles a class on import in a way that torch calls outdated
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, max_examples=40
)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs that a shell puts aside
    signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def _load(name):
    from evengraph.datasets import available, load

    status = {item.name: item.status for item in available()}[name]
    return load(name) if status in ("folder", "cache") else None


@pytest.fixture
def real_graph():
    """Gives a real graph by name, each read once; skips where it would have to be fetched."""

    def get(name):
        graph = _load(name)
        if graph is None:
            pytest.skip(f"{name} is not here: run evengraph data fetch {name}")
        return graph

    return get


@pytest.fixture
def random_state():
    """Reads the global random state of python, numpy and torch in a form that compares."""

    def read():
        _, words, *rest = np.random.get_state()
        return random.getstate(), words.tolist(), rest, torch.get_rng_state().tolist()

    return read


@pytest.fixture
def bomb(tmp_path):
    """A pickle that leaves a file behind when it is opened."""
    from tiny_graphs import Bomb

    target = tmp_path / "exploded"
    return pickle.dumps(Bomb(target)), target


@pytest.fixture
def poisoned_memory(monkeypatch):
    """Fresh memory holds NaN: whatever a kernel forgets to write shows."""

    def poison(make):
        def made(*arguments, **options):
            memory = make(*arguments, **options)
            return memory.fill_(torch.nan) if memory.is_floating_point() else memory

        return made

    monkeypatch.setattr(torch, "empty", poison(torch.empty))
    monkeypatch.setattr(torch, "empty_like", poison(torch.empty_like))
    monkeypatch.setattr(torch.Tensor, "new_empty", poison(torch.Tensor.new_empty))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless browser with one page."""
    chromium = pytest.importorskip("chromium", reason="needs pipes of Unix")
    if chromium.BROWSER is None:
        pytest.skip("no Chromium or Chrome found")
    found = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
