"""fit_many(): many fits, those that can share a card side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import torch

from evengraph.core.task import Task
from evengraph.methods.bases.method import Fit, Method, check_task, same_graph
from evengraph.training.batch.replicas import can_replicate
from evengraph.training.progress import count_bar

Steps = Generator[None, None, None]
END = object()
SLOTS = 64  # fits of a group that are trained at a time
AT_ONCE = 2  # groups that take turns on a card: while one finds its clusters, the other has it


def fit_many(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: Sequence[int],
    slots: int = SLOTS,
    on_fit: Callable[[int], None] = lambda index: None,
    progress: bool | None = None,
) -> None:
    """Fit each method to its task: what calling `fit` on each gives, up to rounding.

    On a graphics card, methods of one kind on one graph are trained side by side, which takes
    little longer than training one of them. Ctrl-C ends those under way with their best weights so
    far, and is passed on if others had not begun.

    Args:
        methods: What to fit; no object twice.
        tasks: What each is to learn.
        seeds: Each method's seed.
        slots: How many are trained at a time, at most.
        on_fit: Called with a method's place in the list when it is fitted; on a card, on a
            stream of its own.
        progress: Show how many are fitted; by default on a terminal only.
    """
    if len({id(method) for method in methods}) < len(methods):
        raise ValueError("methods must be different objects: each keeps what it learns.")
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}.")
    fits = [Fit(*parts) for parts in zip(methods, tasks, seeds, strict=True)]
    for task in tasks:
        check_task(task)  # before any of them is trained
    for fit in fits:
        fit.method._begin(fit.task)  # nothing of an earlier fit is taken for one of this call
    ended: set[int] = set()
    with count_bar("fitting", len(fits), progress) as count:

        def ready(place: int) -> None:
            ended.add(place)
            count()
            on_fit(place)

        try:
            groups = [_Group(places, fits, slots, ready) for places in _groups(fits)]
            _in_turns(groups, lambda: len(ended) == len(fits))
        finally:
            for fit in fits:
                vars(fit.method).pop("_callbacks", None)


def _in_turns(groups: Sequence[_Group], all_ended: Callable[[], bool]) -> None:
    """Go through the steps of groups; on a card of a few at a time, heavy beside light.

    A large graph keeps the card busy and a small one the host: both have work then. A group that
    lost a run does not stop the others; whatever else goes wrong does.
    """
    shared = any(len(group.methods) > 1 for group in groups)
    waiting = deque(sorted(groups, key=lambda group: -group.work) if shared else groups)
    turns, lost, heavy = deque[_Group](), [], None
    try:
        while waiting or turns:
            while waiting and len(turns) < (AT_ONCE if shared else 1):
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
                lost.append(error)
                if group.interrupted:
                    raise KeyboardInterrupt from None
            turns.remove(group)
    except KeyboardInterrupt:
        for group in turns:  # these, too, end with their best weights so far
            with suppress(KeyboardInterrupt, FloatingPointError, ValueError):
                group.interrupt()
        if not all_ended():
            raise
    finally:
        for group in turns:
            group.close()
    if lost:
        raise lost[0]


class _Group:
    """Methods that are fitted side by side, or one alone, on a stream of their own.

    Args:
        places: Of its methods among all.
        fits: All there are.
        slots: How many are trained at a time.
        on_fit: Called with a method's place when it is fitted.
    """

    def __init__(
        self,
        places: Sequence[int],
        fits: Sequence[Fit],
        slots: int,
        on_fit: Callable[[int], None],
    ) -> None:
        self.methods = [fits[place].method for place in places]
        graph = fits[places[0]].task.graph
        self.device = graph.x.device
        self.work = len(places) * (graph.num_nodes + graph.num_edges)
        alone = len(places) == 1
        self.steps = (
            _alone(places[0], fits[places[0]], on_fit)
            if alone
            else _together(places, fits, slots, on_fit)
        )
        self.stream: Any = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a fit of this group."""
        return any(history.interrupted for method in self.methods for history in method.history_)

    def step(self) -> bool:
        """Go on to the next stop; whether there was one."""
        with self._here():
            return next(self.steps, END) is not END

    def interrupt(self) -> None:
        """End what is under way, as Ctrl-C does."""
        with self._here(), suppress(StopIteration):
            self.steps.throw(KeyboardInterrupt)

    def close(self) -> None:
        """Let go of everything."""
        self.steps.close()
        if self.stream is not None:
            torch.cuda.synchronize(self.device)

    def _here(self) -> Any:
        """On the group's stream, which begins where the caller's stands."""
        if self.device.type != "cuda":
            return nullcontext()
        if self.stream is None:
            self.stream = torch.cuda.Stream(self.device)
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        return torch.cuda.stream(self.stream)  # its device is then the current one


def _alone(place: int, fit: Fit, on_fit: Callable[[int], None]) -> Steps:
    fit.method.fit(fit.task, seed=fit.seed, progress=False)
    on_fit(place)
    return
    yield


def _together(
    places: Sequence[int], fits: Sequence[Fit], slots: int, on_fit: Callable[[int], None]
) -> Steps:
    """Each is told of as soon as it is fitted."""

    def ready(method: Method, place: int) -> None:
        method.fitted_ = True
        on_fit(place)

    own = [(place, fits[place]) for place in places]
    together = [
        fit._replace(task=fit.task.hide_test_labels(), done=partial(ready, fit.method, place))
        for place, fit in own
    ]
    yield from together[0].method._fit_together(together, slots)


def _groups(fits: Sequence[Fit]) -> list[list[int]]:
    """Places in the list of what can be trained together."""
    groups: list[list[int]] = []
    for index, fit in enumerate(fits):
        for group in groups:
            leader = fits[group[0]]
            if (
                can_replicate(fit.task.graph.x.device)
                and leader.method._together_with(fit.method)
                and leader.task.num_classes == fit.task.num_classes
                and same_graph(leader.task.graph, fit.task.graph)
            ):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups
