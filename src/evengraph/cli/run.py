"""evengraph run: train and test methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from os.path import relpath
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from warnings import catch_warnings, simplefilter

import typer
from rich.markup import escape

from evengraph.cli.console import err, out, print_error, print_notes, print_sentence, typed_command
from evengraph.cli.opening import LateErrors, check_folder, option_words, predict_words, written
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
    complete_methods,
)
from evengraph.core.wings import stays_on_disk, wing

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Graph

    from evengraph.core.records import Record
    from evengraph.core.task import Task
    from evengraph.methods import Method
    from evengraph.metrics.decisions import Costs
    from evengraph.pipeline.comparison import Comparison
    from evengraph.pipeline.executor import Job
    from evengraph.pipeline.run import RunPlan, RunResults
    from evengraph.pipeline.sources import GraphSource
    from evengraph.pipeline.table_model import SeedScore, TableModel
    from evengraph.report.page import Link
    from evengraph.splits import SplitProtocol
    from evengraph.training import Callback


class RunDisplay(ExitStack):
    """Announces each method, and shows a bar per fit on a terminal, elsewhere lines."""

    def __init__(
        self, plan: RunPlan, presets: Mapping[str, Mapping[str, Any]], device: torch.device
    ) -> None:
        super().__init__()
        self.plan, self.presets, self.device = plan, presets, device
        self.announced = ""

    def start(self, job: Job) -> Callback | None:
        """Announce the method before its first fit; returns what shows the epochs of this fit."""
        from evengraph.training.loop import epoch_bar, epoch_lines

        self.close()
        if job.label != self.announced:
            self.announced = job.label
            self._announce(job)
        if err.quiet:
            return None
        if err.is_terminal:
            return self.enter_context(epoch_bar(f"seed {job.seed}", visible=True))
        return epoch_lines(f"seed {job.seed}", lambda line: err.print(escape(line), soft_wrap=True))

    def show(self, record: Record) -> None:
        """Print what a fit gave."""
        self.close()
        value = record.metrics["balanced_accuracy"]
        stage = f" (of the main one of {record.stages} stages)" if record.stages > 1 else ""
        epochs = f"best epoch {record.best_epoch} of {record.epochs}{stage}, "
        if record.summary:  # a choice among several methods, whose epochs say little
            epochs = ""
        err.print(f"seed {record.seed}: bAcc {value:.1f}, {epochs}{record.seconds:.0f} s")
        for note in record.notes or []:
            err.print(f"[dim]{escape(note)}[/]")

    def _announce(self, job: Job) -> None:
        names = ("minority", "ratio", "train", "val", "positives", "negatives")
        values = {name: getattr(job.protocol, name, None) for name in names}
        text = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        split = f"{self.plan.imbalance} imbalance ({text})"
        if self.plan.imbalance == "given":
            split = given_split(self.plan.graph, values["val"])
        out.print(
            f"[bold]{job.method.full_title}[/] on [bold]{escape(self.plan.dataset)}[/], "
            f"{split}, on {self.device.type}"
        )
        preset = self.presets.get(job.label, {}).items()
        used = [f"{name}={value}" for name, value in preset if getattr(job.method, name) == value]
        if used:  # --set replaces others
            print_notes([f"preset: {', '.join(used)} (--no-preset for the defaults)"])
        graph = self.plan.graph
        sentences = job.method.describe_defaults(graph), job.method.describe_edges(graph)
        print_notes([sentence for sentence in sentences if sentence])


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


def show_results(results: Sequence[Mapping[str, Any]]) -> None:
    """Print the tables of a run and what a reader of them should know."""
    from evengraph.report import terminal as tables

    out.print()
    if len(results) > 1:
        out.print(tables.comparison_table(results))
    else:
        out.print(tables.result_table(results[0]))
    if (table := tables.two_class_table(results)) is not None:
        out.print()
        out.print(table)
    if len(results) == 1:
        if (table := tables.base_rate_table(results[0])) is not None:
            out.print()
            out.print(table)
        if (table := tables.summary_table(results[0])) is not None:
            out.print()
            out.print(table)
    out.print()
    print_notes(tables.notes(results))
    out.print()


PAGE = "report.html"
COMPARISON = "comparison.html"
SPLIT_OPTIONS = ("minority", "ratio", "train", "val")


class RunFiles:
    """Where a run writes to, and with which links and commands.

    Args:
        folder: Of the whole run; with several methods, each has a folder below it.
        plan: What is run.
        source: Where the graph came from.
        save: Folder of the model, if one is saved.
    """

    def __init__(
        self, folder: Path, plan: RunPlan, source: GraphSource, save: Path | None = None
    ) -> None:
        self.folder, self.plan, self.source, self.save = folder, plan, source, save
        self.several = len(plan.methods) > 1
        self.folders = {
            name: folder / re.sub(r"[^\w.+-]", "_", name) if self.several else folder
            for name in plan.methods
        }

    def write(self, name: str, result: dict[str, Any]) -> list[str]:
        """Write result.json and report.html of a method; returns the lines to print."""
        from evengraph.core.files import write_json
        from evengraph.report import write_page

        result |= {"command": typed_command(), "commands": self._next_commands("map" in result)}
        paths = [self.folders[name] / file for file in ("result.json", PAGE)]
        lines = [written(path) for path in paths]
        write_json(result, paths[0])
        write_page(result, paths[1], links=self._links(name))
        return lines

    def write_comparison(self, comparison: Comparison) -> str:
        """Write comparison.html, .csv and .json; returns the line to print."""
        from evengraph.core.files import write_json
        from evengraph.pipeline.comparison import write_comparison
        from evengraph.report.compare_page import write_comparison_page
        from evengraph.report.page import Link

        page, table, content = (self.folder / f"comparison.{k}" for k in ("html", "csv", "json"))
        line = f"{written(page)}\n  .csv and .json beside it, and a page of each method"
        commands = self._commands_after(comparison)
        values = {**comparison.as_dict(), "dataset": self.plan.dataset}
        values |= {"command": typed_command(), "commands": commands}
        write_comparison(comparison.standings, comparison.pairs, table)
        write_json(values, content)
        names = [one.label for one in comparison.standings]
        pages = {name: relpath(self.folders[name] / PAGE, self.folder) for name in names}
        links = [
            Link(path.name, f"Results as {path.suffix[1:].upper()}") for path in (table, content)
        ]
        write_comparison_page(values, page, pages=pages, links=links)
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

    def _links(self, name: str) -> list[Link]:
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
                if other != name
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
        options = {name: vars(self.plan.protocol).get(name) for name in SPLIT_OPTIONS}
        given = {name: str(value) for name, value in options.items() if value is not None}
        return ["--imbalance", self.plan.imbalance, *option_words(given)]


def shown_data(source: GraphSource) -> str:
    """The graph as a user names it: a path relative to the working folder, if it is below it."""
    data = source.data or source.name
    if source.is_dataset or not Path(data).exists():
        return data
    short = relpath(data)
    return data if short.startswith("..") else short


class Fit(NamedTuple):
    """A fitted method, its task and record, and its score if there are several seeds."""

    method: Method
    task: Task
    record: Record
    score: SeedScore | None


class BestFit:
    """The fit with the best score on validation among the seeds of one method.

    Args:
        source: Where the graph came from.
        several: Whether there is a choice.
    """

    def __init__(self, source: GraphSource, several: bool) -> None:
        self.source, self.several = source, several
        self.fit: Fit | None = None
        self.scores: dict[int, SeedScore] = {}

    def add(self, method: Method, task: Task, record: Record) -> None:
        """Keep a fit if it is better than those before."""
        from evengraph.pipeline.table_model import seed_score

        score = seed_score(method, task, self.source) if self.several else None
        if score is not None:
            self.scores[record.seed] = score
        best = None if self.fit is None else self.fit.score
        if best is None or (score is not None and score.value > best.value):
            self.fit = Fit(method, task, record, score)

    def reason(self) -> str:
        """Why this seed, in a few words; empty if there is one seed."""
        if self.fit is None or self.fit.score is None or len(self.scores) < 2:
            return ""
        seed, best = self.fit.record.seed, self.fit.score
        others = ", ".join(f"{s.value:.1f}" for n, s in self.scores.items() if n != seed)
        return f"the best validation {best.title} ({best.value:.1f}; others {others})"


def final_model(
    fit: Fit,
    *,
    source: GraphSource,
    refit: bool,
    costs: Costs | None,
) -> TableModel:
    """The best model of a run, fitted again to all labels if asked for."""
    from evengraph.pipeline.table_model import TableModel

    text = "training again with the test labels added, for the model that is saved"
    if refit and not err.is_terminal:  # where a status does not show
        print_sentence(text, err)
    status = err.status(text) if refit else nullcontext()
    with status, catch_warnings(record=True) as caught:
        simplefilter("once", UserWarning)
        model = TableModel.from_fitted(
            fit.method, fit.task, source, seed=fit.record.seed, refit=refit, costs=costs
        )
    for warning in caught:
        print_sentence(f"Warning: {escape(str(warning.message))}", err)
    return model


def predict_unlabelled(model: TableModel, task: Task, source: GraphSource, path: Path) -> None:
    """Write predictions for all nodes without a label, with the features that it learnt from."""
    from evengraph.cli.predict import write_predictions
    from evengraph.pipeline.model_info import NewNodes
    from evengraph.pipeline.sources import tables_of

    tables = tables_of(task, source)
    assert tables is not None
    nodes = NewNodes(tables=tables, rows=slice(None))
    line = written(path)
    frame = model.predict(nodes.without((source.graph.y >= 0).numpy()))
    write_predictions(frame, path)
    out.print(f"{line}: {len(frame):,} unlabelled nodes", soft_wrap=True)


def save_model(model: TableModel, best: BestFit, folder: Path) -> None:
    """Save the best model of a run for predict and explain."""
    from evengraph.methods.bases.saving import MAIN

    assert best.fit is not None
    verb = "replaced the model in" if (folder / MAIN).exists() else "wrote"
    model.save(folder)
    record, reason = best.fit.record, best.reason()
    chosen = f"seed {record.seed}, {reason}" if reason else f"seed {record.seed}"
    text = f"{verb} {escape(str(folder))}: the model of {chosen}; {_test_scores(best.fit)}"
    if refit := model.info.refit:
        text += (
            f", then retrained on {refit.train:,} labels instead of {refit.train_before:,} "
            "(--no-refit saves the tested model)"
        )
    print_sentence(f"{text}; use it with evengraph predict")


def _test_scores(fit: Fit) -> str:
    """Balanced accuracy on the test nodes, and the metric that the seed was chosen by."""
    from evengraph.metrics import METRICS

    names = ["balanced_accuracy"]
    if fit.score is not None and fit.score.metric in fit.record.metrics:
        names = list(dict.fromkeys([fit.score.metric, *names]))
    scores = (f"{METRICS[name].title} {fit.record.metrics[name]:.1f}" for name in names)
    return f"{' and '.join(scores)} on its test nodes"


def run_plan(
    plan: RunPlan,
    presets: Mapping[str, Mapping[str, Any]],
    device: torch.device,
    files: RunFiles,
    refit: bool,
    draw_map: bool,
) -> None:
    """Run methods on the same splits, show the results and write them; save the best model."""
    from evengraph.pipeline.run import run

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
    from evengraph.pipeline.run import compare_results

    comparison = compare_results(files.plan, outcome, device)
    if comparison is not None:
        print_sentence(f"[bold]{escape(' '.join(comparison.verdict.sentences))}[/]")
        out.print()
        return files.write_comparison(comparison)
    return "No seed ran with all methods: they cannot be compared."


def _map(fit: Fit | None) -> dict[str, Any]:
    """Where t-SNE puts the nodes of the best fit."""
    from evengraph.pipeline.tsne import place_nodes

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


IN_MEMORY = ("longtail", "bytime")
"""Split protocols that change the edges of a graph."""

Methods = Annotated[
    str | None,
    typer.Option(
        help="A method, several to compare (gcn,lte4g), or all; see evengraph methods. By default "
        "auto, which tries several models for up to two minutes per seed (--set time_limit=300 "
        "for five).",
        autocompletion=complete_methods,
    ),
]
Imbalance = Annotated[
    str | None,
    typer.Option(
        help="Split protocol: step, longtail, natural, publicstep, folds, given, bytime or "
        "semisupervised (20 positive and 80 negative labels). Default: step for named data "
        "sets; your split or time column, or natural, for your own files."
    ),
]
Train = Annotated[float | None, typer.Option(help="Share of each class for training (natural).")]
Val = Annotated[float | None, typer.Option(help="Share of each class for validation (natural).")]
Seeds = Annotated[
    str | None,
    typer.Option(help="Such as 5-24. Default: 5,6,7, or 5-14 with semisupervised."),
]
Preset = Annotated[
    bool, typer.Option(help="Use the parameters tuned or published for this setting, if any.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for result.json and report.html.")]
Map = Annotated[
    bool,
    typer.Option(
        "--map", help="Draw a map of the nodes (t-SNE) on the page; takes up to half a minute."
    ),
]
Save = Annotated[
    Path | None, typer.Option(help="Folder to save the model to, for predict and explain.")
]
Refit = Annotated[
    bool | None,
    typer.Option(
        "--refit/--no-refit",
        help="After testing, retrain the best model with the test labels added. Default with "
        "--save on your own files.",
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
    """Train and test one or several methods, once per seed, and write a report."""
    from evengraph.cli.opening import open_data, show_classes
    from evengraph.cli.options import make_protocol, parse_methods, parse_settings
    from evengraph.cli.ranks import current_ranks, own_folder
    from evengraph.core.devices import pick_device
    from evengraph.core.machine import keep_freed_memory
    from evengraph.datasets import DATASETS
    from evengraph.methods import DEFAULT_METHOD, DEFAULT_ON_DISK, METHODS
    from evengraph.metrics.decisions import Costs
    from evengraph.pipeline.parsing import parse_seeds

    ranks, save = current_ranks(), own_folder(save, "model") if save else None
    on_disk = memory is not None or not ranks.is_alone or stays_on_disk(data)
    if not on_disk:  # otherwise memory is limited
        keep_freed_memory()
    names = parse_methods(method or (DEFAULT_ON_DISK if on_disk else DEFAULT_METHOD))
    _check_save(save, names)
    seeds = seeds or _default_seeds(imbalance)
    params, sentences = parse_settings(names, settings or [])
    source, costs, all_seeds = None, Costs.of(cost_miss, cost_alarm), parse_seeds(seeds)
    if on_disk or data not in DATASETS:
        where = str(ranks.device(device))
        source = open_data(
            data, data_root, columns, on_disk=on_disk, memory=memory, device=where, ranks=ranks
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
    plan = _plan(source, split, protocol, methods, all_seeds, costs)
    _check_on_disk(plan, refit, draw_map)
    print_notes([*sentences, *_check_split(plan)])
    parts = [*(settings or []), *([] if preset else ["no-preset"]), f"seeds={seeds}"]
    folder = own_folder(to or Path("runs") / _folder_name(plan, options, parts), "run")
    if refit is None:
        refit = save is not None and not source.is_dataset and source.disk is None
    target = pick_device("cpu" if on_disk else device)  # a graph on disk has its own device
    run_plan(plan, presets, target, RunFiles(folder, plan, source, save), refit, draw_map)


def _plan(
    source: GraphSource,
    split: str,
    protocol: SplitProtocol,
    methods: Mapping[str, Method],
    seeds: Sequence[int],
    costs: Costs | None,
) -> RunPlan:
    from evengraph.pipeline.run import RunPlan

    return RunPlan(
        dataset=source.name,
        graph=source.graph,
        imbalance=split,
        protocol=protocol,
        methods=methods,
        seeds=seeds,
        costs=costs,
        disk=source.disk,
    )


def _check_save(folder: Path | None, methods: Sequence[str]) -> None:
    """Raise if no model can be saved there, before anything is trained."""
    from evengraph.methods.bases.saving import check_model_folder

    if folder is None:
        return
    if len(methods) > 1:
        raise ValueError("--save saves one model; name one --method.")
    check_model_folder(folder)
    check_folder(folder.parent)


def _check_on_disk(plan: RunPlan, refit: bool | None, draw_map: bool) -> None:
    """Raise for what needs the whole graph in memory, and for a map without scikit-learn."""
    from evengraph.pipeline.tsne import import_tsne

    if draw_map:
        import_tsne()
    if plan.disk is None:
        return
    if draw_map:
        raise ValueError("--map needs the whole graph in memory.")
    for method in plan.methods.values():
        wing("disk").check_method(method)
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
    from evengraph.methods import METHODS
    from evengraph.pipeline.published import PAPER, paper_cell, preset_for

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
