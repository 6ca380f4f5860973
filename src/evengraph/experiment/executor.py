"""Executor: runs jobs in this process, in worker processes, on Ray, or batched on a GPU.

A job that fails, or whose worker dies, gets a `Failure`; the other jobs go on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, time
from typing import Any, Literal

import torch

from evengraph.core.processes import end_with_parent
from evengraph.core.ray_cluster import connected_ray
from evengraph.core.records import Record
from evengraph.core.task import Task
from evengraph.experiment.jobs import Failure, Job, Result, failure_of
from evengraph.experiment.memory import PeakMemory, processes_on_gpu
from evengraph.experiment.scoring import score
from evengraph.fast.replicas import batching, can_replicate
from evengraph.methods import Method, fit_many
from evengraph.methods.fitting import ACTIVE_GROUPS, SLOTS
from evengraph.training import Callback, History

OnEnd = Callable[[Job, Result], None]
OnStart = Callable[[Job], Callback | None]
OnFit = Callable[[Job, Method, Task, Record], None]
DIED = "The worker process died twice while running this job, most likely out of memory."


class Journal:
    """Records which jobs are taken and how they ended. This one records nothing.

    Workers get a copy and call it where a job runs, so that a result is saved before it is sent.
    """

    def claim(self, jobs: Sequence[Job]) -> list[Job]:
        """Take jobs; returns those that are neither done nor taken by another process."""
        return list(jobs)

    def save(self, job: Job, result: Result) -> None:
        """Save a result."""

    def release(self) -> None:
        """Give back jobs that this process took and did not finish."""

    def recover(self, job: Job) -> Result | None:
        """Return the result that a worker saved before it died, if there is one."""
        return None


@dataclass(frozen=True, kw_only=True)
class Executor:
    """Where and how jobs are run.

    Args:
        device: Name of the torch device.
        backend: Run in this process ("here"), in worker processes, or on a Ray cluster.
        workers: Number of worker processes.
        address: Address of the Ray cluster; by default Ray starts one.
        batch: Train jobs that allow it side by side, where the device can.
        deadline: Time, as `time.time()` counts it, after which fits end without a result.
        keep_interrupted: Whether a fit that Ctrl-C ended counts, with its best weights so far.
        journal: Where results are saved.
        on_start: Called before a fit; returns a callback for its epochs, or None.
        on_fit: Called with a fitted method, in this process only.
        sharing: How many runs share the device, each in its own process.
    """

    device: str = "cpu"
    backend: Literal["here", "processes", "ray"] = "here"
    workers: int = 1
    address: str | None = None
    batch: bool = False
    deadline: float | None = None
    keep_interrupted: bool = False
    journal: Journal = field(default_factory=Journal)
    on_start: OnStart | None = None
    on_fit: OnFit | None = None
    sharing: int = 1

    def execute(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        """Run jobs in order, as far as the backend has one; `on_end` gets each result.

        Returns whether there was time for all jobs. Ctrl-C raises KeyboardInterrupt.
        """
        if self.batch and (batchable := self._batchable(jobs)):
            self._run_batch(batchable, on_end)
            jobs = [job for job in jobs if job not in set(batchable)]
        executor = self
        if self.batch and torch.device(self.device).type == "cuda":
            torch.cuda.empty_cache()
            limit = processes_on_gpu(torch.device(self.device))
            executor = replace(self, workers=min(self.workers, limit))
        if self.backend == "ray":
            return executor._run_on_ray(jobs, on_end)
        if self.backend == "processes" and executor.workers > 1 and len(jobs) > 1:
            return executor._run_in_processes(jobs, on_end)
        return executor._run_here(jobs, on_end)

    # One job at a time, in this process.

    def _run_here(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        failed: set[str] = set()
        split, task = None, None  # jobs on the same split follow one another
        for job in jobs:
            if job.label in failed:
                continue
            if split != _split_key(job):
                split, task = _split_key(job), None
            try:
                for claimed in self.journal.claim([job]):
                    if task is None:
                        task = self._task(claimed)
                    result = task if isinstance(task, Failure) else self._fit(claimed, task)
                    if result is None:
                        return False
                    if isinstance(result, Failure):
                        failed.add(job.label)
                    interrupted = isinstance(result, Record) and result.interrupted
                    if not interrupted or self.keep_interrupted:
                        self._end(claimed, result, on_end)
                    if interrupted:
                        raise KeyboardInterrupt
            finally:
                self.journal.release()
        return True

    def _task(self, job: Job) -> Task | Failure:
        try:
            return job.make_task(self.device)
        except Exception as error:
            return failure_of(job, error)

    def _fit(self, job: Job, task: Task) -> Result | None:
        """Fit and score; None if the deadline passed meanwhile."""
        method = replace(job.method)
        on_epoch = self._on_epoch(self.on_start(job) if self.on_start else None)
        started = perf_counter()
        try:
            with PeakMemory(torch.device(self.device)) as memory:
                job.fit(method, task, on_epoch)
                seconds = perf_counter() - started
                if self._late(method):
                    return None
                record = score(job, task, method, seconds=seconds, together=self.sharing)
        except Exception as error:
            return failure_of(job, error)
        except KeyboardInterrupt:
            if self.deadline is None or time() < self.deadline:
                raise
            return None
        record = replace(record, memory=memory.gib)
        if self.on_fit:
            self.on_fit(job, method, task, record)
        return record

    def _on_epoch(self, show: Callback | None) -> Callback | None:
        """Interrupt training at the deadline, as Ctrl-C does."""
        deadline = self.deadline
        if deadline is None:
            return show

        def watch(history: History) -> None:
            if show is not None:
                show(history)
            if time() >= deadline:
                raise KeyboardInterrupt

        return watch

    def _late(self, method: Method) -> bool:
        interrupted = any(history.interrupted for history in method.history_)
        return interrupted and self.deadline is not None and time() >= self.deadline

    def _end(self, job: Job, result: Result, on_end: OnEnd) -> None:
        self.journal.save(job, result)
        on_end(job, result)

    # Many jobs as one batch.

    def _batchable(self, jobs: Sequence[Job]) -> list[Job]:
        if not can_replicate(torch.device(self.device)):
            return []
        return [job for job in jobs if batching(job.method) is not None]

    def _run_batch(self, jobs: Sequence[Job], on_end: OnEnd) -> None:
        try:
            self._fit_batch(self.journal.claim(jobs), partial(self._end, on_end=on_end))
        finally:
            self.journal.release()

    def _fit_batch(self, jobs: Sequence[Job], end: OnEnd) -> None:
        """Fit a batch; if it fails, try each half of what is left, down to single jobs."""
        if len(jobs) > 1:
            left = self._fit_together(jobs, end)
            half = (len(left) + 1) // 2
            self._fit_batch(left[:half], end)
            self._fit_batch(left[half:], end)
        else:
            replace(self, journal=Journal())._run_here(jobs, end)

    def _fit_together(self, jobs: Sequence[Job], end: OnEnd) -> Sequence[Job]:
        """Fit side by side; returns the jobs that are left if something went wrong."""
        fits: list[tuple[Job, Task, Method]] = []
        tasks: dict[Any, Task] = {}
        tensors: list[torch.Tensor] = []
        for job in jobs:
            try:
                if _split_key(job) not in tasks:
                    task = share_tensors(job.make_task(self.device), tensors)
                    tasks[_split_key(job)] = task
                fits.append((job, tasks[_split_key(job)], replace(job.method)))
            except (MemoryError, torch.OutOfMemoryError):
                return jobs
            except Exception as error:
                end(job, failure_of(job, error))
        ended, interrupted = set(), False

        def on_fit(index: int) -> None:
            nonlocal interrupted
            job, task, method = fits[index]
            if any(history.interrupted for history in method.history_):
                interrupted = True
                return
            record = score(job, task, method, together=min(len(fits), SLOTS * ACTIVE_GROUPS))
            ended.add(index)
            end(job, record)

        try:
            fit_many(
                [method for *_, method in fits],
                [task for _, task, _ in fits],
                seeds=[job.seed for job, *_ in fits],
                on_fit=on_fit,
                progress=False,
            )
        except Exception:
            if not interrupted:
                return [job for index, (job, *_) in enumerate(fits) if index not in ended]
        if interrupted:
            raise KeyboardInterrupt
        return []

    # Elsewhere.

    def _run_in_processes(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        """Run in worker processes with one thread each.

        joblib loses all running jobs when a worker dies. These are tried again, one at a time; a
        job that is running when a worker dies again fails.
        """
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = dict(enumerate(jobs))
        suspects: list[int] = []
        in_time = True
        with TemporaryDirectory() as folder:
            work = delayed(
                partial(_run_in_worker, executor=self, folder=Path(folder), parent=os.getpid())
            )
            while left:
                pool = Parallel(
                    n_jobs=max(min(self.workers, len(jobs)), 2),
                    backend="loky",
                    return_as="generator_unordered",
                    mmap_mode="c",  # all workers read one copy of a graph; writes stay private
                )
                try:
                    for index, result, done in pool(
                        work(index, left[index]) for index in suspects[:1] or list(left)
                    ):
                        in_time = in_time and done
                        job = left.pop(index)
                        if result is not None:
                            on_end(job, result)
                except TerminatedWorkerError:
                    for index, job in list(left.items()):
                        if (result := self.journal.recover(job)) is not None:
                            del left[index]
                            on_end(job, result)
                    if suspects and suspects[0] in left:
                        self._end(left.pop(suspects[0]), Failure(reason=DIED), on_end)
                    started = [index for index in left if (Path(folder) / str(index)).exists()]
                    suspects = suspects or started or list(left)
                suspects = [index for index in suspects if index in left]
        return in_time

    def _run_on_ray(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        """Run on a Ray cluster; results come back to this process, which saves them."""
        with connected_ray(self.address) as ray:
            try:
                return self._run_tasks(ray, jobs, on_end)
            finally:
                self.journal.release()

    def _run_tasks(self, ray: Any, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        gpus = 1 if torch.device(self.device).type == "cuda" else 0
        work = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=1)(_run_on_node)
        executor = replace(self, journal=Journal())
        waiting = {work.remote(job, executor): job for job in self.journal.claim(jobs)}
        in_time = True
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            job = waiting.pop(ready)
            try:
                result, done = ray.get(ready)
                in_time = in_time and done
            except ray.exceptions.RayError as error:
                result = Failure(reason=f"The worker died: {type(error).__name__}.")
            if result is not None:
                self._end(job, result, on_end)
        return in_time


def _run_in_worker(
    index: int, job: Job, *, executor: Executor, folder: Path, parent: int
) -> tuple[int, Result | None, bool]:
    """Run a job in a worker; its result is None if another process has it or time is up."""
    if os.getpid() != parent:  # joblib may stay in this process if there is no other
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends us
        torch.set_num_threads(1)
        end_with_parent()
    if executor.deadline is not None and time() >= executor.deadline:
        return index, None, False
    (folder / str(index)).touch()
    on_cpu = torch.device(executor.device).type == "cpu"  # where each worker has its own core
    result, done = _run_one(job, replace(executor, sharing=1 if on_cpu else executor.workers))
    return index, result, done


def _run_on_node(job: Job, executor: Executor) -> tuple[Result | None, bool]:
    torch.set_num_threads(1)
    return _run_one(job, executor)


def _run_one(job: Job, executor: Executor) -> tuple[Result | None, bool]:
    """Run a job here; returns a result that can be sent, and whether there was time."""
    results: list[Result] = []
    in_time = executor._run_here([job], lambda _, result: results.append(result))
    result = results[0] if results else None
    if isinstance(result, Failure):
        result = replace(result, error=None)  # not every exception can be pickled
    return result, in_time


def _split_key(job: Job) -> tuple[Any, ...]:
    """Equal for jobs on the same split."""
    return job.graph, id(job.protocol), job.seed


def share_tensors(task: Task, tensors: list[torch.Tensor]) -> Task:
    """Use one tensor for features or edges that are equal; batches form by graph."""
    graph = copy(task.graph)
    for name in ("x", "edge_index"):
        tensor = graph[name]
        alike = (t for t in tensors if t.shape == tensor.shape and t.dtype == tensor.dtype)
        graph[name] = next((other for other in alike if torch.equal(other, tensor)), tensor)
        if graph[name] is tensor:
            tensors.append(tensor)
    return replace(task, graph=graph)


def choose_executor(
    name: str, device: str, *, workers: int | None = None, address: str | None = None
) -> Executor:
    """An executor by name: here, processes or ray; auto chooses by the device and the cores."""
    cores = workers or os.cpu_count() or 1
    on_gpu = name == "auto" and not address and torch.device(device).type == "cuda"
    if name == "auto":
        name = "ray" if address else "processes"
    if name not in ("here", "processes", "ray"):
        raise ValueError(f"engine must be auto, here, processes or ray, got {name!r}.")
    if name == "processes" and cores == 1:
        name = "here"
    return Executor(
        device=device,
        backend=name,  # type: ignore[arg-type]
        workers=cores,
        address=address,
        batch=on_gpu or name == "here",
    )
