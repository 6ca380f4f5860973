"""evengraph run: train and test methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import typer
from rich.markup import escape

from evengraph.cli.completion import complete_methods
from evengraph.cli.console import err, out, print_error, print_notes, print_sentence
from evengraph.cli.files import LateErrors, check_folder, written
from evengraph.cli.options import (
    Columns,
    CostAlarm,
    CostMiss,
    Data,
    DataRoot,
    Device,
    Memory,
    Minority,
    Ratio,
    Settings,
    column_options,
)
from evengraph.cli.run_display import RunDisplay, show_results

if TYPE_CHECKING:
    import torch

    from evengraph.cli.run_files import RunFiles
    from evengraph.core.records import Record
    from evengraph.core.task import Task
    from evengraph.experiment.jobs import Job
    from evengraph.experiment.run import RunPlan, RunResults
    from evengraph.methods import Method
    from evengraph.metrics.costs import Costs
    from evengraph.pipeline.graph_source import GraphSource
    from evengraph.pipeline.table_model import TableModel
    from evengraph.splits import SplitProtocol


IN_MEMORY = ("longtail", "bytime")
"""Split protocols that change the edges of a graph."""

Methods = Annotated[
    str | None,
    typer.Option(
        help="One, several such as gcn,lte4g to compare, or all; see: evengraph methods. By "
        "default auto, which tries several within two minutes per seed (--set time_limit=300 "
        "for five).",
        autocompletion=complete_methods,
    ),
]
Imbalance = Annotated[
    str | None,
    typer.Option(
        help="Split protocol: step, longtail, natural, publicstep, folds, given, bytime or "
        "semisupervised (20 positive and 80 negative labels); by default step, for your own "
        "files what their columns allow."
    ),
]
Train = Annotated[float | None, typer.Option(help="Share to train on (natural).")]
Val = Annotated[float | None, typer.Option(help="Share to validate on (natural).")]
Seeds = Annotated[
    str | None,
    typer.Option(help="Such as 5-24; by default 5,6,7, with semisupervised ten, 5-14."),
]
Preset = Annotated[
    bool, typer.Option(help="Use parameters selected or published for the setting, if any.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for result.json and report.html.")]
Map = Annotated[
    bool,
    typer.Option(
        "--map", help="Draw a map of the nodes (t-SNE) on the page; takes up to half a minute."
    ),
]
Save = Annotated[Path | None, typer.Option(help="Folder for the model, for predict and explain.")]
Refit = Annotated[
    bool | None,
    typer.Option(
        "--refit/--no-refit",
        help="Train the best model again with the test labels, after it was tested; with "
        "--save the default for files of your own.",
    ),
]


@column_options()
def run(
    data: Data,
    columns: Columns,
    method: Methods = None,
    imbalance: Imbalance = None,
    minority: Minority = None,
    ratio: Ratio = None,
    train: Train = None,
    val: Val = None,
    seeds: Seeds = None,
    cost_miss: CostMiss = None,
    cost_alarm: CostAlarm = None,
    settings: Settings = None,
    preset: Preset = True,
    device: Device = "auto",
    data_root: DataRoot = None,
    to: Out = None,
    save: Save = None,
    draw_map: Map = False,
    refit: Refit = None,
    memory: Memory = None,
) -> None:
    """Train and test one or several methods, once per seed, and report."""
    from evengraph.cli.arguments import make_protocol, parse_methods, parse_settings
    from evengraph.cli.opening import open_data, show_classes
    from evengraph.cli.ranks import current_ranks, own_folder
    from evengraph.cli.run_files import RunFiles
    from evengraph.core.allocator import keep_freed_memory
    from evengraph.core.devices import pick_device
    from evengraph.datasets import DATASETS
    from evengraph.experiment.parsing import parse_seeds
    from evengraph.experiment.run import RunPlan
    from evengraph.methods import DEFAULT_METHOD, DEFAULT_ON_DISK, METHODS
    from evengraph.metrics.costs import Costs
    from evengraph.pipeline.graph_source import must_stay_on_disk

    ranks, save = current_ranks(), own_folder(save, "model") if save else None
    on_disk = memory is not None or not ranks.is_alone or must_stay_on_disk(data)
    if not on_disk:  # otherwise memory is limited
        keep_freed_memory()
    names = parse_methods(method or (DEFAULT_ON_DISK if on_disk else DEFAULT_METHOD))
    _check_save(save, names)
    costs = Costs.of(cost_miss, cost_alarm)
    seeds = seeds or _default_seeds(imbalance)
    all_seeds = parse_seeds(seeds)
    params, sentences = parse_settings(names, settings or [])
    source = None
    if on_disk or data not in DATASETS:
        chosen = "cpu" if device == "auto" else str(pick_device(device))
        source = open_data(
            data, data_root, columns, on_disk=on_disk, memory=memory, device=chosen, ranks=ranks
        )
    split = imbalance or ("step" if source is None else source.default_split)
    options = dict(source.default_shares(split)) if source else {}
    given = {"minority": minority, "ratio": ratio, "train": train, "val": val}
    options |= {name: value for name, value in given.items() if value is not None}
    protocol = make_protocol(split, options)
    presets = _presets(data, source, split, protocol, names) if preset else {}
    methods = {name: METHODS[name](**{**presets.get(name, {}), **params[name]}) for name in names}
    if source is None:  # mistakes in the options show before a graph is loaded
        source = open_data(data, data_root, columns)
    else:
        show_classes(source)
    plan = RunPlan(
        dataset=source.name,
        graph=source.graph,
        imbalance=split,
        protocol=protocol,
        methods=methods,
        seeds=all_seeds,
        costs=costs,
        disk=source.disk,
    )
    _check_on_disk(plan, refit, draw_map)
    print_notes([*sentences, *_check_split(plan)])
    parts = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = to or Path("runs") / _folder_name(plan, options, parts)
    if refit is None:
        refit = save is not None and not source.is_dataset and source.disk is None
    target = pick_device("cpu" if on_disk else device)  # rows are trained on the CPU
    files = RunFiles(own_folder(folder, "run"), plan, source, save)
    _run_plan(plan, presets, target, files, refit, draw_map)


def _check_save(folder: Path | None, methods: Sequence[str]) -> None:
    """Raise if no model can be saved there, before anything is trained."""
    from evengraph.methods.bases.model_folder import check_model_folder

    if folder is None:
        return
    if len(methods) > 1:
        raise ValueError("--save saves one model; name one --method.")
    check_model_folder(folder)
    check_folder(folder.parent)


def _check_on_disk(plan: RunPlan, refit: bool | None, draw_map: bool) -> None:
    """Raise for what needs the whole graph in memory, and for a map without scikit-learn."""
    from evengraph.experiment.tsne import import_tsne
    from evengraph.pipeline.on_disk import check_method

    if draw_map:
        import_tsne()
    if plan.disk is None:
        return
    if draw_map:
        raise ValueError("--map needs the whole graph in memory.")
    for method in plan.methods.values():
        check_method(method)
    if plan.imbalance in IN_MEMORY:
        raise ValueError(f"--imbalance {plan.imbalance} needs the whole graph in memory.")
    if refit:
        raise ValueError("--refit needs the whole graph in memory.")


def _default_seeds(imbalance: str | None) -> str:
    from evengraph.splits import DRAWS

    return f"5-{4 + DRAWS[imbalance]}" if imbalance in DRAWS else "5,6,7"


def _check_split(plan: RunPlan) -> list[str]:
    """Raise if the graph cannot be split so, warn of gaps; returns what else to know."""
    from evengraph.cli.opening import warn_of_gaps

    task = plan.protocol(plan.graph, seed=plan.seeds[0])
    if plan.costs is not None and task.num_classes != 2:
        raise ValueError(f"costs are for two classes, this graph has {task.num_classes}.")
    warn_of_gaps(task)
    if task.past is None:
        return []
    seen, total = task.past.num_edges // 2, task.graph.num_edges // 2
    return [f"Training sees {seen:,} of {total:,} edges: the later ones are hidden."]


def _presets(
    data: str,
    source: GraphSource | None,
    split: str,
    protocol: SplitProtocol,
    methods: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Parameters by method: the paper's and presets of a data set, defaults of a user's graph."""
    from evengraph.experiment.published import PAPER, paper_cell, preset_for
    from evengraph.methods import METHODS

    if source is not None:
        own = source.draws_labels and split == "natural"
        return {
            name: {
                **METHODS[name].graph_defaults(source.graph),
                **(METHODS[name].own_split_params if own else {}),
            }
            for name in methods
        }
    settings = {name: (data, split, vars(protocol), name) for name in methods}
    return {
        name: {**(PAPER if paper_cell(*setting) else {}), **(preset_for(*setting) or {})}
        for name, setting in settings.items()
    }


def _folder_name(plan: RunPlan, options: Mapping[str, Any], parts: Sequence[str]) -> str:
    """A folder per combination of options, so that one run does not replace another."""
    given = (f"{name}={value}" for name, value in options.items())
    costs = [] if plan.costs is None else [f"costs={plan.costs.miss:g},{plan.costs.alarm:g}"]
    parts = [plan.dataset, plan.imbalance, *given, "+".join(plan.methods), *parts, *costs]
    return "-".join(parts).replace("/", "_").replace(" ", "")


def _run_plan(
    plan: RunPlan,
    presets: Mapping[str, Mapping[str, Any]],
    device: torch.device,
    files: RunFiles,
    refit: bool,
    draw_map: bool,
) -> None:
    """Run methods on the same splits, show the results and write them; save the best model."""
    from evengraph.experiment.run import run

    several, source, save = files.several, files.source, files.save
    for path in files.folders.values():
        check_folder(path)
    best: dict[str, tuple[Method, Task, Record]] = {}
    predicts = not several and source.tables is not None and bool((source.graph.y < 0).any())
    lines: list[str] = []
    late = LateErrors()  # a full disk of results must not cost the model

    def on_fit(job: Job, method: Method, task: Task, record: Record) -> None:
        display.show(record)
        better = job.label not in best or record.validation > best[job.label][2].validation
        if better and (save is not None or predicts or draw_map):
            best[job.label] = method, task, record

    def write(name: str, result: dict[str, Any]) -> None:
        if draw_map and "map" not in result:
            result["map"] = _map(*best[name])
        with late.later():
            lines.extend(files.write(name, result))

    with RunDisplay(plan, presets, device) as display:
        outcome = run(plan, device, on_start=display.start, on_fit=on_fit, on_result=write)
    if not several:
        for failure in outcome.failed.values():
            raise failure.error or ValueError(failure.reason)
    if outcome.results:
        show_results(outcome.results)
        if several:
            with late.later():
                lines = [_write_comparison(files, outcome, device)]
        for line in lines:
            out.print(line, soft_wrap=True)
    if best and (save is not None or predicts):
        ((name, fitted),) = best.items()
        model = _final_model(*fitted, source=source, refit=refit, costs=plan.costs)
        if predicts:
            with late.later():
                path = files.folder / "predictions.csv"
                _predict_unlabelled(model, fitted[1], source, path)
        if save is not None:
            _save_model(model, fitted[2], save)
        for result in outcome.results:  # there is one; its page links to these files
            result["model"] = {"seed": fitted[2].seed, **model.info.decisions()}
            write(name, result)
    late.throw()
    _exit_status(plan, outcome)


def _write_comparison(files: RunFiles, outcome: RunResults, device: torch.device) -> str:
    """Write what compares the methods of a run; returns the line to print."""
    from evengraph.experiment.run_comparison import compare_results

    comparison = compare_results(files.plan, outcome, device)
    if comparison is not None:
        print_sentence(f"[bold]{escape(' '.join(comparison.verdict.sentences))}[/]")
        out.print()
        return files.write_comparison(comparison)
    return "No seed ran with all methods: they cannot be compared."


def _map(method: Method, task: Task, record: Record) -> dict[str, Any]:
    """Where t-SNE puts the nodes of the best fit."""
    from evengraph.experiment.tsne import place_nodes

    with err.status("drawing the map"):
        return {"seed": record.seed, **place_nodes(method, task)}


def _final_model(
    method: Method,
    task: Task,
    record: Record,
    *,
    source: GraphSource,
    refit: bool,
    costs: Costs | None,
) -> TableModel:
    """The best model of a run, fitted again to all labels if asked for."""
    from evengraph.pipeline.table_model import TableModel

    status = err.status("training again on all labels") if refit else nullcontext()
    with status, catch_warnings(record=True) as caught:
        simplefilter("once", UserWarning)
        model = TableModel.from_fitted(
            method, task, source, seed=record.seed, refit=refit, costs=costs
        )
    for warning in caught:
        print_sentence(f"Warning: {escape(str(warning.message))}", err)
    return model


def _predict_unlabelled(model: TableModel, task: Task, source: GraphSource, path: Path) -> None:
    """Write predictions for all nodes without a label, with the features that it learnt from."""
    from evengraph.cli.predict import write_predictions
    from evengraph.pipeline.graph_source import tables_of
    from evengraph.pipeline.new_nodes import NewNodes

    tables = tables_of(task, source)
    assert tables is not None
    nodes = NewNodes(tables=tables, rows=slice(None))
    line = written(path)
    frame = model.predict(nodes.without((source.graph.y >= 0).numpy()))
    write_predictions(frame, path)
    out.print(f"{line}: {len(frame):,} unlabelled nodes", soft_wrap=True)


def _save_model(model: TableModel, record: Record, folder: Path) -> None:
    """Save the best model of a run for predict and explain."""
    from evengraph.methods.bases.model_folder import MAIN

    verb = "replaced the model in" if (folder / MAIN).exists() else "wrote"
    model.save(folder)
    score = f"balanced accuracy {record.metrics['balanced_accuracy']:.1f} on its test nodes"
    if refit := model.info.refit:
        score += (
            f", then trained again on {refit.train:,} labels instead of {refit.train_before:,} "
            "(--no-refit to keep the first)"
        )
    print_sentence(
        f"{verb} {escape(str(folder))}: the model of seed {record.seed}, the best on validation; "
        f"{score}; see: evengraph predict"
    )


def _exit_status(plan: RunPlan, outcome: RunResults) -> None:
    """Print what is missing; the exit status is 130 after Ctrl-C, 2 after a failure."""
    titles = {name: method.full_title for name, method in plan.methods.items()}
    for name in titles:
        if name in outcome.failed:
            reason = ValueError(outcome.failed[name].reason)
            print_error(reason, prefix=f"{titles[name]} did not run: ")
    ended = {*outcome.failed, *(result["method"]["name"] for result in outcome.results)}
    missing = [title for name, title in titles.items() if name not in ended]
    if missing:
        err.print(f"Not run: {', '.join(missing)}.")
    if outcome.results and outcome.results[-1]["runs"][-1]["interrupted"]:
        err.print("The last run counts with its best model so far.")
    if missing or any(not result["complete"] for result in outcome.results):
        raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(2)
