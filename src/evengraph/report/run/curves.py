"""Learning curves: validation score and loss against epoch, a line a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evengraph.report.run.values import decimals, items, number, part, runs, whole
from evengraph.report.svg.charts import percent, swatch, thin, ticks
from evengraph.report.svg.markup import Markup, join, tag

# more lines than this cannot be told apart by colour, so they share one
COLOURS = 6


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One seed's history of one quantity.

    Args:
        seed: Name of the line.
        values: One entry an epoch.
        best: Place in `values` of the epoch whose weights were kept.
        colour: Number of the CSS colour.
    """

    seed: str
    values: list[float | None]
    best: int | None
    colour: int


def curves(result: Mapping[str, Any], key: str) -> list[Curve]:
    """Return the histories of `key` that hold anything to draw."""
    found = runs(result)
    lines = [
        Curve(
            seed=str(run.get("seed", place)),
            values=[number(value) for value in items(part(run, "history"), key)],
            best=_best_epoch(run),
            colour=place % COLOURS if len(found) <= COLOURS else 0,
        )
        for place, run in enumerate(found)
    ]
    return [line for line in lines if any(value is not None for value in line.values)]


def panel(lines: Sequence[Curve], title: str, digits: int) -> Markup:
    """Draw one panel with its axes.

    Args:
        lines: One curve a seed.
        title: Heading of the panel.
        digits: Decimals in the tooltips.
    """
    drawn = [(line, thin(line.values)) for line in lines]
    known = [value for _, points in drawn for _, value in points]
    low, high = _padded(min(known), max(known))
    last = max(max(len(line.values) for line in lines) - 1, 1)
    paths = [_path(line, points, last, low, high, digits) for line, points in drawn]
    # the lines live in a stretched inner picture, everything with a shape of its own outside it
    plot = tag(
        "svg", *paths, width="100%", height="100%", viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
    )  # fmt: skip
    marks = [mark for line in lines for mark in _best_mark(line, last, low, high, digits)]
    label = f"{title} against epoch for {', '.join('seed ' + line.seed for line in lines)}"
    faint = " many" if len(lines) > COLOURS else ""
    axes = [*_rows(low, high), *_columns(last)]
    picture = tag("svg", *axes, plot, *marks, class_="curves" + faint, role="img", aria_label=label)
    return tag(
        "figure",
        tag("figcaption", tag("h3", title)),
        tag("div", picture, class_="plot"),
        tag("p", "epoch", class_="axis-name", aria_hidden="true"),
    )


def legend(lines: Sequence[Curve], digits: int) -> Markup:
    """Name each line and say where it was best."""
    if len(lines) > COLOURS:
        text = f"{len(lines)} seeds, one line each; the ring marks the best epoch"
        entry = tag("li", swatch("curve best"), text, class_="colour-0")
        return tag("ul", entry, class_="legend")
    entries = (
        tag(
            "li",
            swatch("curve best"),
            tag("span", tag("b", f"seed {line.seed}"), _best_words(line, digits)),
            class_=f"colour-{line.colour}",
        )
        for line in lines
    )
    return tag("ul", join(entries), class_="legend")


def _best_epoch(run: Mapping[str, Any]) -> int | None:
    # counted from zero, as the history is
    best = number(run.get("best_epoch"))
    return None if best is None else int(best)


def _best_value(line: Curve) -> float | None:
    inside = line.best is not None and 0 <= line.best < len(line.values)
    return line.values[line.best] if inside and line.best is not None else None


def _best_words(line: Curve, digits: int) -> str:
    value = _best_value(line)
    return "" if value is None else f" best {decimals(value, digits)} at epoch {whole(line.best)}"


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = (high - low) * 0.05 or max(abs(high) * 0.05, 0.5)
    # neither a loss nor a score that stays above zero should show an axis below it
    return (low - pad if low < 0 else max(low - pad, 0.0)), high + pad


def _height(value: float, low: float, high: float) -> float:
    return 100 * (high - value) / (high - low)


def _path(
    line: Curve, points: list[tuple[int, float]], last: int, low: float, high: float, digits: int
) -> Markup:
    places = [
        f"{1000 * epoch / last:.1f} {10 * _height(value, low, high):.1f}" for epoch, value in points
    ]
    ends = f"epoch {whole(points[-1][0])}: {decimals(points[-1][1], digits)}"
    return tag(
        "path",
        tag("title", f"seed {line.seed},{_best_words(line, digits) or ' no best epoch'}; {ends}"),
        # a path of one point draws nothing, so it is closed upon itself to leave a dot
        d="M" + "L".join(places) + ("Z" if len(places) == 1 else ""),
        class_=f"curve colour-{line.colour}",
    )


def _best_mark(line: Curve, last: int, low: float, high: float, digits: int) -> list[Markup]:
    value = _best_value(line)
    if value is None or line.best is None:
        return []
    x, y = percent(100 * line.best / last), percent(_height(value, low, high))
    colour = f"colour-{line.colour}"
    words = tag("title", f"seed {line.seed},{_best_words(line, digits)}")
    return [
        tag("line", x1=x, x2=x, y1=y, y2="100%", class_=f"drop {colour}"),
        tag("circle", words, cx=x, cy=y, r=5, class_=f"best {colour}"),
    ]


def _rows(low: float, high: float) -> list[Markup]:
    marks: list[Markup] = []
    for value in ticks(low, high, 4):
        y = percent(_height(value, low, high))
        marks.append(tag("line", x2="100%", y1=y, y2=y, class_="grid"))
        marks.append(
            tag("text", f"{value:g}", x=-8, y=y, dy=".35em", text_anchor="end", class_="tick")
        )
    return marks


def _columns(last: int) -> list[Markup]:
    marks = [tag("line", x2="100%", y1="100%", y2="100%", class_="axis")]
    for value in ticks(0, last, 4):
        # epochs are whole, whatever a short history makes of the ticks
        if value != int(value):
            continue
        x = percent(100 * value / last)
        anchor = "end" if value / last > 0.96 else "middle"
        marks.append(
            tag("text", whole(value), x=x, y="100%", dy="1.5em", text_anchor=anchor, class_="tick")
        )
    return marks
