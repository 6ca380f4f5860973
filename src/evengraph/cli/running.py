"""What `evengraph run` does: plan, run with progress bars, show and write the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import typer
from rich.markup import escape

from evengraph.cli.arguments import make_protocol, parse_settings
from evengraph.cli.console import err, out, print_error, print_notes
from evengraph.cli.files import check_folder, written
from evengraph.cli.opening import open_data, show_classes
from evengraph.cli.options import Columns
from evengraph.core.files import write_json
from evengraph.core.records import Record
from evengraph.core.task import Task
from evengraph.datasets import DATASETS
from evengraph.experiment.comparison import rank
from evengraph.experiment.jobs import Job
from evengraph.experiment.presets import preset_for
from evengraph.experiment.run import RunPlan, RunResults, run
from evengraph.experiment.standing import write_comparison
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.model_folder import MAIN
from evengraph.pipeline.graph_source import GraphSource
from evengraph.pipeline.table_model import TableModel
from evengraph.report import write_page
from evengraph.report.terminal.run import comparison_table, notes, result_table, two_class_table
from evengraph.training import Callback
from evengraph.training.progress import epoch_bar


def plan_runs(
    data: str,
    root: Path | None,
    columns: Columns,
    methods: Sequence[str],
    settings: Sequence[str],
    *,
    imbalance: str | None,
    options: Mapping[str, Any],
    seeds: Sequence[int],
    preset: bool,
) -> tuple[GraphSource, list[RunPlan]]:
    """Open the graph and look up protocol and methods; mistakes show before a graph is loaded."""
    params, sentences = parse_settings(methods, settings)
    source = None if data in DATASETS else open_data(data, root, columns)
    name = imbalance or ("step" if source is None else source.default_split)
    options = {**(source.default_shares(name) if source else {}), **options}
    protocol = make_protocol(name, options)
    presets: dict[str, Mapping[str, Any] | None] = dict.fromkeys(methods)
    for method in methods if preset else ():
        if source is None:
            values = asdict(protocol)  # type: ignore[call-overload]
            presets[method] = preset_for(data, name, values, method)
        else:
            presets[method] = METHODS[method].graph_defaults(source.graph)
    made = {m: METHODS[m](**{**(presets[m] or {}), **params[m]}) for m in methods}
    if source is None:
        source = open_data(data, root, columns)
    else:
        show_classes(source)
    protocol(source.graph, seed=seeds[0])  # raises if the graph cannot be split so
    print_notes(sentences)
    return source, [
        RunPlan(
            dataset=source.name,
            graph=source.graph,
            imbalance=name,
            imbalance_fields=options,
            protocol=protocol,
            name=method,
            method=made[method],
            seeds=seeds,
            preset=presets[method],
        )
        for method in methods
    ]


def folder_name(plans: Sequence[RunPlan], parts: Sequence[str]) -> str:
    """A folder per combination of options, so that one run does not replace another."""
    names = "+".join(plan.name for plan in plans)
    options = (f"{name}={value}" for name, value in plans[0].imbalance_fields.items())
    parts = [plans[0].dataset, plans[0].imbalance, *options, names, *parts]
    return "-".join(parts).replace("/", "_").replace(" ", "")


def run_plans(
    plans: Sequence[RunPlan],
    source: GraphSource,
    device: torch.device,
    folder: Path,
    model_folder: Path | None,
) -> None:
    """Run methods on the same splits, show the results, write them, and save the best model."""
    several = len(plans) > 1
    folders = {plan.name: folder / plan.name if several else folder for plan in plans}
    for path in folders.values():
        check_folder(path)
    best: list[tuple[Method, Task, Record]] = []
    lines: list[str] = []

    def keep_best(job: Job, method: Method, task: Task, record: Record) -> None:
        if model_folder and (not best or record.validation > best[0][2].validation):
            best[:] = [(method, task, record)]

    def write(plan: RunPlan, result: dict[str, Any]) -> None:
        paths = [folders[plan.name] / name for name in ("result.json", "report.html")]
        lines.extend(written(path) for path in paths)
        write_json(result, paths[0])
        write_page(result, paths[1])

    with _Display(plans, device) as display:
        outcome = run(
            plans,
            device,
            on_start=display.on_start,
            on_record=display.on_record,
            on_fit=keep_best,
            on_result=write,
        )
    if not several:
        for failure in outcome.failed.values():
            raise failure.error or ValueError(failure.reason)
    if outcome.results:
        _show(outcome.results, several)
        if several:
            lines = [_write_comparison(plans[0], outcome, folder)]
        for line in lines:
            out.print(line, soft_wrap=True)
    if model_folder and best:
        _save_model(*best[0], source, model_folder)
    _exit_status(plans, outcome)


class _Display(ExitStack):
    """Announces each method, and shows a bar per fit on a terminal or a line per seed elsewhere."""

    def __init__(self, plans: Sequence[RunPlan], device: torch.device) -> None:
        super().__init__()
        self.plans = {plan.name: plan for plan in plans}  # those not announced yet
        self.device = device

    def on_start(self, job: Job) -> Callback | None:
        self.close()
        if plan := self.plans.pop(job.label, None):
            _announce(plan, self.device)
        return self.enter_context(epoch_bar(f"seed {job.seed}"))

    def on_record(self, record: Record) -> None:
        self.close()
        value = record.metrics["balanced_accuracy"]
        stage = f" (of the main one of {record.stages} stages)" if record.stages > 1 else ""
        err.print(
            f"seed {record.seed}: bAcc {value:.1f}, best epoch {record.best_epoch} of "
            f"{record.epochs}{stage}, {record.seconds:.0f} s"
        )


def _announce(plan: RunPlan, device: torch.device) -> None:
    names = ("minority", "ratio", "train", "val")
    values = {name: getattr(plan.protocol, name, None) for name in names}
    text = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    out.print(
        f"[bold]{plan.method.full_title}[/] on [bold]{plan.dataset}[/], "
        f"{plan.imbalance} imbalance ({text}), on {device.type}"
    )
    if plan.preset:
        text = ", ".join(f"{name}={value}" for name, value in plan.preset.items())
        print_notes([f"preset: {text} (--no-preset for the defaults)"])


def _show(results: Sequence[dict[str, Any]], several: bool) -> None:
    out.print()
    if several:
        out.print(comparison_table(results))
    else:
        out.print(result_table(results[0]))
        if (table := two_class_table(results[0])) is not None:
            out.print()
            out.print(table)
    out.print()
    print_notes(notes(results))
    out.print()


def _write_comparison(plan: RunPlan, outcome: RunResults, folder: Path) -> str:
    """Write comparison.csv; returns the line to print for all files."""
    path = folder / "comparison.csv"
    verb = written(path).partition(" ")[0]
    write_comparison(*rank(outcome.standings, plan.graph, plan.protocol), path)
    files = "comparison.csv, and result.json and report.html of each method"
    return f"{verb} {escape(str(folder))}: {files}"


def _save_model(
    method: Method, task: Task, record: Record, source: GraphSource, folder: Path
) -> None:
    replaced = (folder / MAIN).exists()
    TableModel.from_fitted(method, task, source).save(folder)
    out.print(
        f"{'replaced the model in' if replaced else 'wrote'} {escape(str(folder))}: the model of "
        f"seed {record.seed}, the best on validation; balanced accuracy "
        f"{record.metrics['balanced_accuracy']:.1f} on its test nodes; see: evengraph predict",
        soft_wrap=True,
    )


def _exit_status(plans: Sequence[RunPlan], outcome: RunResults) -> None:
    """Print what is missing; the exit status is 130 after Ctrl-C, 2 after a failure."""
    for plan in plans:
        if plan.name in outcome.failed:
            reason = ValueError(outcome.failed[plan.name].reason)
            print_error(reason, prefix=f"{plan.method.full_title} did not run: ")
    ended = {*outcome.failed, *(result["method"]["name"] for result in outcome.results)}
    missing = [plan.method.full_title for plan in plans if plan.name not in ended]
    if missing:
        err.print(f"Not run: {', '.join(missing)}.")
    if outcome.results and outcome.results[-1]["runs"][-1]["interrupted"]:
        err.print("The last run counts with its best model so far.")
    if missing or any(not result["complete"] for result in outcome.results):
        raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(2)
