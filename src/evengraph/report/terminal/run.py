"""Results of runs as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from evengraph.metrics import HEADLINE, METRICS, abbreviations
from evengraph.report.base_rates import base_rate_rows, describe_threshold, has_costs
from evengraph.report.formatting import DASH, decimals, metric_value, plus_minus, signed
from evengraph.report.model_card import FEW
from evengraph.report.run.result_reader import class_rows, confusion, runs
from evengraph.report.terminal.graph_verdict import graph_verdict
from evengraph.report.terminal.table import plain_table, two_class_metrics
from evengraph.report.untrusted import average, lookup, number

SHOWN_IN_FULL = 3  # runs whose summaries are shown in full
LATE = 0.95  # of the limit of epochs: a best epoch after it may not be the last improvement
MOST_CLASSES = 5  # whose recall is printed
PAPER_GRAPHS = ("cora", "citeseer", "pubmed")


def result_table(result: Mapping[str, Any]) -> Table:
    """One row per seed, then mean and standard deviation, then the paper's values."""
    effort = ("best epoch", "epochs", "seconds")
    heads = [METRICS[name].short for name in HEADLINE]
    table = plain_table(["seed"], [*heads, *effort], dim=effort)
    for run in result["runs"]:
        scores = (plus_minus(run["metrics"][name], None) for name in HEADLINE)
        epochs = (str(run["best_epoch"]), str(run["epochs"]))
        table.add_row(str(run["seed"]), *scores, *epochs, f"{run['seconds']:.1f}")
    table.add_row()
    cells = [plus_minus(*_mean_and_std(result, name)) for name in HEADLINE]
    table.add_row("mean", *cells, style="bold")
    if paper := result["paper"]:
        cells = [plus_minus(paper[name]["mean"], paper[name]["std"]) for name in HEADLINE]
        table.add_row("paper", *cells)
        gaps = [signed(result["mean"][name] - paper[name]["mean"]) for name in HEADLINE]
        table.add_row("difference", *gaps)
    return table


def two_class_table(results: Sequence[Mapping[str, Any]]) -> Table | None:
    """Binary metrics of the positive class; None unless there are two classes.

    Of several methods it has means alone, so that it is not wider than 80 columns.
    """
    metrics = two_class_metrics([result["mean"] for result in results])
    if not any(metric.binary for metric in metrics):
        return None
    table = plain_table(["rarer class"], [metric.short for metric in metrics], gap=1)
    for result in results:
        alone = len(results) == 1
        values = (_mean_and_std(result, m.name) if alone else (result["mean"][m.name], None)
                  for m in metrics)  # fmt: skip
        cells = (metric_value(m.name, *value) for m, value in zip(metrics, values, strict=True))
        name = "mean" if alone else escape(_title(result))
        table.add_row(name, *(cell.replace(" ", "") for cell in cells))
    return table


def base_rate_table(result: Mapping[str, Any]) -> Table | None:
    """What the threshold would give if the rarer class had another share; None without one."""
    rows = base_rate_rows(result)
    if not rows:
        return None
    heads = ["alarms per 1,000", "precision", "AP"]
    heads += ["cost per 1,000"] if has_costs(result) else []
    table = plain_table(["if the rarer class is"], heads)
    for name, values in rows:
        table.add_row(name, *map(decimals, values))
    return table


def summary_table(result: Mapping[str, Any]) -> Table | None:
    """What the method says about what it did: in full, or of many seeds the first line each."""
    runs = [run for run in result["runs"] if run.get("summary")]
    if not runs:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    for run in runs:
        lines = run["summary"] if len(runs) <= SHOWN_IN_FULL else run["summary"][:1]
        heads = [f"seed {run['seed']}", *[""] * (len(lines) - 1)]
        for head, line in zip(heads, lines, strict=True):
            table.add_row(*([head] if len(runs) > 1 else []), escape(line))
    if verdict := graph_verdict([run["summary"] for run in runs]):
        table.add_row("all", verdict)
    return table


def comparison_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """One row per method beside the paper's values, the best mean in bold."""
    published = any(result["paper"] for result in results)
    beside = ["paper"] if published else []
    heads = [head for name in HEADLINE for head in (METRICS[name].short, *beside)]
    table = plain_table(["method"], [*heads, "seconds"], dim={"paper", "seconds"}, gap=1)
    complete = [result["mean"] for result in results if result["complete"]]
    best = {
        name: max((number(mean[name]) or 0.0 for mean in complete), default=None)
        for name in HEADLINE
    }
    for result in results:
        cells = []
        for name in HEADLINE:
            text = _tight(*_mean_and_std(result, name))
            leads = result["complete"] and result["mean"][name] == best[name]
            cells.append(f"[bold]{text}[/]" if leads else text)
            if published:
                paper = result["paper"]
                cells.append(_tight(paper[name]["mean"], paper[name]["std"]) if paper else DASH)
        seconds = sum(run["seconds"] for run in result["runs"])
        cells.append(f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")
        table.add_row(escape(_title(result)), *cells)
    return table


def notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Footnotes of the tables, one line each."""
    over_seeds = any(len(result["runs"]) > 1 for result in results)
    lines = [
        f"{'± is the standard deviation over seeds; ' if over_seeds else ''}G-mean is the square "
        "root of mean recall times mean specificity, as in the paper."
    ]
    if len(results) == 1:
        lines += _rare_recalls(results[0])
    lines += _epoch_limits(results)
    binary = two_class_metrics([result["mean"] for result in results])
    if any(metric.binary for metric in binary):
        lines.append(f"Rarer class: {abbreviations(binary)}.")
    if len(results) == 1 and base_rate_rows(results[0]):
        lines.append(describe_threshold(results[0]))
    changed: dict[str, list[str]] = {}
    for result in results:
        if result["changed_from_paper"] and result["dataset"]["name"] in PAPER_GRAPHS:
            names = ", ".join(result["changed_from_paper"])
            changed.setdefault(names, []).append(result["method"]["title"])
    lines += [
        f"{', '.join(titles)}: paper values hidden, they used a different {names}."
        for names, titles in changed.items()
    ]
    lines += [
        f"{result['method']['title']}: interrupted, results of the best model so far."
        for result in results
        if not result["complete"]
    ]
    return lines


def _rare_recalls(result: Mapping[str, Any]) -> list[str]:
    """Recall of the minority classes, averaged over seeds; of many the lowest."""
    rows = class_rows(result)
    counts = [sum(row) / len(runs(result)) for row in confusion(result, rows)] or [0.0] * len(rows)
    rare = [
        (average(row.recalls), row.name, count)
        for row, count in zip(rows, counts, strict=True)
        if row.minority
    ]
    known = sorted((recall, name, count) for recall, name, count in rare if recall is not None)
    if not known:
        return []
    shown = ", ".join(
        f"{name} {decimals(recall)}%{f' ({count:.0f} test nodes)' if count else ''}"
        for recall, name, count in known[:MOST_CLASSES]
    )
    more = len(known) - MOST_CLASSES
    line = f"Recall of minority classes: {shown}{f' and {more} more' if more > 0 else ''}."
    if any(0 < count < FEW for _, _, count in known[:MOST_CLASSES]):
        line += f" Recall is uncertain with fewer than {FEW} test nodes."
    return [line]


def _epoch_limits(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the fits that were still improving when the limit of epochs ended them."""
    ended: dict[tuple[float, str], list[str]] = {}
    for result in results:
        limit = number(lookup(result, "method", "fields", "max_epochs"))
        runs = [run for run in result["runs"] if not run.get("summary")]  # of one model
        late = [run for run in runs if limit and run["best_epoch"] >= LATE * limit]
        seeds = [str(run["seed"]) for run in late if run["epochs"] >= (limit or 0)]
        if limit is not None and seeds:
            text = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"
            ended.setdefault((limit, text), []).append(result["method"]["title"])
    return [
        f"{', '.join(titles)}, {seeds}: training ended at the limit of {limit:g} epochs, "
        f"not by patience; longer training may score higher (--set max_epochs={2 * limit:g})."
        for (limit, seeds), titles in ended.items()
    ]


def method_card(method: Mapping[str, Any]) -> Table:
    """A method in a few lines: name, idea, reference, cost, parameters."""
    table = _two_columns()
    table.add_row(f"[bold not dim]{method['name']}[/]", f"[bold]{method['title']}[/]")
    for name in ("idea", "reference", "cost", "edges"):
        table.add_row(name, escape(method[name]))
    table.add_row("parameters", escape(parameter_line(method["fields"])))
    return table


def parameter_table(values: Mapping[str, Any], meanings: Mapping[str, str]) -> Table:
    """One row per parameter: default and meaning."""
    table = _two_columns()
    for name, value in values.items():
        table.add_row(f"[not dim]{name}={escape(str(value))}[/]", escape(meanings.get(name, "")))
    return table


def parameter_line(values: Mapping[str, Any]) -> str:
    """Parameters and their values on one line."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _title(result: Mapping[str, Any]) -> str:
    variant = result["method"]["fields"].get("variant")
    title = result["method"]["title"] + (f" {variant}" if variant else "")
    return title if result["complete"] else f"{title} (stopped)"


def _mean_and_std(result: Mapping[str, Any], name: str) -> tuple[float, float | None]:
    """Mean and standard deviation; one run has none."""
    return result["mean"][name], result["std"][name] if len(result["runs"]) > 1 else None


def _tight(mean: float, std: float | None) -> str:
    return plus_minus(mean, std).replace(" ", "")


def _two_columns() -> Table:
    left, right = Column(style="dim", no_wrap=True), Column(overflow="fold")
    return Table.grid(left, right, padding=(0, 2, 0, 0))
