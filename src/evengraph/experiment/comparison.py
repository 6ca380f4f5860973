"""compare(): several methods on the same splits of one graph, and which of them is better."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean
from time import time
from typing import Any

import torch
from torch_geometric.data import Data

from evengraph.core.errors import unknown
from evengraph.core.records import Record
from evengraph.experiment.comparison_result import Comparison
from evengraph.experiment.environment import describe
from evengraph.experiment.executor import Executor, OnEnd
from evengraph.experiment.jobs import Failure, Job, LoadedGraph, Result
from evengraph.experiment.ranking import Pair, Verdict, compare_pairs, judge
from evengraph.experiment.search_space import candidates
from evengraph.experiment.standing import Standing
from evengraph.methods import METHODS, Method, portfolio
from evengraph.metrics import METRICS, comparable_metrics
from evengraph.metrics.binary import positive_class
from evengraph.pipeline.graph_source import open_source
from evengraph.splits import ByTime, Folds, Given, SplitProtocol

ONE_SPLIT = (
    "All methods had the same test nodes and only the random initialisation differed: one split "
    "cannot tell whether a method is better on other nodes."
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
    k: int | None = None,
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
        k: For precision at k; by default the number of positive test nodes.
        device: Where to train.
        jobs: Number of worker processes, on the CPU.
        time_limit: Seconds after which training stops.
        on_end: Called with each job and its result.
        columns: The column arguments of `open_graph` for tables, such as `label`.
    """
    source = open_source(data, edges, **columns)
    graph = source.graph
    protocol = protocol or source.make_split(of_dataset="natural")
    entries = _entries(methods, graph)
    seeds = list(dict.fromkeys(seeds))
    _check(seeds, time_limit, metric, jobs)
    _class_counts(graph)  # no labels, no split
    ordered = protocol(graph, seed=seeds[0]).graph
    counts = _class_counts(ordered)
    positive = class_index(ordered, positive)
    if len(counts) == 2 and positive is None:
        positive = positive_class(counts)
    _check_binary(metric, positive, k, len(counts))
    overlap = split_overlap(graph, protocol, seeds)
    tried = {label: candidates(method, budget) for label, method in entries.items()}
    job = partial(Job, graph=LoadedGraph(graph), protocol=protocol, positive=positive, k=k)
    to_run = [
        job(label=label, method=method, seed=seed, candidate=index, calibrate=True)
        for seed in seeds  # split by split, so that whole splits are done when time runs out
        for label in entries
        for index, method in enumerate(tried[label])
    ]
    ended, stopped = _execute(to_run, torch.device(device), jobs, time_limit, on_end)
    budgets = {label: len(methods) for label, methods in tried.items()}
    standings, failed, common = _gather(entries, ended, seeds, budgets, metric)
    return conclude(
        standings,
        entries,
        ordered,
        protocol,
        metric=metric,
        seeds=common,
        wanted=len(seeds),
        overlap=overlap,
        budget=budget,
        failed=failed,
        positive=positive,
        stopped=stopped,
        environment=describe(torch.device(device)),
    )


def conclude(
    standings: Sequence[Standing],
    entries: Mapping[str, Method],
    graph: Data,
    protocol: SplitProtocol,
    *,
    metric: str,
    overlap: float,
    positive: int | None,
    **fields: Any,
) -> Comparison:
    """Rank methods that ran on the same splits, and give the verdict.

    Args:
        standings: The methods, each with a record of every common split.
        entries: The methods by label.
        graph: What they were trained on, as a split of it: protocols may reorder the classes.
        protocol: How it was split.
        metric: Metric to compare by.
        overlap: As `split_overlap` returns it.
        positive: For two classes, the positive one.
        fields: The others of `Comparison`: seeds, wanted, budget, failed, stopped, environment.
    """
    counts = _class_counts(graph)
    ranked, pairs = rank(standings, protocol, overlap, metric)
    alone = [label for label, method in entries.items() if not method.uses_graph]
    fixed = _is_fixed(protocol)
    return Comparison(
        metric=metric,
        protocol={"name": type(protocol).__name__.lower(), **_plain_fields(protocol)},
        overlap=overlap,
        standings=ranked,
        pairs=pairs,
        verdict=_verdict(ranked, pairs, metric, len(counts), alone=alone, fixed=fixed),
        fixed=fixed,
        positive=positive,
        classes=[str(n) for n in getattr(graph, "class_names", None) or range(len(counts))],
        class_counts=counts.tolist(),
        **fields,
    )


def _execute(
    jobs: Sequence[Job],
    device: torch.device,
    workers: int,
    time_limit: float | None,
    on_end: OnEnd,
) -> tuple[list[tuple[Job, Result]], bool]:
    """Jobs that ended, with their results, and whether time or Ctrl-C stopped the others."""
    ended: list[tuple[Job, Result]] = []

    def keep(job: Job, result: Result) -> None:
        ended.append((job, result))
        on_end(job, result)

    executor = Executor(
        device=str(device),
        backend="processes" if device.type == "cpu" else "here",
        workers=workers,
        batch=time_limit is None,
        deadline=time() + time_limit if time_limit is not None else None,
    )
    try:
        return ended, not executor.execute(jobs, keep)
    except KeyboardInterrupt:  # results so far count
        if not ended:
            raise
    return ended, True


def default_entries(
    graph: Data, params: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Method]:
    """The methods of a comparison by default: the baseline and the portfolio of `auto`.

    Args:
        graph: Whose `graph_defaults` the methods have.
        params: Parameters by name of the method, which replace these.
    """
    baselines = {
        name: kind(**{**kind.graph_defaults(graph), **(params or {}).get(name, {})})
        for name, kind in METHODS.items()
        if kind.role == "baseline"
    }
    return baselines | portfolio(graph, params)


def _entries(
    methods: str | Sequence[str] | Mapping[str, Method] | None, graph: Data
) -> dict[str, Method]:
    """Methods by label."""
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",")]
    if methods is None:
        entries = default_entries(graph)
    elif isinstance(methods, Mapping):
        entries = dict(methods)
    else:
        for name in methods:
            if name not in METHODS:
                raise ValueError(unknown("method", name, METHODS, METHODS.other_names))
        entries = {name: METHODS[name](**METHODS[name].graph_defaults(graph)) for name in methods}
    if not entries:
        raise ValueError("methods must name at least one method.")
    return entries


def class_index(graph: Data, label: int | str | None) -> int | None:
    """The index of a class, by its name or index."""
    if label is None or isinstance(label, int):
        return label
    names = [str(name) for name in getattr(graph, "class_names", None) or []]
    indices = [str(index) for index in range(int(graph.y.max()) + 1)]
    for known in (names, indices):
        if label in known:
            return known.index(label)
    raise ValueError(unknown("class", label, names or indices))


def _check(seeds: Sequence[int], time_limit: float | None, metric: str, jobs: int) -> None:
    if not seeds:
        raise ValueError("seeds must hold at least one seed.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be above 0, got {time_limit}.")
    if metric not in comparable_metrics():
        raise ValueError(unknown("metric", metric, comparable_metrics()))
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")


def _class_counts(graph: Data) -> torch.Tensor:
    """Labelled nodes per class, (C,)."""
    if graph.y is None or not (graph.y >= 0).any():
        raise ValueError("graph.y must hold labels; this graph has none.")
    counts = torch.bincount(graph.y[graph.y >= 0])
    if len(counts) < 2:
        raise ValueError("There must be at least two classes, got one.")
    return counts


def _check_binary(metric: str, positive: int | None, k: int | None, num_classes: int) -> None:
    """Validate what has a meaning for two classes only."""
    if num_classes == 2:
        if positive not in (0, 1):
            raise ValueError(f"positive must be class 0 or 1, got {positive}.")
        if k is not None and k < 1:
            raise ValueError(f"k must be at least 1, got {k}.")
    elif METRICS[metric].binary:
        raise ValueError(f"metric {metric} is for two classes, this graph has {num_classes}.")
    elif positive is not None or k is not None:
        name = "positive" if positive is not None else "k"
        raise ValueError(f"{name} is for two classes, this graph has {num_classes}.")


def split_overlap(graph: Data, protocol: SplitProtocol, seeds: Sequence[int]) -> float:
    """Mean ratio of test nodes to other labelled nodes; raises if a split cannot be made."""
    ratios = []
    for seed in seeds:
        task = protocol(graph, seed=seed)
        ratios.append(float(task.test.sum() / (task.train.sum() + task.val.sum())))
    return fmean(ratios)


def _gather(
    entries: Mapping[str, Method],
    ended: Sequence[tuple[Job, Result]],
    seeds: Sequence[int],
    budgets: Mapping[str, int],
    metric: str,
) -> tuple[list[Standing], dict[str, str], list[int]]:
    """The methods that ran; those that failed, and why; the splits that all ran on."""
    failed: dict[str, str] = {}
    tried: dict[tuple[str, int], dict[int, Record]] = {}
    for job, result in ended:
        if isinstance(result, Failure):
            failed[job.label] = result.reason
        else:
            tried.setdefault((job.label, job.seed), {})[job.candidate] = result
    selected = {  # the first of the best on validation, where the whole budget was spent
        key: max(sorted(records), key=lambda index: records[index].validation)
        for key, records in tried.items()
        if len(records) == budgets[key[0]]
    }
    for label, seed in selected:
        record = tried[label, seed][selected[label, seed]]
        if not math.isfinite(record.all_metrics[metric]):
            failed[label] = f"its {METRICS[metric].title} is undefined on split {seed}."
    for label in entries if selected else ():
        if not any((label, seed) in selected for seed in seeds):
            failed.setdefault(label, "it finished no split in time; allow more, or leave it out.")
    labels = [label for label in entries if label not in failed]
    common = [seed for seed in seeds if all((label, seed) in selected for label in labels)]
    if not labels:
        label, reason = next(iter(failed.items()))
        raise ValueError(f"No method ran; {entries[label].full_title}: {reason}")
    if not common:
        raise ValueError("No split was finished in time; allow more time.")
    standings = [
        Standing(
            label=label,
            title=_title(entries, label),
            settings=asdict(entries[label]),
            changed=entries[label].changed_params,
            records=[tried[label, seed][selected[label, seed]] for seed in common],
            candidates=[selected[label, seed] for seed in common],
            seconds=fmean(r.seconds for seed in common for r in tried[label, seed].values()),
        )
        for label in labels
    ]
    return standings, failed, common


def _title(entries: Mapping[str, Method], label: str) -> str:
    """The method's title, or the label where two methods have the same title."""
    title = entries[label].full_title
    return label if sum(one.full_title == title for one in entries.values()) > 1 else title


def rank(
    standings: Sequence[Standing],
    protocol: SplitProtocol,
    overlap: float,
    metric: str = "balanced_accuracy",
) -> tuple[list[Standing], list[Pair]]:
    """Sort methods, the best first, and compare every two on the splits that all ran on."""
    ranked = sorted(standings, key=lambda standing: -fmean(standing.values(metric)))
    common = set.intersection(*({r.seed for r in one.records} for one in standings))
    if not common:
        return ranked, []
    values = {
        standing.label: [r.all_metrics[metric] for r in standing.records if r.seed in common]
        for standing in ranked
    }
    independent = not isinstance(protocol, Folds)
    return ranked, compare_pairs(
        values, overlap=overlap, independent=independent, fixed=_is_fixed(protocol)
    )


def _is_fixed(protocol: SplitProtocol) -> bool:
    """Whether every seed gives the same split."""
    return isinstance(protocol, Given | ByTime)


def _verdict(
    standings: Sequence[Standing],
    pairs: Sequence[Pair],
    metric: str,
    num_classes: int,
    *,
    alone: Collection[str],
    fixed: bool,
) -> Verdict:
    """Return the verdict, with a warning where no method beats guessing."""
    verdict = judge(standings, pairs, metric, alone=alone, fixed=fixed)
    sentences = verdict.sentences
    guessing = 100 / num_classes
    if max(fmean(one.values("balanced_accuracy")) for one in standings) <= guessing + 1:
        sentences = (
            f"No method is better than guessing, which has a balanced accuracy of {guessing:.1f}: "
            "the rare classes are not found. More labels, other features or a class-weighted "
            "method may help.",
        )
    return replace(verdict, sentences=(*sentences, ONE_SPLIT) if fixed else sentences)


def _plain_fields(protocol: SplitProtocol) -> dict[str, Any]:
    """The protocol's parameters that JSON can hold."""
    plain = (str, int, float, bool, type(None))
    return {name: value for name, value in vars(protocol).items() if isinstance(value, plain)}
