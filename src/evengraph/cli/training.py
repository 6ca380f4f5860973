"""What `run` and `compare` share: announce, train with a display, show, write and save."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from os.path import relpath
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_error, print_notes, print_sentence, typed_command
from evengraph.cli.opening import check_folder, option_words, predict_words, written
from evengraph.cli.options import PROTOCOL_OPTIONS

if TYPE_CHECKING:
    from torch_geometric.data import Data as Graph

    from evengraph.core.records import Record
    from evengraph.pipeline.comparison import Comparison
    from evengraph.pipeline.executor import Executor, Job, Result
    from evengraph.pipeline.run import RunPlan, RunResults, Selection
    from evengraph.pipeline.sources import GraphSource
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.page import Link
    from evengraph.training import Callback

PAGE = "report.html"
COMPARISON = "comparison.html"


def train_methods(
    plan: RunPlan,
    source: GraphSource,
    executor: Executor,
    *,
    folder: Path | None,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    save: Path | None = None,
    refit: bool = False,
    draw_map: bool = False,
) -> None:
    """Run methods on the same splits, show and write the results, and save the best model.

    Args:
        plan: What to run.
        source: Where the graph came from.
        executor: Where to train.
        folder: Where to write to; None writes nothing.
        presets: Parameters that were looked up, by method.
        save: Folder of the model.
        refit: Whether the model is fitted again to all labels.
        draw_map: Whether the report has a map of the nodes.
    """
    from evengraph.pipeline.run import run

    files = None if folder is None else RunFiles(folder, plan, source, save)
    if files is not None:
        for path in files.folders.values():
            check_folder(path)
    _announce(plan, presets, executor.device)
    predicts = not plan.several and source.tables is not None and bool((source.graph.y < 0).any())
    keep = save is not None or draw_map or (predicts and folder is not None)
    with Display(plan) as display:
        if not plan.several:  # a comparison may train in other processes
            executor = replace(executor, on_start=display.start)
        outcome = run(plan, executor, on_end=display.end, keep_best=keep)
    if not plan.several:
        for failure in outcome.failed.values():
            raise failure.error or ValueError(failure.reason)
        assert files is not None  # `compare` alone may write nothing
        _finish(plan, outcome, files, refit=refit, draw_map=draw_map, predicts=predicts)
    else:
        _finish_comparison(plan, outcome, files, draw_map)
    _exit_status(plan, outcome, time_limit=executor.deadline is not None)


class Display(ExitStack):
    """What is shown during training: for one method a bar per fit, for several one for all."""

    def __init__(self, plan: RunPlan) -> None:
        super().__init__()
        self.plan = plan
        self.count: Callable[[], None] = lambda: None

    def __enter__(self) -> Display:
        from evengraph.training.loop import count_bar

        if self.plan.several:
            fits = sum(map(len, self.plan.tried.values())) * len(self.plan.seeds)
            self.count = self.enter_context(count_bar("comparing", fits))
        return self

    def start(self, job: Job) -> Callback | None:
        """What shows the epochs of a fit: a bar on a terminal, elsewhere lines."""
        from evengraph.training.loop import epoch_bar, epoch_lines

        self.close()
        if err.quiet:
            return None
        if err.is_terminal:
            return self.enter_context(epoch_bar(f"seed {job.seed}", visible=True))
        return epoch_lines(f"seed {job.seed}", lambda line: err.print(escape(line), soft_wrap=True))

    def end(self, job: Job, result: Result) -> None:
        """Print what a fit gave; of one in a comparison only where no bar is drawn."""
        from evengraph.core.records import Record

        self.count()
        if not isinstance(result, Record):
            return
        if not self.plan.several:
            self.close()
            _show_fit(result)
        elif not err.is_terminal:
            title = job.method.full_title
            err.print(f"split {job.seed}: {escape(title)}, {result.seconds:.0f} s", soft_wrap=True)


def _show_fit(record: Record) -> None:
    value = record.metrics["balanced_accuracy"]
    stage = f" (of the main one of {record.stages} stages)" if record.stages > 1 else ""
    epochs = f"best epoch {record.best_epoch} of {record.epochs}{stage}, "
    if record.summary:  # a choice among several methods, whose epochs say little
        epochs = ""
    err.print(f"seed {record.seed}: bAcc {value:.1f}, {epochs}{record.seconds:.0f} s")
    for note in record.notes or []:
        err.print(f"[dim]{escape(note)}[/]")


def _announce(plan: RunPlan, presets: Mapping[str, Mapping[str, Any]] | None, device: str) -> None:
    """Print what is about to be trained, on which splits, with which parameters."""
    from evengraph.methods import Method
    from evengraph.methods.bases.method import describe_use
    from evengraph.pipeline.parameters import PAPER

    methods = plan.methods.values()
    titles = ", ".join(method.full_title for method in methods)
    where = device.partition(":")[0]
    out.print(
        f"[bold]{escape(titles)}[/] on [bold]{escape(plan.dataset)}[/], {_split_words(plan)}, "
        f"on {where}"
    )
    notes: list[str] = []
    for name, method in plan.methods.items():
        preset = (presets or {}).get(name, {}).items()
        used = [f"{field}={value}" for field, value in preset if getattr(method, field) == value]
        if used:  # --set replaces others
            of = f" of {method.full_title}" if plan.several else ""
            notes.append(f"preset{of}: {', '.join(used)} (--no-preset for the defaults)")
    if presets is None and all(method.patience == Method.patience for method in methods):
        notes.append(
            f"Training stops after {Method.patience} epochs without a better validation score; the "
            f"paper uses {PAPER['patience']} (--set patience={PAPER['patience']})."
        )
    notes += [note for method in methods for note in describe_use(method, plan.graph)]
    print_notes(dict.fromkeys(notes))


def _split_words(plan: RunPlan) -> str:
    """The splits of a run in words."""
    from evengraph.splits import ByTime, Folds, Given

    protocol, count = plan.protocol, len(plan.seeds)
    names = ("minority", "ratio", "train", "val", "positives", "negatives")
    values = {name: getattr(protocol, name, None) for name in names}
    text = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    if plan.several and isinstance(protocol, Folds):
        return f"{protocol.folds}-fold cross-validation"
    if isinstance(protocol, Given):
        split = given_split(plan.graph, values["val"])
    else:
        split = f"{plan.imbalance} split ({text})"
    if not plan.several:
        return split
    if isinstance(protocol, Given | ByTime):
        return f"{split}, {count} random initialisations"
    return f"{count} {'split' if count == 1 else 'splits'}: {split}"


def given_split(graph: Graph, val: float | None) -> str:
    """The split that comes with a graph, in words; `val` is drawn if it has no validation set."""
    from evengraph.core.task import node_mask

    masks = {name: node_mask(graph, name) for name in ("train", "val", "test")}
    sizes = [
        f"{int((mask & (graph.y >= 0)).sum()):,} {name}"
        for name, mask in masks.items()
        if mask is not None
    ]
    drawn = f", {val:.0%} of train drawn for val" if masks["val"] is None and val else ""
    return f"the split of the graph ({', '.join(sizes)}{drawn})"


def _finish(
    plan: RunPlan,
    outcome: RunResults,
    files: RunFiles,
    *,
    refit: bool,
    draw_map: bool,
    predicts: bool,
) -> None:
    """Show the results of one method, save the model, then write the results once."""
    if not outcome.results:
        return
    (name,), (result,) = plan.methods, outcome.results
    _show_result(result)
    selection = outcome.fits.get(name)
    try:
        if selection is not None and (files.save is not None or predicts):
            result["model"] = _save_model(selection, files, plan, refit=refit, predicts=predicts)
    finally:  # also if the model cannot be saved
        if draw_map and selection is not None:
            result["map"] = _map(selection)
        for line in files.write(name, result):
            out.print(line, soft_wrap=True)


def _show_result(result: Mapping[str, Any]) -> None:
    """Print the tables of one method and what a reader of them should know."""
    from evengraph.report.terminal import result_notes, result_tables

    for table in result_tables([result]):
        out.print()
        out.print(table)
    out.print()
    print_notes(result_notes([result]))
    out.print()


def _save_model(
    selection: Selection, files: RunFiles, plan: RunPlan, *, refit: bool, predicts: bool
) -> dict[str, Any]:
    """Save the best model, predict unlabelled nodes; returns what a result says about the model."""
    from evengraph.cli.predict import write_predictions
    from evengraph.pipeline.table_model import TableModel

    assert selection.best is not None
    text = "Retraining with test labels for the saved model"
    if refit and not err.is_terminal:  # where a status does not show
        print_sentence(text, err)
    status: AbstractContextManager[Any] = err.status(text) if refit else nullcontext()
    with status, catch_warnings(record=True) as caught:
        simplefilter("once", UserWarning)
        model = TableModel.from_fitted(selection.best, files.source, refit=refit, costs=plan.costs)
    for warning in caught:
        print_sentence(f"Warning: {escape(str(warning.message))}", err)
    if files.save is not None:
        _write_model(model, selection, files.save)
    if predicts:
        path = files.folder / "predictions.csv"
        line, frame = written(path), model.predict_unlabelled()
        write_predictions(frame, path)
        out.print(f"{line}: {len(frame):,} unlabelled nodes", soft_wrap=True)
    about = {"seed": selection.best.record.seed, "reason": selection.reason}
    return {**about, **model.info.decisions()}


def _write_model(model: TableModel, selection: Selection, folder: Path) -> None:
    """Save a model for predict and explain, and print which one it is."""
    from evengraph.methods.bases.saving import MAIN
    from evengraph.metrics.registry import METRICS

    verb = "replaced the model in" if (folder / MAIN).exists() else "wrote"
    model.save(folder)
    assert selection.best is not None
    record, score = selection.best.record, selection.score
    names = ["balanced_accuracy"]
    if score is not None and score.metric in record.metrics:
        names = list(dict.fromkeys([score.metric, *names]))
    scores = " and ".join(f"{METRICS[name].title} {record.metrics[name]:.1f}" for name in names)
    chosen = ", ".join(filter(None, [f"seed {record.seed}", selection.reason]))
    text = f"{verb} {escape(str(folder))}: the model of {chosen}; {scores} on its test nodes"
    if refit := model.info.refit:
        text += (
            f", then retrained on {refit.train:,} labels instead of {refit.train_before:,} "
            "(--no-refit saves the tested model)"
        )
    print_sentence(f"{text}; use it with evengraph predict")


def _map(selection: Selection) -> dict[str, Any]:
    """Where t-SNE puts the nodes of the best fit."""
    from evengraph.pipeline.explanation import place_nodes

    best = selection.best
    assert best is not None
    with err.status("drawing the map"):
        places = place_nodes(best.method, best.task, best.probabilities)
    return {"seed": best.record.seed, **places}


def _finish_comparison(
    plan: RunPlan, outcome: RunResults, files: RunFiles | None, draw_map: bool
) -> None:
    """Show which method is better, and write the comparison and a page of each method."""
    from evengraph.pipeline.executor import Failure
    from evengraph.pipeline.run import compare_results
    from evengraph.report.terminal import comparison_notes, comparison_tables, result_tables

    comparison = compare_results(plan, outcome)
    for label, reason in comparison.failed.items():  # also if its metric is undefined
        outcome.failed.setdefault(label, Failure(reason=reason))
    content = comparison.as_dict()
    out.print()
    print_sentence(f"[bold]{escape(' '.join(comparison.verdict.sentences))}[/]")
    tables = comparison_tables(content)
    if any(result["paper"] for result in outcome.results):
        tables += result_tables(outcome.results)[:1]
    for table in tables:
        out.print()
        out.print(table)
    out.print()
    print_notes(comparison_notes(content))
    if files is None:
        print_notes(["Nothing was written; --out DIR writes a page, CSV and JSON."])
        return
    for one in comparison.standings:
        if draw_map:
            one.result["map"] = _map(outcome.fits[one.label])
        files.write(one.label, one.result, [other.label for other in comparison.standings])
    out.print(files.write_comparison(comparison, content), soft_wrap=True)


def _exit_status(plan: RunPlan, outcome: RunResults, *, time_limit: bool) -> None:
    """Print what is missing; the exit status is 130 after Ctrl-C, 2 after a failure."""
    for name, failure in outcome.failed.items():
        title = plan.methods[name].full_title
        print_error(ValueError(failure.reason), prefix=f"{title} did not run: ")
    if outcome.stopped:
        ended = "Time ran out" if time_limit else "Stopped"
        err.print(f"{ended}: {len(outcome.seeds)} of {len(plan.seeds)} splits are counted.")
        last = [one.records[-1] for one in outcome.standings]
        if any(record.interrupted for record in last):
            err.print("The last run counts with its best model so far.")
        if not time_limit:
            raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(2)


class RunFiles:
    """Where a run writes to, and with which links and commands."""

    def __init__(
        self, folder: Path, plan: RunPlan, source: GraphSource, save: Path | None = None
    ) -> None:
        self.folder, self.plan, self.source, self.save = folder, plan, source, save
        self.several = len(plan.methods) > 1
        self.folders = {
            name: folder / re.sub(r"[^\w.+-]", "_", name) if self.several else folder
            for name in plan.methods
        }

    def write(self, name: str, result: dict[str, Any], beside: Sequence[str] = ()) -> list[str]:
        """Write result.json and report.html of a method; returns the lines to print.

        `beside` are the methods that have a report as well.
        """
        from evengraph.core.files import write_json
        from evengraph.report import write_page

        result |= {"command": typed_command(), "commands": self._next_commands("map" in result)}
        paths = [self.folders[name] / file for file in ("result.json", PAGE)]
        lines = [written(path) for path in paths]
        write_json(result, paths[0])
        write_page(result, paths[1], links=self._links(name, beside))
        return lines

    def write_comparison(self, comparison: Comparison, values: dict[str, Any]) -> str:
        """Write comparison.html, .csv and .json; returns the line to print."""
        from evengraph.core.files import write_json
        from evengraph.pipeline.comparison import write_comparison
        from evengraph.report.compare_page import render_comparison
        from evengraph.report.page import Link, write_html

        page, table, content = (self.folder / f"comparison.{k}" for k in ("html", "csv", "json"))
        line = f"{written(page)}\n  .csv and .json beside it, and a page of each method"
        values |= {"dataset": self.plan.dataset, "command": typed_command()}
        values["commands"] = self._commands_after(comparison)
        write_comparison(comparison.standings, comparison.pairs, table)
        write_json(values, content)
        names = [one.label for one in comparison.standings]
        pages = {name: relpath(self.folders[name] / PAGE, self.folder) for name in names}
        links = [
            Link(path.name, f"Results as {path.suffix[1:].upper()}") for path in (table, content)
        ]
        write_html(render_comparison(values, pages=pages, links=links), page)
        return line

    def _commands_after(self, comparison: Comparison) -> list[str]:
        """A run of the method to take on the same splits; none if `run` cannot make these."""
        from evengraph.splits import Folds

        folds = vars(self.plan.protocol).get("folds", Folds.folds)
        if self.source.is_dataset and folds != Folds.folds:  # `run` has no option for it
            return []
        take = type(self.plan.methods[comparison.verdict.take]).__name__.lower()
        words = [*self._data(), *self._split(), "--method", take, "--save", "model"]
        return [join(["evengraph", "run", *words])]

    def _links(self, name: str, beside: Sequence[str]) -> list[Link]:
        """Other files that belong to the page of a method."""
        from evengraph.report.page import Link

        links = [Link("result.json", "All results as JSON")]
        if (self.folders[name] / "predictions.csv").exists():
            links.append(Link("predictions.csv", "Predictions of unlabelled nodes"))
        if self.save is not None and (card := self.save / "README.md").exists():
            links.append(Link(Path(relpath(card, self.folders[name])).as_posix(), "Model card"))
        if self.several:
            links.insert(0, Link(f"../{COMPARISON}", "Comparison of all methods"))
            links += [
                Link(f"../{self.folders[other].name}/{PAGE}", method.full_title)
                for other, method in self.plan.methods.items()
                if other != name and other in beside
            ]
        return links

    def _next_commands(self, has_map: bool) -> list[str]:
        """What to do after reading the page of a method."""
        commands = [join(["evengraph", "compare", *self._data()])]
        if self.several:
            return commands
        if not has_map and self.plan.disk is None:
            commands.append(typed_command("--map"))
        if self.save is None:
            return [typed_command("--save", "model"), *commands]
        model = str(self.save)
        if self.source.tables is not None:
            node = str(self.source.tables.ids[0])
            commands.insert(0, join(["evengraph", "explain", model, node, "--out", "why.svg"]))
            if graph := predict_words(self._data()[0], dict(self.source.columns)):
                words = ["predict", model, *graph, "--out", "predictions.csv"]
                commands.insert(0, join(["evengraph", *words]))
        return commands

    def _data(self) -> list[str]:
        """The words that name the graph and its columns."""
        return [shown_data(self.source), *option_words(self.source.columns)]

    def _split(self) -> list[str]:
        """The words for the split of a data set, for which `run` and `compare` differ."""
        if not self.source.is_dataset:
            return []
        options = {name: vars(self.plan.protocol).get(name) for name in PROTOCOL_OPTIONS}
        given = {name: str(value) for name, value in options.items() if value is not None}
        return ["--split", self.plan.imbalance, *option_words(given)]


def shown_data(source: GraphSource) -> str:
    """The graph as a user names it: a path relative to the working folder, if it is below it."""
    data = source.data or source.name
    if source.is_dataset or not Path(data).exists():
        return data
    short = relpath(data)
    return data if short.startswith("..") else short
