"""Propagation on a Ray cluster: one strip of columns per task, through a folder that all share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from evengraph.pipeline.executor import connected_ray


@contextmanager
def ray_tasks(
    workers: int = 2, *, address: str | None = None, cores: int = 1
) -> Iterator[RayTasks]:
    """Workers of a Ray cluster, for `DiskGraph.open`.

    The graph and its folder of propagated features must have the same path on all machines. A task
    whose worker dies is tried again; after that, what is finished stays in the folder.

    Args:
        workers: Tasks at a time. Each takes the memory that `DiskGraph.open` is given.
        address: Of the cluster, such as `auto`. Default: Ray starts one on this machine.
        cores: Cores of a task.
    """
    with connected_ray(address, workers * cores) as ray:
        yield RayTasks(ray, workers, cores)


@dataclass(frozen=True)
class RayTasks:
    """See `ray_tasks`."""

    ray: Any
    workers: int
    cores: int

    def each(
        self,
        compute: Callable[[slice], None],
        strips: Sequence[slice],
        done: Callable[[float], None],
    ) -> None:
        """Compute every strip in a task."""
        ray, waiting = self.ray, list(strips)
        task = ray.remote(num_cpus=self.cores, max_retries=1)(_compute)
        shared = ray.put(compute)
        running: list[Any] = []
        while waiting or running:
            while waiting and len(running) < self.workers:
                running.append(task.remote(shared, waiting.pop(0), self.cores))
            finished, running = ray.wait(running, num_returns=1)
            self._check(finished[0])
            done(1 - (len(waiting) + len(running)) / len(strips))

    def _check(self, task: Any) -> None:
        """Raise what a task has raised, in one line."""
        errors = self.ray.exceptions
        try:
            self.ray.get(task)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            raise OSError(
                f"A Ray worker was lost ({type(error).__name__}); start again to resume."
            ) from None


def _compute(compute: Callable[[slice], None], columns: slice, cores: int) -> None:
    torch.set_num_threads(cores)
    compute(columns)
