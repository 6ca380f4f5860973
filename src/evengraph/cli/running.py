"""Runs on the command line: their bars, their tables, their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
import typer
from rich.markup import escape
from torch_geometric.data import Data

from evengraph.cli.console import complain, err, out
from evengraph.cli.opening import show_classes
from evengraph.core.files import csv_text, write_atomic, write_json
from evengraph.core.records import Record
from evengraph.core.task import Task
from evengraph.datasets import DATASETS
from evengraph.experiment import Run, run
from evengraph.experiment.parsing import plan_run, settings_of_each
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.model_folder import check_place
from evengraph.pipeline.graph_source import GraphSource
from evengraph.report import write_page
from evengraph.report.terminal.run import (
    comparison_rows,
    comparison_table,
    notes,
    result_table,
    two_class_table,
)
from evengraph.training import Callback
from evengraph.training.progress import epoch_bar

Preset = dict[str, Any] | None
Keep = Callable[[Method, Task, Record], None]


def run_one(
    plan: Run,
    picked: Preset,
    graph: Data,
    device: torch.device,
    folder: Path,
    keep: Keep | None = None,
) -> None:
    """Run a method for every seed, show what came out and keep it.

    Args:
        plan: What to run.
        picked: Settings that were picked for it.
        graph: The graph.
        device: Where.
        folder: Where the files go.
        keep: Takes the fitted method with the best validation score.
    """
    check_folder(folder)
    _announce(plan, picked, device)
    best: list[tuple[Record, Method, Task]] = []

    def look(method: Method, task: Task, record: Record) -> None:
        if keep is not None and (not best or record.validation > best[0][0].validation):
            best[:] = [(record, method, task)]

    result = _run(plan, graph, device, look)
    out.print()
    out.print(result_table(result))
    if (of_two := two_class_table(result)) is not None:
        out.print()
        out.print(of_two)
    _print_notes([result])
    words = {name: written(folder / name) for name in ("result.json", "report.html")}
    _save(result, folder)
    for line in words.values():
        out.print(line, soft_wrap=True)
    if keep is not None and best:
        record, method, task = best[0]
        keep(method, task, record)
    _stop_if_interrupted(result)


def compare(
    plans: Sequence[tuple[Run, Preset]], graph: Data, device: torch.device, folder: Path
) -> None:
    """Run several methods on the same splits; one that cannot run does not stop the others."""
    for plan, _ in plans:
        check_folder(folder / plan.method)
    results, failed = [], []
    for plan, picked in plans:
        _announce(plan, picked, device)
        try:
            result = _run(plan, graph, device)
        except KeyboardInterrupt:
            break
        except (ValueError, MemoryError, FloatingPointError) as problem:
            failed.append((plan, problem))
            continue
        _save(result, folder / plan.method)
        results.append(result)
        if not result["complete"]:
            break
    if results:
        out.print()
        out.print(comparison_table(results))
        _print_notes(results)
        word = written(folder / "comparison.csv").partition(" ")[0]
        _save_table(results, folder / "comparison.csv")
        files = "comparison.csv, and result.json and report.html of each method"
        out.print(f"{word} {escape(str(folder))}: {files}", soft_wrap=True)
    for plan, reason in failed:
        complain(reason, about=f"{plan.make_method().full_title} did not run: ")
    left = [plan.make_method().full_title for plan, _ in plans[len(results) + len(failed) :]]
    if results:
        _stop_if_interrupted(results[-1], left)
    if left:
        err.print(f"Not run: {', '.join(left)}.")
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(2)


def plan_all(
    open_it: Callable[[], GraphSource],
    data: str,
    methods: Sequence[str],
    settings: Sequence[str],
    *,
    imbalance: str | None,
    shares: dict[str, Any],
    seeds: Sequence[int],
    preset: bool,
    save: Path | None,
) -> tuple[GraphSource, list[tuple[Run, Preset]]]:
    """What to run, and the graph, once it is clear that it can be split as asked.

    What is wrong with a plan is said before a known graph is loaded; one's own says first how it
    is to be split.
    """
    each = settings_of_each(methods, settings)
    if save is not None:
        check_place(save)
        check_folder(save.parent)

    def plan(name: str, protocol: str, fields: dict[str, Any], own: Data | None) -> list[Any]:
        return [
            plan_run(
                name,
                method=method,
                method_settings=each[method],
                imbalance=protocol,
                imbalance_fields=fields,
                seeds=seeds,
                preset=preset,
                own=own,
            )
            for method in methods
        ]

    if data in DATASETS:
        plans = plan(data, imbalance or "step", shares, own=None)
        opened = open_it()
    else:
        opened = open_it()
        protocol = imbalance or opened.default_split
        shares = opened.default_shares(protocol) | shares
        plans = plan(opened.name, protocol, shares, own=opened.graph)
        show_classes(opened)
    plans[0][0].make_imbalance()(opened.graph, seed=seeds[0])
    tell_settings(each)
    return opened, plans


def tell_settings(each: Mapping[str, Sequence[str]]) -> None:
    """A line for each setting that goes to some of the methods only."""
    taken = {setting: [m for m in each if setting in each[m]] for m in each for setting in each[m]}
    for setting, names in taken.items():
        if len(names) < len(each):
            field = setting.partition("=")[0].strip()
            lacking = [m for m in each if field not in {f.name for f in fields(METHODS[m])}]
            titles, others = (", ".join(METHODS[m].title for m in ms) for ms in (names, lacking))
            line = f"{setting} goes to {titles}" + (others and f"; without such a field: {others}")
            line += "."
            out.print(f"[dim]{escape(line)}[/]", soft_wrap=True)


def folder_name(plan: Run, methods: Sequence[str], words: Sequence[str]) -> str:
    """A folder of its own for every set-up, so that one run does not replace another."""
    protocol = (f"{name}={value}" for name, value in plan.imbalance_fields.items())
    words = [plan.dataset, plan.imbalance, *protocol, "+".join(methods), *words]
    return "-".join(words).replace("/", "_").replace(" ", "")


def _announce(plan: Run, picked: Preset, device: torch.device) -> None:
    protocol = plan.make_imbalance()
    known = {name: getattr(protocol, name, None) for name in ("minority", "ratio", "train", "val")}
    words = ", ".join(f"{name}={value}" for name, value in known.items() if value is not None)
    out.print(
        f"[bold]{plan.make_method().full_title}[/] on [bold]{plan.dataset}[/], "
        f"{plan.imbalance} imbalance ({words}), on {device.type}"
    )
    if picked:
        words = ", ".join(f"{k}={v}" for k, v in picked.items())
        out.print(f"[dim]preset: {words} (--no-preset for the defaults)[/]")


def _run(
    plan: Run, graph: Data, device: torch.device, look: Keep = lambda *fitted: None
) -> dict[str, Any]:
    """Run with a bar on a terminal, and a line a seed elsewhere."""
    with ExitStack() as bars:

        def bar(seed: int) -> Callback | None:
            bars.close()
            title = f"seed {seed}"
            return bars.enter_context(epoch_bar(title))

        def done(record: Record) -> None:
            bars.close()
            score = record.metrics["balanced_accuracy"]
            stage = f" (of the main one of {record.stages} stages)" if record.stages > 1 else ""
            err.print(
                f"seed {record.seed}: bAcc {score:.1f}, best epoch {record.best_epoch} of "
                f"{record.epochs}{stage}, {record.seconds:.0f} s"
            )

        return run(plan, graph, device, on_epoch=bar, on_record=done, on_method=look)


def written(path: Path) -> str:
    """What to say of a file that is about to be written: whether another was there."""
    return f"{'replaced' if path.exists() else 'wrote'} {escape(str(path))}"


def check_folder(folder: Path) -> None:
    """Find out that nothing can be written before, not after, an hour of training.

    Folders that are not there yet are made and removed: what fails later leaves none behind.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".evengraph-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"Cannot write to {folder}: {error.strerror}.") from None
    finally:
        with suppress(OSError):  # another may have put something there
            for one in made:
                one.rmdir()


def _print_notes(results: Sequence[dict[str, Any]]) -> None:
    out.print()
    for line in notes(results):
        out.print(f"[dim]{escape(line)}[/]")
    out.print()


def _save(result: dict[str, Any], folder: Path) -> None:
    write_json(result, folder / "result.json")
    write_page(result, folder / "report.html")


def _save_table(results: Sequence[dict[str, Any]], path: Path) -> None:
    write_atomic(csv_text(comparison_rows(results)).encode(), path)


def _stop_if_interrupted(result: dict[str, Any], left: Sequence[str] = ()) -> None:
    if not result["complete"]:
        if left:
            err.print(f"Not run: {', '.join(left)}.")
        if result["runs"][-1]["interrupted"]:
            err.print("The last run counts with its best model so far.")
        raise typer.Exit(130)
