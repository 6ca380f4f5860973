"""run(): one or several methods on one graph and one split protocol, once per seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

import evengraph
from evengraph.core.records import Record, mean_and_deviation
from evengraph.core.task import Task
from evengraph.inspection.edges import count_edges
from evengraph.methods import Method
from evengraph.metrics.binary import positive_class
from evengraph.metrics.decisions import Costs
from evengraph.pipeline.comparison import Comparison, Standing, conclude, split_overlap
from evengraph.pipeline.executor import (
    Executor,
    Failure,
    Job,
    LoadedGraph,
    OnFit,
    OnStart,
    Result,
    describe,
)
from evengraph.pipeline.published import PAPER, paper_cell
from evengraph.pipeline.sources import GraphOnDisk
from evengraph.splits import SplitProtocol


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """Methods to run on a graph, with everything looked up.

    Args:
        dataset: Name of the graph.
        graph: The graph.
        imbalance: Name of the split protocol.
        protocol: The split protocol.
        methods: By their names in `METHODS`; every seed fits a fresh copy.
        seeds: One fit each; a seed decides the split and everything random in the method.
        costs: For two classes, the costs of misses and false alarms that set the threshold.
        disk: The graph on disk, if it is not in memory; `graph` then holds its labels alone.
    """

    dataset: str
    graph: Data
    imbalance: str
    protocol: SplitProtocol
    methods: Mapping[str, Method]
    seeds: Sequence[int]
    costs: Costs | None = None
    disk: GraphOnDisk | None = None


@dataclass
class RunResults:
    """The methods that ran, and why the others did not, by name."""

    standings: list[Standing] = field(default_factory=list)
    failed: dict[str, Failure] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Headline metrics and recall per class of each method, for notebooks."""
        from evengraph.report.notebook import results_html

        return results_html(self.results)

    @property
    def results(self) -> list[dict[str, Any]]:
        """One dictionary per method that ran, as `result.json` holds it."""
        return [standing.result for standing in self.standings]


def run(
    plan: RunPlan,
    device: torch.device | str = "cpu",
    *,
    on_start: OnStart = lambda job: None,
    on_fit: OnFit = lambda job, method, task, record: None,
    on_result: Callable[[str, dict[str, Any]], None] = lambda name, result: None,
) -> RunResults:
    """Run every method with every seed.

    Ctrl-C ends the fit that is running with its best weights so far; what follows is left out. A
    method that fails with one seed is left out; the others go on.

    Args:
        plan: Methods, graph, split protocol and seeds.
        device: Where to train.
        on_start: Called before each fit; returns a callback for its epochs, or None.
        on_fit: Called after each fit with the fitted method and its record.
        on_result: Called with the name and the result of each method that ran.
    """
    records: dict[str, list[Record]] = {}
    tasks: dict[str, Task] = {}  # of the last fit
    outcome = RunResults()

    def finish(name: str) -> None:
        environment = describe(torch.device(device))
        result = method_result(plan, name, records[name], tasks.pop(name), environment)
        outcome.standings.append(
            Standing(
                label=name,
                title=result["method"]["title"],
                settings=result["method"]["fields"],
                changed=result["method"]["changed"],
                records=records[name],
                seconds=fmean(record.seconds for record in records[name]),
                result=result,
            )
        )
        on_result(name, result)

    def keep_task(job: Job, method: Method, task: Task, record: Record) -> None:
        tasks[job.label] = task
        on_fit(job, method, task, record)

    def on_end(job: Job, result: Result) -> None:
        if isinstance(result, Failure):
            outcome.failed[job.label] = result
            return
        records.setdefault(job.label, []).append(result)
        if len(records[job.label]) == len(plan.seeds):
            finish(job.label)

    executor = Executor(
        device=str(device), keep_interrupted=True, on_start=on_start, on_fit=keep_task
    )
    try:
        executor.execute(_jobs(plan), on_end)
    except KeyboardInterrupt:
        if not records:
            raise
    for name in records:
        if name in tasks and name not in outcome.failed:
            finish(name)
    return outcome


def _jobs(plan: RunPlan) -> list[Job]:
    source = LoadedGraph(plan.graph)
    return [
        Job(
            label=name,
            graph=source,
            protocol=plan.protocol,
            method=method,
            seed=seed,
            costs=plan.costs,
            calibrate=len(plan.methods) > 1,  # comparison.csv has columns for it
            disk=plan.disk,
        )
        for name, method in plan.methods.items()  # one is complete before the next begins
        for seed in plan.seeds
    ]


def method_result(
    plan: RunPlan,
    name: str,
    records: Sequence[Record],
    task: Task,
    environment: Mapping[str, Any],
) -> dict[str, Any]:
    """The content of the result.json of one method.

    Args:
        plan: What was run.
        name: The method.
        records: One per seed.
        task: A split of the graph.
        environment: As `describe` returns it.
    """
    method, params = plan.methods[name], vars(plan.protocol)
    mean, std = mean_and_deviation(records)
    paper = paper_cell(plan.dataset, plan.imbalance, params, name)
    changed = changed_from_paper(method, plan.protocol) if paper else []
    return {
        "schema": 1,
        "evengraph": evengraph.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {
            "name": plan.dataset,
            "num_nodes": plan.graph.num_nodes,
            "num_edges": _num_edges(plan, plan.graph),
            "num_edges_left": _num_edges(plan, task.graph),  # a long tail removes nodes
            "num_features": plan.graph.num_features,
            "num_classes": task.num_classes,
            "class_names": list(task.class_names) or None,
        },
        "imbalance": {"name": plan.imbalance, **params},
        "method": {
            "name": name,
            "title": method.full_title,
            "summary": (type(method).__doc__ or "").partition("\n")[0],
            "fields": asdict(method),
            "changed": method.changed_params,
        },
        "class_counts": task.class_counts.tolist(),
        "seeds": [record.seed for record in records],
        "complete": len(records) == len(plan.seeds) and not records[-1].interrupted,
        "runs": [record.as_dict() for record in records],
        "mean": mean,
        "std": std,
        "paper": None if changed else paper,
        "changed_from_paper": changed,
        **({} if plan.costs is None else {"costs": plan.costs._asdict()}),
        "environment": dict(environment),
    }


def _num_edges(plan: RunPlan, graph: Data) -> int:
    """Edges as `evengraph inspect` counts them, each once."""
    if plan.disk is not None:
        return int(plan.disk.packed.num_edges) // 2
    return count_edges(graph.edge_index.cpu().numpy(), int(graph.num_nodes))


def changed_from_paper(method: Method, protocol: SplitProtocol) -> list[str]:
    """Parameters that differ from those of the paper, whose values then do not compare."""
    varied = ((protocol, {"minority", "ratio"}), (method, method.tuned_params))
    return [
        item.name
        for part, names in varied
        for item in fields(part)  # type: ignore[arg-type]
        if item.name not in names and getattr(part, item.name) != PAPER.get(item.name, item.default)
    ]


def compare_results(
    plan: RunPlan, outcome: RunResults, device: torch.device | str = "cpu"
) -> Comparison | None:
    """Compare methods on the seeds that all have; None without any.

    Args:
        plan: What was run.
        outcome: What it gave.
        device: Where it was trained.
    """
    seeds = [{record.seed for record in one.records} for one in outcome.standings]
    common = [seed for seed in plan.seeds if seeds and all(seed in own for own in seeds)]
    if not common:
        return None
    standings = [
        replace(one, records=[record for record in one.records if record.seed in common])
        for one in outcome.standings
    ]
    graph = plan.protocol(plan.graph, seed=common[0]).graph  # step and longtail reorder classes
    counts = torch.bincount(graph.y[graph.y >= 0].cpu())
    return conclude(
        standings,
        plan.methods,
        graph,
        plan.protocol,
        metric="balanced_accuracy",
        overlap=split_overlap(plan.graph, plan.protocol, common),
        positive=positive_class(counts) if len(counts) == 2 else None,
        seeds=common,
        wanted=len(plan.seeds),
        budget=1,
        failed={name: failure.reason for name, failure in outcome.failed.items()},
        stopped=len(common) < len(plan.seeds),
        environment=describe(torch.device(device)),
    )
