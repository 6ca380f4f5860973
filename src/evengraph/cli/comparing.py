"""What `evengraph compare` does: plan the splits, compare with a bar, show and write results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from torch_geometric.data import Data

from evengraph.cli.arguments import parse_methods, parse_settings
from evengraph.cli.console import err, out, print_error, print_notes
from evengraph.cli.files import check_folder, written
from evengraph.core.files import write_json
from evengraph.core.records import Record
from evengraph.experiment.comparison import DEFAULT_METHODS, Comparison, compare
from evengraph.experiment.fields import unknown
from evengraph.experiment.jobs import Job, Result
from evengraph.experiment.parsing import MOST_SEEDS
from evengraph.experiment.standing import write_comparison
from evengraph.methods import METHODS, Method
from evengraph.pipeline.graph_source import GraphSource
from evengraph.report.terminal.comparison import comparison_notes, comparison_tables
from evengraph.splits import Folds, Natural, SplitProtocol
from evengraph.training.progress import count_bar

NUM_SPLITS = 5


def plan_splits(
    source: GraphSource,
    *,
    splits: int | None,
    folds: int | None,
    train: float | None,
    val: float | None,
) -> tuple[SplitProtocol, list[int]]:
    """A split protocol and its seeds; a split or time column decides on the protocol."""
    given = {name: share for name, share in (("train", train), ("val", val)) if share is not None}
    shares = source.default_shares("natural") | given
    if folds is not None:
        for option, value in (("--splits", splits), ("--train", train)):
            if value is not None:
                raise ValueError(f"--folds decides how many splits there are; leave {option} out.")
        shares.pop("train", None)
        return Folds(folds=folds, **shares), list(range(folds))
    count = NUM_SPLITS if splits is None else splits
    if not 1 <= count <= MOST_SEEDS:
        raise ValueError(f"--splits must lie between 1 and {MOST_SEEDS}, got {count}.")
    if source.default_split not in ("given", "bytime"):
        return Natural(**shares), list(range(count))
    for name in given:
        raise ValueError(f"the split or the time column decides; leave --{name} out.")
    return source.make_split(), list(range(count))


def make_methods(names: str | None, settings: Sequence[str], graph: Data) -> dict[str, Method]:
    """Methods with the parameters given, and defaults that suit the graph."""
    chosen = parse_methods(names) if names else list(DEFAULT_METHODS)
    params, sentences = parse_settings(chosen, settings)
    print_notes(sentences)
    return {
        name: METHODS[name](**{**METHODS[name].graph_defaults(graph), **params[name]})
        for name in chosen
    }


def run_comparison(
    source: GraphSource, methods: dict[str, Method], folder: Path | None, **options: Any
) -> None:
    """Compare methods with the options of `compare`, show the result, and write it to a folder."""
    if folder is not None:
        check_folder(folder)
    seeds = options["seeds"]
    _announce(source.name, methods, options["protocol"], len(seeds), options["device"].type)
    total = len(methods) * len(seeds) * max(options["budget"], 1)
    with count_bar("comparing", total) as count:

        def on_end(job: Job, result: Result) -> None:
            count()
            if isinstance(result, Record) and not err.is_terminal:
                title = job.method.full_title
                err.print(f"split {job.seed}: {title}, {result.seconds:.0f} s")

        comparison = compare(source.graph, methods, on_end=on_end, **options)
    _show(comparison)
    if folder is not None:
        _write(comparison, source.name, folder)
    else:
        print_notes(["Nothing was written; --out DIR writes CSV and JSON."])
    _exit_status(comparison, methods, options["time_limit"])


def find_class(graph: Data, name: str | None) -> int | None:
    """The index of a class, by its name or index."""
    if name is None:
        return None
    names = [str(known) for known in getattr(graph, "class_names", None) or []]
    indices = [str(label) for label in range(int(graph.y.max()) + 1)]
    for known in (names, indices):
        if name in known:
            return known.index(name)
    raise ValueError(unknown("class", name, names or indices))


def _announce(
    name: str, methods: dict[str, Method], protocol: SplitProtocol, splits: int, device: str
) -> None:
    titles = ", ".join(method.full_title for method in methods.values())
    how = f"{splits} {'split' if splits == 1 else 'splits'}"
    if isinstance(protocol, Natural):
        how += f" (train={protocol.train:g}, val={protocol.val:g})"
    elif isinstance(protocol, Folds):
        how = f"{protocol.folds}-fold cross-validation"
    else:
        how = f"the given split, {splits} random initialisations"
    out.print(f"[bold]{escape(titles)}[/] on [bold]{escape(name)}[/], {how}, on {device}")
    patience = Method.untuned_patience
    if all(method.patience == patience for method in methods.values()):
        out.print(
            f"[dim]Training stops after {patience} epochs without a better validation score; the "
            f"paper uses {Method.patience} (--set patience={Method.patience}).[/]"
        )
    for sentence in filter(None, (method.describe_defaults() for method in methods.values())):
        out.print(f"[dim]{escape(sentence)}[/]")


def _show(comparison: Comparison) -> None:
    content = comparison.as_dict()
    out.print()
    for table in comparison_tables(content):
        out.print(table)
        out.print()
    print_notes(comparison_notes(content))
    out.print()
    for sentence in comparison.verdict.sentences:
        out.print(f"[bold]{escape(sentence)}[/]", soft_wrap=True)


def _write(comparison: Comparison, name: str, folder: Path) -> None:
    paths = folder / "comparison.csv", folder / "comparison.json"
    lines = [written(path) for path in paths]
    write_comparison(comparison.standings, comparison.pairs, paths[0])
    write_json({**comparison.as_dict(), "dataset": name}, paths[1])
    for line in lines:
        out.print(line, soft_wrap=True)


def _exit_status(
    comparison: Comparison, methods: dict[str, Method], time_limit: float | None
) -> None:
    """Print what is missing; the exit status is 130 after Ctrl-C, 2 after a failure."""
    for label, reason in comparison.failed.items():
        print_error(ValueError(reason), prefix=f"{methods[label].full_title} did not run: ")
    if comparison.stopped:
        done = f"{len(comparison.seeds)} of {comparison.wanted} splits are counted"
        err.print(f"{'Time ran out' if time_limit else 'Stopped'}: {done}.")
        if time_limit is None:
            raise typer.Exit(130)
    if comparison.failed:
        raise typer.Exit(2)
