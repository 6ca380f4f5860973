"""Learning curves: validation score and loss per epoch, one line per seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evengraph.report import page
from evengraph.report.formatting import decimals, integer
from evengraph.report.run.result_reader import runs
from evengraph.report.svg.charts import COLOURS, curve, line_plot, percent, swatch, thin, ticks
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import items, number, part


@dataclass(frozen=True, kw_only=True)
class Curve:
    """History of one quantity for one seed.

    Args:
        seed: Name of the line.
        values: One entry per epoch.
        best: Epoch whose weights were restored.
        colour: Number of the CSS colour.
    """

    seed: str
    values: list[float | None]
    best: int | None
    colour: int

    @property
    def best_value(self) -> float | None:
        """Value at the best epoch."""
        inside = self.best is not None and 0 <= self.best < len(self.values)
        return self.values[self.best] if inside and self.best is not None else None

    def best_caption(self, digits: int) -> str:
        """State the best epoch; empty if it is unknown."""
        if self.best_value is None:
            return ""
        return f" best {decimals(self.best_value, digits)} at epoch {integer(self.best)}"


def curves(result: Mapping[str, Any], key: str) -> list[Curve]:
    """Return the histories of `key` that have anything to draw."""
    finished = runs(result)
    lines = []
    for index, run in enumerate(finished):
        best = number(run.get("best_epoch"))  # from zero, as the history
        lines.append(
            Curve(
                seed=str(run.get("seed", index)),
                values=[number(value) for value in items(part(run, "history"), key)],
                best=None if best is None else int(best),
                colour=index if len(finished) <= COLOURS else 0,
            )
        )
    return [line for line in lines if any(value is not None for value in line.values)]


def panel(lines: Sequence[Curve], title: str, digits: int) -> Markup:
    """Draw one panel; tooltips have so many digits."""
    points = [thin(line.values) for line in lines]
    known = [value for series in points for _, value in series]
    low, high = _padded(min(known), max(known))
    last = max(max(len(line.values) for line in lines) - 1, 1)

    def x(epoch: float) -> float:
        return 100 * epoch / last

    def y(value: float) -> float:
        return 100 * (high - value) / (high - low)

    paths, marks = [], []
    for line, series in zip(lines, points, strict=True):
        caption, colour = line.best_caption(digits), f"colour-{line.colour}"
        end = f"epoch {integer(series[-1][0])}: {decimals(series[-1][1], digits)}"
        tooltip = f"seed {line.seed},{caption or ' no best epoch'}; {end}"
        paths.append(curve([(x(e), y(v)) for e, v in series], tooltip, f"curve {colour}"))
        if line.best is not None and line.best_value is not None:
            at, height = percent(x(line.best)), percent(y(line.best_value))
            ring = tag("title", f"seed {line.seed},{caption}")
            marks.append(tag("line", x1=at, x2=at, y1=height, y2="100%", class_=f"drop {colour}"))
            marks.append(tag("circle", ring, cx=at, cy=height, r=5, class_=f"best {colour}"))
    plot = line_plot(
        f"{title} against epoch for {', '.join('seed ' + line.seed for line in lines)}",
        paths,
        marks,
        rows=[(y(value), f"{value:g}") for value in ticks(low, high, 4)],
        # epochs are integers, also for a short history
        columns=[(x(e), integer(e)) for e in ticks(0, last, 4) if e == int(e)],
        axis="epoch",
        kind="curves many" if len(lines) > COLOURS else "curves",
    )
    return tag("figure", tag("figcaption", tag("h3", title)), plot)


def legend(lines: Sequence[Curve], digits: int) -> Markup:
    """Name each line with its best epoch."""
    if len(lines) > COLOURS:
        text = f"{len(lines)} seeds, one line each; the ring marks the best epoch"
        return page.legend([tag("li", swatch("curve best"), text, class_="colour-0")])
    return page.legend(
        tag(
            "li",
            swatch("curve best"),
            tag("span", tag("b", f"seed {line.seed}"), line.best_caption(digits)),
            class_=f"colour-{line.colour}",
        )
        for line in lines
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = (high - low) * 0.05 or max(abs(high) * 0.05, 0.5)
    # the axis of values that stay above zero does not go below it
    return (low - pad if low < 0 else max(low - pad, 0.0)), high + pad
