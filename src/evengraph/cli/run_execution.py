"""Run a plan of `evengraph run`: train, show, write, and save the best model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_error, print_sentence
from evengraph.cli.files import LateErrors, check_folder
from evengraph.cli.run_display import RunDisplay, show_results
from evengraph.cli.run_model import BestFit, Fit, final_model, predict_unlabelled, save_model

if TYPE_CHECKING:
    import torch

    from evengraph.cli.run_files import RunFiles
    from evengraph.core.records import Record
    from evengraph.core.task import Task
    from evengraph.experiment.jobs import Job
    from evengraph.experiment.run import RunPlan, RunResults
    from evengraph.methods import Method


def run_plan(
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
    best: dict[str, BestFit] = {}
    predicts = not several and source.tables is not None and bool((source.graph.y < 0).any())
    lines: list[str] = []
    late = LateErrors()  # a full disk of results must not cost the model

    def on_fit(job: Job, method: Method, task: Task, record: Record) -> None:
        display.show(record)
        if save is not None or predicts or draw_map:
            one = best.setdefault(job.label, BestFit(source, len(plan.seeds) > 1))
            one.add(method, task, record)

    def write(name: str, result: dict[str, Any]) -> None:
        if draw_map and "map" not in result:
            result["map"] = _map(best[name].fit)
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
        ((name, chosen),) = best.items()
        fit = chosen.fit
        assert fit is not None
        model = final_model(fit, source=source, refit=refit, costs=plan.costs)
        if predicts:
            with late.later():
                predict_unlabelled(model, fit.task, source, files.folder / "predictions.csv")
        if save is not None:
            save_model(model, chosen, save)
        for result in outcome.results:  # there is one; its page links to these files
            about = {"seed": fit.record.seed, "reason": chosen.reason()}
            result["model"] = {**about, **model.info.decisions()}
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


def _map(fit: Fit | None) -> dict[str, Any]:
    """Where t-SNE puts the nodes of the best fit."""
    from evengraph.experiment.tsne import place_nodes

    assert fit is not None
    with err.status("drawing the map"):
        return {"seed": fit.record.seed, **place_nodes(fit.method, fit.task)}


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
