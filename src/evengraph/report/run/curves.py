"""Learning curves: validation score and loss per epoch, one line per seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evengraph.report import page
from evengraph.report.formatting import decimals, integer
from evengraph.report.run.result_reader import runs
from evengraph.report.svg.charts import COLOURS, curve, line_plot, percent, swatch, thin, ticks
from evengraph.report.svg.markup import Markup, tag
from evengraph.report.untrusted import items, lookup, number


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """History of one quantity for one seed."""

    seed: str
    values: list[float | None]  # one per epoch
    best: tuple[int, float] | None  # epoch whose weights were restored, and its value
    colour: str  # CSS class

    def best_caption(self, digits: int) -> str:
        """State the best epoch; empty if it is unknown."""
        if self.best is None:
            return ""
        return f" best {decimals(self.best[1], digits)} at epoch {integer(self.best[0])}"


def curves_section(result: Mapping[str, Any]) -> Markup:
    """Validation score and training loss of each seed."""
    score, loss = _curves(result, "score"), _curves(result, "loss")
    if not score and not loss:
        text = "This result has no training history."
        return page.section("Learning curves", tag("p", text, class_="quiet"))
    panels = [_panel(score, f"Validation {_criterion(result)}, %", 1)] if score else []
    panels += [_panel(loss, "Training loss", 3)] if loss else []
    text = "One line per seed. The ring marks the epoch whose weights were restored and evaluated."
    stages = max((number(run.get("stages")) or 1 for run in runs(result)), default=1)
    if stages > 1:
        text = (
            f"One line per seed, for the main one of {stages:.0f} stages of training. The ring "
            "marks the epoch whose weights were restored; the metrics are those of the complete "
            "method."
        )
    legend = _legend(score or loss, 1 if score else 3)
    drawn = tag("div", *panels, class_="panels")
    return page.section("Learning curves", tag("p", text), legend, drawn)


def _criterion(result: Mapping[str, Any]) -> str:
    """What the validation scores are; older results do not say it, they are Macro-F1."""
    names = {str(run.get("criterion") or "Macro-F1") for run in runs(result)}
    return names.pop() if len(names) == 1 else "score"


def _curves(result: Mapping[str, Any], key: str) -> list[_Curve]:
    """The histories of `key` that have anything to draw."""
    finished = runs(result)
    lines = []
    for index, run in enumerate(finished):
        values = [number(value) for value in items(run, "history", key)]
        epoch = number(run.get("best_epoch"))  # from zero, as the history
        value = None if epoch is None else lookup(values, int(epoch))
        best = None if epoch is None or value is None else (int(epoch), value)
        colour = f"colour-{index if len(finished) <= COLOURS else 0}"
        if any(value is not None for value in values):
            seed = str(run.get("seed", index))
            lines.append(_Curve(seed=seed, values=values, best=best, colour=colour))
    return lines


def _panel(lines: Sequence[_Curve], title: str, digits: int) -> Markup:
    """One plot, with tooltips of so many digits."""
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
        caption = line.best_caption(digits)
        end = f"epoch {integer(series[-1][0])}: {decimals(series[-1][1], digits)}"
        tooltip = f"seed {line.seed},{caption or ' no best epoch'}; {end}"
        paths.append(curve([(x(e), y(v)) for e, v in series], tooltip, f"curve {line.colour}"))
        if line.best is not None:
            left, top = percent(x(line.best[0])), percent(y(line.best[1]))
            drop = {"x1": left, "x2": left, "y1": top, "y2": "100%"}
            ring = tag("title", f"seed {line.seed},{caption}")
            marks.append(tag("line", **drop, class_=f"drop {line.colour}"))
            marks.append(tag("circle", ring, cx=left, cy=top, r=5, class_=f"best {line.colour}"))
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


def _legend(lines: Sequence[_Curve], digits: int) -> Markup:
    """Name each line with its best epoch; of many lines only their number."""
    names = [(tag("b", f"seed {one.seed}"), one.best_caption(digits), one.colour) for one in lines]
    if len(lines) > COLOURS:
        text = f"{len(lines)} seeds, one line each; the ring marks the best epoch"
        names = [(Markup(""), text, "colour-0")]
    return page.legend(
        tag("li", swatch("curve best"), tag("span", name, text), class_=colour)
        for name, text, colour in names
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    pad = (high - low) * 0.05 or max(abs(high) * 0.05, 0.5)
    # the axis of values that stay above zero does not go below it
    return (low - pad if low < 0 else max(low - pad, 0.0)), high + pad
