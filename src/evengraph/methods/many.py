"""fit_many(): many fits, those that can share a card side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evengraph.methods.base import Fit, Method, check_task, same_graph
from evengraph.progress import counted
from evengraph.replicas import can_replicate
from evengraph.task import Task


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
    left = len(fits)
    with counted("fitting", len(fits), progress) as count:

        def ready(index: int) -> None:
            count()
            on_fit(index)

        for group in _groups(fits):
            if len(group) == 1:
                (index,) = group
                methods[index].fit(tasks[index], seed=seeds[index], progress=False)
                ready(index)
            else:
                _fit_group([fits[index] for index in group], group, slots, ready)
            left -= len(group)
            stopped = any(h.interrupted for index in group for h in methods[index].history_)
            if stopped and left:
                raise KeyboardInterrupt


def _fit_group(
    fits: Sequence[Fit], places: Sequence[int], slots: int, on_fit: Callable[[int], None]
) -> None:
    """Fit methods side by side; each is told of as soon as it is fitted."""

    def ready(method: Method, place: int) -> None:
        method.fitted_ = True
        on_fit(place)

    together = [
        fit._replace(task=fit.task.without_test_labels(), done=partial(ready, fit.method, place))
        for fit, place in zip(fits, places, strict=True)
    ]
    for fit in fits:
        fit.method._begin(fit.task)
    try:
        fits[0].method._fit_together(together, slots)
    finally:
        for fit in fits:
            del fit.method._callbacks


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
