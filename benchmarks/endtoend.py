"""`python -m benchmarks.endtoend [NODES]`: from Parquet files to predictions, as a user types it.

Writes tables of so many nodes with 64 features and 10 edges each, a tenth of them labelled. Then it
runs `evengraph pack`, `run` and `predict` within a limit of memory, each in a process of its own,
and prints seconds, and the peak of resident memory with the pages of mapped files. With `--folder`
files stay, and the next call resumes with them.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

from benchmarks.timing import table

BYTES_PER_NODE = 2_600  # on disk, of tables, graph, propagated features and DuckDB's spill
LABELLED = 0.1  # share of the nodes
STAGE = re.compile(r"^(?P<stage>[\w ,]+): done in (?P<seconds>\d+) s", re.MULTILINE)


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    peak: float  # GiB
    text: str


def run(command: list[str], folder: Path) -> Cost:
    """Run a command of evengraph and watch its memory."""
    started, peak = perf_counter(), 0.0
    before = os.times()
    with (folder / f"{command[0]}.log").open("w+") as log:
        arguments = [sys.executable, "-W", "ignore", "-m", "evengraph", *command]
        process = subprocess.Popen(arguments, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, _peak(process.pid))
            sleep(0.05)
        log.seek(0)
        text = log.read()
    if process.returncode:
        raise RuntimeError(text[-2000:])
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return Cost(perf_counter() - started, cpu, peak, text)


def _peak(pid: int) -> float:
    """GiB of resident memory at most so far; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return sizes[0] / 2**20 if sizes else 0.0


def write(folder: Path, nodes: int) -> None:
    """Write the tables in a process of its own."""
    from benchmarks.pack import write_tables

    options = {"text": False, "labelled": LABELLED}
    spawn = get_context("spawn")
    process = spawn.Process(target=write_tables, args=(folder, nodes), kwargs=options)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError("The tables could not be written.")


def check_disk(folder: Path, nodes: int) -> None:
    free, needed = shutil.disk_usage(folder).free, BYTES_PER_NODE * nodes
    if free < needed:
        sys.exit(f"{folder} has {free / 2**30:.0f} GiB free, needed are {needed / 2**30:.0f}.")


def measure(folder: Path, nodes: int, memory: str, settings: list[str]) -> list[Cost]:
    """Run the commands, and print and return what each took."""
    costs: list[Cost] = []
    if not (folder / "edges.parquet").exists():
        write(folder, nodes)
    limit = ["--memory", memory]
    # fmt: off
    commands = {
        "pack": ["pack", "nodes.parquet", "edges.parquet", "--out", "graph", *limit],
        "run": ["run", "graph", "--splits", "5-5", "--save", "model", "--out", "out",
                *(part for setting in settings for part in ("--set", setting)), *limit],
        "predict": ["predict", "model", "graph", "--out", "predictions.parquet", *limit],
    }
    # fmt: on
    done = {"pack": "graph", "run": "model", "predict": "predictions.parquet"}
    rows: list[list[object]] = []
    for name, command in commands.items():
        if (folder / done[name]).exists():
            print(f"{name}: done before", flush=True)
            continue
        cost = run(command, folder)
        costs.append(cost)
        rows.append([name, cost.seconds, cost.cpu, cost.peak])
        print(rows[-1], flush=True)
        stages = STAGE.finditer(cost.text)
        rows += [[f"  {match['stage']}", float(match["seconds"]), "", ""] for match in stages]
        if name == "run":
            print(cost.text[-1500:], flush=True)
    size = f"{nodes:,} nodes, {10 * nodes:,} undirected edges, 64 features"
    title = f"{size}, --memory {memory} {' '.join(settings)}"
    table(title, ["command", "seconds", "of CPU", "peak GiB"], rows)
    return costs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int, nargs="?", default=2_000_000)
    parser.add_argument("--memory", default="5GB")
    parser.add_argument("--set", action="append", default=[], help="as of evengraph run")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}, commit {commit.stdout.strip()}", flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="evengraph-"))
    check_disk(folder, options.nodes)
    try:
        measure(folder, options.nodes, options.memory, options.set)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
