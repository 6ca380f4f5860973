"""Assess a fitted method: test scores, calibration, threshold and what drift is measured by."""

from __future__ import annotations

from math import isfinite
from warnings import warn

from torch import Tensor

from evengraph.core.task import Task
from evengraph.methods import Method
from evengraph.methods.bases.search import ERRORS
from evengraph.metrics import METRICS, evaluate, reported
from evengraph.metrics.abstention import RiskCurve
from evengraph.metrics.binary import positive_class
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import CostCurve, Costs
from evengraph.pipeline.drift import TrainingStatistics
from evengraph.pipeline.graph_source import GraphSource
from evengraph.pipeline.model_info import ModelInfo, Prior, Threshold, TrainedOn
from evengraph.pipeline.refit import Refit, all_labels


def assess(
    method: Method,
    task: Task,
    source: GraphSource,
    positive: int | None,
    *,
    refit_seed: int | None,
    costs: Costs | None,
) -> tuple[Method, ModelInfo]:
    """Score a method on the test nodes, fit it again if asked, and calibrate it on validation.

    If the second fit fails or Ctrl-C ends it, the method stays as it was, with a warning.
    A graph on disk has no statistics that drift is measured by.

    Args:
        method: Fitted to the task.
        source: Where its graph came from.
        positive: The index of the positive class, if there are two.
        refit_seed: The seed to fit again to all labels with; None does not.
        costs: What the threshold minimises, if not F1.

    Returns:
        The method, the one fitted again if there is one, and what is known about it.
    """
    (encoder, columns), data, refit = source.encoding(task), source.data, False
    task, probabilities = source.predict_task(method, task)
    scores = evaluate(task, probabilities, positive=positive, costs=costs)
    sizes, errors = _sizes(task, source), _calibration_errors(task, probabilities)
    if refit_seed is not None:
        again = _fit_again(method, task, refit_seed)
        if again is not None:
            refit, method, probabilities = True, again, again.predict_task(all_labels(task))
    held_out = method.held_out(all_labels(task) if refit else task)
    rows, labels = probabilities[held_out], task.graph.y[held_out]
    return method, ModelInfo(
        encoder=encoder,
        columns=columns,
        calibrator=Calibrator.fit(rows, labels),
        threshold=Threshold.best(rows, labels, positive, costs),
        cost_curve=None
        if positive is None
        else CostCurve.of(labels == positive, rows[:, positive], costs),
        test_scores={k: v if isfinite(v) else None for k, v in reported(scores).items()},
        trained_on=None if data is None else TrainedOn(data, dict(source.columns)),
        refit=Refit.of(task) if refit else None,
        statistics=None
        if source.disk is not None
        else TrainingStatistics.of(
            task.graph,
            all_labels(task).train if refit else task.train,
            probabilities,
            None if encoder is None else encoder.numbers,
        ),
        prior=Prior.fit(rows, labels),
        risk=RiskCurve.of(labels, rows),
        counts=sizes,
        confusion=scores["confusion_matrix"],
        calibration=errors,
    )


def _sizes(task: Task, source: GraphSource) -> dict[str, int]:
    """Nodes and edges of the graph, each edge once, and labels for validation and test."""
    disk, graph = source.disk, source.graph
    nodes = graph.num_nodes if disk is None else disk.packed.num_nodes
    edges = graph.num_edges if disk is None else disk.packed.num_edges
    held_out = {"validation": int(task.val.sum()), "test": int(task.test.sum())}
    return {"nodes": int(nodes), "edges": int(edges) // 2, **held_out}


def _calibration_errors(task: Task, probabilities: Tensor) -> dict[str, float | None]:
    """Errors on the test nodes before and after calibration on validation, in percent."""
    validation = probabilities[task.val], task.graph.y[task.val]
    calibrators = Calibrator.fit(*validation), Calibrator.fit(*validation, shift=True)
    values = reported(evaluate(task, probabilities, calibrators=calibrators))
    errors = {name: value for name, value in values.items() if METRICS[name].calibration}
    return {name: value if isfinite(value) else None for name, value in errors.items()}


def _fit_again(method: Method, task: Task, seed: int) -> Method | None:
    """The method fitted to all labels; None with a warning if that failed or was interrupted."""
    try:
        again = method.refitted(all_labels(task), seed=seed)
        if not any(stage.interrupted for stage in again.history_):
            return again
        reason = "it was interrupted."
    except ERRORS as error:  # such as too little memory for all labels
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    warn(f"Not trained again on all labels: {reason}", stacklevel=5)  # the line that calls fit
    return None


def positive_index(task: Task, name: str | None) -> int | None:
    """The index of the positive class, by default the rarer one; None unless there are two."""
    if name is None:
        return positive_class(task.class_counts) if task.num_classes == 2 else None
    names = task.class_names or tuple(map(str, range(task.num_classes)))
    if len(names) != 2 or name not in names:
        raise ValueError(
            f"positive must be one of two classes, got {name!r}; there are {', '.join(names)}."
        )
    return names.index(name)
