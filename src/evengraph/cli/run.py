"""evengraph run: train and test methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from evengraph.cli.console import print_notes
from evengraph.cli.opening import check_folder, check_names
from evengraph.cli.options import (
    BENCHMARKS,
    Alerts,
    Columns,
    CostAlarm,
    CostMiss,
    Data,
    Device,
    Memory,
    Minority,
    Precision,
    Ratio,
    Ray,
    Recall,
    Settings,
    Train,
    Val,
    Workers,
    column_options,
)
from evengraph.core.lazy import stays_on_disk, wing

if TYPE_CHECKING:
    from evengraph.pipeline.run import RunPlan
    from evengraph.pipeline.sources import GraphSource
    from evengraph.splits import SplitProtocol


HELP = {
    "method": "A method, several to compare (gcn,lte4g), or all; see evengraph methods. By default "
    "auto, which fits several models and averages the best.",
    "split": "Split protocol: step, longtail, natural, publicstep, folds, given, bytime or "
    "semisupervised (20 positive and 80 negative labels). Default: step for named data sets; your "
    "split or time column, or natural, for your own files.",
    "splits": "How many random splits, or which, such as 5,6,7 or 5-24. Default: 3 (5,6,7), 10 "
    "with semisupervised, 1 with a split or time column.",
    "positive": "Two classes: the one to find. Default: the rarer.",
    "shares": "Shares of the classes in the population, such as fraud=0.02,ok=0.98, if labels were "
    "collected unevenly.",
    "windows": "Split by time: test on this many periods in turn, each with a model of all labels "
    "before it.",
    "preset": "Use the parameters tuned or published for this setting, if any.",
    "out": "Folder for result.json and report.html.",
    "labels": "Further labels: a table with the id and the label column, or a label file of "
    "evengraph desk; they replace those of the nodes table.",
    "save": "Folder to save the model to, for predict and explain.",
    "refit": "After testing, retrain the best model with the test labels added. Default with "
    "--save on your own files.",
    "threads": "CPU threads, whatever the machine has: a seed gives the same digits with the same "
    "number. Default: as many as pay for the graph.",
}


@column_options()
def run(
    data: Data,
    columns: Columns,
    method: Annotated[str | None, Option(help=HELP["method"])] = None,
    split_name: Annotated[
        str | None, Option("--split", help=HELP["split"], rich_help_panel=BENCHMARKS)
    ] = None,
    minority: Minority = None,
    ratio: Ratio = None,
    train: Train = None,
    val: Val = None,
    labels: Annotated[Path | None, Option(help=HELP["labels"], metavar="PATH")] = None,
    windows: Annotated[int | None, Option(help=HELP["windows"])] = None,
    splits: Annotated[str | None, Option(help=HELP["splits"])] = None,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    alerts: Alerts = None,
    precision: Precision = None,
    recall: Recall = None,
    positive: Annotated[str | None, Option(help=HELP["positive"])] = None,
    shares: Annotated[str | None, Option(help=HELP["shares"], metavar="SHARES")] = None,
    settings: Settings = None,
    preset: Annotated[bool, Option(help=HELP["preset"], rich_help_panel=BENCHMARKS)] = True,
    device: Device = "auto",
    to: Annotated[Path | None, Option("--out", help=HELP["out"])] = None,
    save: Annotated[Path | None, Option(help=HELP["save"])] = None,
    refit: Annotated[bool | None, Option("--refit/--no-refit", help=HELP["refit"])] = None,
    memory: Memory = None,
    ray: Ray = None,
    workers: Workers = None,
    threads: Annotated[int | None, Option(min=1, help=HELP["threads"], metavar="N")] = None,
) -> None:
    """Train and test one or several methods, once per split, and write a report."""
    check_names(data)
    if ray is not None or workers is not None:
        wing("disk").run_on_cluster(ray, workers, data, memory, device, threads)
    from evengraph.cli.console import current_ranks, own_folder
    from evengraph.cli.opening import open_data, show_classes
    from evengraph.cli.options import (
        make_protocol,
        parse_alerts,
        parse_methods,
        parse_settings,
        parse_shares,
    )
    from evengraph.cli.training import train_methods
    from evengraph.core.machine import keep_freed_memory, pick_device
    from evengraph.core.threads import pin
    from evengraph.datasets import DATASETS
    from evengraph.methods import DEFAULT_METHOD, DEFAULT_ON_DISK, METHODS
    from evengraph.methods.bases.saving import check_model_folder
    from evengraph.metrics.decisions import Costs, Rule
    from evengraph.pipeline.executor import Executor
    from evengraph.pipeline.parameters import parse_splits
    from evengraph.pipeline.run import RunPlan
    from evengraph.pipeline.table_model import population_shares, positive_index
    from evengraph.splits import DRAWS

    if threads is not None:
        pin(threads)
    ranks, save = current_ranks(), own_folder(save, "model") if save else None
    on_disk = memory is not None or not ranks.is_alone or stays_on_disk(data)
    if not on_disk:  # otherwise memory is limited
        keep_freed_memory()
    names = parse_methods(method or (DEFAULT_ON_DISK if on_disk else DEFAULT_METHOD))
    if save is not None:  # before anything is trained
        if len(names) > 1:
            raise ValueError("--save saves one model; name one --method.")
        check_model_folder(save)
        check_folder(save.parent)
    params, sentences = parse_settings(names, settings or [])
    if labels is not None:
        columns = {**columns, "labels": _read_labels(labels, columns)}
    source, costs = None, Costs.of(cost_miss, cost_alarm)
    budget = parse_alerts(alerts)
    if on_disk or data not in DATASETS:
        where = str(ranks.device(device))
        source = open_data(data, columns, on_disk=on_disk, memory=memory, device=where, ranks=ranks)
    split = split_name or ("step" if source is None else source.default_split)
    once = split in ("given", "bytime") and len(names) == 1
    given_splits = splits is not None
    splits = splits or str(1 if once else DRAWS.get(split, 3))
    seeds = parse_splits(splits, first=5)
    if windows is not None:
        if given_splits:
            raise ValueError("--windows and --splits exclude each other: a period is a split.")
        seeds = list(range(windows))
    options = dict(source.default_shares(split)) if source else {}
    given = {"minority": minority, "ratio": ratio, "train": train, "val": val, "windows": windows}
    options |= {name: value for name, value in given.items() if value is not None}
    protocol = make_protocol(split, options)
    presets = _presets(data, source, split, protocol, names) if preset else {}
    methods = {name: METHODS[name](**{**presets.get(name, {}), **params[name]}) for name in names}
    if source is None:  # mistakes in the options show before a graph is loaded
        source = open_data(data, columns)
    else:
        show_classes(source)
    plan = RunPlan(
        dataset=source.name,
        graph=source.graph,
        protocol=protocol,
        methods=methods,
        seeds=seeds,
        rule=Rule.of(
            costs,
            alerts=budget if budget is None or budget < 1 else budget / source.graph.num_nodes,
            precision=precision,
            recall=recall,
        ),
        disk=source.disk,
    )
    if positive is not None:
        plan = plan.changed(positive=positive_index(plan.task(seeds[0]), positive))
    if shares is not None:
        given_shares = parse_shares(shares, "--shares")
        plan = plan.changed(shares=population_shares(plan.task(seeds[0]), given_shares))
    print_notes([*sentences, *_check(plan, refit)])
    # a folder per combination of options, so that one run does not replace another
    parts = [source.name, split, *(f"{name}={value}" for name, value in options.items())]
    parts += ["+".join(methods), *(settings or []), *([] if preset else ["no-preset"])]
    parts += [f"splits={splits}", *([f"costs={costs.miss:g},{costs.alarm:g}"] if costs else [])]
    given_options = {"alerts": alerts, "precision": precision, "recall": recall}
    given_options |= {"positive": positive, "shares": shares}
    parts += [f"{name}={value}" for name, value in given_options.items() if value is not None]
    usual = Path("runs", "-".join(parts).replace("/", "_").replace(" ", ""))
    folder = own_folder(to or usual, "run")
    if refit is None:
        refit = save is not None and not source.is_dataset and source.disk is None
    target = pick_device("cpu" if on_disk else device)  # a graph on disk has its own device
    executor = Executor(device=str(target), keep_interrupted=not plan.several)
    about: dict[str, Any] = {"presets": presets, "refit": refit}
    train_methods(plan, source, executor, folder=folder, save=save, **about)


def _read_labels(path: Path, columns: Columns) -> dict[str, str]:
    """Classes by id of a table, or of a label file of the desk."""
    from evengraph.pipeline.predictions import read_labels
    from evengraph.tables.read import table_suffix

    if table_suffix(path):
        return read_labels(path, columns.get("id"), columns.get("label"))
    found: dict[str, str] = wing("desk").read_answers(path, columns.get("label"))
    return found


def _check(plan: RunPlan, refit: bool | None) -> list[str]:
    """Raise for what this graph cannot do, warn of gaps; returns what else to know."""
    from evengraph.cli.opening import warn_of_gaps

    if plan.disk is not None:
        changes = plan.imbalance in ("longtail", "bytime")  # the edges
        needing = {f"--split {plan.imbalance}": changes, "--refit": refit}
        for method in plan.methods.values():
            wing("disk").check_method(method)
        for option, given in needing.items():
            if given:
                raise ValueError(f"{option} needs the whole graph in memory.")
    task = plan.task(plan.seeds[0])
    if plan.rule.goal != "f1" and task.num_classes != 2:
        raise ValueError(
            f"A rule for the threshold is for two classes, this graph has {task.num_classes}."
        )
    warn_of_gaps(task)
    if task.past is None:
        return []
    seen, total = task.past.num_edges // 2, task.graph.num_edges // 2
    return [f"Training sees {seen:,} of {total:,} edges: the later ones are hidden."]


def _presets(
    data: str, source: GraphSource | None, split: str, protocol: SplitProtocol, methods: list[str]
) -> dict[str, dict[str, Any]]:
    """Parameters by method: the paper's and presets of a data set, defaults of a user's graph."""
    from evengraph.methods import METHODS
    from evengraph.pipeline.parameters import PAPER, paper_cell, preset_for

    if source is not None:
        return {name: METHODS[name].graph_defaults(source.graph) for name in methods}
    settings = {name: (data, split, vars(protocol), name) for name in methods}
    return {
        name: {**(PAPER if paper_cell(*setting) else {}), **(preset_for(*setting) or {})}
        for name, setting in settings.items()
    }
