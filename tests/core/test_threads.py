"""Threads: how many, by the graph, the machine and the user; and how they wait."""

import os
import subprocess
import sys
from importlib import import_module

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info
from torch_geometric.data import Data

from evengraph.core import threads

SIZES = st.integers(0, 10**7), st.integers(0, 10**8), st.integers(0, 10**4)
CORA, HUGE = (2_708, 10_556, 1_433), (10**6, 10**8, 500)


@pytest.fixture
def machine(monkeypatch):
    """Sets what the process may use, and what its user has set."""

    def describe(*, affinity=16, quota=float("inf"), given=None, spins=False, **environ):
        monkeypatch.setattr(threads, "_affinity", lambda: affinity)
        monkeypatch.setattr(threads, "_quota", lambda: quota)
        monkeypatch.setattr(threads, "_given", given)
        monkeypatch.setattr(threads, "_spins", spins)
        for name in ("SLURM_CPUS_PER_TASK", "LOCAL_WORLD_SIZE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)

    return describe


@pytest.fixture
def torch_threads():
    """Sets how many threads torch uses, until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("about", "cores"),
    [
        ({}, 16),
        ({"affinity": 3}, 3),
        ({"quota": 2.0}, 2),
        ({"quota": 1.5}, 1),
        ({"SLURM_CPUS_PER_TASK": "4"}, 4),
        ({"SLURM_CPUS_PER_TASK": "64"}, 16),
        ({"SLURM_CPUS_PER_TASK": "many"}, 16),
        ({"LOCAL_WORLD_SIZE": "4"}, 4),
        ({"LOCAL_WORLD_SIZE": "4", "quota": 2.0}, 1),
    ],
)
def test_cores_that_can_be_used(machine, about, cores):
    machine(**about)
    assert threads.usable_cores() == cores


@given(*SIZES, st.integers(1, 64), st.booleans())
def test_threads_stay_within_the_cores_and_never_fall_with_the_graph(nodes, edges, width, n, spins):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "usable_cores", lambda: n)
        patch.setattr(threads, "_spins", spins)
        count = threads.threads_for(nodes, edges, width)
        assert 1 <= count <= n
        assert count <= threads.threads_for(2 * nodes + 1, 2 * edges, width) <= n


def test_small_graphs_take_few_threads_and_large_ones_all(machine):
    machine()
    assert threads.threads_for(800, 4_000, 12) == 1
    assert threads.threads_for(*CORA) == 2
    assert threads.threads_for(*HUGE) == 16
    machine(spins=True)
    assert threads.threads_for(*CORA) == 1


def graph(nodes, edges, width):
    return Data(x=torch.empty(nodes, width, device="meta"), edge_index=torch.empty(2, edges))


@pytest.mark.parametrize(
    ("about", "before", "inside"),
    [
        ({}, 8, 2),  # as many as pay
        ({}, 1, 1),  # the caller's torch.set_num_threads
        ({"quota": 1.0}, 8, 1),
        ({"given": "8"}, 8, 8),  # OMP_NUM_THREADS
    ],
)
def test_torch_is_limited_within_a_block(machine, torch_threads, about, before, inside):
    machine(**about)
    torch_threads(before)
    with threads.limited_threads(graph(*CORA)):
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == before


def test_pinned_threads_are_those_of_every_graph(machine, torch_threads):
    machine(given="8")
    torch_threads(8)
    threads.pin(3)
    for sizes in ((800, 4_000, 12), CORA, HUGE):
        with threads.limited_threads(graph(*sizes)):
            assert torch.get_num_threads() == 3


def test_other_libraries_follow_torch(torch_threads):
    import_module("sklearn.ensemble")  # loads the pools

    def counts():
        return {one["num_threads"] for one in threadpool_info()}

    before = counts()
    for count in (2, 1):
        torch_threads(count)
        with threads.limited_pools():
            assert counts() == {count}
    torch_threads(1)
    assert counts() == before


@pytest.mark.parametrize(
    ("files", "own", "quota"),
    [
        ({"cpu.max": "200000 100000"}, "0::/", 2.0),
        ({"cpu.max": "max 100000"}, "0::/", float("inf")),
        ({"cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, "0::/a/b", 1.5),
        ({"cpu.max": "50000 100000"}, "0::/host/path", 1.0),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/", 3.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/", None),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, "5:pids:/", None),
        ({}, "0::/", None),
        ({}, None, None),
    ],
)
def test_the_quota_of_a_container(tmp_path, files, own, quota):
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(f"{text}\n")
    if own is not None:
        (tmp_path / "own").write_text(f"{own}\n")
    expected = float("inf") if quota is None else quota
    assert threads._quota(tmp_path / "root", tmp_path / "own") == expected


SLEEPS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}


@pytest.mark.parametrize(
    ("about", "environ", "after"),
    [
        ({}, {}, SLEEPS),
        ({}, {"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
        ({}, {"GOMP_SPINCOUNT": "10"}, {"GOMP_SPINCOUNT": "10"}),
        ({"quota": 2.0}, {}, {**SLEEPS, "OMP_NUM_THREADS": "2", threads.OURS: "2"}),
        (
            {"quota": 2.0},
            {"OMP_NUM_THREADS": "2", threads.OURS: "2"},
            {**SLEEPS, "OMP_NUM_THREADS": "2", threads.OURS: "2"},
        ),
        ({"quota": 2.0}, {"OMP_NUM_THREADS": "9"}, {**SLEEPS, "OMP_NUM_THREADS": "9"}),
    ],
)
def test_the_environment_keeps_what_the_user_has_set(machine, about, environ, after):
    machine(**about)
    threads.prepare(environ)
    assert environ == after


@pytest.mark.parametrize("first", ["evengraph", "torch"])
def test_threads_sleep_unless_torch_was_imported_before(first):
    code = f"""
import os, {first}
import evengraph
from evengraph.core import threads
print(os.environ["OMP_WAIT_POLICY"], threads._spins)
"""
    unset = {"OMP_NUM_THREADS", "GOMP_SPINCOUNT", *SLEEPS}
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environ
    )
    assert done.stdout.split() == ["PASSIVE", str(first == "torch")], done.stderr
