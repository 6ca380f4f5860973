"""The picture of an explained node: its neighbourhood, and the reasons as bars."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evengraph.report.markup import Markup, plural, tag

SIZE = 640  # pixels, width and height without the legend
TOP = 60  # pixels, below the two lines of text
CENTRE = (SIZE / 2, SIZE / 2 + 22)
RADIUS = SIZE / 2 - 52  # of the outermost ring
MAX_NAMES = 12  # nodes labelled with their id, where there is room
MAX_CHARS = 16  # longer ids are cut
CAPTION = "Filled: labelled. Hollow: predicted. Square: evidence against. Size: contribution."
# As on all pages: a class has the colour of its number, the smallest is orange if it is rare.
COLOURS = ("#1f6fb2", "#5b4bb5", "#9a3f8f", "#0f7d5c", "#4a5563", "#c2456a")
RARE = "#b84a00"
SUPPORTS, OPPOSES = "#24405f", "#a9b4c1"  # reasons, which have no class
MOST_BARS, ROW, BAR, AXIS = 8, 22, 110, 506  # reasons drawn; pixels
MAX_WORDS = 58  # characters of a reason

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def verdict(explanation: Mapping[str, Any]) -> str:
    """What was decided for the explained node, in a sentence."""
    names = class_names(explanation)
    name, share = names[explanation["about"]], 100 * explanation["probability"]
    text = f"{explanation['id']}: {name} {share:.1f}%"
    if (threshold := explanation.get("threshold")) is not None:
        flagged = explanation["probability"] >= threshold
        return f"{text}, {'flagged' if flagged else 'not flagged'} (from {100 * threshold:.1f}%)."
    if explanation["predicted"] != explanation["about"]:
        return f"{text}; predicted: {names[explanation['predicted']]}."
    runner_up = explanation.get("runner_up")
    return f"{text}." if runner_up is None else f"{text}; runner-up: {names[runner_up]}."


def neighbour_words(explanation: Mapping[str, Any]) -> str:
    """How many neighbours a node has, and the classes of those that are labelled."""
    names, counts = class_names(explanation), explanation["class_counts"]
    count, near = explanation["neighbours"], explanation["neighbour_labels"]
    text = f"It has {plural(count, 'neighbour')}"
    if not sum(counts):
        return f"{text}; no labelled node of training is in this graph."
    labelled = ", ".join(f"{n:,} {name}" for n, name in zip(near, names, strict=False) if n)
    share = counts[explanation["about"]] / sum(counts)
    usual = f"{names[explanation['about']]} is {100 * share:.1f}% of all labels."
    return f"{text}, labelled among them: {labelled or 'none'}. {usual}"


def class_names(explanation: Mapping[str, Any]) -> list[str]:
    count = len(explanation["probabilities"])
    return [str(name) for name in explanation["class_names"] or range(count)]


def draw_explanation(
    explanation: Mapping[str, Any], ids: Sequence[str], colours: Sequence[str] = ()
) -> str:
    """Draw nodes by their distance from the explained one, larger the more they contributed.

    Lines are the paths to the nodes; other edges are pale. Colours are classes. The largest
    contributions have their id where there is room. Below are the reasons as bars.

    Args:
        colours: Of each class; by default those of `class_colours` for the model's labels.
    """
    return str(_Neighbourhood(explanation, ids, colours).draw())


def path_tree(near: Mapping[str, Any]) -> dict[int, int]:
    """The node before each node on a path from the first one, by index; not of all nodes."""
    distances, before = near["distance"], dict[int, int]()
    for a, b in zip(*near["edge_index"], strict=True):
        if distances[a] > 0 and distances[b] == distances[a] - 1:
            before[a] = min(b, before.get(a, b))
    return before


def ring_positions(
    distances: Sequence[int], before: Mapping[int, int], *, centre: Point, radius: float
) -> list[Point]:
    """Place the first node in the centre, the others on rings by distance, beside their path.

    Every node has a sector as wide as the number of leaves below it, so that paths do not cross.
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


def class_colours(counts: Sequence[int]) -> list[str]:
    """Return a colour per class; the smallest is rare below half the labels of the largest.

    A class without labels is not: it may have just been named.
    """
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(counts))]
    least = min(filter(None, counts), default=0)
    if 2 * least < max(counts):
        colours[counts.index(least)] = RARE
    return colours


class _Neighbourhood:
    """What is drawn of an explanation: places, sizes, names and colours of its nodes."""

    def __init__(
        self, explanation: Mapping[str, Any], ids: Sequence[str], colours: Sequence[str]
    ) -> None:
        self.near = near = explanation["neighbourhood"]
        self.classes = class_names(explanation)
        self.reasons = list(explanation.get("reasons") or ())[:MOST_BARS]
        self.about = self.classes[explanation["about"]]
        self.counts = explanation.get("class_counts")
        self.colours = colours or class_colours(self.counts or [1] * len(self.classes))
        self.tree = path_tree(near)
        self.points = ring_positions(near["distance"], self.tree, centre=CENTRE, radius=RADIUS)
        weights = [abs(value) for value in near["contribution"]]
        largest = max(weights[1:], default=0.0) or 1.0
        self.radii = [11.0, *(round(4 + 7 * weight / largest, 1) for weight in weights[1:])]
        self.names = [ids[node] if ids else str(node) for node in near["node_id"]]
        self.title = verdict({"id": self.names[0], **explanation})
        farthest = max(ring_numbers(near["distance"]))
        self.rings = [RADIUS * ring / farthest for ring in range(1, farthest + 1)]

    def draw(self) -> Markup:
        legend, bars = self._legend(), self._bars()
        middle = {"cx": CENTRE[0], "cy": CENTRE[1]}
        look = {"fill": "none", "stroke": "#eceff3"}
        return tag(
            "svg",
            tag("title", self.title),
            tag("rect", width="100%", height="100%", fill="white"),
            *(tag("circle", **middle, r=round(r, 1), **look) for r in self.rings),
            *self._edges(),
            *self._marks(),
            tag("g", *self._texts(), stroke="white", stroke_width=3),
            tag("text", self.title, x=16, y=28, font_size=16, font_weight="bold"),
            tag("text", CAPTION, x=16, y=48, fill="#555555"),
            *legend,
            tag("g", *bars, transform=f"translate(0 {SIZE + 24 * len(legend)})"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {SIZE} {SIZE + 24 * len(legend) + ROW * len(bars)}",
            font_family="sans-serif",
            font_size=12,
        )

    def _legend(self) -> list[Markup]:
        labels = {*self.near["predicted"], *(label for label in self.near["y"] if label >= 0)}
        entries = []
        for label in sorted(labels):
            text = self.classes[label]
            text += f", {self.counts[label]:,} labelled" if self.counts else ""
            text += ", rare" if self.colours[label] == RARE else ""
            entries.append((self.colours[label], text))
        lines = []
        for y, (colour, text) in enumerate(entries):
            mark = tag("circle", cx=24, cy=SIZE + 24 * y, r=6, fill=colour)
            lines.append(tag("g", mark, tag("text", text, x=40, y=SIZE + 24 * y + 4)))
        return lines

    def _bars(self) -> list[Markup]:
        """The reasons: bars to the right support the class, bars to the left oppose it."""
        if not self.reasons:
            return []
        largest = max(abs(one["contribution"]) for one in self.reasons)
        text = f"Bars to the right support {self.about}, bars to the left oppose it."
        rows = [tag("text", text, x=16, y=16, fill="#555555")]
        for place, one in enumerate(self.reasons, start=1):
            y, width = ROW * place, round(BAR * abs(one["contribution"]) / largest, 1)
            words = one["title"] + (f": {one['value']}" if one["value"] else "")
            words += f" (usually {one['typical']})" if one["typical"] else ""
            left, colour = (AXIS, SUPPORTS) if one["contribution"] > 0 else (AXIS - width, OPPOSES)
            bar = tag("rect", x=round(left, 1), y=y + 4, width=width, height=14, fill=colour)
            axis = tag("line", x1=AXIS, x2=AXIS, y1=y, y2=y + ROW, stroke="#a9b4c1")
            name = tag("text", _cut(words, MAX_WORDS), x=16, y=y + 15)
            rows.append(tag("g", name, bar, axis))
        return rows

    def _edges(self) -> list[Markup]:
        """All edges once, those of paths above the others and stronger."""
        paths: list[Markup] = []
        others: list[Markup] = []
        for a, b in zip(*self.near["edge_index"], strict=True):
            if a < b:
                (x1, y1), (x2, y2) = self.points[a], self.points[b]
                on_path = self.tree.get(b) == a or self.tree.get(a) == b
                (paths if on_path else others).append(tag("line", x1=x1, y1=y1, x2=x2, y2=y2))
        pale = tag("g", *others, stroke="#e3e7ec", stroke_width=0.8)
        return [pale, tag("g", *paths, stroke="#a9b4c1", stroke_width=1.6)]

    def _marks(self) -> Iterator[Markup]:
        """A circle per node, or a square if it is evidence against the explained class."""
        near = self.near
        for index, (label, predicted) in enumerate(zip(near["y"], near["predicted"], strict=True)):
            source, shown = ("labelled", label) if label >= 0 else ("predicted", predicted)
            (x, y), radius, colour = self.points[index], self.radii[index], self.colours[shown]
            against = index > 0 and near["contribution"][index] < 0
            words = f"{self.names[index]}: {source} {self.classes[shown]}"
            look = {
                "fill": colour if label >= 0 else "white",
                "stroke": "black" if index == 0 else colour,
                "stroke_width": 3 if index == 0 else 2,
            }
            title = tag("title", words + (", evidence against" if against else ""))
            if against:
                side = round(1.7 * radius, 1)
                corner = {"x": round(x - side / 2, 1), "y": round(y - side / 2, 1)}
                yield tag("rect", title, **corner, width=side, height=side, **look)
            else:
                yield tag("circle", title, cx=x, cy=y, r=radius, **look)

    def _texts(self) -> Iterator[Markup]:
        """Distances of rings and the largest contributions' ids, which overlap nothing else."""
        both = zip(self.points, self.radii, strict=True)
        taken = [(x - r, y - r, x + r, y + r) for (x, y), r in both]
        rings = [self._ring_box(radius, taken) for radius in self.rings]
        for index, box in enumerate(rings):
            far = index >= max(self.near["distance"])
            text = "no path" if far else f"{index + 1} step{'s'[: index > 0]}"
            x, y = round(box[0] + 20, 1), round(box[3] - 1, 1)
            look = {"fill": "#66707d", "paint_order": "stroke"}
            yield tag("text", text, x=x, y=y, text_anchor="middle", font_size=10, **look)
        taken += rings
        weights = [abs(value) for value in self.near["contribution"]]
        others = sorted(range(1, len(weights)), key=lambda index: -weights[index])
        for index in [0, *(index for index in others[: MAX_NAMES - 1] if weights[index] > 0)]:
            name = _cut(self.names[index])
            (x, y), gap, width = self.points[index], self.radii[index] + 3, 7.0 * len(name)
            corners = [(x + gap, y - 7), (x - gap - width, y - 7)]  # beside it, below, above
            corners += [(x - width / 2, y + gap), (x - width / 2, y - gap - 14)]
            boxes = [(left, top, left + width, top + 14) for left, top in corners]
            if (place := next((box for box in boxes if _is_free(box, taken)), None)) is not None:
                taken.append(place)
                at = {"x": round(place[0], 1), "y": round(place[3] - 3, 1)}
                yield tag("text", name, **at, font_size=11, paint_order="stroke")

    def _ring_box(self, radius: float, taken: Sequence[Box]) -> Box:
        """A place beside the top of a ring, or the nearest one that no mark covers."""
        boxes = []
        for turn in map(math.radians, sorted(range(-90, 91, 6), key=abs)):
            x, y = CENTRE[0] + radius * math.sin(turn), CENTRE[1] - radius * math.cos(turn)
            boxes.append((x - 20, y - 14, x + 20, y - 2))
        return next((box for box in boxes if _is_free(box, taken)), boxes[0])


def _cut(name: str, most: int = MAX_CHARS) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _is_free(box: Box, taken: Sequence[Box]) -> bool:
    left, top, right, bottom = box
    if left < 4 or right > SIZE - 4 or top < TOP or bottom > SIZE - 10:
        return False
    return not any(left < r and right > a and top < b and bottom > t for a, t, r, b in taken)
