"""What a comparison says: which pairs were tested, with which interval, and how significantly.

Every function takes a comparison as `comparison.json` holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evengraph.core.untrusted import average, items, lookup, number, part
from evengraph.metrics.registry import METRICS
from evengraph.metrics.significance import ENOUGH_SPLITS, FEWEST_SPLITS, format_p
from evengraph.report import page
from evengraph.report import result as captions
from evengraph.report.charts import ForestRow, bar, forest_plot, swatch
from evengraph.report.markup import (
    DASH,
    Markup,
    decimals,
    integer,
    join,
    metric_value,
    plural,
    signed,
    tag,
)
from evengraph.report.page import (
    DENSE,
    Link,
    changed_params,
    copy_script,
    origin_section,
    page_links,
)
from evengraph.report.result import minority

STRENGTH = {"clear": "significant", "here": "on these nodes", "noise": "not significant"}
TOO_FEW = "too few splits"
Comparison = Mapping[str, Any]


def too_few(comparison: Comparison) -> bool:
    """Whether an interval would be wider than any difference between methods."""
    return len(comparison["seeds"]) < ENOUGH_SPLITS


def behind_best(comparison: Comparison, label: str) -> Mapping[str, Any] | None:
    """The pair of a method and the best; None for the best itself."""
    both = {label, comparison["methods"][0]["label"]}
    pairs = (pair for pair in comparison["pairs"] if {pair["ahead"], pair["behind"]} == both)
    return next(pairs, None)


def pair_interval(pair: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval that belongs to the strength of a difference; None for a single split."""
    names = ("low", "high") if pair["strength"] == "here" else ("wide_low", "wide_high")
    low, high = (number(pair[name]) for name in names)
    return None if low is None or high is None else (low, high)


def pair_verdict(comparison: Comparison, pair: Mapping[str, Any]) -> str:
    """Whether a difference is significant, in a few words."""
    tested = len(comparison["seeds"]) >= FEWEST_SPLITS
    if tested and not comparison["conclusive"]:  # one split, several seeds
        return "cannot tell"
    if not tested or (too_few(comparison) and pair["strength"] == "noise"):
        return TOO_FEW
    return STRENGTH[pair["strength"]]


def split_values(method: Mapping[str, Any], metric: str) -> dict[int, float]:
    """The metric of a method for each split."""
    values = {run["seed"]: number(part(run, "metrics").get(metric)) for run in method["runs"]}
    return {seed: value for seed, value in values.items() if value is not None}


def recalls(method: Mapping[str, Any], index: int) -> float | None:
    """Mean recall of a class over splits, in percent; None if it was not recorded."""
    columns = [items(run, "per_class", "recall") for run in method["runs"]]
    return average(number(column[index]) for column in columns if index < len(column))


def training_counts(comparison: Comparison) -> list[float]:
    """Training nodes per class in the first split; all labelled nodes in older files."""
    first = comparison["methods"][0]["runs"][0]
    counts = items(first, "train_counts") or items(comparison, "class_counts")
    return [number(count) or 0.0 for count in counts]


def score_plot(comparison: Comparison, pages: Mapping[str, str]) -> Markup:
    """Mean, interval and single splits of each method, the best first."""
    metric = comparison["metric"]
    best = comparison["methods"][0]
    rows = [
        _score_row(comparison, method, pages, strong=method is best)
        for method in comparison["methods"]
    ]
    return forest_plot("", rows, axis=f"{METRICS[metric].title}, %", wide=True)


def _score_row(
    comparison: Comparison, method: Mapping[str, Any], pages: Mapping[str, str], *, strong: bool
) -> ForestRow:
    metric = comparison["metric"]
    summary, values = method["figures"][metric], split_values(method, metric)
    low, high = number(summary["low"]), number(summary["high"])
    known = not too_few(comparison) and low is not None and high is not None
    interval = (low, high) if known and low is not None and high is not None else None
    paper = number(lookup(method, "paper", metric, "mean"))
    value, text = decimals(summary["mean"]), f"{method['title']}: {decimals(summary['mean'])}"
    if interval is not None:
        value += f" ({decimals(interval[0])} to {decimals(interval[1])})"
        text += f", 95% interval {decimals(interval[0])} to {decimals(interval[1])}"
    text += "" if paper is None else f"; published {decimals(paper)}"
    path = pages.get(method["label"])
    return ForestRow(
        name=method["title"],
        value=value,
        text=text,
        mean=number(summary["mean"]) or 0.0,
        interval=interval,
        points=list(values.values()) if len(values) > 1 else (),
        paper=paper,
        strong=strong,
        href=None if path is None else quote(path),
    )


def difference_plot(comparison: Comparison) -> Markup:
    """How far each method is behind the best on the same splits."""
    best, *others = comparison["methods"]
    rows = [_difference_row(comparison, best, method) for method in others]
    title = f"Difference from {best['title']} on the same splits"
    axis = f"points of {METRICS[comparison['metric']].title}"
    return forest_plot(title, rows, axis=axis, zero=True, wide=True)


def _difference_row(
    comparison: Comparison, best: Mapping[str, Any], method: Mapping[str, Any]
) -> ForestRow:
    metric = comparison["metric"]
    values, others = (split_values(one, metric) for one in (method, best))
    gaps = [values[seed] - others[seed] for seed in values if seed in others]
    pair = behind_best(comparison, method["label"])
    mean = sum(gaps) / len(gaps) if gaps else 0.0
    interval: tuple[float, float] | None = None
    word = ""
    if pair is not None:
        word, found = pair_verdict(comparison, pair), pair_interval(pair)
        if found is not None and not too_few(comparison):
            ahead = pair["ahead"] == best["label"]  # of equal means either may be first
            interval = (-found[1], -found[0]) if ahead else found
    text = f"{method['title']}: {signed(mean)} points"
    if interval is not None:
        text += f", 95% interval {signed(interval[0])} to {signed(interval[1])}"
    return ForestRow(
        name=method["title"],
        value=f"{signed(mean)}, {word}" if word else signed(mean),
        text=f"{text}; {word}" if word else text,
        mean=mean,
        interval=interval,
        points=gaps if len(gaps) > 1 else (),
        strong=word in ("significant", "on these nodes"),
    )


def cost_section(comparison: Comparison) -> Markup:
    """Seconds per fit of each method."""
    methods = comparison["methods"]
    seconds = [number(method["seconds"]) or 0.0 for method in methods]
    lines = []
    for method, value in zip(methods, seconds, strict=True):
        drawn = bar(f"{method['title']}: {value:.1f} seconds per fit", value, max(seconds))
        name, text = tag("span", method["title"], class_="name"), f"{value:.1f} s"
        lines.append(tag("li", name, drawn, tag("span", text, class_="value")))
    device = lookup(comparison, "environment", "device")
    text = f"Mean seconds per fit{f' on {device}' if device else ''}."
    return page.section("Cost", tag("p", text), tag("ul", *lines, class_="bars names"), id="cost")


MANY = 8  # columns of a table; more stand closer


def recall_section(comparison: Comparison) -> Markup:
    """Recall of each class by each method, head to tail; nothing if it was not recorded."""
    methods, names = comparison["methods"], comparison["classes"]
    counts = training_counts(comparison)
    counts += [0.0] * (len(names) - len(counts))
    rare = minority({"imbalance": comparison["protocol"]}, counts)
    order = sorted(range(len(names)), key=lambda index: (-counts[index], index))
    values = {i: [recalls(method, i) for method in methods] for i in order}
    if not any(value is not None for row in values.values() for value in row):
        return Markup("")
    lines = [
        _recall_row(str(names[i]), integer(counts[i]), values[i], "rare" if i in rare else None)
        for i in order
    ]
    if len(rare) > 1:
        means = [average(column) for column in zip(*(values[i] for i in rare), strict=True)]
        lines.append(_recall_row("mean of rare classes", "", means, "sum"))
    heads = (tag("th", text, scope="col") for text in ("nodes", *(m["title"] for m in methods)))
    label = "Recall per class in percent, mean over splits"
    table = tag(
        "table",
        tag("caption", label, class_="unseen"),
        tag("thead", tag("tr", tag("td", class_="plain"), *heads)),
        tag("tbody", *lines),
        class_="shares even dense" if len(names) > DENSE else "shares even",
        style=f"--columns: {len(methods)}",
    )
    text = f"{label}; nodes: training nodes of the first split. Rare classes are in orange."
    drawn = page.scroll(table, label)
    return page.section("Recall per class, head to tail", tag("p", text), drawn, id="recall")


def _recall_row(name: str, count: str, values: list[float | None], kind: str | None) -> Markup:
    cells = (page.shaded_cell(value, decimals(value, 0)) for value in values)
    size = tag("td", count, class_="plain")
    return tag("tr", tag("th", name, scope="row"), size, *cells, class_=kind)


def metrics_section(comparison: Comparison) -> Markup:
    """Every metric of every method; the best of each in bold."""
    methods = comparison["methods"]
    names = [
        name
        for name in methods[0]["figures"]
        if name in METRICS
        and METRICS[name].column
        and any(_mean(m, name) is not None for m in methods)
    ]
    best = {name: _best(comparison, name) for name in names}
    rows = []
    for method in methods:
        cells = []
        for name in names:
            text = metric_value(name, _mean(method, name))
            leads = _mean(method, name) == best[name] is not None
            cells.append(tag("td", tag("b", text) if leads else text))
        rows.append(tag("tr", tag("th", method["title"], scope="row"), *cells))
    heads = [
        tag("th", text, scope="col") for text in ("method", *(METRICS[n].title for n in names))
    ]
    title = "All metrics"
    text = "Means over splits in percent; a threshold is a probability. The best is in bold."
    table = page.table(title, heads, rows, "figures many" if len(names) > MANY else "figures")
    return page.section(title, tag("p", text), table, id="metrics")


def _mean(method: Mapping[str, Any], name: str) -> float | None:
    return number(method["figures"][name]["mean"])


def _best(comparison: Comparison, name: str) -> float | None:
    """The best mean; None for a metric that is neither good nor bad, such as a threshold."""
    if METRICS[name].higher_is_better is None:
        return None
    known = [mean for m in comparison["methods"] if (mean := _mean(m, name)) is not None]
    return max(known) if METRICS[name].higher_is_better else min(known)


def pairs_section(comparison: Comparison) -> Markup:
    """All pairs of methods, folded; nothing where the differences to the best are all."""
    pairs = comparison["pairs"]
    if len(pairs) < 2:
        return Markup("")
    titles = {method["label"]: method["title"] for method in comparison["methods"]}
    rows = []
    for pair in pairs:
        interval = None if too_few(comparison) else pair_interval(pair)
        cells = [
            signed(pair["difference"]),
            DASH if interval is None else " to ".join(map(signed, interval)),
            DASH if number(pair["wide_p"]) is None else format_p(pair["wide_p"]),
            pair_verdict(comparison, pair),
        ]
        name = f"{titles[pair['ahead']]} over {titles[pair['behind']]}"
        rows.append(tag("tr", tag("th", name, scope="row"), *(tag("td", c) for c in cells)))
    columns = ("pair", "difference", "95% interval", "p, corrected", "verdict")
    heads = [tag("th", text, scope="col") for text in columns]
    table = page.table("All pairs of methods", heads, rows, "figures")
    folded = tag("details", tag("summary", f"{len(pairs)} pairs"), table)
    return page.section("All pairs of methods", folded, id="pairs")


_GLOSSARY = {
    "95% interval": "Of a mean: Student's t over splits. Of a difference: the same over the "
    "differences per split, widened for nodes that splits share (Nadeau and Bengio) and corrected "
    "for the number of comparisons (Holm).",
    "Significant": "The corrected interval of the difference excludes 0.",
    "On these nodes": "Significant for the labelled nodes of this graph, with an interval that "
    "does not allow for shared nodes; less certain for other nodes.",
    "ECE": "Expected calibration error: how far confidence is from accuracy. Calibrated: after "
    "temperature scaling on validation nodes; shifted: with a shift of each class as well.",
}


def write_comparison_page(
    comparison: Comparison,
    path: Path,
    *,
    pages: Mapping[str, str] | None = None,
    links: Sequence[Link] = (),
) -> None:
    """Write the page atomically; the arguments are those of `render_comparison`."""
    page.write_html(render_comparison(comparison, pages=pages, links=links), path)


def render_comparison(
    comparison: Comparison,
    *,
    pages: Mapping[str, str] | None = None,
    links: Sequence[Link] = (),
) -> str:
    """Render a comparison as HTML.

    Args:
        comparison: Content of a comparison.json.
        pages: Paths of the methods' own pages, relative to this one, by label.
        links: Other files beside the page.
    """
    pages = pages or {}
    titles = {method["label"]: method["title"] for method in comparison["methods"]}
    every = [*(Link(path, f"Page of {titles[label]}") for label, path in pages.items()), *links]
    changed = {
        m["title"]: changed_params({"fields": m["settings"], **m}) for m in _methods(comparison)
    }
    known = {title: values for title, values in changed.items() if values is not None}
    main = tag(
        "main",
        *comparison_sections(comparison, pages),
        origin_section(comparison, every, changed=known or None),
        _settings(comparison),
        page.glossary("How to read this page", _glossary(comparison)),
    )
    name = _title(comparison)
    footer = page.footer(comparison.get("evengraph"), *_dated(comparison))
    body = (_header(comparison, name, every), main, footer)
    return page.html_page(name, *body, script=copy_script(comparison))


def comparison_sections(comparison: Comparison, pages: Mapping[str, str]) -> list[Markup]:
    """Scores with paired differences, recall per class, cost and all metrics."""
    return [
        _scores(comparison, pages),
        recall_section(comparison),
        cost_section(comparison),
        metrics_section(comparison),
        pairs_section(comparison),
    ]


def verdict(comparison: Comparison) -> Markup:
    """Which method to use, in the first line of the page."""
    sentences = [str(sentence) for sentence in items(comparison, "verdict", "sentences")]
    first, rest = tag("b", *sentences[:1]), " ".join(["", *sentences[1:]])
    return tag("p", first, rest, class_="verdict")


def _methods(comparison: Comparison) -> Sequence[Mapping[str, Any]]:
    return items(comparison, "methods")


def _title(comparison: Comparison) -> str:
    name = comparison.get("dataset")
    return f"Methods compared on {captions.dataset(name) if name else 'a graph'}"


def _header(comparison: Comparison, title: str, links: Sequence[Link]) -> Markup:
    protocol = captions.imbalance({"imbalance": part(comparison, "protocol")})
    splits = len(items(comparison, "seeds"))
    seconds = sum(m["seconds"] * len(m["runs"]) for m in _methods(comparison))
    facts = [
        (str(len(_methods(comparison))), "methods"),
        (str(splits), "split" if splits == 1 else "splits"),
        (integer(sum(comparison["class_counts"])), "labelled nodes"),
        (str(len(comparison["classes"])), "classes"),
        (captions.duration(seconds), "of training"),
    ]
    parts = [
        tag("h1", title, tag("span", ", ", class_="unseen"), tag("span", protocol)),
        verdict(comparison),
        page.facts(facts),
    ]
    if failed := part(comparison, "failed"):
        text = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        parts.append(tag("p", f"Did not run. {text}", class_="notice"))
    return tag("header", *parts, page_links(links))


def _scores(comparison: Comparison, pages: Mapping[str, str]) -> Markup:
    metric = METRICS[comparison["metric"]]
    few, several = too_few(comparison), len(comparison["seeds"]) > 1
    marks = [("mean", "mean")] + ([] if few else [("whisker", "95% interval")])
    marks += [("seed", "one split")] if several else []
    paper = any(part(method, "paper") for method in _methods(comparison))
    marks += [("published", "published mean")] if paper else []
    text = f"{metric.heading} on test nodes, the same "
    text += plural(len(comparison["seeds"]), "split") + " for all methods."
    if few:
        text += f" Too few splits for intervals: use at least {ENOUGH_SPLITS}, better 10."
    parts = [
        tag("p", text),
        page.legend(tag("li", swatch(kind), name) for kind, name in marks),
        tag("div", score_plot(comparison, pages), class_="panels wide"),
    ]
    if len(_methods(comparison)) > 1:
        parts.append(tag("div", difference_plot(comparison), class_="panels wide"))
    return page.section(metric.heading, *parts, id="scores")


def _settings(comparison: Comparison) -> Markup:
    """Parameters of every method and the environment, folded."""
    folded = [
        tag(
            "details", tag("summary", method["title"]), page.definitions(_texts(method["settings"]))
        )
        for method in _methods(comparison)
    ]
    environment = page.definitions(_texts(part(comparison, "environment")))
    folded.append(tag("details", tag("summary", "Environment"), environment))
    return page.section("Settings", *folded)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): "–" if value is None else str(value) for name, value in values.items()}


def _glossary(comparison: Comparison) -> dict[str, str]:
    metric = METRICS[comparison["metric"]]
    return {metric.heading: metric.meaning, **_GLOSSARY}


def _dated(comparison: Comparison) -> list[Markup]:
    created = comparison.get("created")
    moment = captions.timestamp(created)
    return [] if moment is None else [join([tag("time", moment, datetime=str(created))])]
