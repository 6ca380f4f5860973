"""The script for Ray Train in docs/machines.md: two workers, the model of one process."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

import evengraph as eg
from evengraph.disk import pack_graph
from evengraph.disk.models import CACHE, DiskGraph

pytest.importorskip("ray")
pytest.importorskip("ray.train", exc_type=ImportError)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "machines.md"
START, TRAIN = 75, 60  # seconds


def script(folder):
    """The script of the page, with other paths and as few processes as Ray can do with."""
    codes = PAGE.read_text(encoding="utf-8").split("```")[1::2]
    (code,) = (code for code in codes if "TorchTrainer(" in code)
    assert "/shared" in code
    init = "ray.init(num_cpus=2, include_dashboard=False)"
    return code.replace("/shared", str(folder)).replace("ray.init(num_cpus=2)", init)


def run(folder):
    """Run the script; returns its output, and skips the test if no worker starts in time."""
    (folder / "script.py").write_text(script(folder), encoding="utf-8")
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0"}
    output = folder / "output.txt"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, str(folder / "script.py")],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | quiet,
            start_new_session=True,
        )
        try:
            wait(process, START, until=(folder / "graph" / CACHE).exists)
            started = (folder / "graph" / CACHE).exists()
            wait(process, TRAIN if started else 0)
        finally:
            ended = process.poll() is not None
            end_session(process)
    text = output.read_text(errors="replace")
    if not started and (not ended or "timed out" in text):  # Ray gives up, too
        pytest.skip(f"Ray Train did not start within {START} seconds.")
    assert process.returncode == 0, text
    return text


def end_session(process):
    """End a process and all that it has started: workers of Ray that just start may outlive it."""
    process.kill()
    process.wait()
    for _ in range(100):
        for pid in session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not session(process.pid):
            break
        sleep(0.1)


def session(leader):
    """The processes of a session."""
    pids = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(path.name)) == leader:
                pids.add(int(path.name))
    return pids


def wait(process, seconds, until=lambda: False):
    """Wait until the process ends or a condition holds, but not for longer."""
    start = monotonic()
    while monotonic() - start < seconds and process.poll() is None and not until():
        sleep(0.1)


@pytest.mark.slow  # Ray Train takes a minute to start
def test_two_workers_train_the_model_of_one_process(tmp_path):
    graph = pack_graph(eg.toy(200, 600, 10, 3), tmp_path / "graph")
    text = run(tmp_path)
    assert "world_rank=1" in text
    disk = DiskGraph.open(graph, memory=10**9, folder=tmp_path / "alone")
    task = eg.splits.Natural()(disk.labels(), seed=0)
    alone = disk.fit(eg.Unison(max_epochs=20), task, seed=0, progress=False)
    nodes = torch.arange(200)
    found = disk.predict_nodes(eg.load_model(tmp_path / "model"), nodes)
    torch.testing.assert_close(found, disk.predict_nodes(alone, nodes), atol=1e-4, rtol=1e-3)
