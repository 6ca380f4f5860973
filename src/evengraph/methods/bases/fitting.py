"""fit_many(): many fits, batched on a GPU where they can be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import torch

from evengraph.core.task import Task
from evengraph.fast.replicas import Fit, can_replicate, fit_batch, share_batch
from evengraph.methods.bases.method import Method, check_memory, check_task, reset, same_graph
from evengraph.training.loop import count_bar

Steps = Generator[None, None, None]
END = object()
SLOTS = 64  # fits of a group that are trained at a time
ACTIVE_GROUPS = 2  # that share a GPU: while one finds its clusters, the other trains


def fit_many(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: Sequence[int],
    slots: int = SLOTS,
    on_fit: Callable[[int], None] = lambda index: None,
    progress: bool | None = None,
) -> None:
    """Fit each method to its task, as calling `fit` on each would, up to rounding.

    On a GPU, methods of one class on one graph are trained as a batch, which takes little longer
    than training one of them. Ctrl-C ends active fits with their best weights so far, and is raised
    again if others had not started.

    Args:
        methods: What to fit; no object twice.
        tasks: The task of each.
        seeds: The seed of each.
        slots: Maximum number of fits that are trained at a time.
        on_fit: Called with the index of a method when it is fitted; on a GPU, on another stream.
        progress: Show how many are fitted; by default on a terminal only.
    """
    if len({id(method) for method in methods}) < len(methods):
        raise ValueError("methods must be different objects: each holds its own fit.")
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}.")
    fits = [Fit(*parts) for parts in zip(methods, tasks, seeds, strict=True)]
    for fit in fits:
        check_task(fit.task)  # before any of them is trained
        check_memory(fit.method, fit.task)
    for fit in fits:
        reset(fit.method, fit.task)  # no earlier fit is mistaken for one of this call
    fitted: set[int] = set()
    with count_bar("fitting", len(fits), progress) as count:

        def on_fitted(index: int) -> None:
            fitted.add(index)
            count()
            on_fit(index)

        groups = [_Group(members, fits, slots, on_fitted) for members in _groups(fits)]
        train_groups(groups, lambda: len(fitted) == len(fits))


def train_groups(groups: Sequence[_Group], all_fitted: Callable[[], bool]) -> None:
    """Train groups in turns; on a GPU a large one, which is GPU-bound, alternates with a small one.

    A failed fit does not stop the other groups; any other error does.
    """
    batched = any(len(group.methods) > 1 for group in groups)
    waiting = deque(sorted(groups, key=lambda group: -group.work) if batched else groups)
    turns, errors, heavy = deque[_Group](), [], None
    try:
        while waiting or turns:
            while waiting and len(turns) < (ACTIVE_GROUPS if batched else 1):
                if heavy in turns:
                    turns.append(waiting.pop())
                else:
                    heavy = waiting.popleft()
                    turns.append(heavy)
            group = turns[0]
            try:
                if group.step():
                    turns.rotate(-1)
                    continue
                if group.interrupted:
                    raise KeyboardInterrupt
            except (FloatingPointError, ValueError) as error:
                errors.append(error)
                if group.interrupted:
                    raise KeyboardInterrupt from None
            turns.remove(group)
    except KeyboardInterrupt:
        for group in turns:  # these also end with their best weights so far
            with suppress(KeyboardInterrupt, FloatingPointError, ValueError):
                group.interrupt()
        if not all_fitted():
            raise
    finally:
        for group in turns:
            group.close()
    if errors:
        raise errors[0]


class _Group:
    """Methods that are fitted as one batch, or a single one, on their own stream."""

    def __init__(
        self, members: Sequence[int], fits: Sequence[Fit], slots: int, on_fit: Callable[[int], None]
    ) -> None:
        self.methods: list[Method] = [fits[index].method for index in members]
        graph = fits[members[0]].task.graph
        self.device = graph.x.device
        self.work = len(members) * (graph.num_nodes + graph.num_edges)
        self.steps = _fit_group(members, fits, slots, on_fit)
        self.stream: Any = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a fit of this group."""
        return any(history.interrupted for method in self.methods for history in method.history_)

    def step(self) -> bool:
        """Continue to the next yield; whether there was one."""
        with self._on_stream():
            return next(self.steps, END) is not END

    def interrupt(self) -> None:
        """End active fits, as Ctrl-C does."""
        with self._on_stream(), suppress(StopIteration):
            self.steps.throw(KeyboardInterrupt)

    def close(self) -> None:
        """Release everything."""
        self.steps.close()
        if self.stream is not None:
            torch.cuda.synchronize(self.device)

    def _on_stream(self) -> Any:
        """The group's stream, which starts after the caller's work."""
        if self.device.type != "cuda":
            return nullcontext()
        if self.stream is None:
            self.stream = torch.cuda.Stream(self.device)
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        return torch.cuda.stream(self.stream)  # also sets the current device


def _fit_group(
    members: Sequence[int], fits: Sequence[Fit], slots: int, on_fit: Callable[[int], None]
) -> Steps:
    """Fit one method, or several as a batch; report each as soon as it is fitted."""
    if len(members) == 1:
        fit = fits[members[0]]
        fit.method.fit(fit.task, seed=fit.seed, progress=False)
        on_fit(members[0])
        return

    def on_fitted(index: int) -> None:
        fits[index].method.fitted_ = True
        on_fit(index)

    hidden = {index: fits[index].task.hide_test_labels() for index in members}
    batch = [fits[i]._replace(task=hidden[i], on_fitted=partial(on_fitted, i)) for i in members]
    yield from fit_batch(batch, slots)


def _groups(fits: Sequence[Fit]) -> list[list[int]]:
    """Indices of the fits that can be trained together."""
    groups: list[list[int]] = []
    seen = [fit.task.graph if fit.task.past is None else fit.task.past for fit in fits]
    for index, fit in enumerate(fits):
        for group in groups:
            first = fits[group[0]]
            if (
                can_replicate(fit.task.graph.x.device)
                and share_batch(first.method, fit.method)
                and first.task.num_classes == fit.task.num_classes
                and same_graph(seen[group[0]], seen[index])
            ):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups
