"""What matters of two classes: ranking against the base rate, and the alarms at the threshold."""

from collections.abc import Mapping
from typing import Any

from evengraph.metrics import METRICS
from evengraph.report import page
from evengraph.report.formatting import DASH, decimals, integer, metric_value
from evengraph.report.run.result_reader import runs
from evengraph.report.svg.charts import COLOURS, curve, line_plot, strip, swatch
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import average, items, lookup, number

PRECISION = "positive_average_precision"
TICKS = (0, 25, 50, 75, 100)


def is_two_class(result: Mapping[str, Any]) -> bool:
    """Whether the result has a ranking of the rarer of two classes."""
    return number(lookup(result, "mean", PRECISION)) is not None


def two_class_cards(result: Mapping[str, Any]) -> list[Markup]:
    """Average precision against the base rate, precision at the threshold, and at k."""
    rate = base_rate(result)
    chance = "" if rate is None else f"base rate {decimals(rate)}: what a random ranking reaches"
    top = "among as many nodes, ranked highest, as there are of the rarer class"
    return [
        _card(result, PRECISION, chance),
        _threshold(result),
        _card(result, "precision_at_k", top),
    ]


def base_rate(result: Mapping[str, Any]) -> float | None:
    """Share of the rarer class among test nodes, in percent."""
    return at_threshold(result, "base_rate")


def curve_section(result: Mapping[str, Any]) -> Markup:
    """Precision against recall on the test nodes, one line per seed; nothing without it."""
    found = {str(run.get("seed", "?")): _points(run) for run in runs(result)}
    series = {seed: points for seed, points in found.items() if points}
    if not series:
        return Markup("")
    colours = [f"colour-{i if len(series) <= COLOURS else 0}" for i in range(len(series))]
    lines = [
        curve([(x, 100 - y) for x, y in points], f"seed {seed}", f"curve {colour}")
        for (seed, points), colour in zip(series.items(), colours, strict=True)
    ]
    entries = [
        tag("li", swatch("curve"), f"seed {seed}", class_=colour)
        for seed, colour in zip(series, colours, strict=True)
    ]
    marks = []
    if (rate := base_rate(result)) is not None:
        at = f"{100 - rate:.2f}%"
        marks.append(tag("line", x2="100%", y1=at, y2=at, class_="reference"))
        entries.append(tag("li", swatch("reference"), f"base rate {decimals(rate)}"))
    plot = line_plot(
        "Precision against recall of the rarer class, in percent",
        lines,
        marks,
        rows=[(100 - value, str(value)) for value in TICKS],
        columns=[(float(value), str(value)) for value in TICKS],
        axis="recall, %",
    )
    text = "Precision in percent against recall, as the threshold falls from left to right."
    legend = page.legend(entries[-COLOURS - 1 :])
    figure = tag("div", tag("figure", plot), class_="panels")
    return page.section("Precision-recall curve", tag("p", text), legend, figure)


def _points(run: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Recall and precision in percent."""
    pairs = ((number(lookup(p, 0)), number(lookup(p, 1))) for p in items(run, "precision_recall"))
    return [(100 * x, 100 * y) for x, y in pairs if x is not None and y is not None]


def _threshold(result: Mapping[str, Any]) -> Markup:
    """Precision at the threshold, with recall and the number of alarms."""
    precision, recall = (at_threshold(result, name) for name in ("precision", "recall"))
    alarms, sizes = at_threshold(result, "alarms"), [_test_nodes(run) for run in runs(result)]
    nodes = average(sizes)
    threshold = metric_value("tuned_threshold", lookup(result, "mean", "tuned_threshold"))
    count = DASH if alarms is None or nodes is None else integer(alarms * nodes / 100)
    text = tag("span", "recall ", tag("b", decimals(recall)))
    total = tag("span", tag("b", count), f" alarms among {integer(nodes)} test nodes")
    chosen = tag("span", "threshold ", tag("b", threshold), ", a probability")
    below = tag("p", text, total, chosen, class_="against")
    return page.card("Precision at the threshold", decimals(precision), "", below)


def _card(result: Mapping[str, Any], name: str, text: str) -> Markup:
    seeds = [number(lookup(run, "metrics", name)) for run in runs(result)]
    mean, std = (number(lookup(result, key, name)) for key in ("mean", "std"))
    unit = f"± {decimals(std)}" if len(seeds) > 1 and std is not None else ""
    title = METRICS[name].heading
    label = f"{title}: seeds {', '.join(decimals(value) for value in seeds)}"
    below = tag("p", text, class_="against") if text else Markup("")
    return page.card(title, decimals(mean), unit, strip(seeds, mean, (None, None), label), below)


def at_threshold(result: Mapping[str, Any], name: str) -> float | None:
    """A quantity at the test nodes' own base rate, in percent, averaged over seeds."""
    value = average(number(lookup(run, "base_rates", 0, name)) for run in runs(result))
    return None if value is None else 100 * value


def _test_nodes(run: Mapping[str, Any]) -> float | None:
    support = [number(count) or 0.0 for count in items(run, "per_class", "support")]
    return sum(support) or None
