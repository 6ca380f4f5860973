"""What `run` and `compare` share: announce, train with a display, show, write and save."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, replace
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

    from evengraph.pipeline.comparison import Comparison, Standing
    from evengraph.pipeline.executor import Executor, Job, Result
    from evengraph.pipeline.run import RunPlan, RunResults, Selection
    from evengraph.pipeline.sources import GraphSource
    from evengraph.report.page import Link
    from evengraph.training import Callback

PAGE = "report.html"


def train_methods(
    plan: RunPlan,
    source: GraphSource,
    executor: Executor,
    *,
    folder: Path | None,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
    save: Path | None = None,
    refit: bool = False,
) -> None:
    """Run methods on the same splits, show and write the results, and save the best model.

    `presets` are parameters that were looked up; no `folder` writes nothing. The exit status is 130
    after Ctrl-C, 2 after a failure.
    """
    from evengraph.pipeline.run import run

    files = None if folder is None else RunFiles(folder, plan, source)
    for path in files.folders.values() if files else ():
        check_folder(path)
    _announce(plan, presets, executor.device)
    if source.tables is not None:
        from evengraph.inspection import leak_warnings

        for text in leak_warnings(source.graph, source.tables.encoder.names):
            print_sentence(f"Warning: {escape(text)}", err)
    with Display(plan) as display:
        if not plan.several:  # a comparison may train in other processes
            executor = replace(executor, on_start=display.start)
        on_method = files.keep if files and plan.several else lambda standing: None
        outcome = run(
            plan, executor, on_end=display.end, on_method=on_method, keep_best=not plan.several
        )
    if not plan.several:
        for failure in outcome.failed.values():
            raise failure.error or ValueError(failure.reason)
        assert files is not None  # `compare` alone may write nothing
        _finish(plan, outcome, files, save, refit=refit)
    else:
        _finish_comparison(plan, outcome, files)
    for name, failure in outcome.failed.items():
        title = plan.methods[name].full_title
        print_error(ValueError(failure.reason), prefix=f"{title} did not run: ")
    if outcome.stopped:
        ended = "Stopped" if outcome.interrupted else "Time ran out"
        err.print(f"{ended}: {len(outcome.seeds)} of {len(plan.seeds)} splits are counted.")
        if any(one.records[-1].interrupted for one in outcome.standings):
            err.print("The last run counts with its best model so far.")
        if outcome.interrupted:
            raise typer.Exit(130)
    if outcome.failed:
        raise typer.Exit(2)


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
        seeds = self.plan.seeds
        title = f"seed {job.seed} ({seeds.index(job.seed) + 1} of {len(seeds)})"
        if err.is_terminal:
            return self.enter_context(epoch_bar(title, visible=True))
        return epoch_lines(title, lambda line: err.print(escape(line), soft_wrap=True))

    def end(self, job: Job, result: Result) -> None:
        """Print what a fit gave; of one in a comparison only where no bar is drawn."""
        from evengraph.core.task import Record
        from evengraph.metrics.registry import METRICS

        self.count()
        if not isinstance(result, Record):
            return
        if not self.plan.several:
            self.close()
            names = "positive_average_precision", "balanced_accuracy"
            name = next(name for name in names if result.metrics.get(name) is not None)
            score = f"{METRICS[name].short} {result.metrics[name]:.1f}"
            err.print(f"seed {result.seed}: {score}, {result.seconds:.0f} s")
            for note in result.notes or []:
                err.print(f"[dim]{escape(note)}[/]")
        elif not err.is_terminal:
            title = job.method.full_title
            err.print(f"split {job.seed}: {escape(title)}, {result.seconds:.0f} s", soft_wrap=True)


def _announce(plan: RunPlan, presets: Mapping[str, Mapping[str, Any]] | None, device: str) -> None:
    """Print what is about to be trained, on which splits, with which parameters."""
    from evengraph.methods.bases.method import describe_use

    methods = plan.methods.values()
    titles = escape(", ".join(method.full_title for method in methods))
    what = f"[bold]{titles}[/] on [bold]{escape(plan.dataset)}[/]"
    out.print(f"{what}, {_split_words(plan)}, on {device.partition(':')[0]}")
    notes: list[str] = []
    for name, method in plan.methods.items():
        preset = {} if method.selects_itself else (presets or {}).get(name, {})
        used = [
            f"{field}={value}" for field, value in preset.items() if getattr(method, field) == value
        ]
        if used:  # --set replaces others
            of = f" of {method.full_title}" if plan.several else ""
            what = f"Parameters{of} for this setting"
            notes.append(f"{what}: {', '.join(used)} (--no-preset for the defaults).")
    notes += [note for method in methods for note in describe_use(method, plan.graph)]
    print_notes(dict.fromkeys(notes))


def _split_words(plan: RunPlan) -> str:
    from evengraph.splits import ByTime, Folds, Given

    protocol, count = plan.protocol, len(plan.seeds)
    if plan.several and isinstance(protocol, Folds):
        return f"{protocol.folds}-fold cross-validation"
    if isinstance(protocol, Given):
        split = given_split(plan.graph, protocol.val)
    else:
        names = ("minority", "ratio", "train", "val", "positives", "negatives")
        values = {name: getattr(protocol, name, None) for name in names}
        text = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
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
    plan: RunPlan, outcome: RunResults, files: RunFiles, save: Path | None, *, refit: bool
) -> None:
    """Show the results of one method, write them, then save the model, which may train again."""
    from evengraph.report.terminal import result_notes, result_tables
    from evengraph.report.view import RANKING, ResultView

    if not outcome.results:
        return
    (name,), (result,) = plan.methods, outcome.results
    selection, failed, lines = outcome.fits.get(name), None, list[str]()
    tables = files.source.tables
    predicts = tables is not None and bool((plan.graph.y < 0).any())
    if selection is not None:
        result |= selection.about_splits()
    try:  # first of all: whatever happens from here on, the results are kept
        lines = files.write(name, result)
    except OSError as error:  # such as a full disk; the model may lie on another
        failed = error
    out.print()
    for place, sentence in enumerate(ResultView(result).verdict):
        print_sentence(escape(sentence) if place else f"[bold]{escape(sentence)}[/]")
    for table in result_tables([result]):
        out.print()
        out.print(table)
    out.print()
    if tables is not None:
        from evengraph.inspection import doubt

        # of two classes the ranking of all held-out nodes, of which a split has but a few
        ranked = (result.get("decision") or {}).get("ranking") or {}
        scores = result["mean"] | ({RANKING: ranked["value"]} if ranked else {})
        if text := doubt(plan.graph, scores, tables.encoder.names):
            print_sentence(f"Warning: {escape(text)}")
    print_notes(result_notes(result))
    out.print()
    for line in lines:
        out.print(line, soft_wrap=True)
    if selection is not None and (save is not None or predicts):
        files.save, files.predicts = save, predicts
        refitted = _save_model(selection, files, result, refit=refit)
        result["model"] = selection.about_model(refitted)
        if failed is None:  # now with the model
            files.write(name, result)
    if failed is not None:
        raise failed


def _save_model(
    selection: Selection, files: RunFiles, result: dict[str, Any], *, refit: bool
) -> bool:
    """Save the best model, and predict unlabelled nodes; returns whether it was trained again."""
    from evengraph.cli.predict import heading, write_predictions
    from evengraph.methods.bases.saving import MAIN
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.view import ResultView

    best = selection.best
    assert best is not None
    text = "Retraining with test labels for the saved model"
    if refit and not err.is_terminal:  # where a status does not show
        print_sentence(text, err)
    status: AbstractContextManager[Any] = err.status(text) if refit else nullcontext()
    with status, catch_warnings(record=True) as caught:
        simplefilter("once", UserWarning)
        model = TableModel.from_fits(selection, files.source, refit=refit)
    for warning in caught:
        print_sentence(f"Warning: {escape(str(warning.message))}", err)
    if (folder := files.save) is not None:
        verb = "replaced the model in" if (folder / MAIN).exists() else "wrote"
        model.info = replace(model.info, made=model.info.made | {"command": typed_command()})
        model.save(folder)
        chosen = ", ".join(filter(None, [f"seed {best.record.seed}", selection.reason]))
        text = f"{verb} {escape(str(folder))}: the model of {chosen}"
        if again := model.info.refit:
            text += (
                f", then retrained on {again.train:,} labels instead of {again.train_before:,} "
                "(--no-refit saves the tested model)"
            )
        print_sentence(f"{text}; use it with evengraph predict")
        if model.info.calibrator is not None:
            print_sentence(escape(model.info.calibrator.describe(model.classes_)))
    if files.predicts:
        path = files.folder / "predictions.csv"
        line, frame = written(path), model.predict_unlabelled()
        write_predictions(frame, path)
        if (name := ResultView(result).positive_name) is not None:
            with err.status("explaining"):
                found = [asdict(one) for one in model.most_likely(name)]
            nodes = [one | {"probability": float(one["probability"])} for one in found]
            result["likeliest"] = {"class": name, "kind": heading(frame, name), "nodes": nodes}
        out.print(f"{line}: {len(frame):,} unlabelled nodes", soft_wrap=True)
    return model.info.refit is not None


def _finish_comparison(plan: RunPlan, outcome: RunResults, files: RunFiles | None) -> None:
    """Show which method is better, and write the comparison and a page of each method."""
    from evengraph.pipeline.executor import Failure
    from evengraph.pipeline.run import compare_results
    from evengraph.report.terminal import comparison_notes, comparison_tables, result_tables

    comparison = compare_results(plan, outcome)
    for label, reason in comparison.failed.items():  # also if its metric is undefined
        outcome.failed.setdefault(label, Failure(reason=reason))
    content = comparison.as_dict()
    lines, unwritten = list[str](), list[OSError]()
    names = [one.label for one in comparison.standings]
    if files is not None:  # before anything is shown; a page that cannot be written costs no other
        for one in comparison.standings:
            try:
                files.write(one.label, one.result, names)
            except OSError as error:
                unwritten.append(error)
        try:
            lines.append(files.write_comparison(comparison, content))
        except OSError as error:
            unwritten.append(error)
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
    for line in lines:
        out.print(line, soft_wrap=True)
    if unwritten:
        raise unwritten[0]


class RunFiles:
    """Where a run writes to, and with which links and commands."""

    def __init__(self, folder: Path, plan: RunPlan, source: GraphSource) -> None:
        self.folder, self.plan, self.source = folder, plan, source
        self.save: Path | None = None  # where the model is, once it is saved
        self.predicts = False  # unlabelled nodes with it
        self.several = len(plan.methods) > 1
        self.folders = {
            name: folder / re.sub(r"[^\w.+-]", "_", name) if self.several else folder
            for name in plan.methods
        }

    def write(self, name: str, result: dict[str, Any], beside: Sequence[str] = ()) -> list[str]:
        """Write result.json and report.html; `beside` have them as well. Returns lines to print."""
        from evengraph.report import write_page

        lines = [written(self.folders[name] / file) for file in ("result.json", PAGE)]
        self._write_result(name, result)
        write_page(result, self.folders[name] / PAGE, links=self._links(name, beside))
        return lines

    def _write_result(self, name: str, result: dict[str, Any]) -> None:
        from evengraph.core.files import write_json

        result |= {"command": typed_command(), "commands": self._next_commands()}
        write_json(result, self.folders[name] / "result.json")

    def keep(self, standing: Standing) -> None:
        """Write result.json of a method as soon as it has ended, in case the run is killed."""
        with suppress(OSError):  # which the end of the run tells
            self._write_result(standing.label, dict(standing.result))

    def write_comparison(self, comparison: Comparison, values: dict[str, Any]) -> str:
        """Write comparison.html, .csv and .json; returns the line to print."""
        from evengraph.core.files import csv_text, write_atomic, write_json
        from evengraph.pipeline.comparison import comparison_rows
        from evengraph.report.compare_page import render_comparison
        from evengraph.report.page import Link, write_html

        page, table, content = (self.folder / f"comparison.{k}" for k in ("html", "csv", "json"))
        line = f"{written(page)}\n  .csv and .json beside it, and a page of each method"
        values |= {"dataset": self.plan.dataset, "command": typed_command()}
        values["commands"] = self._commands_after(comparison.verdict.take)
        rows = comparison_rows(comparison.standings, comparison.pairs)
        write_atomic(csv_text(rows).encode(), table)
        write_json(values, content)
        names = [one.label for one in comparison.standings]
        pages = {name: relpath(self.folders[name] / PAGE, self.folder) for name in names}
        links = [
            Link(path.name, f"Results as {path.suffix[1:].upper()}") for path in (table, content)
        ]
        write_html(render_comparison(values, pages=pages, links=links), page)
        return line

    def _commands_after(self, take: str) -> list[str]:
        """A run of the method to take on the same splits; none if `run` cannot make these."""
        from evengraph.splits import Folds

        words, protocol = self._data(), vars(self.plan.protocol)
        if self.source.is_dataset:  # for which the splits of `run` and `compare` differ
            if protocol.get("folds", Folds.folds) != Folds.folds:  # `run` has no option for it
                return []
            given = {k: str(protocol[k]) for k in PROTOCOL_OPTIONS if protocol.get(k) is not None}
            words += ["--split", self.plan.imbalance, *option_words(given)]
        method = type(self.plan.methods[take]).__name__.lower()
        return [join(["evengraph", "run", *words, "--method", method, "--save", "model"])]

    def _links(self, name: str, beside: Sequence[str]) -> list[Link]:
        """Other files that belong to the page of a method."""
        from evengraph.report.page import Link

        links = [Link("result.json", "All results as JSON")]
        if self.predicts:  # these two follow
            links.append(Link("predictions.csv", "Predictions of unlabelled nodes"))
        if self.save is not None:
            card = Path(relpath(self.save / "README.md", self.folders[name])).as_posix()
            links.append(Link(card, "Model card"))
        if self.several:
            links.insert(0, Link("../comparison.html", "Comparison of all methods"))
            links += [
                Link(f"../{self.folders[other].name}/{PAGE}", method.full_title)
                for other, method in self.plan.methods.items()
                if other != name and other in beside
            ]
        return links

    def _next_commands(self) -> list[str]:
        """What to do after reading the page of a method."""
        commands = [join(["evengraph", "compare", *self._data()])]
        if self.several:
            return commands
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
        """The graph as a user names it, a path below the working folder as relative; columns."""
        data = self.source.data or self.source.name
        if not self.source.is_dataset and Path(data).exists():
            short = relpath(data)
            data = data if short.startswith("..") else short
        return [data, *option_words(self.source.columns)]
