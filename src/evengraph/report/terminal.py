"""The look of tables in the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from evengraph.core.untrusted import average, items, lookup, number, part
from evengraph.metrics.registry import HEADLINE, METRICS, Metric, abbreviations
from evengraph.metrics.significance import format_p
from evengraph.report.compare_page import (
    Comparison,
    behind_best,
    pair_interval,
    pair_verdict,
    too_few,
)
from evengraph.report.inspect_page import class_summaries
from evengraph.report.markup import (
    DASH,
    decimals,
    integer,
    metric_value,
    percentage,
    plural,
    plus_minus,
    signed,
)
from evengraph.report.model_card import FEW
from evengraph.report.result import (
    base_rate_rows,
    class_rows,
    confusion,
    describe_threshold,
    has_costs,
    runs,
)


def plain_table(
    names: Iterable[str], values: Iterable[str] = (), *, dim: Collection[str] = (), gap: int = 2
) -> Table:
    """Start a table without rules: columns of names wrap where room is short, values never do.

    `dim` are the values in a weaker colour, `gap` is the number of spaces between columns.
    """
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in values:
        style = "dim" if name in dim else None
        table.add_column(name, justify="right", style=style, no_wrap=True)
    return table


def two_class_metrics(values: Sequence[Mapping[str, object]]) -> list[Metric]:
    """Metrics of tables about two classes, among those that there are values of.

    Recall at k is left out where it equals precision at k: where k is the number of positives.
    """
    equal = all(each.get("recall_at_k") == each.get("precision_at_k") for each in values)
    return [
        metric
        for name, metric in METRICS.items()
        if metric.column
        and (metric.binary or metric.ranking)
        and all(name in each for each in values)
        and not (name == "recall_at_k" and equal)
    ]


NUMBER = re.compile(r"\d[\d.,]*\b")
HEAD = 20  # characters; longer heads are wrapped, so that no table is wider than 80


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The metric they are compared by, other metrics, and calibration with cost."""
    plain = [metric for metric in METRICS.values() if metric.column and not metric.binary]
    metrics = plain if comparison["positive"] is None else _two_class_metrics(comparison)
    others = [
        metric
        for metric in metrics
        if not metric.calibration and metric.name != comparison["metric"]  # the first table has it
    ]
    calibration = [metric for metric in METRICS.values() if metric.column and metric.calibration]
    return [
        _main_table(comparison),
        _metrics_table(comparison, others),
        _metrics_table(comparison, calibration, seconds=True),
    ]


def _main_table(comparison: Comparison) -> Table:
    """Mean and interval of each method, and how far it is behind the best."""
    heads = (METRICS[comparison["metric"]].title, "behind the best")
    table = plain_table(["method"], [fill(title, HEAD) for title in heads])
    table.add_column("verdict", no_wrap=True)
    for method in comparison["methods"]:
        summary = method["figures"][comparison["metric"]]
        if too_few(comparison):
            cells = [decimals(summary["mean"]), "", ""]
        else:
            cells = [_with_interval(summary["mean"], summary["low"], summary["high"]), "", ""]
        if (pair := behind_best(comparison, method["label"])) is not None:
            cells[1:] = _difference(comparison, pair)
        table.add_row(escape(method["title"]), *cells)
    return table


def _difference(comparison: Comparison, pair: Mapping[str, Any]) -> list[str]:
    """How far a method is behind, and whether that is significant."""
    verdict, interval = pair_verdict(comparison, pair), pair_interval(pair)
    if too_few(comparison) or interval is None:
        return [decimals(pair["difference"]), verdict]
    return [_with_interval(pair["difference"], *interval), verdict]


def _metrics_table(
    comparison: Comparison, metrics: Sequence[Metric], *, seconds: bool = False
) -> Table:
    heads = [*(metric.short for metric in metrics), *(["seconds"] if seconds else [])]
    table = plain_table(["method"], heads, dim={"seconds"})
    for method in comparison["methods"]:
        means = {metric.name: method["figures"][metric.name]["mean"] for metric in metrics}
        cells = [metric_value(name, mean) for name, mean in means.items()]
        cells += [decimals(method["seconds"])] if seconds else []
        table.add_row(escape(method["title"]), *cells)
    return table


def _two_class_metrics(comparison: Comparison) -> list[Metric]:
    return two_class_metrics([method["figures"] for method in comparison["methods"]])


def comparison_notes(comparison: Comparison) -> list[str]:
    """What a reader of the tables should know, one line each."""
    splits = plural(len(comparison["seeds"]), "split")
    intervals = ", too few for an interval;" if too_few(comparison) else " with 95% intervals;"
    lines = [
        f"In percent, means over {splits}{intervals} "
        f"the same splits for all methods, and {_budget(comparison['budget'])}."
    ]
    pairs, methods = comparison["pairs"], comparison["methods"]
    pair = behind_best(comparison, methods[1]["label"]) if len(methods) > 1 else None
    if pair is not None and not too_few(comparison):
        lines.append(
            "Behind the best: the mean difference with its 95% interval, as the verdict uses it: "
            "it allows for nodes that splits share (Nadeau and Bengio)"
            + (f" and is corrected for {len(pairs)} comparisons (Holm)." if len(pairs) > 1 else ".")
        )
        lines.append(
            f"Best against next: {format_p(pair['wide_p'])}; {format_p(pair['p'])} without "
            "allowing for nodes that splits share."
        )
    if any(pair["strength"] == "here" for pair in pairs):
        lines.append(
            "On these nodes: significant for this graph's labelled nodes, with an interval that "
            "does not allow for shared nodes; less certain for other nodes."
        )
    if comparison["positive"] is not None:
        index = comparison["classes"].index(comparison["positive"])
        size, total = comparison["class_counts"][index], sum(comparison["class_counts"])
        lines.append(
            f"The positive class is {comparison['positive']}, {size:,} of {total:,} labelled "
            f"nodes. {abbreviations(_two_class_metrics(comparison))}. The "
            "threshold has the best F1 on validation nodes, before calibration."
        )
    lines.append(
        "ECE: how far confidence is from accuracy; calibrated: after temperature scaling, which "
        "changes no decision; shifted: after a shift of each class as well, which may. Both use "
        "validation nodes."
    )
    return lines + _uncalibrated(comparison)


def _budget(settings: int) -> str:
    if settings == 1:
        return "one setting of each"
    return f"up to {settings} settings of each, selected on validation"


def _uncalibrated(comparison: Comparison) -> list[str]:
    """Which methods could not be calibrated, on how many splits, and why."""
    reasons: dict[str, Counter[str]] = {}  # splits of each method
    alike: dict[str, list[str]] = {}  # reasons that differ in their numbers only
    for method in comparison["methods"]:
        for run in method["runs"]:
            if reason := run["calibrator"]["note"]:
                kind = NUMBER.sub("#", reason)
                alike.setdefault(kind, []).append(reason)
                reasons.setdefault(kind, Counter())[method["title"]] += 1
    lines = []
    total = len(comparison["seeds"])
    for kind, splits in reasons.items():
        names = [
            title if count == total else f"{title} ({count} of {total} splits)"
            for title, count in splits.items()
        ]
        if len(names) > 1 and list(splits.values()) == [total] * len(comparison["methods"]):
            names = ["all methods"]
        several = " in the first of them," if len(set(alike[kind])) > 1 else ""
        lines.append(f"Calibration of {', '.join(names)}:{several} {alike[kind][0]}")
    return lines


def _with_interval(mean: float, low: float, high: float) -> str:
    return decimals(mean) if low != low else f"{mean:.1f} ({low:.1f} to {high:.1f})"


MAX_CLASSES = 20
BAR = 8  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉█"
MARKS = {"warning": ("!", "bold red"), "note": ("·", "yellow"), "good": ("✓", "green")}


def inspection_view(inspection: Mapping[str, Any]) -> Group:
    """Show the content of an inspect.json: size, classes with their reach, findings, advice."""
    parts: list[RenderableType] = [_facts(inspection), Text(), _classes(inspection)]
    omitted = len(items(inspection, "labels", "names")) - MAX_CLASSES
    if omitted > 0:
        text = f"and {plural(omitted, 'smaller class', 'smaller classes')}"
        parts.append(Text(text, style="dim"))
    parts.append(_key(inspection))
    parts += [Text(), _findings(inspection), Text(), _recommendation(inspection)]
    return Group(*parts)


def _facts(inspection: Mapping[str, Any]) -> Text:
    labels, degrees = part(inspection, "labels"), part(inspection, "degrees")
    line = Text.from_markup(f"[bold]{escape(str(inspection.get('name') or 'The graph'))}[/]  ")
    facts = [
        f"{integer(inspection.get('num_nodes'))} nodes",
        f"{integer(lookup(inspection, 'edges', 'pairs'))} edges",
        f"{integer(lookup(inspection, 'features', 'count'))} features",
        plural(len(items(labels, "names")), "class", "classes"),
    ]
    if lookup(inspection, "edges", "weighted"):
        facts[1] += ", weighted"
    if relations := items(inspection, "edges", "relations"):
        facts[1] += f", {len(relations)} relations"
    line.append(" · ".join(facts), style="dim")
    line.append("\n")
    median = number(degrees.get("median"))
    components = int(number(lookup(inspection, "components", "count")) or 0)
    labelled = integer(labels.get("num_labelled"))
    more = [
        f"{labelled} labelled ({percentage(labels.get('labelled_share'))})",
        *([f"degree: median {median:g}"] if median is not None else []),
        f"max {integer(degrees.get('largest'))}",
        f"isolated {integer(degrees.get('isolated'))}",
        plural(components, "component"),
    ]
    return line.append(" · ".join(more), style="dim")


def _classes(inspection: Mapping[str, Any]) -> Table:
    """Classes from the largest to the smallest: labels, homophily, reach."""
    rows = class_summaries(inspection)
    nodes = number(lookup(inspection, "reach", "nodes"))
    within = [(number(n) or 0.0) / nodes for n in items(inspection, "reach", "any_class") if nodes]
    table = plain_table(())
    table.add_column("class", overflow="ellipsis", max_width=20, no_wrap=True)
    for title in ("labelled", "", "same", "chance", *(f"≤{hop + 1}" for hop in range(len(within)))):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for row in rows[:MAX_CLASSES]:
        table.add_row(
            escape(row.name),
            integer(row.labelled),
            bar(row.labelled, rows[0].labelled),
            percentage(None if row.homophily is None else row.homophily / 100),
            _dim(percentage(None if row.chance is None else row.chance / 100)),
            *(_coloured(value / 100) for value in row.reach),
        )
    if within:
        table.add_row("any class", "", "", "", "", *map(percentage, within), style="dim")
    return table


def _key(inspection: Mapping[str, Any]) -> Text:
    text = "same: neighbours in the same class; chance: if neighbours were drawn at random"
    if number(lookup(inspection, "reach", "nodes")):
        text += "; ≤2: unlabelled nodes within two hops of a labelled node of the class"
    return Text(text, style="dim italic")


def bar(count: float, largest: float) -> str:
    """Draw a bar of blocks in steps of an eighth; any count above 0 is visible."""
    if count <= 0 or largest <= 0:
        return ""
    eighths = max(round(8 * BAR * count / largest), 1)
    full, rest = divmod(eighths, 8)
    return "█" * full + EIGHTHS[rest].strip()


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def _coloured(fraction: float) -> Text:
    style = "red" if fraction < 0.25 else "yellow" if fraction < 0.75 else "green"
    return Text(percentage(fraction), style=style)


def _findings(inspection: Mapping[str, Any]) -> Table:
    table = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 1, 0, 0))
    for finding in items(inspection, "findings"):
        mark, style = MARKS.get(str(finding.get("level")), MARKS["note"])
        table.add_row(Text(mark, style=style), Text(str(finding["text"])))
    return table


def _recommendation(inspection: Mapping[str, Any]) -> Text:
    sentences = " ".join(str(sentence) for sentence in items(inspection, "recommendation"))
    return Text("Recommendation: ", style="bold").append(sentences, style="not bold")


SCORES = re.compile(r"([0-9.]+) with it and ([0-9.]+) without it")
HELPS = "The graph helps"
FEWEST = 3


def graph_verdict(summaries: Sequence[Sequence[str]]) -> str:
    """What all splits say together where one of them could not tell; empty if they disagree.

    Args:
        summaries: What a method says about each split, in lines.
    """
    ahead = [_graph_is_ahead(" ".join(lines)) for lines in summaries]
    unclear = any("is unclear" in line for lines in summaries for line in lines)
    if len(ahead) < FEWEST or not unclear or None in ahead or len(set(ahead)) > 1:
        return ""
    which, verdict = ("with", "helps") if ahead[0] else ("without", "does not help")
    return (
        f"On the validation nodes of all {len(ahead)} splits the best model {which} the graph is "
        f"ahead: most likely it {verdict}, though one split alone cannot tell."
    )


def _graph_is_ahead(text: str) -> bool | None:
    """Whether the best model with the graph is ahead of the best without; None if equal."""
    if HELPS in text:
        return True
    scores = SCORES.search(text)
    if scores is None or scores[1] == scores[2]:
        return None
    return float(scores[1]) > float(scores[2])


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
