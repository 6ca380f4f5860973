"""What the C library is told; that it obeys shows in page faults."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

import evengraph as eg
from evengraph.core import machine as allocator
from evengraph.core.errors import MissingPackageError
from evengraph.core.machine import (
    format_size,
    is_abandoned,
    parse_size,
    pick_device,
    process_mark,
)
from evengraph.desk.server import import_server
from evengraph.disk.cluster import connected_ray
from evengraph.disk.engine import Engine
from evengraph.pipeline.onnx_export import OnnxGraph
from evengraph.training.ranks import Ranks
from small_graphs import small_task


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512MiB", 2**29), ("2G", 2**31), (" 1.5 kb ", 1500), (77, 77), ("9", 9)],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4 bananas", "-1GB", "0", "GB", 0])
def test_other_texts_are_errors(text):
    with pytest.raises(ValueError, match="memory must be a size such as 4GB"):
        parse_size(text)


def test_sizes_are_printed_with_a_unit():
    sizes = 12, 1500, 300 * 2**20, 1.5 * 2**30, 3 * 2**40
    assert [format_size(size) for size in sizes] == [
        "12 B", "1.5 KiB", "300 MiB", "1.5 GiB", "3.0 TiB"
    ]  # fmt: skip


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
CHILD = """
from time import sleep
from evengraph.core.machine import end_with_parent
end_with_parent()
print("ready", flush=True)
while True:
    sleep(0.1)
"""


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")  # a zombie is dead
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_worker_ends_after_its_parent_was_killed():
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        try:
            assert is_alive(worker)
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            give_up = monotonic() + 30
            while is_alive(worker) and monotonic() < give_up:
                sleep(0.02)
            assert not is_alive(worker)
        finally:
            if is_alive(worker):
                os.kill(worker, signal.SIGKILL)


def test_a_worker_ends_if_its_parent_was_killed_before_it_looked():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(60)
    parent = f"type('Parent', (), {{'pid': {gone.pid}}})"
    orphan = f"from multiprocessing import process\nprocess._parent_process = {parent}{CHILD}"
    subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE, timeout=30, check=False)


def test_only_marks_of_dead_processes_of_this_machine_are_abandoned():
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pid, host, rest = process_mark().split("@")
    assert (pid, rest) == (str(os.getpid()), "")
    assert not is_abandoned(f"{gone.pid}@{host}@x")
    gone.communicate()
    assert is_abandoned(f"{gone.pid}@{host}@x")
    assert not is_abandoned(f"{pid}@{host}@x")
    assert not is_abandoned(f"{gone.pid}@{host}-2@x")
    for other in ("", "x", f"{gone.pid}", f"x@{host}@", f"{host}-{gone.pid}-a"):
        assert not is_abandoned(other)


@pytest.fixture
def calls(monkeypatch):
    """Calls of the C library instead of its effects."""
    made = []

    class Library:
        def mallopt(self, *arguments):
            made.append(arguments)
            return 1

    for name in ("MALLOC_MMAP_MAX_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    return made


def test_freed_memory_is_kept(calls):
    assert allocator.keep_freed_memory()
    assert calls == [(-4, 0), (-1, -1)]  # no mappings of their own, and no trimming: malloc.h


def test_settings_of_the_user_other_systems_and_c_libraries_are_left_alone(calls, monkeypatch):
    with monkeypatch.context() as changed:
        changed.setenv("MALLOC_ARENA_MAX", "2")
        assert not allocator.keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocator.keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not allocator.keep_freed_memory()
    assert not calls


def test_devices():
    assert pick_device("cpu") == pick_device(torch.device("cpu")) == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    for name in ("gpu", "mps", "cuda:99", torch.device("meta")):
        with pytest.raises(ValueError, match="cuda"):
            pick_device(name)


def test_processes_of_a_machine_need_a_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert Ranks().device("auto").type == "cuda"
    two = Ranks(0, 2, here=2)
    assert two.device("auto").type == "cpu"
    assert two.device("cpu").type == "cpu"
    with pytest.raises(ValueError, match=r"device must be cpu for 2 processes on a machine with 1"):
        two.device("cuda")


@pytest.mark.parametrize(
    ("module", "source", "use"),
    [
        ("onnx", "'.[onnx]'", lambda folder: OnnxGraph()),
        ("duckdb", "'.[disk]'", lambda folder: Engine(folder / "work.duckdb", 2**28)),
        ("ray", "'.[ray]'", lambda folder: connected_ray("auto").__enter__()),
        ("uvicorn", "'.[desk]'", lambda folder: import_server()),
        (
            "lightgbm",
            "lightgbm",
            lambda folder: eg.Boosting(engine="lightgbm").fit(small_task(), seed=0),
        ),
    ],
)
def test_what_an_extra_installs_is_named_where_it_is_missing(
    module, source, use, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    where = "" if source == module else ", in a copy of the repository"
    with pytest.raises(MissingPackageError) as caught:
        use(tmp_path)
    assert str(caught.value) == f"{module} is not installed; try{where}: pip install {source}."
