"""A map of nodes: where t-SNE puts them, coloured by class, prediction or cluster.

The map can be read without its script, which adds zoom, tooltips and the choice of colours.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.core.untrusted import items, number
from evengraph.report import page
from evengraph.report.charts import percent
from evengraph.report.markup import Markup, integer, join, tag

STYLE = page.read_asset(__package__, "node_map.css")
SCRIPT = page.read_asset(__package__, "node_map.js")
SHADES = 10  # colours; more classes than that share them
ORANGE = 1  # the colour of a rare class, as on all pages
LEGEND = 24  # classes that the legend names
GROUPS = (("class", "k", "classes"), ("prediction", "p", "predicted"), ("cluster", "m", "clusters"))
KEYS = "Arrow keys move the map, plus and minus zoom, 0 shows all of it."


def map_section(content: Mapping[str, Any]) -> Markup:
    """The section of a run's page; nothing without a map."""
    found = content.get("map")
    if not isinstance(found, Mapping) or not items(found, "x"):
        return Markup("")
    source = "predicted probabilities" if found.get("of") == "probabilities" else "embeddings"
    text = f"t-SNE of the {source} of seed {found.get('seed', '?')}: nodes that the model finds "
    text += "similar are close. Classes are the true ones; nothing is learnt from the map."
    return page.section("Map of the nodes", tag("p", text), map_figure(found), id="map")


def map_figure(nodes: Mapping[str, Any], title: str = "") -> Markup:
    """Draw the nodes; what is not a number is left out.

    Args:
        nodes: Coordinates from 0 to 100 (`x`, `y`), `classes`, `class_names`, `train`, and
            possibly `predicted` and `clusters`, as `place_nodes` returns them.
        title: Heading of the figure.
    """
    names = [str(name) for name in items(nodes, "class_names")]
    groups = [group for group in GROUPS if group[0] == "class" or items(nodes, group[2])]
    shades = _shades(nodes)
    dots = [
        dot for index in range(len(items(nodes, "x"))) if (dot := _dot(nodes, index, names, shades))
    ]
    drawn = tag("svg", *dots, width="100%", height="100%", class_="nodes")
    label = f"Map of {integer(len(dots))} nodes"
    picture = tag("svg", drawn, role="img", aria_label=label, class_="map", data_colours="class")
    tip = tag("output", "", class_="tip", hidden=True)
    frame = tag("div", picture, tip, class_="frame", tabindex="0", role="group", aria_label=KEYS)
    caption = tag("figcaption", tag("h3", title)) if title else Markup("")
    note = tag("p", f"Training nodes have a ring. {KEYS}", class_="note")
    parts = (
        caption,
        _tools([group[0] for group in groups]),
        _legend(nodes, names, shades),
        frame,
        note,
    )
    return tag("figure", *parts, class_="node-map")


def _shades(nodes: Mapping[str, Any]) -> dict[int, int]:
    """The colour of each class: orange for the smallest if it is rare, any other for the rest."""
    counts = Counter(_whole(label) for label in items(nodes, "classes"))
    labels = sorted(label for label in counts if label is not None and label >= 0)
    if not labels:
        return {}
    smallest = min(labels, key=lambda label: counts[label])
    if counts[smallest] >= max(counts[label] for label in labels) / 2:
        return {label: label % SHADES for label in labels}
    others = [shade for shade in range(SHADES) if shade != ORANGE]
    rest = [label for label in labels if label != smallest]
    shades = {label: others[place % len(others)] for place, label in enumerate(rest)}
    return shades | {smallest: ORANGE}


def _dot(
    nodes: Mapping[str, Any], index: int, names: Sequence[str], shades: Mapping[int, int]
) -> Markup | None:
    x, y = (number(_at(nodes, axis, index)) for axis in ("x", "y"))
    if x is None or y is None:
        return None
    label, guess, cluster = (_whole(_at(nodes, group[2], index)) for group in GROUPS)
    values = (label, guess, cluster)
    known = [(group[1], v) for group, v in zip(GROUPS, values, strict=True) if v is not None]
    kinds = [
        f"{letter}{value % SHADES if letter == 'm' else shades.get(value, value % SHADES)}"
        for letter, value in known
        if value >= 0
    ]
    text = _name(label, names)
    if guess is not None:
        text += ", predicted correctly" if guess == label else f", predicted {_name(guess, names)}"
    text += "" if cluster is None else f", cluster {cluster}"
    if _at(nodes, "train", index) is True:
        text += ", training node"
        kinds.append("train")
    place = {"cx": percent(_inset(x)), "cy": percent(_inset(100 - y))}
    look = {"r": 5 if "train" in kinds else 3, "class_": " ".join(kinds), "data_class": label}
    return tag("circle", tag("title", text), **place, **look)


def _inset(value: float) -> float:
    """Keep dots at the edge inside the frame."""
    return 2 + 0.96 * value


def _tools(colourings: Sequence[str]) -> Markup:
    """Buttons for colours and zoom; hidden without the script."""
    colours = [
        tag("button", f"by {name}", type="button", data_colours=name, aria_pressed=pressed)
        for name, pressed in zip(colourings, ("true", "false", "false"), strict=False)
    ]
    zoom = [
        tag("button", sign, type="button", data_zoom=name, aria_label=label)
        for sign, name, label in (
            ("+", "in", "Zoom in"),
            ("−", "out", "Zoom out"),
            ("Reset", "all", "Show the whole map"),
        )
    ]
    both = join((tag("span", *colours), tag("span", *zoom)))
    return tag("div", both, class_="switch", hidden=True)


def _legend(nodes: Mapping[str, Any], names: Sequence[str], shades: Mapping[int, int]) -> Markup:
    """Classes with their colours and numbers of nodes; as buttons they highlight a class."""
    counts = Counter(_whole(label) for label in items(nodes, "classes"))
    labels = sorted(label for label in counts if label is not None and label >= 0)
    entries = []
    for label in labels[:LEGEND]:
        shade = tag("circle", cx=7, cy=7, r=6, class_=f"k{shades[label]}")
        swatch = tag("svg", shade, width=14, height=14, aria_hidden="true", class_="swatch")
        words = tag("span", f"{_name(label, names)} ({counts[label]:,})")
        button = {"type": "button", "data_class": str(label), "aria_pressed": "false"}
        entries.append(tag("li", tag("button", swatch, words, **button)))
    if len(labels) > SHADES:
        more = len(labels) - len(entries)
        text = f"{more} more classes; colours repeat" if more else "colours repeat"
        entries.append(tag("li", text))
    return tag("ul", *entries, class_="legend classes", data_colours="class")


def _at(nodes: Mapping[str, Any], name: str, index: int) -> Any:
    column = items(nodes, name)
    return column[index] if index < len(column) else None


def _whole(value: Any) -> int | None:
    finite = number(value)
    return None if finite is None else int(finite)


def _name(label: int | None, names: Sequence[str]) -> str:
    if label is None or label < 0:
        return "no class"
    return names[label] if label < len(names) else f"class {label}"
