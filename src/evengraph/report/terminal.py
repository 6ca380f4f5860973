"""Tables and notes of results, comparisons, inspections and methods in the terminal."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from evengraph.core.untrusted import items, lookup, number, part
from evengraph.metrics.registry import HEADLINE, METRICS, Metric, abbreviations
from evengraph.metrics.significance import format_p
from evengraph.report.markup import (
    decimals,
    integer,
    metric_value,
    percentage,
    plural,
    plus_minus,
    signed,
)
from evengraph.report.view import (
    FEW,
    TERMS,
    ComparisonView,
    InspectionView,
    ResultView,
    with_interval,
)

Content = Mapping[str, Any]


def plain_table(
    names: Iterable[str], values: Iterable[str] = (), *, dim: Collection[str] = (), gap: int = 2
) -> Table:
    """Start a table without rules: names wrap where room is short, values never; some are dim."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in values:
        style = "dim" if name in dim else None
        table.add_column(name, justify="right", style=style, no_wrap=True)
    return table


def result_tables(contents: Sequence[Content]) -> list[Table]:
    """The tables of a run, from the content of a result.json for each method."""
    results = [ResultView(content) for content in contents]
    first, *others = results
    tables = [_methods_table(results) if others else _seeds_table(first)]
    if not others:
        head, *heads = first.threshold_heads
        thresholds = plain_table([head], heads, gap=1)
        for row in first.thresholds:
            thresholds.add_row(*row)
        tables += [_class_table(first), thresholds, _summary_table(first)]
    return [table for table in tables if table.row_count]


def _seeds_table(result: ResultView) -> Table:
    """One row per seed, then mean and standard deviation, then the paper's values.

    Of two classes with the metrics of the positive one.
    """
    effort, metrics = result.effort, [METRICS[name] for name in HEADLINE]
    if result.is_two_class and not result.paper:
        effort, metrics = (), two_class_metrics([part(result.content, "mean")])
    scores = [result.score(metric.name) for metric in metrics]
    heads = [metric.short for metric in metrics]
    first = "from" if "period" in result.runs[0] else "seed"
    table = plain_table([first], [*heads, *effort], dim=effort, gap=2 if effort else 1)
    for place, run in enumerate(result.runs):
        cells = [metric_value(score.name, score.seeds[place]) for score in scores]
        cells += [decimals(run[n.replace(" ", "_")], int(n == "seconds")) for n in effort]
        table.add_row(str(run.get("period", run["seed"])).partition(" to ")[0], *cells)
    if len(result.runs) > 1:
        table.add_row()
        means = (metric_value(s.name, s.mean, s.std) for s in scores)
        table.add_row("mean", *(means if effort else map(_tight, means)), style="bold")
    if result.paper:
        table.add_row("paper", *(plus_minus(*score.paper) for score in scores))
        gaps = (score.difference for score in scores)
        table.add_row("difference", *map(signed, gaps))
    return table


def _methods_table(results: Sequence[ResultView]) -> Table:
    """One row per method beside the paper's values, the best mean in bold."""
    published = any(result.paper for result in results)
    beside = ["paper"] if published else []
    heads = [head for name in HEADLINE for head in (METRICS[name].short, *beside)]
    table = plain_table(["method"], [*heads, "seconds"], dim={"paper", "seconds"}, gap=1)
    whole = [result for result in results if result.content["complete"]]
    best = {n: max((r.score(n).mean or 0.0 for r in whole), default=None) for n in HEADLINE}
    for result in results:
        cells = []
        for score in map(result.score, HEADLINE):
            text = _tight(plus_minus(score.mean, score.std))
            leads = result in whole and score.mean == best[score.name]
            cells.append(f"[bold]{text}[/]" if leads else text)
            if published:
                cells.append(_tight(plus_minus(*score.paper)))
        seconds = sum(run["seconds"] for run in result.runs)
        cells.append(f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")
        table.add_row(escape(_title(result)), *cells)
    return table


def two_class_metrics(values: Sequence[Mapping[str, object]]) -> list[Metric]:
    """Metrics of tables about two classes, among those that there are values of."""
    return [
        metric
        for name, metric in METRICS.items()
        if metric.column
        and (metric.binary or metric.ranking)
        and all(name in each for each in values)
    ]


def _summary_table(result: ResultView) -> Table:
    """What the method says about what it did: in full, or of many seeds the first line each."""
    summaries = result.summaries
    table = Table.grid(padding=(0, 2, 0, 0))
    for seed, lines in summaries:
        shown = lines if len(summaries) <= 3 else lines[:1]
        for place, line in enumerate(shown):
            head = "" if place else f"seed {seed}"
            table.add_row(*([head] if len(summaries) > 1 else []), escape(line))
    return table


def result_notes(content: Content) -> list[str]:
    """Footnotes of the tables of a result, one line each."""
    result = ResultView(content)
    shown = two_class_metrics([part(content, "mean")])
    binary = [metric for metric in shown if metric.binary]
    heads = "G-mean is the square root of mean recall times mean specificity, as in the paper."
    if binary and not result.paper:
        heads = f"{abbreviations(shown)}."
    over = "± is the sample standard deviation over seeds; " if len(result.runs) > 1 else ""
    lines = [f"{over}{heads}"]
    if few := [row for row in result.classes if 0 < row.pooled.size < FEW * len(result.runs)]:
        names = ", ".join(row.name for row in few[-5:])
        lines.append(
            f"With fewer than {FEW} test nodes in a split, scores of {names} are uncertain."
        )
    if result.thresholds:
        lines.append(result.threshold)
    title, changed = content["method"]["title"], content["changed_from_paper"]
    if changed and content["dataset"]["name"] in ("cora", "citeseer", "pubmed"):
        names = ", ".join(changed)
        lines.append(f"{title}: paper values hidden, they used a different {names}.")
    if not content["complete"]:
        lines.append(f"{title}: interrupted, results of the best model so far.")
    return lines


def _class_table(result: ResultView) -> Table:
    """Precision and recall of each class in all test sets; of many classes the rarest."""
    table = plain_table(["class"], ["test nodes", "precision, %", "recall, %", "F1, %"])
    for row in [row for row in result.classes if row.pooled.size][-MAX_CLASSES:]:
        table.add_row(escape(row.name), *row.cells[1:])
    return table


def _title(result: ResultView) -> str:
    variant = lookup(result.method, "fields", "variant")
    title = result.method["title"] + (f" {variant}" if variant else "")
    return title if result.content["complete"] else f"{title} (stopped)"


def _tight(text: str) -> str:
    return text.replace(" ", "")


def comparison_tables(comparison: Content) -> list[Table]:
    """The metric they are compared by, other metrics, and calibration with cost."""
    view = ComparisonView(comparison)
    # long heads are wrapped, so that no table is wider than 80
    main = plain_table(["method"], [fill(view.metric.title, 20), "behind the best"])
    main.add_column("verdict", no_wrap=True)
    for one in view.standings:
        gap = one.behind
        behind = [with_interval(gap.difference, gap.interval), gap.verdict] if gap else ["", ""]
        main.add_row(escape(one.title), one.score, *behind)
    plain = [metric for metric in METRICS.values() if metric.column and not metric.binary]
    two_class = two_class_metrics([method["figures"] for method in view.methods])
    metrics = plain if comparison["positive"] is None else two_class
    # the first table has the metric that they are compared by
    others = [m for m in metrics if not m.calibration and m is not view.metric]
    calibration = [metric for metric in METRICS.values() if metric.column and metric.calibration]
    return [main, _metrics_table(view, others), _metrics_table(view, calibration, seconds=True)]


def _metrics_table(
    view: ComparisonView, metrics: Sequence[Metric], *, seconds: bool = False
) -> Table:
    heads = [*(metric.short for metric in metrics), *(["seconds"] if seconds else [])]
    table = plain_table(["method"], heads, dim={"seconds"})
    for method in view.methods:
        means = {metric.name: method["figures"][metric.name]["mean"] for metric in metrics}
        cells = [metric_value(name, mean) for name, mean in means.items()]
        cells += [decimals(method["seconds"])] if seconds else []
        table.add_row(escape(method["title"]), *cells)
    return table


def comparison_notes(comparison: Content) -> list[str]:
    """What a reader of the tables should know, one line each."""
    view, pairs, budget = ComparisonView(comparison), comparison["pairs"], comparison["budget"]
    intervals = ", too few for an interval;" if view.too_few else " with 95% intervals;"
    settings = f"up to {budget} settings of each, selected on validation"
    lines = [
        f"In percent, means over {view.splits}{intervals} the same splits for all methods, "
        f"and {'one setting of each' if budget == 1 else settings}."
    ]
    gap = view.standings[1].behind if len(view.standings) > 1 else None
    if gap is not None and not view.too_few:
        lines.append(
            "Behind the best: the mean difference with its 95% interval, which allows for nodes "
            "that splits share (Nadeau and Bengio)"
            + (f" and is corrected for {len(pairs)} comparisons (Holm)." if len(pairs) > 1 else ".")
        )
        p = float("nan") if gap.p is None else gap.p
        lines.append(f"Best against next: {format_p(p)}.")
    if comparison["positive"] is not None:
        index = comparison["classes"].index(comparison["positive"])
        size, total = comparison["class_counts"][index], sum(comparison["class_counts"])
        short = abbreviations(two_class_metrics([method["figures"] for method in view.methods]))
        text = f"The positive class is {comparison['positive']}, {size:,} of {total:,} labelled "
        lines.append(f"{text}nodes. {short}. The threshold has the best F1 on held-out nodes.")
    return [*lines, f"ECE: {TERMS['ECE']}"]


MAX_CLASSES = 20
BAR = 8  # characters of the longest bar
MARKS = {"warning": ("!", "bold red"), "note": ("·", "yellow"), "good": ("✓", "green")}


def inspection_view(inspection: Content) -> Group:
    """Show the content of an inspect.json: size, classes with their reach, findings, advice."""
    view = InspectionView(inspection)
    parts: list[RenderableType] = [_facts(view), Text(), _classes(view)]
    omitted = len(items(view.labels, "names")) - MAX_CLASSES
    if omitted > 0:
        text = f"and {plural(omitted, 'smaller class', 'smaller classes')}"
        parts.append(Text(text, style="dim"))
    key = "same: neighbours in the same class; chance: if neighbours were drawn at random"
    if view.unlabelled:
        key += "; ≤2: unlabelled nodes within two hops of a labelled node of the class"
    findings = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 1, 0, 0))
    for level, text in view.findings:
        mark, style = MARKS[level]
        findings.add_row(Text(mark, style=style), Text(text))
    advice = Text("Recommendation: ", style="bold").append(view.recommendation, style="not bold")
    parts += [Text(key, style="dim italic"), Text(), findings, Text(), advice]
    return Group(*parts)


def _facts(view: InspectionView) -> Text:
    labels, degrees = view.labels, part(view.content, "degrees")
    facts = [f"{size} {noun}" for noun, size in view.sizes.items()]
    if lookup(view.content, "edges", "weighted"):
        facts[1] += ", weighted"
    if relations := items(view.content, "edges", "relations"):
        facts[1] += f", {len(relations)} relations"
    facts.append(plural(len(items(labels, "names")), "class", "classes"))
    median = number(degrees.get("median"))
    share = percentage(labels.get("labelled_share"))
    more = [
        f"{integer(labels.get('num_labelled'))} labelled ({share})",
        *([f"degree: median {median:g}"] if median is not None else []),
        f"max {integer(degrees.get('largest'))}",
        f"isolated {integer(degrees.get('isolated'))}",
        plural(int(number(lookup(view.content, "components", "count")) or 0), "component"),
    ]
    name = str(view.content.get("name") or "The graph")
    return Text.assemble((name, "bold"), "  ").append(
        f"{' · '.join(facts)}\n{' · '.join(more)}", style="dim"
    )


def _classes(view: InspectionView) -> Table:
    """Classes from the largest to the smallest: labels, homophily, reach."""
    rows, within = view.classes, view.reach
    table = plain_table(())
    table.add_column("class", overflow="ellipsis", max_width=20, no_wrap=True)
    for title in ("labelled", "", "same", "chance", *(f"≤{hop + 1}" for hop in range(len(within)))):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for row in rows[:MAX_CLASSES]:
        size = integer(row.labelled), bar(row.labelled, rows[0].labelled)
        same = _percent(row.homophily), Text(_percent(row.chance), style="dim")
        styles = ("red" if v < 25 else "yellow" if v < 75 else "green" for v in row.reach)
        reach = map(Text, map(_percent, row.reach), styles)
        table.add_row(escape(row.name), *size, *same, *reach)
    if within:
        table.add_row("any class", "", "", "", "", *map(_percent, within), style="dim")
    return table


def bar(count: float, largest: float) -> str:
    """Draw a bar of blocks in steps of an eighth; any count above 0 is visible."""
    if count <= 0 or largest <= 0:
        return ""
    full, rest = divmod(max(round(8 * BAR * count / largest), 1), 8)
    return "█" * full + " ▏▎▍▌▋▊▉"[rest].strip()


def _percent(value: float | None) -> str:
    return percentage(None if value is None else value / 100)
