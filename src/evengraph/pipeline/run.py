"""run() and compare(): methods on one graph and one split protocol, once per seed.

Every command and `TableModel` trains through `run`: a split per seed, a prediction per fit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from statistics import fmean
from time import time
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

import evengraph
from evengraph.core.errors import unknown
from evengraph.core.schema import read
from evengraph.core.task import Record, Task, mean_and_deviation
from evengraph.inspection.measures import count_edges
from evengraph.methods import METHODS, Method, new_method, portfolio
from evengraph.methods.bases.method import SHARED_SEARCH_SPACE, changed_params
from evengraph.metrics.binary import positive_class
from evengraph.metrics.calibration import Calibrator, reliability
from evengraph.metrics.decisions import BEST_F1, Decision, Rule
from evengraph.metrics.registry import METRICS, comparable_metrics
from evengraph.metrics.significance import ranking_interval
from evengraph.pipeline.comparison import ONE_SPLIT, Comparison, Standing, compare_pairs, judge
from evengraph.pipeline.executor import (
    SET_COVERAGE,
    Executor,
    Failure,
    FittedMethod,
    Job,
    LoadedGraph,
    OnEnd,
    Result,
    describe,
)
from evengraph.pipeline.model_info import Refit
from evengraph.pipeline.parameters import PAPER, paper_cell
from evengraph.pipeline.sources import GraphOnDisk, open_source
from evengraph.splits import ByTime, Given, SplitProtocol


class Splits:
    """The splits of one graph by one protocol; the same one is not drawn twice in a row.

    Keeps their sizes, and the order of the classes, which some protocols change.
    """

    def __init__(self, protocol: SplitProtocol) -> None:
        self.protocol = protocol
        self.classes: list[str] = []
        self.class_counts = torch.zeros(0)
        self._drawn: tuple[int, Task] | None = None
        self._ratios: dict[int, float] = {}

    def __call__(self, graph: Data, *, seed: int) -> Task:
        if self._drawn is None or self._drawn[0] != seed:
            task = self.protocol(graph, seed=seed)
            self._drawn = seed, task
            test, labelled = int(task.test.sum()), int((task.graph.y >= 0).sum())
            self._ratios[seed] = test / max(labelled - test, 1)
            if not self.classes:
                self.class_counts = labels_per_class(task.graph)
                names = getattr(task.graph, "class_names", None) or range(len(self.class_counts))
                self.classes = [str(name) for name in names]
        return self._drawn[1]

    def overlap(self, graph: Data, seeds: Sequence[int]) -> float:
        """Mean ratio of test nodes to other labelled nodes."""
        for seed in seeds:
            if seed not in self._ratios:  # a worker has drawn it
                self(graph, seed=seed)
        return fmean(self._ratios[seed] for seed in seeds)

    def __getstate__(self) -> dict[str, Any]:  # workers get the protocol alone
        return vars(Splits(self.protocol))


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """Methods to run on a graph, with everything looked up; see `Job` for what it has as well."""

    dataset: str
    graph: Data
    protocol: SplitProtocol
    methods: Mapping[str, Method]  # by name or label; every fit takes a fresh copy
    seeds: Sequence[int]  # decide the split and everything random in the method
    metric: str = "balanced_accuracy"  # to compare by
    budget: int = 1  # settings to try per method; the first is the one given
    positive: int | None = None
    rule: Rule = BEST_F1  # that chooses the threshold
    shares: Sequence[float] | None = None  # of the classes in the population
    compares: bool = False  # also if there is one method
    disk: GraphOnDisk | None = None  # `graph` then holds the labels alone

    @property
    def imbalance(self) -> str:
        return type(self.protocol).__name__.lower()

    @property
    def several(self) -> bool:
        return self.compares or len(self.methods) > 1

    @property
    def fixed(self) -> bool:
        """Whether every seed gives the same split."""
        return isinstance(self.protocol, Given | ByTime)

    @cached_property
    def splits(self) -> Splits:
        return Splits(self.protocol)

    @cached_property
    def tried(self) -> dict[str, list[Method]]:
        return {label: candidates(one, self.budget) for label, one in self.methods.items()}

    def task(self, seed: int) -> Task:
        return self.splits(self.graph, seed=seed)

    def changed(self, **values: Any) -> RunPlan:
        """The same plan with other values; keeps the split that has been drawn."""
        other = replace(self, **values)
        vars(other)["splits"] = self.splits
        return other

    def jobs(self) -> list[Job]:
        """All fits, split by split, so that whole splits are done when something ends the run."""
        source = LoadedGraph(self.graph)
        return [
            Job(
                label=label,
                graph=source,
                protocol=self.splits,
                method=method,
                seed=seed,
                candidate=index,
                positive=self.positive,
                rule=self.rule,
                shares=self.shares,
                calibrate=True,
                record_settings=self.several,
                disk=self.disk,
            )
            for seed in self.seeds
            for label in self.methods
            for index, method in enumerate(self.tried[label])
        ]

    @cached_property
    def num_edges(self) -> int:
        """Edges as `evengraph inspect` counts them, each once."""
        if self.disk is not None:
            return int(self.disk.packed.num_edges) // 2
        return count_edges(self.graph.edge_index.cpu().numpy(), int(self.graph.num_nodes))


MOST_NAMED = 20  # classes whose coverage is told


class Evidence(NamedTuple):
    """Labelled nodes, each predicted by a model that has not learnt from its label."""

    labels: Tensor  # (M,)
    raw: Tensor  # as predicted, (M, C)
    calibrated: Tensor  # by the calibrator of the same split, (M, C)


class Selection:
    """The fit to save among those of one method over its splits, and what all of them held out.

    It is the first: scores of different validation nodes say more about the nodes than about the
    models.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.records: list[Record] = []
        self.best: FittedMethod | None = None
        self._seen: Tensor | None = None  # nodes whose predictions are kept, (N,)
        self._tested: list[Tensor] = []  # test nodes of each split, (N,)
        self._rows: list[Evidence] = []

    def add(self, fitted: FittedMethod) -> None:
        """Keep the first fit, and of each the predictions of nodes not held out before."""
        self.records.append(fitted.record)
        self.best = self.best or fitted
        task, labels = fitted.task, fitted.task.graph.y
        new = (fitted.method.held_out(task) | task.test) & (labels >= 0)
        first = self.best.task.graph.y
        if self._seen is not None and not (self.plan.disk is None and torch.equal(labels, first)):
            return  # other nodes, or other numbers for the classes
        self._tested.append(task.test.cpu())
        new = new if self._seen is None else new & ~self._seen
        self._seen = new if self._seen is None else self._seen | new
        rows = fitted.probabilities[new]
        calibrator = read(Calibrator, (fitted.record.calibration or {})["calibrator"])
        self._rows.append(Evidence(labels[new], rows, calibrator(rows)))

    @property
    def evidence(self) -> Evidence:
        """Labelled nodes that were held out in a split, each as in the first such split."""
        return Evidence(*(torch.cat(parts).cpu() for parts in zip(*self._rows, strict=True)))

    @property
    def decision(self) -> Decision | None:
        """The threshold of two classes, by what was held out in all splits."""
        positive, found, plan = self.positive, self.evidence, self.plan
        if positive is None:
            return None
        return Decision.choose(found.calibrated, found.labels, positive, plan.rule, plan.shares)

    @property
    def reason(self) -> str:
        """Which fit it is, in a few words; empty if there is one."""
        return f"the first of {len(self.records)} splits" if len(self.records) > 1 else ""

    def about_model(self, refit: bool) -> dict[str, Any]:
        """What a result says about the model to save: why this one, and whether it is refitted."""
        assert self.best is not None
        method, task, _, record = self.best
        learnt = Refit.of(task, method.held_out(task))._asdict() if refit else None
        return {"seed": record.seed, "reason": self.reason, "refit": learnt}

    def about_splits(self) -> dict[str, Any]:
        """What all splits together say: on thresholds, calibration, and nodes tested only once."""
        assert self.best is not None
        found, decision, tested = self.evidence, self.decision, torch.stack(self._tested)
        rows = {"before": found.raw, "after": found.calibrated}
        bins = {name: reliability(found.labels, part, self.positive) for name, part in rows.items()}
        return {
            "decision": decision
            and {
                "words": decision.words(self.classes[decision.positive])
                + " Counts are weighted to the class shares given." * bool(self.plan.shares),
                "options": decision.options(),
                "ranking": self._ranking(decision),
            },
            "calibration": {"reliability": bins, "lines": self._calibration_lines()},
            "distinct": float(tested.any(0).sum() / tested.sum()),
        }

    def _ranking(self, decision: Decision) -> dict[str, Any] | None:
        """Average precision over all held-out nodes, in percent, with its interval."""
        if decision.curve is None:
            return None
        labels, curve = self.evidence.labels, decision.curve
        positives = int((labels == decision.positive).sum())
        return {
            "value": 100 * curve.average_precision,
            "ends": ranking_interval(curve.average_precision, positives),
            "nodes": len(labels),
            "positives": positives,
            "share": curve.positives / curve.nodes,
        }

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, or their numbers."""
        assert self.best is not None
        task = self.best.task
        return task.class_names or tuple(map(str, range(task.num_classes)))

    def _calibration_lines(self) -> list[str]:
        """Calibration error and coverage on test nodes."""
        assert self.best is not None
        task, parts = self.best.task, [one.calibration or {} for one in self.records]
        before, after = (
            fmean(part["metrics"][name] for part in parts)
            for name in ("calibration_error", "calibrated_error")
        )
        counts = torch.tensor([part["coverage"] for part in parts if part["coverage"]])
        lines = [
            f"Expected calibration error on test nodes: {before:.1f}% before, {after:.1f}% after."
        ]
        if counts.numel() and task.num_classes <= MOST_NAMED:
            held = (
                f"{hits:,} of {size:,} {name} ({hits / size:.0%})"
                for name, (hits, size) in zip(self.classes, counts.sum(0).tolist(), strict=True)
                if size
            )
            lines.append(
                f"Sets of classes (predict --coverage {SET_COVERAGE:g}), which should hold the "
                f"true class of {SET_COVERAGE:.0%} of the nodes of every class, held it for "
                f"{', '.join(held)}."
            )
        return lines

    @property
    def positive(self) -> int | None:
        assert self.best is not None
        task = self.best.task
        if task.num_classes != 2 or self.plan.positive is not None:
            return self.plan.positive
        return positive_class(task.class_counts)


@dataclass
class RunResults:
    """The methods that ran, and why the others did not, by name."""

    standings: list[Standing] = field(default_factory=list)
    failed: dict[str, Failure] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)  # the splits that all methods completed
    stopped: bool = False  # by Ctrl-C or a time limit
    interrupted: bool = False  # by Ctrl-C
    fits: dict[str, Selection] = field(default_factory=dict)  # where fits are kept

    @property
    def results(self) -> list[dict[str, Any]]:
        """One dictionary per method that ran, as `result.json` holds it."""
        return [standing.result for standing in self.standings]


def run(
    plan: RunPlan,
    executor: Executor | None = None,
    *,
    on_end: OnEnd = lambda job, result: None,
    on_method: Callable[[Standing], None] = lambda standing: None,
    keep_best: bool = False,
) -> RunResults:
    """Run every method with every seed, by default here on the CPU.

    Ctrl-C ends the run with the splits that all methods have completed. A method that fails is left
    out; the others go on. `on_method` gets each method that has completed all splits. `keep_best`
    keeps the best fit of each method over its seeds.
    """
    executor = executor or Executor(keep_interrupted=True)
    ended = _Ended(plan, describe(torch.device(executor.device)))
    fits: dict[str, Selection] = {}

    def end(job: Job, result: Result) -> None:
        ended.add(job, result)
        on_end(job, result)
        if all(ended.chosen(job.label, seed) is not None for seed in plan.seeds):
            on_method(ended.standing(job.label, plan.seeds))

    def see(job: Job, fitted: FittedMethod) -> None:
        fits.setdefault(job.label, Selection(plan)).add(fitted)

    if keep_best:
        executor = replace(executor, on_fit=see)
    interrupted = False
    try:
        stopped = not executor.execute(plan.jobs(), end)
    except KeyboardInterrupt:  # results so far count
        if not ended.tried:
            raise
        stopped = interrupted = True
    outcome = ended.results(interrupted)
    outcome.stopped, outcome.fits = stopped, fits
    return outcome


class _Ended:
    """The fits of a plan that have ended, and what they give so far."""

    def __init__(self, plan: RunPlan, environment: Mapping[str, Any]) -> None:
        self.plan, self.environment = plan, environment
        self.failed: dict[str, Failure] = {}
        self.tried: dict[tuple[str, int], dict[int, Record]] = {}
        self._standings: dict[tuple[str, ...], Standing] = {}
        titles = [method.full_title for method in plan.methods.values()]
        self.titles = {
            label: label if titles.count(method.full_title) > 1 else method.full_title
            for label, method in plan.methods.items()
        }

    def add(self, job: Job, result: Result) -> None:
        if isinstance(result, Failure):
            self.failed[job.label] = result
        else:
            self.tried.setdefault((job.label, job.seed), {})[job.candidate] = result

    def chosen(self, label: str, seed: int) -> int | None:
        """The first of the best settings on validation; None before the whole budget is spent."""
        records = self.tried.get((label, seed), {})
        if len(records) < len(self.plan.tried[label]):
            return None
        return max(sorted(records), key=lambda index: records[index].validation)

    def standing(self, label: str, seeds: Sequence[int]) -> Standing:
        """A method over splits that it has completed."""
        key = label, *map(str, seeds)
        if key not in self._standings:
            candidates = [
                index for seed in seeds if (index := self.chosen(label, seed)) is not None
            ]
            fits = [self.tried[label, seed] for seed in seeds]
            records = [tried[index] for tried, index in zip(fits, candidates, strict=True)]
            content = _method_result(self.plan, label, records, self.environment)
            self._standings[key] = Standing(
                label=label,
                title=self.titles[label],
                settings=content["method"]["fields"],
                changed=content["method"]["changed"],
                records=records,
                candidates=candidates,
                seconds=fmean(record.seconds for tried in fits for record in tried.values()),
                result=content,
            )
        return self._standings[key]

    def results(self, interrupted: bool) -> RunResults:
        """The methods that ran, those that failed, and the splits that all ran on."""
        failed, plan = dict(self.failed), self.plan
        done = {
            label: [seed for seed in plan.seeds if self.chosen(label, seed) is not None]
            for label in plan.methods
        }
        for label in done if any(done.values()) else ():
            if not done[label]:
                reason = "it finished no split in time; allow more, or leave it out."
                if interrupted:
                    reason = "it had finished no split when the run was stopped."
                failed.setdefault(label, Failure(reason=reason))
        labels = [label for label in plan.methods if label not in failed]
        seeds = [s for s in plan.seeds if labels and all(s in done[label] for label in labels)]
        standings = [self.standing(label, seeds) for label in labels if seeds]
        return RunResults(standings, failed, seeds, interrupted=interrupted)


def _method_result(
    plan: RunPlan, name: str, records: Sequence[Record], environment: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of the result.json of one method."""
    method, params, task = plan.methods[name], vars(plan.protocol), plan.task(records[-1].seed)
    mean, std = mean_and_deviation(records)
    edges, left = plan.num_edges, task.graph
    if plan.disk is None and left.edge_index is not plan.graph.edge_index:
        edges = count_edges(left.edge_index.cpu().numpy(), int(left.num_nodes))
    paper = paper_cell(plan.dataset, plan.imbalance, params, name)
    changed = changed_from_paper(method, plan.protocol) if paper else []
    return {
        "schema": 1,
        "evengraph": evengraph.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {
            "name": plan.dataset,
            "num_nodes": plan.graph.num_nodes,
            "num_edges": plan.num_edges,
            "num_edges_left": edges,  # a long tail removes nodes
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
            "changed": changed_params(method),
        },
        "class_counts": task.class_counts.tolist(),
        "seeds": [record.seed for record in records],
        "complete": len(records) == len(plan.seeds) and not records[-1].interrupted,
        "runs": [record.as_dict() for record in records],
        "mean": mean,
        "std": std,
        "paper": None if changed else paper,
        "changed_from_paper": changed,
        **({} if plan.rule.costs is None else {"costs": plan.rule.costs._asdict()}),
        "environment": dict(environment),
    }


def changed_from_paper(method: Method, protocol: SplitProtocol) -> list[str]:
    """Parameters that differ from those of the paper, whose values then do not compare."""
    varied = ((protocol, {"minority", "ratio"}), (method, method.tuned_params))
    return [
        item.name
        for part, names in varied
        for item in fields(part)  # type: ignore[arg-type]
        if item.name not in names and getattr(part, item.name) != PAPER.get(item.name, item.default)
    ]


def compare_results(plan: RunPlan, outcome: RunResults) -> Comparison:
    """Compare the methods of a run on the splits that all have completed."""
    failed = {label: failure.reason for label, failure in outcome.failed.items()}
    standings = []
    for one in outcome.standings:
        undefined = [r.seed for r in one.records if not math.isfinite(r.all_metrics[plan.metric])]
        if undefined:
            title = METRICS[plan.metric].title
            failed[one.label] = f"its {title} is undefined on split {undefined[0]}."
        else:
            standings.append(one)
    if not standings:
        if not failed and outcome.interrupted:
            raise ValueError("No split was finished when the run was stopped.")
        if not failed:
            raise ValueError("No split was finished in time; allow more time.")
        reasons = (f"{plan.methods[label].full_title}: {failed[label]}" for label in failed)
        raise ValueError(f"No method ran. {' '.join(reasons)}")
    overlap = plan.splits.overlap(plan.graph, outcome.seeds)  # before the others: draws splits
    counts, positive, protocol = plan.splits.class_counts, plan.positive, plan.protocol
    if len(counts) == 2 and positive is None:
        positive = positive_class(counts)
    ranked = sorted(standings, key=lambda standing: -fmean(standing.values(plan.metric)))
    fixed = plan.fixed
    pairs = compare_pairs(
        {standing.label: standing.values(plan.metric) for standing in ranked},
        overlap=overlap,
        fixed=fixed,
    )
    alone = [label for label, method in plan.methods.items() if not method.uses_graph]
    verdict = judge(ranked, pairs, plan.metric, alone=alone, fixed=fixed)
    sentences, guessing = verdict.sentences, 100 / len(counts)
    if max(fmean(one.values("balanced_accuracy")) for one in standings) <= guessing + 1:
        sentences = (
            f"No method is better than guessing, which has a balanced accuracy of {guessing:.1f}: "
            "the rare classes are not found. More labels, other features or a class-weighted "
            "method may help.",
        )
    plain = (str, int, float, bool, type(None))  # what JSON can hold
    params = {name: value for name, value in vars(protocol).items() if isinstance(value, plain)}
    return Comparison(
        metric=plan.metric,
        protocol={"name": plan.imbalance, **params},
        seeds=outcome.seeds,
        wanted=len(plan.seeds),
        overlap=overlap,
        budget=plan.budget,
        standings=ranked,
        pairs=pairs,
        failed=failed,
        verdict=replace(verdict, sentences=(*sentences, ONE_SPLIT) if fixed else sentences),
        positive=positive,
        classes=plan.splits.classes,
        class_counts=counts.tolist(),
        fixed=fixed,
        stopped=outcome.stopped,
        environment=standings[0].result["environment"],
    )


def compare(
    data: Any,
    methods: str | Sequence[str] | Mapping[str, Method] | None = None,
    protocol: SplitProtocol | None = None,
    *,
    edges: Any = None,
    seeds: Sequence[int] = range(5),
    budget: int = 1,
    metric: str = "balanced_accuracy",
    positive: int | str | None = None,
    device: torch.device | str = "cpu",
    jobs: int = 1,
    time_limit: float | None = None,
    on_end: OnEnd = lambda job, result: None,
    **columns: Any,
) -> Comparison:
    """Train several methods on the same splits, and test which is significantly better.

    Every method has the same budget: a number of settings, one of which is selected on validation
    for each split and scored on the test nodes. A method that fails is left out, and the others
    continue. If time runs out, the splits that all methods completed count.

    Args:
        data: A PyG graph with labels (-1 means unlabelled); a nodes table as a DataFrame or a path,
            as in `TableModel.fit`; or the name of a data set.
        methods: Names, for methods with `Method.graph_defaults` of the graph; or methods with
            your own settings, under labels of your choice; None for the baseline and the
            candidates of `auto`.
        protocol: Makes a split from a seed, such as `Natural()` or `Folds()`. By default the masks
            of the graph, or its split or time column, decide; otherwise `Natural`, for your own
            data with 60% of each class for training and 20% for validation.
        edges: The edges table, if `data` is a nodes table.
        seeds: One split each.
        budget: Settings to try per method; the first is the one given.
        metric: Metric to compare by.
        positive: For two classes, the positive one: its name, or its index in a split of the
            graph. By default the rarer.
        device: Where to train.
        jobs: Number of worker processes, on the CPU.
        time_limit: Seconds after which training stops.
        on_end: Called with each job and its result.
        columns: The column arguments of `open_graph` for tables, such as `label`.
    """
    source = open_source(data, edges, **columns)
    plan = comparison_plan(
        RunPlan(
            dataset=source.name,
            graph=source.graph,
            protocol=protocol or source.make_split(of_dataset="natural"),
            methods=_entries(methods, source.graph),
            seeds=list(dict.fromkeys(seeds)),
            budget=budget,
            metric=metric,
            compares=True,
        ),
        positive,
    )
    executor = comparison_executor(device, jobs, time_limit)
    return compare_results(plan, run(plan, executor, on_end=on_end))


def comparison_plan(plan: RunPlan, positive: int | str | None = None) -> RunPlan:
    """A plan with its positive class, checked before anything is trained; draws the first split."""
    if not plan.seeds:
        raise ValueError("seeds must hold at least one seed.")
    if plan.metric not in comparable_metrics():
        allowed = comparable_metrics()
        short = {METRICS[name].short.lower(): name for name in allowed}
        raise ValueError(unknown("metric", plan.metric, allowed, short))
    labels_per_class(plan.graph)  # no labels, no split
    plan.task(plan.seeds[0])
    counts, names = plan.splits.class_counts, plan.splits.classes
    if isinstance(positive, str):
        if positive not in names:
            raise ValueError(unknown("class", positive, names))
        positive = names.index(positive)
    if len(counts) == 2 and positive is None:
        positive = positive_class(counts)
    if len(counts) == 2:
        if positive not in (0, 1):
            raise ValueError(f"positive must be class 0 or 1, got {positive}.")
    else:
        binary = {f"metric {plan.metric}": METRICS[plan.metric].binary or None}
        for name, value in (binary | {"positive": positive}).items():
            if value is not None:
                raise ValueError(f"{name} is for two classes, this graph has {len(counts)}.")
    return plan.changed(positive=positive)


def comparison_executor(
    device: torch.device | str, jobs: int = 1, time_limit: float | None = None
) -> Executor:
    """Where a comparison trains: on the CPU in several processes, on a GPU in batches."""
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be above 0, got {time_limit}.")
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    return Executor(
        device=str(device),
        workers=jobs if torch.device(device).type == "cpu" else 1,
        batch=time_limit is None,
        deadline=time() + time_limit if time_limit is not None else None,
    )


def default_entries(
    graph: Data, params: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Method]:
    """The methods of a comparison by default: the baseline and what `auto` chooses from."""
    baselines = {
        name: kind(**{**kind.graph_defaults(graph), **(params or {}).get(name, {})})
        for name, kind in METHODS.items()
        if kind.role == "baseline"
    }
    return baselines | portfolio(graph, params)


def _entries(
    methods: str | Sequence[str] | Mapping[str, Method] | None, graph: Data
) -> dict[str, Method]:
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",")]
    if methods is None:
        return default_entries(graph)
    if not methods:
        raise ValueError("methods must name at least one method.")
    if isinstance(methods, Mapping):
        return dict(methods)
    for name in methods:
        if name not in METHODS:
            raise ValueError(unknown("method", name, METHODS))
    return {name: new_method(name, graph) for name in methods}


def labels_per_class(graph: Data) -> Tensor:
    """Labelled nodes per class, (C,)."""
    if graph.y is None or not (graph.y >= 0).any():
        raise ValueError("graph.y must hold labels; this graph has none.")
    counts = torch.bincount(graph.y[graph.y >= 0].cpu())
    if len(counts) < 2:
        raise ValueError("There must be at least two classes, got one.")
    return counts


def candidates(method: Method, budget: int) -> list[Method]:
    """The given method, then others with parameters drawn at random from its search space.

    The draw is the same each time. Parameters that differ from their defaults stay as they are. A
    method that selects its settings itself has one candidate; one with a small search space has
    all of it.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}.")
    budget = 1 if method.selects_itself else budget
    params, known = asdict(method), {**SHARED_SEARCH_SPACE, **method.search_space}
    space: dict[str, Sequence[Any]] = {}  # values of parameters that may vary, their own first
    for item in fields(method):
        value = getattr(method, item.name)
        if item.name in known and item.default is not MISSING and value == item.default:
            space[item.name] = tuple(dict.fromkeys((value, *known[item.name])))
    rest = [
        dict(zip(space, values, strict=True))
        for values in product(*space.values())
        if any(params[name] != value for name, value in zip(space, values, strict=True))
    ]
    drawn = random.Random(0).sample(rest, min(budget - 1, len(rest)))
    return [type(method)(**{**params, **changed}) for changed in ({}, *drawn)]
