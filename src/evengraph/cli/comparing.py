"""Comparisons on the command line: a bar, three tables, a verdict in plain words, two files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table
from torch_geometric.data import Data

from evengraph.cli.console import complain, err, out
from evengraph.cli.running import check_folder, tell_settings, written
from evengraph.core.files import csv_text, write_atomic, write_json
from evengraph.experiment.comparison import (
    DEFAULT_METHODS,
    Comparison,
    Standing,
    compare,
)
from evengraph.experiment.fields import parse_fields, unknown
from evengraph.experiment.parsing import MOST_SEEDS, parse_methods, settings_of_each
from evengraph.experiment.ranking import FEWEST, Pair, p_words
from evengraph.experiment.trials import Failure, Outcome
from evengraph.methods import METHODS, Method
from evengraph.metrics import METRICS, Metric, abbreviations
from evengraph.pipeline.graph_source import TRAIN, VAL, GraphSource
from evengraph.splits import SPLITS, Folds, Natural, SplitProtocol
from evengraph.training.progress import count_bar

NUM_SPLITS = 5
HEAD = 20  # columns; longer heads are broken, so that no table is wider than 80
STRENGTH = {"clear": "clear", "here": "clear here", "noise": "noise"}


def plan_splits(
    opened: GraphSource,
    *,
    splits: int | None,
    folds: int | None,
    train: float | None,
    val: float | None,
) -> tuple[SplitProtocol, list[int]]:
    """A protocol, and the seeds of its splits; a split column or times decide by themselves."""
    own, asked = not opened.is_dataset, val
    val = (VAL if own else 0.1) if val is None else val
    if folds is not None:
        if splits is not None or train is not None:
            other = "--splits" if splits is not None else "--train"
            raise ValueError(f"--folds decides how many splits there are; leave {other} out.")
        return Folds(folds=folds, val=val), list(range(folds))
    count = NUM_SPLITS if splits is None else splits
    if not 1 <= count <= MOST_SEEDS:
        raise ValueError(f"--splits must lie between 1 and {MOST_SEEDS}, got {count}.")
    if opened.default_split in ("given", "bytime"):
        for name, value in (("--train", train), ("--val", asked)):
            if value is not None:
                raise ValueError(f"the split or the time column decides; leave {name} out.")
        return SPLITS[opened.default_split](), list(range(count))
    train = (TRAIN if own else 0.1) if train is None else train
    return Natural(train=train, val=val), list(range(count))


def make_methods(names: str | None, settings: Sequence[str], graph: Data) -> dict[str, Method]:
    """Methods with settings that suit the graph, and those asked for."""
    chosen = parse_methods(names) if names else list(DEFAULT_METHODS)
    each = settings_of_each(chosen, settings)
    given = {name: parse_fields(METHODS[name], each[name]) for name in chosen}
    tell_settings(each)
    return {
        name: METHODS[name](**{**METHODS[name].graph_defaults(graph), **params})
        for name, params in given.items()
    }


def run_comparison(
    opened: GraphSource,
    *,
    methods: str | None,
    settings: Sequence[str],
    protocol: SplitProtocol,
    seeds: Sequence[int],
    positive: str | None,
    folder: Path | None,
    budget: int,
    **options: Any,
) -> None:
    """Compare methods on a graph, show what came out, and keep it where a folder is given."""
    name, graph = opened.name, opened.graph
    entries = make_methods(methods, settings, graph)
    if folder is not None:
        check_folder(folder)
    _announce(name, entries, protocol, len(seeds), options["device"].type)
    total = len(entries) * len(seeds) * max(budget, 1)
    with count_bar("comparing", total) as count:

        def tell(ended: Outcome | Failure) -> None:
            count()
            if isinstance(ended, Outcome) and not err.is_terminal:
                title = entries[ended.label].full_title
                err.print(f"split {ended.seed}: {title}, {ended.seconds:.0f} s")

        comparison = compare(
            graph,
            entries,
            protocol,
            seeds=seeds,
            budget=budget,
            positive=find_class(graph, positive),
            on_trial=tell,
            **options,
        )
    show(comparison)
    if folder is not None:
        save(comparison, name, folder)
    else:
        out.print("[dim]Nothing was written; --out DIR keeps it as CSV and JSON.[/]")
    _end(comparison, entries, options["time_limit"])


def find_class(graph: Data, name: str | None) -> int | None:
    """The number of a class, by its name or number."""
    if name is None:
        return None
    names = [str(one) for one in getattr(graph, "class_names", None) or []]
    numbers = [str(label) for label in range(int(graph.y.max()) + 1)]
    for known in (names, numbers):
        if name in known:
            return known.index(name)
    raise ValueError(unknown("class", name, names or numbers))


def show(comparison: Comparison) -> None:
    """Three tables, notes, and the verdict."""
    out.print()
    for table in (main_table, further_table, trust_table):
        out.print(table(comparison))
        out.print()
    for line in notes(comparison):
        out.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    out.print()
    for sentence in comparison.verdict.sentences:
        out.print(f"[bold]{escape(sentence)}[/]", soft_wrap=True)


def main_table(comparison: Comparison) -> Table:
    """Mean and interval of each method, and how far it is behind the best."""
    table = _table()
    table.add_column("method", no_wrap=True)
    for title in (METRICS[comparison.metric].title, "behind the best"):
        table.add_column(fill(title, HEAD), justify="right", no_wrap=True)
    table.add_column("which is", no_wrap=True)
    for one in comparison.standings:
        pair = _gap(comparison, one)
        table.add_row(
            escape(one.title),
            _with_interval(*one.figure(comparison.metric)[:3]),
            _with_interval(pair.difference, *pair.interval) if pair else "",
            _strength(comparison, pair) if pair else "",
        )
    return table


def _strength(comparison: Comparison, pair: Pair) -> str:
    """What may be said of a difference; nothing, where the splits cannot tell."""
    few = len(comparison.seeds) < FEWEST
    fixed = comparison.protocol["name"] in ("given", "bytime")
    return "cannot tell" if few or fixed else STRENGTH[pair.strength]


def further_table(comparison: Comparison) -> Table:
    """Means of other figures; of two classes those of the one that matters."""
    table = _table()
    table.add_column("method", no_wrap=True)
    two = comparison.positive is not None
    columns = [
        metric
        for metric in METRICS.values()
        if metric.column
        and not metric.calibration
        and metric.binary == two
        # the main table shows it
        and metric.name != comparison.metric
    ]
    _add_columns(table, columns)
    for one in comparison.standings:
        cells = (_number(one.figure(metric.name).mean) for metric in columns)
        table.add_row(escape(one.title), *cells)
    return table


def trust_table(comparison: Comparison) -> Table:
    """How far probabilities can be trusted, and what a fit takes."""
    table = _table()
    table.add_column("method", no_wrap=True)
    columns = [metric for metric in METRICS.values() if metric.column and metric.calibration]
    _add_columns(table, columns)
    table.add_column("seconds", justify="right", style="dim", no_wrap=True)
    for one in comparison.standings:
        cells = (_number(one.figure(metric.name).mean) for metric in columns)
        table.add_row(escape(one.title), *cells, f"{one.seconds:.1f}")
    return table


def notes(comparison: Comparison) -> list[str]:
    """What a reader of the tables should know, a line each."""
    count = len(comparison.seeds)
    lines = [
        f"In percent, means over {count} {'split' if count == 1 else 'splits'} with 95% intervals; "
        f"the same splits for all methods, and {comparison.budget} "
        f"{'setting' if comparison.budget == 1 else 'settings'} of each, chosen on validation.",
    ]
    others = comparison.standings[1:]
    pair = comparison.against_best(others[0].label) if others else None
    if pair is not None and not math.isnan(pair.p):
        many = len(comparison.pairs)
        lines.append(
            "Behind the best: the mean difference with its 95% interval, as the verdict uses it: "
            "it allows for nodes that splits share (Nadeau and Bengio)"
            + (f" and is corrected for {many} comparisons (Holm)." if many > 1 else ".")
            + " Clear: more than noise."
        )
        lines.append(
            f"Best against next: {p_words(pair.wide_p)} likewise; {p_words(pair.p)} without "
            "allowing for nodes that splits share."
        )
    if any(one.strength == "here" for one in comparison.pairs):
        lines.append(
            "Here: on this graph's labelled nodes, with an interval that does not allow for shared "
            "nodes; less sure for others."
        )
    if comparison.positive is not None:
        lines += _of_two(comparison)
    lines.append(
        "ECE: how far confidence is from accuracy; calibrated by a temperature, which changes no "
        "decision; shifted: by a shift of each class as well, which may. Both use validation nodes."
    )
    return lines + _uncalibrated(comparison)


def _uncalibrated(comparison: Comparison) -> list[str]:
    """Which methods could not be calibrated, on how many splits, and why."""
    found: dict[str, dict[str, int]] = {}  # why, method, splits
    for one in comparison.standings:
        for outcome in one.outcomes:
            if note := outcome.calibrator["note"]:
                splits = found.setdefault(note, {})
                splits[one.title] = splits.get(one.title, 0) + 1
    lines = []
    total = len(comparison.seeds)
    for note, splits in found.items():
        words = [
            title if many == total else f"{title} ({many} of {total} splits)"
            for title, many in splits.items()
        ]
        everywhere = len(words) > 1 and list(splits.values()) == [total] * len(comparison.standings)
        lines.append(f"Calibration of {'all methods' if everywhere else ', '.join(words)}: {note}")
    return lines


def _of_two(comparison: Comparison) -> list[str]:
    """What the figures of the class that matters are."""
    place = comparison.positive or 0
    size, total = comparison.class_counts[place], sum(comparison.class_counts)
    return [
        f"The positive class is {comparison.classes[place]}, {size:,} of {total:,} labelled nodes. "
        f"{abbreviations(metric for metric in METRICS.values() if metric.binary)}. The threshold "
        "has the best F1 on validation nodes, before calibration.",
    ]


def save(comparison: Comparison, name: str, folder: Path) -> None:
    """Write comparison.json, and comparison.csv with a row for each method."""
    lines = [written(folder / file) for file in ("comparison.csv", "comparison.json")]
    write_json({**comparison.as_dict(), "dataset": name}, folder / "comparison.json")
    rows = [_row(comparison, one) for one in comparison.standings]
    write_atomic(csv_text(rows).encode(), folder / "comparison.csv")
    for line in lines:
        out.print(line, soft_wrap=True)


def _row(comparison: Comparison, one: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"method": one.label, "splits": len(one.outcomes)}
    for name in one.outcomes[0].metrics:
        figure = one.figure(name)
        row |= {name: figure.mean, f"{name}_low": figure.low, f"{name}_high": figure.high}
    pair = _gap(comparison, one)
    gap = {} if pair is None else vars(pair)
    for name in ("difference", "low", "high", "p", "wide_low", "wide_high", "wide_p", "strength"):
        row[f"behind_{name}"] = gap.get(name)
    return {
        key: round(value, 6) if isinstance(value, float) else value
        for key, value in {**row, "seconds": one.seconds}.items()
    }


def _gap(comparison: Comparison, one: Standing) -> Pair | None:
    """The difference to the best method; none for that itself."""
    return None if one is comparison.best else comparison.against_best(one.label)


def _announce(
    name: str, entries: dict[str, Method], protocol: SplitProtocol, splits: int, device: str
) -> None:
    titles = ", ".join(method.full_title for method in entries.values())
    how = f"{splits} {'split' if splits == 1 else 'splits'}"
    if isinstance(protocol, Natural):
        how += f" (train={protocol.train:g}, val={protocol.val:g})"
    elif isinstance(protocol, Folds):
        how = f"{protocol.folds}-fold cross-validation"
    else:
        how = f"the split that is given, {splits} starts: their noise is that of training alone"
    out.print(f"[bold]{escape(titles)}[/] on [bold]{escape(name)}[/], {how}, on {device}")
    patience = Method.untuned_patience
    if all(method.patience == patience for method in entries.values()):
        out.print(
            f"[dim]Training stops after {patience} epochs without a better validation score; the "
            f"paper uses {Method.patience} (--set patience={Method.patience}).[/]"
        )
    for sentence in filter(None, (method.describe_defaults() for method in entries.values())):
        out.print(f"[dim]{escape(sentence)}[/]")


def _end(comparison: Comparison, entries: dict[str, Method], time_limit: float | None) -> None:
    """Say what is missing; a method that failed, or Ctrl-C, shows in the exit status."""
    for label, reason in comparison.failed.items():
        complain(ValueError(reason), about=f"{entries[label].full_title} did not run: ")
    if comparison.stopped:
        done = f"{len(comparison.seeds)} of {comparison.wanted} splits are counted"
        err.print(f"{'Time ran out' if time_limit else 'Stopped'}: {done}.")
        if time_limit is None:
            raise typer.Exit(130)
    if comparison.failed:
        raise typer.Exit(2)


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _add_columns(table: Table, metrics: Sequence[Metric]) -> None:
    for metric in metrics:
        table.add_column(metric.short, justify="right", no_wrap=True)


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.1f}"


def _with_interval(mean: float, low: float, high: float) -> str:
    return _number(mean) if low != low else f"{mean:.1f} ({low:.1f} to {high:.1f})"
