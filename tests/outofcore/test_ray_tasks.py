"""Propagation by Ray tasks: two workers, one folder."""

import gc
import os
import shutil
import warnings
from contextlib import ExitStack
from dataclasses import replace

import pytest
import torch

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk.propagation import Walk, Workspace
from evengraph.disk.ray_tasks import RayTasks, ray_tasks
from evengraph.disk.tables import PackedLinks, features

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def tasks():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")  # Ray's own
        try:
            started = stack.enter_context(ray_tasks(2))
        except OSError as error:  # it gives up after 30 seconds on a busy machine
            gc.collect()  # processes that it has left; here they raise no warnings
            pytest.skip(str(error))
        yield started


class Noted:
    """Writes the process that computes a strip."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, columns):
        (self.folder / f"{columns.start}-{os.getpid()}").touch()
        if columns.start == 9:
            raise ValueError("columns must be below 9, got 9.")


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_tasks_give_the_columns_of_one_process(tasks, tmp_path):
    """One test for all, as Ray takes seconds to start."""
    graph = pack_graph(toy(200, 600, 10, 3), tmp_path / "graph")
    assert len(graph.indices)  # an open memory map, which is not sent
    shares = []
    space = Workspace(
        PackedLinks(graph),
        tmp_path / "cache",
        10**7,
        progress=lambda stage, share: shares.append((stage, share)),
        tasks=tasks,
    )
    walk = Walk("symmetric", 5, 0.1)
    table = space.propagate(features(graph), walk, "there")
    found = table.read(slice(0, 200))
    parts = sorted(path.name for path in (tmp_path / "cache").rglob("*.npy"))
    assert parts == ["columns-000000-000005.npy", "columns-000005-000010.npy"]
    assert shares == [("there", 0.5), ("there", 1.0)]
    shutil.rmtree(tmp_path / "cache")
    here = replace(space, tasks=None).propagate(features(graph), walk)
    assert torch.equal(found, here.read(slice(0, 200)))

    folder = tmp_path / "notes"
    folder.mkdir()
    tasks.each(Noted(folder), [slice(0, 1), slice(1, 2)], lambda share: None)
    assert str(os.getpid()) not in {path.name.split("-")[1] for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"^columns must be below 9, got 9\.$"):
        tasks.each(Noted(folder), [slice(9, 10)], lambda share: None)


def test_a_lost_worker_is_one_line():
    class Lost(Exception):
        pass

    class Ray:
        class exceptions:
            RayError, RayTaskError = Lost, KeyError

        def get(self, task):
            raise Lost("many\nlines")

    with pytest.raises(OSError, match=r"A Ray worker was lost \(Lost\); start again to resume\."):
        RayTasks(Ray(), 1, 1)._check(None)
