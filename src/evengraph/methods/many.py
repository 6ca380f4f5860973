"""fit_many(): many fits, those that can share a card side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import torch

from evengraph.methods.base import Fit, Method, check_task, same_graph
from evengraph.progress import counted
from evengraph.replicas import can_replicate
from evengraph.task import Task

AT_ONCE = 2  # groups that take turns: while one is at its clusters, the other has the card


def fit_many(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: Sequence[int],
    slots: int = 64,
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
        on_fit: Called with a method's place in the list when it is fitted.
        progress: Show how many are fitted; by default on a terminal only.
    """
    if len({id(method) for method in methods}) < len(methods):
        raise ValueError("methods must be different objects: each keeps what it learns.")
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}.")
    fits = [Fit(*parts) for parts in zip(methods, tasks, seeds, strict=True)]
    for task in tasks:
        check_task(task)  # before any of them is trained
    with counted("fitting", len(fits), progress) as count:

        def ready(index: int) -> None:
            count()
            on_fit(index)

        _in_turns([_steps(group, fits, slots, ready) for group in _groups(fits)], fits)


def _in_turns(groups: Sequence[Generator[None, None, None]], fits: Sequence[Fit]) -> None:
    """Go through the steps of groups, of a few at a time, each on a stream of its own.

    A group that lost a run does not stop the others; whatever else goes wrong does.
    """
    waiting, lost = deque(groups), []
    device = fits[0].task.graph.x.device if fits else torch.device("cpu")
    turns: deque[tuple[Generator[None, None, None], Any]] = deque()
    try:
        while waiting or turns:
            while waiting and len(turns) < AT_ONCE:
                turns.append((waiting.popleft(), _stream(device)))
            steps, stream = turns.popleft()
            try:
                with stream:
                    next(steps)
                turns.append((steps, stream))
            except StopIteration:
                if any(h.interrupted for fit in fits for h in getattr(fit.method, "history_", [])):
                    raise KeyboardInterrupt from None
            except FloatingPointError as error:
                lost.append(error)
    except KeyboardInterrupt:
        for steps, stream in turns:  # these, too, end with their best weights so far
            with stream, suppress(KeyboardInterrupt, StopIteration):
                steps.throw(KeyboardInterrupt)
        if not all(fit.method.is_fitted for fit in fits):
            raise
    finally:
        for steps, _ in turns:
            steps.close()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    if lost:
        raise lost[0]


def _stream(device: torch.device) -> Any:
    """A stream that begins where the present one stands, to work on."""
    if device.type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return torch.cuda.stream(stream)


def _steps(
    places: Sequence[int], fits: Sequence[Fit], slots: int, on_fit: Callable[[int], None]
) -> Generator[None, None, None]:
    """Fit methods side by side, or one alone; each is told of as soon as it is fitted."""
    if len(places) == 1:
        ((method, task, seed, _),) = (fits[place] for place in places)
        method.fit(task, seed=seed, progress=False)
        on_fit(places[0])
        return

    def ready(method: Method, place: int) -> None:
        method.fitted_ = True
        on_fit(place)

    together = [
        fits[place]._replace(
            task=fits[place].task.without_test_labels(),
            done=partial(ready, fits[place].method, place),
        )
        for place in places
    ]
    for place in places:
        fits[place].method._begin(fits[place].task)
    try:
        yield from together[0].method._fit_together(together, slots)
    finally:
        for place in places:
            del fits[place].method._callbacks


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
