"""The learning curve as a small chart: measured so far, expected with more labels."""

from __future__ import annotations

from collections.abc import Sequence

from evengraph.labelling import LearningCurve
from evengraph.report.svg.charts import ticks
from evengraph.report.svg.markup import Markup, tag

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 30, 12, 8, 24  # margins


class Scale:
    """Places labels and scores in the chart."""

    def __init__(self, labels: Sequence[float], scores: Sequence[float]) -> None:
        self.most = max(labels)
        self.low = min(10 * (max(min(scores), 0.0) // 10), 90.0)
        self.high = min(10 * (max(scores) // 10 + 1), 100.0)

    def x(self, labels: float) -> float:
        """From the left edge."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * labels / self.most, 1)

    def y(self, score: float) -> float:
        """From the upper edge."""
        share = (score - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)


def curve_chart(curve: LearningCurve) -> Markup:
    """Balanced accuracy over the number of labels, with the range of four of five cases."""
    points = [*curve.measured, curve.now, *curve.expected]
    bounds = [value for p in points for value in (p.score, p.low, p.high)]
    scale = Scale([p.labels for p in points], bounds)
    later = [curve.now, *curve.expected]
    band = [(p.labels, p.high) for p in later] + [(p.labels, p.low) for p in reversed(later)]
    dots = [
        tag("circle", cx=scale.x(p.labels), cy=scale.y(p.score), r=2.5, class_="measured")
        for p in curve.measured
    ]
    now = tag("circle", cx=scale.x(curve.now.labels), cy=scale.y(curve.now.score), r=4)
    last = curve.expected[-1] if curve.expected else curve.now
    words = f"Balanced accuracy {curve.now.score:.0f} with {curve.now.labels} labels now, "
    words += f"about {last.score:.0f} with {last.labels}."
    return tag(
        "svg",
        *_axes(scale),
        tag("polygon", points=_path(band, scale), class_="expected-band"),
        tag("polyline", points=_path([(p.labels, p.score) for p in points], scale)),
        *dots,
        now,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="learning-curve",
        role="img",
        aria_label=words,
    )


def _path(points: Sequence[tuple[float, float]], scale: Scale) -> str:
    return " ".join(f"{scale.x(x):g},{scale.y(y):g}" for x, y in points)


def _axes(scale: Scale) -> list[Markup]:
    lines = []
    for score in ticks(scale.low, scale.high, 3):
        y = scale.y(score)
        lines.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        lines.append(tag("text", f"{score:g}", x=LEFT - 5, y=y + 4, class_="tick left"))
    for labels in ticks(0, scale.most, 3):
        x = scale.x(labels)
        lines.append(tag("text", f"{labels:g}", x=x, y=HEIGHT - 6, class_="tick below"))
    return lines
