"""How many threads torch, BLAS, scikit-learn and LightGBM use, and how they wait.

OMP_NUM_THREADS decides if it is set. Otherwise torch's number is an upper bound, so that a caller's
`torch.set_num_threads` holds, and small graphs take fewer: every operation ends with threads that
wait for one another, which costs more than it gains, above all beside other processes.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController
    from torch_geometric.data import Data

WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Waiting threads sleep: for OpenMP of GCC, and of Intel and LLVM."""
OURS = "EVENGRAPH_OMP_NUM_THREADS"  # tells our number from the user's, in child processes
SPINNING = (*WAITING, "GOMP_SPINCOUNT")
WIDTH = 64  # numbers per node and edge besides the features: about what a hidden layer has
WORK = 2**22  # numbers per pass over a graph from which another thread pays
WORK_SPINNING = 8 * WORK  # where torch was imported first, and waiting threads may spin

_given: str | None = None  # OMP_NUM_THREADS as the user set it, or what was pinned
_spins = False


def prepare(environ: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads sleep, and count no more cores than a container has.

    OpenMP reads both when torch is imported; `import evengraph` calls this before.
    """
    global _given, _spins
    _given = environ.get("OMP_NUM_THREADS")
    if _given == environ.get(OURS):  # a parent process counted its cores
        _given = None
    chosen = any(name in environ for name in SPINNING)
    _spins = not chosen and "torch" in sys.modules
    if not chosen:
        environ.update(WAITING)
    if _given is None and (cores := usable_cores(environ)) < _affinity():
        environ["OMP_NUM_THREADS"] = environ[OURS] = str(cores)


def usable_cores(environ: Mapping[str, str] = os.environ) -> int:
    """Cores that this process may use: its affinity, a container's quota, its share by SLURM.

    Processes that torchrun or a cluster has started on this machine share them.
    """
    cores = min(_affinity(), int(min(_quota(), 2**20)))
    cores = min(cores, _number(environ, "SLURM_CPUS_PER_TASK", cores))
    return max(cores // _number(environ, "LOCAL_WORLD_SIZE", 1), 1)


def threads_for(num_nodes: int, num_edges: int, num_features: int) -> int:
    """How many threads pay for one pass over a graph, of the cores that can be used."""
    work = num_nodes * (num_features + WIDTH) + num_edges * WIDTH
    return min(1 + work // (WORK_SPINNING if _spins else WORK), usable_cores())


def pin(count: int) -> None:
    """Use so many threads for every graph, whatever the machine has and the environment says."""
    global _given
    import torch

    _given = str(count)
    torch.set_num_threads(count)


@contextmanager
def limited_threads(graph: Data) -> Iterator[None]:
    """Let torch use as many threads as pay on a graph, never more than before."""
    import torch

    before = torch.get_num_threads()
    count = before if _given else threads_for(graph.num_nodes, graph.num_edges, graph.num_features)
    if count >= before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def limited_pools() -> Iterator[None]:
    """Let BLAS and scikit-learn, once imported, use as many threads as torch."""
    import torch

    with _pools(len(sys.modules)).limit(limits=torch.get_num_threads()):
        yield


@lru_cache(maxsize=1)
def _pools(modules: int) -> ThreadpoolController:
    """The libraries, listed again only where more modules have been imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    quotas = [math.inf]
    groups = ""
    with suppress(OSError):
        groups = own.read_text()
    for line in groups.splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        inner = Path(path.strip("/"))
        for group in (inner, *inner.parents):  # in a container, the path may be that of the host
            with suppress(OSError, ValueError):  # "max", or no such file
                if kinds:
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                    quota, period = (int((root / "cpu" / group / n).read_text()) for n in names)
                else:
                    quota, period = map(int, (root / group / "cpu.max").read_text().split())
                if quota > 0:
                    quotas.append(quota / period)
    return max(min(quotas), 1)


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name, "")
    return int(value) if value.isdecimal() and int(value) > 0 else default
