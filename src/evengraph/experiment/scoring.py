"""score(): the record of a fitted method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import Tensor

from evengraph.core.records import Record
from evengraph.core.task import Task
from evengraph.experiment.jobs import Job
from evengraph.methods import Method
from evengraph.metrics import METRICS, criterion, evaluate, reported, validation_score
from evengraph.metrics.agreement import agreement_bands
from evengraph.metrics.binary import positive_class, precision_recall_points
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import base_rate_sweep


def score(
    job: Job, task: Task, method: Method, *, seconds: float | None = None, together: int = 1
) -> Record:
    """Predict with a fitted method and evaluate on the test nodes.

    `seconds` is by default the sum over the stages of the fit; about `together` runs shared the
    device.
    """
    task, probabilities = job.predict(method, task)
    calibrators = None
    if job.calibrate:
        validation = probabilities[task.val], task.graph.y[task.val]
        calibrators = Calibrator.fit(*validation), Calibrator.fit(*validation, shift=True)
    values = evaluate(
        task,
        probabilities,
        positive=job.positive,
        k=job.k,
        costs=job.costs,
        calibrators=calibrators,
    )
    metrics = reported(values)
    calibration = None
    if calibrators is not None:
        calibration = {
            "calibrator": calibrators[0].as_dict(),
            "metrics": {n: metrics.pop(n) for n in list(metrics) if METRICS[n].calibration},
        }
    (main,) = (history for history in method.history_ if history.main)
    return Record(
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
        settings=asdict(method) if job.calibrate else None,
        calibration=calibration,
        criterion=criterion(task),
        summary=list(method.summary_) or None,
        notes=list(method.notes_) or None,
        agreement=_agreement(method, task, probabilities) if job.disk is None else None,
        base_rates=_base_rates(job, task, probabilities, values),
        precision_recall=_precision_recall(job, task, probabilities),
        resolved=method.resolved_params or None,
    )


def _base_rates(
    job: Job, task: Task, probabilities: Tensor, values: Mapping[str, Any]
) -> list[dict[str, float]] | None:
    """What the threshold would give at other base rates; None unless there are two classes."""
    if task.num_classes != 2:
        return None
    ranking = _ranking(job, task, probabilities)
    return base_rate_sweep(*ranking, values["tuned_threshold"], job.costs) or None


def _precision_recall(job: Job, task: Task, probabilities: Tensor) -> list[list[float]] | None:
    """The precision-recall curve on the test nodes; None unless there are two classes."""
    if task.num_classes != 2:
        return None
    return precision_recall_points(*_ranking(job, task, probabilities)) or None


def _ranking(job: Job, task: Task, probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Which test nodes are of the positive class, and their scores."""
    positive = positive_class(task.class_counts) if job.positive is None else job.positive
    return task.graph.y[task.test] == positive, probabilities[task.test, positive]


def _agreement(method: Method, task: Task, probabilities: Tensor) -> list[dict[str, Any]] | None:
    """How often a committee is right on the test nodes, by its agreement; None without one."""
    committee = method.predict_members(task.graph)
    if committee is None:
        return None
    predicted = probabilities.argmax(1)
    agreement = committee.agreement(predicted)[task.test]
    return agreement_bands(agreement, (predicted == task.graph.y)[task.test])
