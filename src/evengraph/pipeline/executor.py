"""Fit methods to splits and score them, here, in worker processes or in batches."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, time
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import first_line
from evengraph.core.machine import end_with_parent
from evengraph.core.task import Record, Task
from evengraph.datasets import load
from evengraph.fast.replicas import batching
from evengraph.methods import Method, fit_many
from evengraph.methods.bases.fitting import SLOTS
from evengraph.metrics.binary import precision_recall_points
from evengraph.metrics.decisions import BEST_F1, Rule
from evengraph.metrics.evaluation import Predictions, reported
from evengraph.metrics.multiclass import criterion, validation_score
from evengraph.metrics.registry import METRICS
from evengraph.ops.sparse import has_kernels
from evengraph.pipeline.sources import GraphOnDisk
from evengraph.splits import SplitProtocol
from evengraph.splits.protocols import period_of_test
from evengraph.training import Callback, History


@dataclass(frozen=True)
class NamedGraph:
    """A data set by its name; every process loads it once."""

    name: str

    def load(self) -> Data:
        return _load_once(self.name)


_load_once = cache(load)


class LoadedGraph:
    """A graph in memory. It is sent as NumPy arrays, which joblib maps into all workers."""

    def __init__(self, graph: Data) -> None:
        self._graph = graph
        self._arrays: dict[str, Any] = {}

    def load(self) -> Data:
        return self._graph

    def __getstate__(self) -> dict[str, Any]:
        # joblib recognises an array it has mapped before by its identity
        self._arrays = self._arrays or {
            name: value.cpu().numpy() if isinstance(value, torch.Tensor) else value
            for name, value in self._graph.to_dict().items()
        }
        return self._arrays

    def __setstate__(self, arrays: dict[str, Any]) -> None:
        content = dict(arrays)
        for name, value in arrays.items():
            if isinstance(value, numpy.ndarray):
                array = value if value.flags.writeable else value.copy()
                content[name] = torch.from_numpy(array)
        self.__init__(Data.from_dict(content))  # type: ignore[misc]


SET_COVERAGE = 0.9  # of the prediction sets whose coverage is measured


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One fit of a method to one split of a graph."""

    label: str  # what follows a failure under the same label is skipped
    graph: NamedGraph | LoadedGraph
    protocol: SplitProtocol
    method: Method  # a fresh copy is fitted
    seed: int  # of the split and of the fit
    candidate: int = 0  # index of the settings among those tried under this label
    positive: int | None = None  # of two classes, by default the rarer
    rule: Rule = BEST_F1  # that sets the threshold
    shares: Sequence[float] | None = None  # of the classes in the population
    calibrate: bool = False  # and measure that
    record_settings: bool = False
    disk: GraphOnDisk | None = None  # `graph` then holds the labels alone

    def make_task(self, device: torch.device | str) -> Task:
        """Split the graph and move the task to a device."""
        task = self.protocol(self.graph.load(), seed=self.seed)
        return task if task.graph.y.device == torch.device(device) else task.to(device)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job has no record."""

    reason: str
    kind: str = ""
    error: Exception | None = None


Result = Record | Failure


class FittedMethod(NamedTuple):
    """A method after one fit, with the only prediction that scores, selection and saving need."""

    method: Method
    task: Task  # that it was scored on; of a graph on disk, the nodes of its sets
    probabilities: Tensor  # for all nodes of the task, (N, C)
    record: Record


def failure_of(job: Job, error: Exception | SystemExit) -> Failure:
    if isinstance(error, RuntimeError) and "memory" in str(error):  # torch raises no MemoryError
        text = f"{job.method.title} ran out of memory: {error}"
        error = MemoryError(text.splitlines()[0]).with_traceback(error.__traceback__)
    kind = type(error).__name__
    foreign = not type(job.method).__module__.startswith("evengraph.")
    usual = isinstance(error, ValueError | OSError | MemoryError)
    if isinstance(error, SystemExit) or (foreign and not usual):
        error = ValueError(f"{job.method.title} cannot be used: {kind}: {first_line(error)}.")
    return Failure(reason=(str(error).strip() or kind).splitlines()[0], kind=kind, error=error)


def score(
    job: Job, task: Task, method: Method, *, seconds: float | None = None, together: int = 1
) -> FittedMethod:
    """Evaluate a fitted method on test nodes; about `together` runs shared the device."""
    if job.disk is None:
        probabilities = method.predict_task(task)
    else:
        task, probabilities = job.disk.predict_task(method, task)
    held_out = method.held_out(task)
    options: Any = {"positive": job.positive, "rule": job.rule, "shares": job.shares}
    predictions = Predictions.of(task, probabilities, held_out=held_out, **options)
    values = predictions.scores(job.calibrate)
    metrics = reported(values)
    calibration = None
    if job.calibrate:
        calibration = {
            "calibrator": predictions.calibrator.as_dict(),
            "metrics": {n: metrics.pop(n) for n in list(metrics) if METRICS[n].calibration},
            "coverage": predictions.coverage(SET_COVERAGE),
        }
    decision, interval, curve = None, None, None
    if task.num_classes == 2:
        if predictions.decision is not None:
            decision = {
                "positive": predictions.positive,
                "threshold": predictions.threshold,
                "confusion": predictions.decided.tolist(),
            }
        interval = predictions.interval() if job.calibrate else None
        curve = precision_recall_points(*predictions.ranking) or None
    main = next((history for history in method.history_ if history.main), History())
    auto = [name for name, value in method.get_params().items() if value == "auto"]
    record = Record(
        seed=job.seed,
        metrics=metrics,
        per_class={
            "recall": [100 * value for value in values["per_class_recall"]],
            "f1": [100 * value for value in values["per_class_f1"]],
            "support": values["per_class_support"],
        },
        confusion_matrix=values["confusion_matrix"],
        history={"loss": main.loss, "score": [100 * value for value in main.score]},
        validation=100 * float(validation_score(probabilities, task)),
        best_epoch=main.best_epoch,
        epochs=main.epochs,
        seconds=sum(h.seconds for h in method.history_) if seconds is None else seconds,
        interrupted=any(history.interrupted for history in method.history_),
        stages=len(method.history_),
        total_epochs=sum(history.epochs for history in method.history_),
        class_counts=task.class_counts.tolist(),
        together=together,
        settings=asdict(method) if job.record_settings else None,
        calibration=calibration,
        criterion=criterion(task),
        summary=list(method.summary_) or None,
        notes=list(method.notes_) or None,
        period=period_of_test(task),
        decision=decision,
        interval=interval,
        precision_recall=curve,
        resolved={n: getattr(method, f"{n}_") for n in auto if hasattr(method, f"{n}_")} or None,
    )
    return FittedMethod(method, task, probabilities, record)


def describe(device: torch.device) -> dict[str, Any]:
    """Describe the environment, as stored with every result."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": version("torch_geometric"),
        "numpy": version("numpy"),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of the checkout that this package runs from, if any; + if it has changes."""
    if commit := os.environ.get("EVENGRAPH_COMMIT"):  # of a copy without a history
        return commit
    git = ["git", "-C", str(Path(__file__).resolve().parent)]
    described = [*git, "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        for command in ([*git, "ls-files", "--error-unmatch", __file__], described):
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return found.strip()
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, or not a checkout


OnEnd = Callable[[Job, Result], None]
GPU_MEMORY = 4 * 2**30  # bytes for each process on one GPU
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
    """Where and how jobs are run: in this process, or in several worker processes."""

    device: str = "cpu"
    workers: int = 1
    batch: bool = False  # train jobs that allow it side by side, where the device can
    deadline: float | None = None  # as time() counts, after which fits end without a result
    keep_interrupted: bool = False  # a fit that Ctrl-C ended counts, with its best weights so far
    journal: Journal = field(default_factory=Journal)
    # returns a callback for the epochs of a fit, or None
    on_start: Callable[[Job], Callback | None] | None = None
    on_fit: Callable[[Job, FittedMethod], None] | None = None  # called in this process only
    progress: bool | None = False  # whether a fit draws its own bar; None means on a terminal
    sharing: int = 1  # how many runs share the device, each in its own process

    def execute(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        """Run jobs, in this process in their order; `on_end` gets each result.

        Returns whether there was time for all jobs. Ctrl-C raises KeyboardInterrupt.
        """
        if self.batch and has_kernels(torch.device(self.device)):
            batchable = [job for job in jobs if batching(job.method) is not None]
            end = partial(self._end, on_end=on_end)
            try:
                left = self._fit_together(self.journal.claim(batchable), end)
                replace(self, journal=Journal())._run_here(left, end)
            finally:
                self.journal.release()
            jobs = [job for job in jobs if job not in set(batchable)]
        executor = self
        if self.batch and torch.device(self.device).type == "cuda":
            torch.cuda.empty_cache()
            free, _ = torch.cuda.mem_get_info(torch.device(self.device))
            limit = max(int(free / GPU_MEMORY), 1)
            executor = replace(self, workers=min(self.workers, limit))
        if executor.workers > 1 and len(jobs) > 1:
            return executor._run_in_processes(jobs, on_end)
        return executor._run_here(jobs, on_end)

    # One job at a time, in this process.

    def _run_here(self, jobs: Sequence[Job], on_end: OnEnd) -> bool:
        failed: set[str] = set()
        split: tuple[Any, ...] = ()
        task: Task | Failure | None = None  # jobs on the same split follow one another
        for job in jobs:
            if job.label in failed:
                continue
            if split != _split_key(job):
                split, task = _split_key(job), None
            try:
                for claimed in self.journal.claim([job]):
                    if task is None:
                        try:
                            task = claimed.make_task(self.device)
                        except Exception as error:
                            task = failure_of(claimed, error)
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

    def _fit(self, job: Job, task: Task) -> Result | None:
        """Fit and score; None if the deadline passed meanwhile."""
        method, deadline = replace(job.method), self.deadline
        show = self.on_start(job) if self.on_start else None

        def watch(history: History) -> None:
            """Interrupt training at the deadline, as Ctrl-C does."""
            if show is not None:
                show(history)
            if deadline is not None and time() >= deadline:
                raise KeyboardInterrupt

        started = perf_counter()
        try:
            fit = method.fit if job.disk is None else partial(job.disk.fit, method)
            on_epoch = show if deadline is None else watch
            fit(task, seed=job.seed, on_epoch=on_epoch, progress=self.progress)
            seconds = perf_counter() - started
            interrupted = any(history.interrupted for history in method.history_)
            if interrupted and deadline is not None and time() >= deadline:
                return None
            fitted = score(job, task, method, seconds=seconds, together=self.sharing)
        except (Exception, SystemExit) as error:  # a plugin may end itself
            return failure_of(job, error)
        except KeyboardInterrupt:
            if deadline is None or time() < deadline:
                raise
            return None
        if self.on_fit:
            self.on_fit(job, fitted)
        return fitted.record

    def _end(self, job: Job, result: Result, on_end: OnEnd) -> None:
        self.journal.save(job, result)
        on_end(job, result)

    # Many jobs as one batch.

    def _fit_together(self, jobs: Sequence[Job], end: OnEnd) -> Sequence[Job]:
        """Fit side by side; returns those that are left: one alone, or after an error."""
        if len(jobs) < 2:
            return jobs
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
            fitted = score(job, task, method, together=min(len(fits), SLOTS))
            ended.add(index)
            end(job, fitted.record)

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

    # In worker processes.

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


def _run_in_worker(
    index: int, job: Job, *, executor: Executor, folder: Path, parent: int
) -> tuple[int, Result | None, bool]:
    """Run a job; its result is None if another process has it or time is up."""
    if os.getpid() != parent:  # joblib may stay in this process if there is no other
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends us
        end_with_parent()
        torch.set_num_threads(1)
    if executor.deadline is not None and time() >= executor.deadline:
        return index, None, False
    (folder / str(index)).touch()
    on_cpu = torch.device(executor.device).type == "cpu"  # where each worker has its own core
    executor = replace(executor, sharing=1 if on_cpu else executor.workers)
    results: list[Result] = []
    in_time = executor._run_here([job], lambda _, result: results.append(result))
    result = results[0] if results else None
    if isinstance(result, Failure):
        result = replace(result, error=None)  # not every exception can be pickled
    return index, result, in_time


def _split_key(job: Job) -> tuple[Any, ...]:
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
