"""Stand-ins for the real graphs, and a wall between the default tests and the network."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_graphs import sha256, tiny_planetoid, write_npz

from evengraph.datasets import loading as fetching
from evengraph.datasets.loading import DATASETS, Counts

REAL = os.environ.get("EVENGRAPH_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    """Give every test an empty cache of its own, no folder and no network."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENGRAPH_CACHE", str(folder))
    monkeypatch.delenv("EVENGRAPH_DATA", raising=False)
    if "slow" not in request.keywords:
        monkeypatch.setattr(subprocess, "run", _refuse)
        monkeypatch.setattr(fetching, "_downloader", _refuse)
    return folder


def _refuse(*args, **kwargs):
    raise OSError("no network in this test")


@pytest.fixture
def real_root():
    if REAL is None:
        pytest.skip("set EVENGRAPH_DATA to a folder with the real graphs to run this")
    return Path(REAL)


@pytest.fixture
def tiny(monkeypatch):
    """Put a graph of seven nodes in Planetoid's file format in the place of citeseer."""
    files = tiny_planetoid()
    original = DATASETS["citeseer"]
    form = replace(original.file_sets[0], files={n: sha256(c) for n, c in files.items()})
    dataset = replace(original, counts=Counts(7, 8, 3, 2), file_sets=(form,))
    monkeypatch.setitem(DATASETS, "citeseer", dataset)
    return files


@pytest.fixture
def tiny_npz(monkeypatch):
    """Put a graph of three nodes without a known hash in the place of photo."""
    original = DATASETS["photo"]
    monkeypatch.setitem(DATASETS, "photo", replace(original, counts=Counts(3, 4, 2, 2)))
    return write_npz
