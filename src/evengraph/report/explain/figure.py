"""A picture of where a prediction came from: rings of neighbours around a node, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.report.svg.markup import Markup, tag

SIZE = 640  # pixels, both ways
TOP = 60  # below the words above
NAMED = 12  # nodes that get their id, where there is room
LONGEST = 16  # characters of an id that is drawn whole
WORDS = "Filled: labelled. Ring: predicted. Dashed: speaks against. The larger, the more it counts."
# Okabe and Ito's colours, which most colour-blind people can tell apart.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")


def write_explanation(found: Mapping[str, Any], ids: Sequence[str], path: Path) -> None:
    """Write the picture of `Explanation.as_dict()`, whole or not at all."""
    write_atomic(draw_explanation(found, ids).encode(), path)


def draw_explanation(found: Mapping[str, Any], ids: Sequence[str]) -> str:
    """Nodes by their distance from the one in the middle; the larger, the more they counted.

    A filled node is labelled, a ring is not; colours are classes, a dashed line around a node says
    that it speaks against the prediction. Nodes without a path stand on the outermost ring. Those
    that counted most have their id beside them where there is room; all tell it when pointed at.
    """
    near = found["neighbourhood"]
    places = _places(near["distance"])
    strongest = max((abs(value) for value in near["contribution"][1:]), default=0.0) or 1.0
    sizes = [_radius(place, one / strongest) for place, one in enumerate(near["contribution"])]
    edges = [
        tag("line", x1=places[a][0], y1=places[a][1], x2=places[b][0], y2=places[b][1])
        for a, b in zip(*near["edge_index"], strict=True)
        if a < b
    ]
    dots = [
        _dot(near, place, where, sizes[place], found, ids) for place, where in enumerate(places)
    ]
    names = found["class_names"] or [str(n) for n in range(len(found["probabilities"]))]
    used = sorted({*near["predicted"], *(label for label in near["y"] if label >= 0)})
    legend = [_entry(row, names[label], label) for row, label in enumerate(used)]
    title = f"{ids[found['node']]}: {names[found['predicted']]}, {100 * found['probability']:.1f}%"
    return str(
        tag(
            "svg",
            tag("title", title),
            tag("rect", width="100%", height="100%", fill="white"),
            tag("g", *edges, stroke="#cccccc", stroke_width=1),
            *dots,
            tag("g", *_names(near, places, sizes, ids), stroke="white", stroke_width=3),
            tag("text", title, x=16, y=28, font_size=16, font_weight="bold"),
            tag("text", WORDS, x=16, y=48, fill="#555555"),
            *legend,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {SIZE} {SIZE + 24 * len(legend)}",
            font_family="sans-serif",
            font_size=12,
        )
    )


def _places(distances: Sequence[int]) -> list[tuple[float, float]]:
    """The first node in the middle, the others on rings."""
    farthest = max(distances, default=0)
    rings = [farthest + 1 if distance < 0 else distance for distance in distances]
    step = (SIZE / 2 - 48) / max(*rings, 1)
    on_ring: dict[int, list[int]] = {}
    for place, ring in enumerate(rings):
        on_ring.setdefault(ring, []).append(place)
    found = [(SIZE / 2, SIZE / 2)] * len(distances)
    for ring, members in on_ring.items():
        for n, place in enumerate(members):
            angle = 2 * math.pi * (n / len(members)) + 0.4 * ring
            radius = step * ring
            found[place] = (
                round(SIZE / 2 + radius * math.cos(angle), 1),
                round(SIZE / 2 + 16 + radius * math.sin(angle), 1),
            )
    return found


def _radius(place: int, share: float) -> float:
    return 11.0 if place == 0 else round(4 + 7 * min(abs(share), 1.0), 1)


def _names(
    near: Mapping[str, Any],
    places: Sequence[tuple[float, float]],
    sizes: Sequence[float],
    ids: Sequence[str],
) -> list[Markup]:
    """Ids of the node in the middle and of those that counted most, none over anything else."""
    taken = [
        (x - size, y - size, x + size, y + size) for (x, y), size in zip(places, sizes, strict=True)
    ]
    weight = [abs(value) for value in near["contribution"]]
    others = sorted(range(1, len(places)), key=lambda place: -weight[place])
    found = []
    for place in [0, *(one for one in others[: NAMED - 1] if weight[one] > 0)]:
        name = ids[near["node_id"][place]]
        name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        for box in _boxes(places[place], sizes[place], 7.0 * len(name)):
            if _is_free(box, taken):
                taken.append(box)
                at = {"x": round(box[0], 1), "y": round(box[3] - 3, 1)}
                found.append(tag("text", name, **at, font_size=11, paint_order="stroke"))
                break
    return found


Box = tuple[float, float, float, float]  # left, top, right, bottom


def _boxes(where: tuple[float, float], size: float, width: float) -> list[Box]:
    """Where a name may stand: right of its dot, left of it, below, above."""
    (x, y), gap = where, size + 3
    corners = [(x + gap, y - 7), (x - gap - width, y - 7)]
    corners += [(x - width / 2, y + gap), (x - width / 2, y - gap - 14)]
    return [(left, top, left + width, top + 14) for left, top in corners]


def _is_free(box: Box, taken: Sequence[Box]) -> bool:
    left, top, right, bottom = box
    if left < 4 or right > SIZE - 4 or top < TOP or bottom > SIZE - 10:
        return False
    return not any(left < r and right > a and top < b and bottom > t for a, t, r, b in taken)


def _dot(
    near: Mapping[str, Any],
    place: int,
    where: tuple[float, float],
    radius: float,
    found: Mapping[str, Any],
    ids: Sequence[str],
) -> Markup:
    label, predicted = near["y"][place], near["predicted"][place]
    colour = COLOURS[(label if label >= 0 else predicted) % len(COLOURS)]
    names = found["class_names"] or [str(n) for n in range(len(found["probabilities"]))]
    words = f"{ids[near['node_id'][place]]}: "
    words += f"labelled {names[label]}" if label >= 0 else f"predicted {names[predicted]}"
    against = place > 0 and near["contribution"][place] < 0
    return tag(
        "circle",
        tag("title", words),
        cx=where[0],
        cy=where[1],
        r=radius,
        fill=colour if label >= 0 else "white",
        stroke="black" if place == 0 else colour,
        stroke_width=3 if place == 0 else 2,
        stroke_dasharray="2 2" if against else None,
    )


def _entry(row: int, name: str, label: int) -> Markup:
    height = SIZE + 24 * row
    colour = COLOURS[label % len(COLOURS)]
    dot = tag("circle", cx=24, cy=height, r=6, fill=colour)
    return tag("g", dot, tag("text", name, x=40, y=height + 4))
