"""Engines: jobs done in this process, on a card, by all cores, or by a Ray cluster.

Each is given jobs and hands on a row the moment a run ends. A run that fails, or a
worker that dies over it, becomes a row with its reason, and the rest goes on.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from evengraph.core.records import Record
from evengraph.core.store import Job, Row, Store
from evengraph.core.task import Task
from evengraph.datasets import load
from evengraph.experiment.environment import describe
from evengraph.experiment.runner import record_of, run_seed
from evengraph.methods import METHODS, Method, fit_many
from evengraph.methods.fitting import AT_ONCE, SLOTS
from evengraph.splits import SPLITS
from evengraph.training.batch.replicas import can_replicate

OnRow = Callable[[Row], None]
Engine = Callable[[Sequence[Job], OnRow], None]

GIB_A_PROCESS = 4  # of a card's memory, where several processes share it


@dataclass(frozen=True)
class Place:
    """Where runs take place and rows go.

    Args:
        store: File of the store.
        device: Name of a device.
        root: Folder of graphs.
    """

    store: Path
    device: str = "cpu"
    root: Path | None = None


def here(jobs: Sequence[Job], on_row: OnRow, *, place: Place) -> None:
    """In this process: one after the other, on a card as many as can go side by side."""
    many, single = _parted(jobs, torch.device(place.device))
    for batch in [many, *([job] for job in single)]:
        _claimed(batch, place, on_row)


def card(jobs: Sequence[Job], on_row: OnRow, *, place: Place, workers: int) -> None:
    """What can go side by side in this process; then the rest, by several that share the card."""
    device = torch.device(place.device)
    many, single = _parted(jobs, device)
    _claimed(many, place, on_row)
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what the batch held is wanted by the others
        workers = min(workers, _room(device))
    if workers > 1 and len(single) > 1:
        processes(single, on_row, place=place, workers=workers)
    else:
        here(single, on_row, place=place)


def processes(jobs: Sequence[Job], on_row: OnRow, *, place: Place, workers: int) -> None:
    """By several processes with one thread each; they write into the store themselves.

    Joblib loses what is under way when a process dies. Whatever the dead had begun is then tried
    again, one at a time, and fails for good if it takes a process with it once more.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    store = Store(place.store)
    left = {job.key: job for job in jobs}
    doubtful: list[str] = []

    def tell(row: Row) -> None:
        if left.pop(row.job.key, None) is not None:
            on_row(row)

    while left:
        today = doubtful[:1] or list(left)
        pool = Parallel(n_jobs=max(workers, 2), backend="loky", return_as="generator_unordered")
        try:
            task = delayed(partial(_in_a_process, place=place, parent=os.getpid(), workers=workers))
            for rows in pool(task(left[key]) for key in today):
                for row in rows:
                    tell(row)
            for key in today:  # what other processes had taken
                left.pop(key, None)
        except TerminatedWorkerError:
            for row in store.rows():
                tell(row)
            if doubtful and doubtful[0] in left:
                reason = "The process died over it, twice."
                row = Row(job=left[doubtful[0]], status="failed", reason=reason)
                store.add(row)
                tell(row)
            doubtful = doubtful or [key for key in store.abandoned() if key in left] or list(left)
        doubtful = [key for key in doubtful if key in left]


def ray_cluster(jobs: Sequence[Job], on_row: OnRow, *, place: Place, address: str | None) -> None:
    """By a Ray cluster; rows come back to this process, which writes them."""
    try:
        import ray
    except ImportError:
        raise ValueError("Ray is not installed; try: pip install 'evengraph[ray]'.") from None

    store = Store(place.store)
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        gpus = 1 if torch.device(place.device).type == "cuda" else 0
        work = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=1)(_on_a_node)
        waiting = {work.remote(job, place): job for job in store.claim(jobs)}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            job = waiting.pop(ready)
            try:
                rows = ray.get(ready)
            except ray.exceptions.RayError as error:
                reason = f"The worker died over it: {type(error).__name__}."
                rows = [Row(job=job, status="failed", reason=reason)]
            for row in rows:
                store.add(row)
                on_row(row)
    finally:
        store.release()
        if started:
            ray.shutdown()


def _in_a_process(job: Job, *, place: Place, parent: int, workers: int) -> list[Row]:
    if os.getpid() != parent:  # joblib may stay in the one process there is
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear, who ends us
        torch.set_num_threads(1)
    rows: list[Row] = []
    cores = torch.device(place.device).type == "cpu"  # of which each process has one
    _claimed([job], place, rows.append, together=1 if cores else workers)
    return rows


def _on_a_node(job: Job, place: Place) -> list[Row]:
    torch.set_num_threads(1)
    rows: list[Row] = []
    execute([job], torch.device(place.device), place.root, rows.append)
    return rows


def _claimed(jobs: Sequence[Job], place: Place, on_row: OnRow, together: int = 1) -> None:
    """Do what no other process is at, and store each row before telling of it."""
    store = Store(place.store)

    def keep(row: Row) -> None:
        store.add(row)
        on_row(row)

    mine = store.claim(jobs)
    try:
        execute(mine, torch.device(place.device), place.root, keep, together)
    finally:
        if mine:
            store.release()


def execute(
    jobs: Sequence[Job],
    device: torch.device,
    root: Path | None,
    on_row: OnRow,
    together: int = 1,
) -> None:
    """Do jobs, those that can be side by side; a failure of one is its row.

    Args:
        jobs: What to do.
        device: Where.
        root: Folder of graphs.
        on_row: Hears of every run.
        together: How many runs share the device, each alone in its process.
    """
    if len(jobs) > 1:
        left = _together(jobs, device, root, on_row)
        half = (len(left) + 1) // 2  # one of these spoils it: it will be found
        for part in (left[:half], left[half:]):
            execute(part, device, root, on_row)
        return
    for job in jobs:
        try:
            method: Method = METHODS[job.method](**job.method_fields)
            task = make_task(job, device, root)
            with _Memory(device) as memory:
                record = run_seed(task, method, seed=job.seed)
        except Exception as error:  # whatever it is, the rest goes on
            on_row(_failed(job, error, device))
        else:
            if record.interrupted:
                raise KeyboardInterrupt
            on_row(_done(job, task, record, device, memory=memory.gib, together=together))


def _together(
    jobs: Sequence[Job], device: torch.device, root: Path | None, on_row: OnRow
) -> Sequence[Job]:
    """Side by side; returns those that want to be tried again, as something went wrong."""
    able: list[tuple[Job, Task, Method]] = []
    known: dict[str, Task] = {}
    seen: list[torch.Tensor] = []
    for job in jobs:
        name = repr((job.dataset, job.imbalance, job.imbalance_fields, job.seed))
        try:
            method = METHODS[job.method](**job.method_fields)
            if name not in known:
                known[name] = _share(make_task(job, device, root), seen)
            able.append((job, known[name], method))
        except (MemoryError, torch.OutOfMemoryError):
            return jobs
        except Exception as error:
            on_row(_failed(job, error, device))
    tasks, methods = [task for _, task, _ in able], [method for *_, method in able]
    ended, stopped = set(), False

    def fitted(place: int) -> None:
        nonlocal stopped
        job, task, method = able[place]
        if any(history.interrupted for history in method.history_):
            stopped = True  # not what the job asks for
            return
        record = record_of(task, method, seed=job.seed)
        ended.add(place)
        on_row(_done(job, task, record, device, together=min(len(able), SLOTS * AT_ONCE)))

    try:
        fit_many(
            methods,
            tasks,
            seeds=[job.seed for job, *_ in able],
            on_fit=fitted,
            progress=False,
        )
    except Exception:
        if not stopped:
            return [job for place, (job, *_) in enumerate(able) if place not in ended]
    if stopped:
        raise KeyboardInterrupt
    return []


def _parted(jobs: Iterable[Job], device: torch.device) -> tuple[list[Job], list[Job]]:
    """What can be trained side by side with others of its kind, and what cannot."""
    parts: tuple[list[Job], list[Job]] = [], []
    for job in jobs:
        parts[0 if can_replicate(device) and _batches(job) else 1].append(job)
    return parts


def _batches(job: Job) -> bool:
    """Whether a job can go side by side with another of its settings."""
    try:
        method: Method = METHODS[job.method](**job.method_fields)
    except (TypeError, ValueError):  # which it will be told of in its turn
        return False
    return method._together_with(method)


@cache
def load_once(dataset: str, root: Path | None) -> Data:
    """A graph, which many runs share."""
    return load(dataset, root=root)


def make_task(job: Job, device: torch.device, root: Path | None) -> Task:
    """What a job learns."""
    protocol: Any = SPLITS[job.imbalance](**job.imbalance_fields)
    task: Task = protocol(load_once(job.dataset, root), seed=job.seed).to(device)
    return task


def _share(task: Task, seen: list[torch.Tensor]) -> Task:
    """Let equal features and edges be one tensor: what is of one graph goes side by side."""
    for name in ("x", "edge_index"):
        own = task.graph[name]
        same = (one for one in seen if one.shape == own.shape and torch.equal(one, own))
        task.graph[name] = next(same, own)
        if task.graph[name] is own:
            seen.append(own)
    return task


def _done(
    job: Job,
    task: Task,
    record: Record,
    device: torch.device,
    *,
    memory: float | None = None,
    together: int = 1,
) -> Row:
    outcome = record.as_dict()
    for name in ("history", "seed", "interrupted"):
        del outcome[name]
    outcome["class_counts"] = task.class_counts.tolist()
    outcome |= {"memory": memory, "together": together}  # about how many shared the seconds
    return Row(job=job, outcome=outcome, environment=_environment(str(device)))


def _failed(job: Job, error: BaseException, device: torch.device) -> Row:
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    environment = _environment(str(device))
    return Row(job=job, status="failed", reason=reason, environment=environment)


@cache
def _environment(device: str) -> dict[str, Any]:
    return describe(torch.device(device))


class _Memory:
    """What a block of code takes at its peak beyond what was held before, in GiB."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.gib = device, None if device.type == "cpu" else 0.0

    def __enter__(self) -> _Memory:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self.before = torch.cuda.memory_allocated(self.device) / 2**30
        else:
            self.before = _status("VmRSS") or 0.0
            _forget_peak()
        return self

    def __exit__(self, *_: object) -> None:
        if self.device.type == "cuda":
            self.gib = torch.cuda.max_memory_allocated(self.device) / 2**30 - self.before
        elif (peak := _status("VmHWM")) is not None:
            self.gib = max(peak - self.before, 0.0)


def _status(name: str) -> float | None:
    """A figure of this process in GiB, where the system tells it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith(name)), None)


def _forget_peak() -> None:
    """Let the peak be counted anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _room(device: torch.device) -> int:
    """How many processes a card has memory for."""
    free, _ = torch.cuda.mem_get_info(device)
    return max(int(free / GIB_A_PROCESS / 2**30), 1)


def pick_engine(
    name: str, place: Place, *, workers: int | None = None, address: str | None = None
) -> Engine:
    """An engine by name: here, processes or ray; auto takes what there is, a card above all."""
    cores = workers or os.cpu_count() or 1
    device = torch.device(place.device)
    if name == "auto" and not address and device.type == "cuda":
        return partial(card, place=place, workers=cores)
    if name == "auto":
        name = "ray" if address else "processes"
    if name == "processes" and cores == 1:
        name = "here"
    if name == "here":
        return partial(here, place=place)
    if name == "processes":
        return partial(processes, place=place, workers=cores)
    if name == "ray":
        return partial(ray_cluster, place=place, address=address)
    raise ValueError(f"engine must be auto, here, processes or ray, got {name!r}.")
