"""fit_many(): many fits, batched on a GPU where they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evengraph.core.task import Task
from evengraph.fast.replicas import (
    Fit,
    batching,
    runs_in_memory,
    share_batch,
    train_batch,
)
from evengraph.methods.bases.method import Method, check_task, reset, same_graph
from evengraph.ops.sparse import has_kernels
from evengraph.training.loop import count_bar

SLOTS = 64  # fits that are trained at a time


def fit_many(
    methods: Sequence[Method],
    tasks: Sequence[Task],
    *,
    seeds: Sequence[int],
    on_fit: Callable[[int], None] = lambda index: None,
    progress: bool | None = None,
) -> None:
    """Fit each method to its task, as calling `fit` on each would, up to rounding.

    On a GPU, equal methods on one graph, which differ in seed and split, are trained as a batch,
    which takes little longer than training one of them. Ctrl-C ends active fits with their best
    weights so far, and is raised again if others had not started.

    Args:
        methods: What to fit; no object twice.
        tasks: The task of each.
        seeds: The seed of each.
        on_fit: Called with the index of a method when it is fitted.
        progress: Show how many are fitted; by default on a terminal only.
    """
    if len({id(method) for method in methods}) < len(methods):
        raise ValueError("methods must be different objects: each holds its own fit.")
    fits = [Fit(*parts) for parts in zip(methods, tasks, seeds, strict=True)]
    for fit in fits:
        check_task(fit.task)  # before any of them is trained
    for fit in fits:
        reset(fit.method, fit.task)  # no earlier fit is mistaken for one of this call
    errors: list[Exception] = []
    with count_bar("fitting", len(fits), progress) as count:

        def on_fitted(index: int) -> None:
            methods[index].fitted_ = True
            count()
            on_fit(index)

        left = _groups(fits)
        while left:
            members = left.pop(0)
            try:
                _fit_group([fits[i]._replace(on_fitted=partial(on_fitted, i)) for i in members])
            except (FloatingPointError, ValueError) as error:  # which stops no other group
                errors.append(error)
            if left and any(h.interrupted for i in members for h in methods[i].history_):
                raise KeyboardInterrupt
    if errors:
        raise errors[0]


def _fit_group(group: Sequence[Fit]) -> None:
    """Fit one method, or several as a batch; report each as soon as it is fitted."""
    first, *others = group
    kind = batching(first.method)
    if kind is None or not others:
        first.method.fit(first.task, seed=first.seed, progress=False)
        first.on_fitted()
        return
    train_batch(kind([fit._replace(task=fit.task.hide_test_labels()) for fit in group]))


def _groups(fits: Sequence[Fit]) -> list[list[int]]:
    """Indices of the fits that are trained together."""
    groups: list[list[int]] = []
    seen = [fit.task.graph if fit.task.past is None else fit.task.past for fit in fits]
    for index, fit in enumerate(fits):
        for group in groups if has_kernels(fit.task.graph.x.device) else ():
            first = fits[group[0]]
            if (
                len(group) < min(SLOTS, runs_in_memory(fit))
                and share_batch(first.method, fit.method)
                and first.task.num_classes == fit.task.num_classes
                and same_graph(seen[group[0]], seen[index])
            ):
                group.append(index)
                break
        else:
            groups.append([index])
    return groups
