"""Runs: a method on a graph under a protocol, once for each seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import torch
from torch_geometric.data import Data

import evengraph
from evengraph.core.records import Record, mean_and_deviation
from evengraph.core.task import Task
from evengraph.experiment.environment import describe
from evengraph.experiment.paper import paper_cell
from evengraph.inspection.edges import count_edges
from evengraph.methods import DEFAULT_METHOD, METHODS, Method
from evengraph.metrics import evaluate, reported, validation_score
from evengraph.splits import SPLITS, SplitProtocol
from evengraph.training import Callback


@dataclass(frozen=True, kw_only=True)
class Run:
    """What to run: names and fields, as a user writes them.

    Args:
        dataset: Name of the graph.
        imbalance: Name of the protocol.
        imbalance_fields: Fields of the protocol that differ from its defaults.
        method: Name of the method.
        method_fields: Fields of the method that differ from its defaults.
        seeds: One run each; a seed decides the split and everything random in the method.
    """

    dataset: str
    imbalance: str = "step"
    imbalance_fields: dict[str, Any] = field(default_factory=dict)
    method: str = DEFAULT_METHOD
    method_fields: dict[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (5, 6, 7)

    def make_imbalance(self) -> SplitProtocol:
        """The protocol; raises ValueError for a field it refuses."""
        protocol: SplitProtocol = SPLITS[self.imbalance](**self.imbalance_fields)
        return protocol

    def make_method(self) -> Method:
        """A fresh method; raises ValueError for a field it refuses."""
        return METHODS[self.method](**self.method_fields)


def run_seed(task: Task, method: Method, *, seed: int, on_epoch: Callback | None = None) -> Record:
    """Fit, predict and evaluate once."""
    started = perf_counter()
    try:
        method.fit(task, seed=seed, on_epoch=on_epoch, progress=False)
    except RuntimeError as error:  # torch's own word for memory that is not there
        if "memory" not in str(error):
            raise
        raise MemoryError(f"{method.title} ran out of memory: {error}".splitlines()[0]) from error
    return record_of(task, method, seed=seed, seconds=perf_counter() - started)


def record_of(task: Task, method: Method, *, seed: int, seconds: float | None = None) -> Record:
    """Predict and evaluate with a fitted method.

    The history is that of the main stage, the validation score that of the whole.
    """
    probabilities = method.predict_proba(task.graph)
    figures = evaluate(task, probabilities)
    (main,) = (history for history in method.history_ if history.main)
    return Record(
        seed=seed,
        metrics=reported(figures),
        per_class={
            "recall": [100 * value for value in figures["per_class_recall"]],
            "f1": [100 * value for value in figures["per_class_f1"]],
            "support": figures["per_class_support"],
        },
        confusion_matrix=figures["confusion_matrix"],
        history={"loss": main.loss, "score": [100 * value for value in main.score]},
        validation=100 * float(validation_score(probabilities, task)),
        best_epoch=main.best_epoch,
        epochs=main.epochs,
        seconds=sum(h.seconds for h in method.history_) if seconds is None else seconds,
        interrupted=any(history.interrupted for history in method.history_),
        stages=len(method.history_),
    )


def run(
    plan: Run,
    graph: Data,
    device: torch.device,
    *,
    on_epoch: Callable[[int], Callback | None] = lambda seed: None,
    on_record: Callable[[Record], None] = lambda record: None,
    on_method: Callable[[Method, Task, Record], None] = lambda method, task, record: None,
) -> dict[str, Any]:
    """Run every seed and gather the result, which `result.json` holds.

    Ctrl-C ends the run at hand with its best model so far; later seeds are left out.

    Args:
        plan: What to run.
        graph: The graph it names.
        device: Where to train.
        on_epoch: Gives a callback for the epochs of a seed.
        on_record: Called after each seed.
        on_method: Called after each seed with what was fitted, to keep it.
    """
    protocol = plan.make_imbalance()
    records: list[Record] = []
    try:
        for seed in plan.seeds:
            task = protocol(graph, seed=seed).to(device)
            method = plan.make_method()
            record = run_seed(task, method, seed=seed, on_epoch=on_epoch(seed))
            records.append(record)
            on_record(record)
            on_method(method, task, record)
            if record.interrupted:
                break
    except KeyboardInterrupt:  # outside training: the seed at hand has nothing to keep
        if not records:
            raise
    return _result(plan, graph, task, records, device)


def _result(
    plan: Run, graph: Data, task: Task, records: list[Record], device: torch.device
) -> dict[str, Any]:
    method, protocol = plan.make_method(), plan.make_imbalance()
    imbalance_fields = asdict(protocol)  # type: ignore[call-overload]
    mean, std = mean_and_deviation(records)
    paper = paper_cell(plan.dataset, plan.imbalance, imbalance_fields, plan.method)
    changed = changed_from_paper(plan, protocol) if paper else []
    return {
        "schema": 1,
        "evengraph": evengraph.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {
            "name": plan.dataset,
            "num_nodes": graph.num_nodes,
            "num_edges": _edges(graph),
            "num_edges_left": _edges(task.graph),  # a long tail cuts nodes off
            "num_features": graph.num_features,
            "num_classes": task.num_classes,
            "class_names": list(task.class_names) or None,
        },
        "imbalance": {"name": plan.imbalance, **imbalance_fields},
        "method": {
            "name": plan.method,
            "title": method.full_title,
            "summary": (type(method).__doc__ or "").partition("\n")[0],
            "fields": asdict(method),
        },
        "class_counts": task.class_counts.tolist(),
        "seeds": [record.seed for record in records],
        "complete": len(records) == len(plan.seeds) and not records[-1].interrupted,
        "runs": [record.as_dict() for record in records],
        "mean": mean,
        "std": std,
        "paper": None if changed else paper,
        "changed_from_paper": changed,
        "environment": describe(device),
    }


def _edges(graph: Data) -> int:
    """Edges as `evengraph inspect` counts them, each once."""
    return count_edges(graph.edge_index.cpu().numpy(), int(graph.num_nodes))


def changed_from_paper(plan: Run, protocol: SplitProtocol) -> list[str]:
    """Fields that differ from what the paper ran, and so forbid its figures beside ours."""
    varied = {"minority", "ratio"}
    protocol_fields = [
        item.name
        for item in fields(protocol)  # type: ignore[arg-type]
        if item.name not in varied and getattr(protocol, item.name) != item.default
    ]
    method = plan.make_method()
    method_fields = [
        item.name
        for item in fields(method)
        if item.name not in method.tuned_params and getattr(method, item.name) != item.default
    ]
    return [*protocol_fields, *method_fields]
