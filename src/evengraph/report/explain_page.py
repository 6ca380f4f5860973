"""Positions of an explained node and its neighbourhood: a tree of shortest paths on rings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.report.markup import Markup, tag

Point = tuple[float, float]
Edge = tuple[int, int]


def path_tree(near: Mapping[str, Any]) -> dict[int, int]:
    """Return the node before each node on a path from the first one, by index.

    Nodes without a path, or whose path was left out, have none.
    """
    distances, before = near["distance"], {}
    joined: dict[int, list[int]] = {}
    for a, b in zip(*near["edge_index"], strict=True):
        joined.setdefault(a, []).append(b)
    for index, distance in enumerate(distances):
        nearer = [other for other in joined.get(index, []) if distances[other] == distance - 1]
        if distance > 0 and nearer:
            before[index] = min(nearer)
    return before


def ring_positions(
    distances: Sequence[int], before: Mapping[int, int], *, centre: Point, radius: float
) -> list[Point]:
    """Place the first node in the centre, the others on rings by distance, beside their path.

    Every node has a sector as wide as the number of leaves below it, so that paths do not cross.
    Nodes without a path share the outermost ring, and a sector of their own.
    """
    rings = ring_numbers(distances)
    step = radius / max(*rings, 1)
    children: dict[int, list[int]] = {}
    for index in range(1, len(rings)):
        children.setdefault(before.get(index, 0), []).append(index)
    width = [0] * len(rings)
    for index in sorted(range(len(rings)), key=lambda index: -rings[index]):
        width[index] = max(1, sum(width[child] for child in children.get(index, [])))
    sectors = {0: (-math.pi / 2, 1.5 * math.pi)}
    points = [centre] * len(rings)
    for index in sorted(range(len(rings)), key=lambda index: rings[index]):
        start, end = sectors[index]
        for child in children.get(index, []):
            share = (end - start) * width[child] / width[index]
            sectors[child] = (start, start + share)
            width[index] -= width[child]
            angle, far = start + share / 2, step * rings[child]
            x, y = centre[0] + far * math.cos(angle), centre[1] + far * math.sin(angle)
            points[child] = (round(x, 1), round(y, 1))
            start += share
    return points


def ring_numbers(distances: Sequence[int]) -> list[int]:
    """Return the ring of each node: its distance, one more than the largest without a path."""
    farthest = max(distances, default=0)
    return [farthest + 1 if distance < 0 else distance for distance in distances]


SIZE = 640  # pixels, width and height without the legend
TOP = 60  # pixels, below the two lines of text
CENTRE = (SIZE / 2, SIZE / 2 + 22)
MAX_NAMES = 12  # nodes labelled with their id, where there is room
MAX_CHARS = 16  # longer ids are cut
CAPTION = "Filled: labelled. Hollow: predicted. Square: evidence against. Size: contribution."
# As on all pages: blue-grey first for common classes, orange first for rare ones.
COMMON = ("#66768c", "#1f6fb2", "#0f7d5c", "#9a3f8f", "#4a90a4", "#7a6a4f")
RARE = ("#b84a00", "#e0912f", "#c2456a", "#8c2d04")
SAME_CLUSTER = "#ffd873"

Box = tuple[float, float, float, float]  # left, top, right, bottom


def write_explanation(explanation: Mapping[str, Any], ids: Sequence[str], path: Path) -> None:
    """Write the figure of `Explanation.as_dict()` atomically."""
    write_atomic(draw_explanation(explanation, ids).encode(), path)


def draw_explanation(explanation: Mapping[str, Any], ids: Sequence[str]) -> str:
    """Draw nodes by their distance from the explained one, larger the more they contributed.

    Lines are the paths to the nodes; other edges are pale. Colours are classes, and a halo marks
    nodes in the same cluster as the explained one. Nodes without a path are on the outermost ring.
    The largest contributions have their id beside them where there is room; all have it as tooltip.
    """
    near = explanation["neighbourhood"]
    classes = explanation["class_names"] or [
        str(label) for label in range(len(explanation["probabilities"]))
    ]
    colours = class_colours(explanation.get("class_counts") or [1] * len(classes))
    tree = path_tree(near)
    points = ring_positions(near["distance"], tree, centre=CENTRE, radius=SIZE / 2 - 52)
    largest = max((abs(value) for value in near["contribution"][1:]), default=0.0) or 1.0
    radii = [11.0, *(round(4 + 7 * abs(value / largest), 1) for value in near["contribution"][1:])]
    names = [ids[node] for node in near["node_id"]]
    legend = _legend(explanation, classes, colours, names[0])
    probability = f"{100 * explanation['probability']:.1f}%"
    title = f"{ids[explanation['node']]}: {classes[explanation['predicted']]}, {probability}"
    return str(
        tag(
            "svg",
            tag("title", title),
            tag("rect", width="100%", height="100%", fill="white"),
            *_rings(near["distance"]),
            *_edges(near, points, tree),
            *_halos(near, points, radii),
            *_marks(near, points, radii, classes, names, colours),
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


def class_colours(counts: Sequence[int]) -> list[str]:
    """Return a colour per class; those with less than half the labels of the largest are rare."""
    rare = [2 * count < max(counts) for count in counts]
    colours = []
    for index, is_rare in enumerate(rare):
        palette = RARE if is_rare else COMMON
        colours.append(palette[rare[:index].count(is_rare) % len(palette)])
    return colours


def _legend(
    explanation: Mapping[str, Any], classes: Sequence[str], colours: Sequence[str], centre: str
) -> list[Markup]:
    near, counts = explanation["neighbourhood"], explanation.get("class_counts")
    labels = sorted({*near["predicted"], *(label for label in near["y"] if label >= 0)})
    entries = []
    for label in labels:
        text = classes[label] + (f", {counts[label]:,} labelled" if counts else "")
        entries.append((colours[label], text + (", rare" if colours[label] in RARE else "")))
    if any(_same_cluster(near)):
        entries.append((SAME_CLUSTER, f"halo: in the same cluster as {_cut(centre)}"))
    return [
        tag(
            "g",
            tag("circle", cx=24, cy=SIZE + 24 * row, r=6, fill=colour),
            tag("text", text, x=40, y=SIZE + 24 * row + 4),
        )
        for row, (colour, text) in enumerate(entries)
    ]


def _ring_radii(distances: Sequence[int]) -> list[float]:
    farthest = max(ring_numbers(distances))
    return [(SIZE / 2 - 52) * ring / farthest for ring in range(1, farthest + 1)]


def _rings(distances: Sequence[int]) -> Iterable[Markup]:
    """Pale circles that say how far away nodes are."""
    for radius in _ring_radii(distances):
        yield tag("circle", cx=CENTRE[0], cy=CENTRE[1], r=round(radius, 1), fill="none",
                  stroke="#eceff3")  # fmt: skip


def _ring_names(distances: Sequence[int], taken: Sequence[Box]) -> list[tuple[str, Box]]:
    """How far away each ring is, beside its top or the nearest place that no mark covers."""
    found = []
    for ring, radius in enumerate(_ring_radii(distances), start=1):
        text = "no path" if ring > max(distances) else f"{ring} step{'s'[: ring > 1]}"
        boxes = []
        for turn in sorted(range(-90, 91, 6), key=abs):
            x = CENTRE[0] + radius * math.sin(math.radians(turn))
            y = CENTRE[1] - radius * math.cos(math.radians(turn))
            boxes.append((x - 20, y - 14, x + 20, y - 2))
        found.append((text, next((box for box in boxes if _is_free(box, taken)), boxes[0])))
    return found


def _edges(
    near: Mapping[str, Any], points: Sequence[Point], tree: Mapping[int, int]
) -> Iterable[Markup]:
    """All edges once, those of paths above the others and stronger."""
    paths: list[Markup] = []
    others: list[Markup] = []
    for a, b in zip(*near["edge_index"], strict=True):
        if a < b:
            on_path = tree.get(b) == a or tree.get(a) == b
            ends = {"x1": points[a][0], "y1": points[a][1], "x2": points[b][0], "y2": points[b][1]}
            (paths if on_path else others).append(tag("line", **ends))
    yield tag("g", *others, stroke="#e3e7ec", stroke_width=0.8)
    yield tag("g", *paths, stroke="#a9b4c1", stroke_width=1.6)


def _same_cluster(near: Mapping[str, Any]) -> list[bool]:
    """Whether each other node is in the cluster of the first one."""
    cluster = near.get("cluster")
    return [] if not cluster else [False, *(other == cluster[0] for other in cluster[1:])]


def _halos(
    near: Mapping[str, Any], points: Sequence[Point], radii: Sequence[float]
) -> Iterable[Markup]:
    same = _same_cluster(near)
    for (x, y), radius, shown in zip(points, radii, [any(same), *same[1:]], strict=False):
        if shown:
            yield tag("circle", cx=x, cy=y, r=round(radius + 6, 1), fill=SAME_CLUSTER,
                      fill_opacity=0.6)  # fmt: skip


def _names(
    near: Mapping[str, Any], points: Sequence[Point], radii: Sequence[float], names: Sequence[str]
) -> list[Markup]:
    """Distances of rings, and ids of the centre and of the largest contributions.

    They overlap neither one another nor a mark.
    """
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True)]
    rings = _ring_names(near["distance"], taken)
    taken += [box for _, box in rings]
    weights = [abs(value) for value in near["contribution"]]
    others = sorted(range(1, len(points)), key=lambda index: -weights[index])
    texts = [
        tag("text", text, x=round(box[0] + 20, 1), y=round(box[3] - 1, 1), text_anchor="middle",
            font_size=10, fill="#66707d", paint_order="stroke")
        for text, box in rings
    ]  # fmt: skip
    for index in [0, *(index for index in others[: MAX_NAMES - 1] if weights[index] > 0)]:
        name = _cut(names[index])
        boxes = _boxes(points[index], radii[index], 7.0 * len(name))
        box = next((box for box in boxes if _is_free(box, taken)), None)
        if box is not None:
            taken.append(box)
            at = {"x": round(box[0], 1), "y": round(box[3] - 3, 1)}
            texts.append(tag("text", name, **at, font_size=11, paint_order="stroke"))
    return texts


def _cut(name: str) -> str:
    return name if len(name) <= MAX_CHARS else name[: MAX_CHARS - 1] + "…"


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


def _marks(
    near: Mapping[str, Any],
    points: Sequence[Point],
    radii: Sequence[float],
    classes: Sequence[str],
    names: Sequence[str],
    colours: Sequence[str],
) -> Iterable[Markup]:
    """A mark per node: a circle, or a square if it is evidence against the prediction."""
    for index, (label, predicted) in enumerate(zip(near["y"], near["predicted"], strict=True)):
        source, shown = ("labelled", label) if label >= 0 else ("predicted", predicted)
        (x, y), radius = points[index], radii[index]
        against = index > 0 and near["contribution"][index] < 0
        words = f"{names[index]}: {source} {classes[shown]}"
        look = {
            "fill": colours[shown] if label >= 0 else "white",
            "stroke": "black" if index == 0 else colours[shown],
            "stroke_width": 3 if index == 0 else 2,
        }
        title = tag("title", words + (", evidence against" if against else ""))
        if against:
            side = round(1.7 * radius, 1)
            corner = {"x": round(x - side / 2, 1), "y": round(y - side / 2, 1)}
            yield tag("rect", title, **corner, width=side, height=side, **look)
        else:
            yield tag("circle", title, cx=x, cy=y, r=radius, **look)
