"""fit_many(): many fits, those that can share a card side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evengraph.methods.base import Fit, Method, same_graph
from evengraph.replicas import can_replicate
from evengraph.task import Task


def fit_many(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: Sequence[int],
    slots: int = 64,
    on_fit: Callable[[int], None] = lambda index: None,
) -> None:
    """Fit each method to its task; the result is that of calling `fit` on each in turn.

    On a graphics card, methods of one kind on one graph are trained side by side, which takes
    little longer than training one of them.

    Args:
        methods: What to fit; no object twice.
        tasks: What each is to learn.
        seeds: Each method's seed.
        slots: How many are trained at a time.
        on_fit: Called with a method's place in the list when it is fitted.
    """
    if len({id(method) for method in methods}) < len(methods):
        raise ValueError("methods must be different objects: each keeps what it learns.")
    if slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}.")
    fits = [Fit(*parts) for parts in zip(methods, tasks, seeds, strict=True)]
    for group in _groups(fits):
        if len(group) == 1:
            (index,) = group
            fits[index].method.fit(tasks[index], seed=seeds[index], progress=False)
            on_fit(index)
        else:
            ready = [partial(_finish, fits[index].method, on_fit, index) for index in group]
            hidden = [tasks[index].without_test_labels() for index in group]
            for index in group:
                methods[index]._begin(tasks[index])
            methods[group[0]]._fit_together(
                [
                    Fit(methods[index], task, seeds[index], done)
                    for index, task, done in zip(group, hidden, ready, strict=True)
                ],
                slots,
            )


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


def _finish(method: Method, on_fit: Callable[[int], None], index: int) -> None:
    del method._callbacks
    method.fitted_ = True
    on_fit(index)
