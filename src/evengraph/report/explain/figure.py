"""The figure of an explanation: rings of neighbours around a node, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.report.svg.markup import Markup, tag

SIZE = 640  # pixels, width and height without the legend
TOP = 60  # pixels, below the two lines of text
MAX_NAMES = 12  # nodes labelled with their id, where there is room
MAX_CHARS = 16  # longer ids are cut
CAPTION = "Filled: labelled. Ring: predicted. Dashed: evidence against. Size: contribution."
# Okabe and Ito's palette, which most colour-blind readers can tell apart
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def write_explanation(explanation: Mapping[str, Any], ids: Sequence[str], path: Path) -> None:
    """Write the figure of `Explanation.as_dict()` atomically."""
    write_atomic(draw_explanation(explanation, ids).encode(), path)


def draw_explanation(explanation: Mapping[str, Any], ids: Sequence[str]) -> str:
    """Draw nodes by their distance from the explained one, larger the more they contributed.

    A filled node is labelled, a ring is not. Colours are classes. A dashed outline marks evidence
    against the prediction. Nodes without a path are on the outermost ring. The largest
    contributions have their id beside them where there is room; all have it as tooltip.
    """
    near = explanation["neighbourhood"]
    classes = explanation["class_names"] or [
        str(label) for label in range(len(explanation["probabilities"]))
    ]
    points = _positions(near["distance"])
    largest = max((abs(value) for value in near["contribution"][1:]), default=0.0) or 1.0
    radii = [11.0, *(round(4 + 7 * abs(value / largest), 1) for value in near["contribution"][1:])]
    names = [ids[node] for node in near["node_id"]]
    edges = [
        tag("line", x1=points[a][0], y1=points[a][1], x2=points[b][0], y2=points[b][1])
        for a, b in zip(*near["edge_index"], strict=True)
        if a < b
    ]
    labels = sorted({*near["predicted"], *(label for label in near["y"] if label >= 0)})
    legend = [
        tag(
            "g",
            tag("circle", cx=24, cy=SIZE + 24 * row, r=6, fill=COLOURS[label % len(COLOURS)]),
            tag("text", classes[label], x=40, y=SIZE + 24 * row + 4),
        )
        for row, label in enumerate(labels)
    ]
    probability = f"{100 * explanation['probability']:.1f}%"
    title = f"{ids[explanation['node']]}: {classes[explanation['predicted']]}, {probability}"
    return str(
        tag(
            "svg",
            tag("title", title),
            tag("rect", width="100%", height="100%", fill="white"),
            tag("g", *edges, stroke="#cccccc", stroke_width=1),
            *_dots(near, points, radii, classes, names),
            tag("g", *_names(near, points, radii, names), stroke="white", stroke_width=3),
            tag("text", title, x=16, y=28, font_size=16, font_weight="bold"),
            tag("text", CAPTION, x=16, y=48, fill="#555555"),
            *legend,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {SIZE} {SIZE + 24 * len(legend)}",
            font_family="sans-serif",
            font_size=12,
        )
    )


def _positions(distances: Sequence[int]) -> list[Point]:
    """The first node in the centre, the others on rings."""
    farthest = max(distances, default=0)
    rings = [farthest + 1 if distance < 0 else distance for distance in distances]
    step = (SIZE / 2 - 48) / max(*rings, 1)
    members: dict[int, list[int]] = {}
    for index, ring in enumerate(rings):
        members.setdefault(ring, []).append(index)
    points = [(SIZE / 2, SIZE / 2)] * len(distances)
    for ring, indices in members.items():
        for n, index in enumerate(indices):
            angle = 2 * math.pi * (n / len(indices)) + 0.4 * ring
            x = SIZE / 2 + step * ring * math.cos(angle)
            y = SIZE / 2 + 16 + step * ring * math.sin(angle)
            points[index] = (round(x, 1), round(y, 1))
    return points


def _names(
    near: Mapping[str, Any], points: Sequence[Point], radii: Sequence[float], names: Sequence[str]
) -> list[Markup]:
    """Ids of the centre and of the largest contributions, overlapping nothing."""
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True)]
    weights = [abs(value) for value in near["contribution"]]
    others = sorted(range(1, len(points)), key=lambda index: -weights[index])
    texts = []
    for index in [0, *(index for index in others[: MAX_NAMES - 1] if weights[index] > 0)]:
        name = names[index]
        name = name if len(name) <= MAX_CHARS else name[: MAX_CHARS - 1] + "…"
        boxes = _boxes(points[index], radii[index], 7.0 * len(name))
        box = next((box for box in boxes if _is_free(box, taken)), None)
        if box is not None:
            taken.append(box)
            at = {"x": round(box[0], 1), "y": round(box[3] - 3, 1)}
            texts.append(tag("text", name, **at, font_size=11, paint_order="stroke"))
    return texts


def _boxes(point: Point, radius: float, width: float) -> list[Box]:
    """Boxes for a name: right of its dot, left of it, below, above."""
    (x, y), gap = point, radius + 3
    corners = [(x + gap, y - 7), (x - gap - width, y - 7)]
    corners += [(x - width / 2, y + gap), (x - width / 2, y - gap - 14)]
    return [(left, top, left + width, top + 14) for left, top in corners]


def _is_free(box: Box, taken: Sequence[Box]) -> bool:
    left, top, right, bottom = box
    if left < 4 or right > SIZE - 4 or top < TOP or bottom > SIZE - 10:
        return False
    return not any(left < r and right > a and top < b and bottom > t for a, t, r, b in taken)


def _dots(
    near: Mapping[str, Any],
    points: Sequence[Point],
    radii: Sequence[float],
    classes: Sequence[str],
    names: Sequence[str],
) -> list[Markup]:
    dots = []
    for index, (label, predicted) in enumerate(zip(near["y"], near["predicted"], strict=True)):
        source, shown = ("labelled", label) if label >= 0 else ("predicted", predicted)
        colour = COLOURS[shown % len(COLOURS)]
        against = index > 0 and near["contribution"][index] < 0
        dots.append(
            tag(
                "circle",
                tag("title", f"{names[index]}: {source} {classes[shown]}"),
                cx=points[index][0],
                cy=points[index][1],
                r=radii[index],
                fill=colour if label >= 0 else "white",
                stroke="black" if index == 0 else colour,
                stroke_width=3 if index == 0 else 2,
                stroke_dasharray="2 2" if against else None,
            )
        )
    return dots
