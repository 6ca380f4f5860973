"""Whole pages and terminal output as text; UPDATE_SNAPSHOTS=1 writes the files anew."""

from pathlib import Path

import pytest
from samples import compared, explained, make_fraud, make_result, printed, stored_look

from evengraph.report import render_page
from evengraph.report.compare_page import render_comparison
from evengraph.report.inspect_page import render_inspection
from evengraph.report.node_pictures import draw_explanation
from evengraph.report.page import Link
from evengraph.report.terminal import (
    comparison_notes,
    comparison_tables,
    inspection_view,
    result_notes,
    result_tables,
)
from page_tree import parse_page
from snapshots import check_snapshot

FOLDER = Path(__file__).with_name("snapshots")
LINKS = [Link("a b/result.json", "All results as JSON")]
BLOCKS = {"h1", "h2", "h3", "p", "li", "tr", "dt", "dd", "article", "summary", "button", "title"}
PLACES = ("href", "style", "x", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "d")


def words(node):
    """Texts below a node, without those of pictures and of blocks in it."""
    for child in node.children:
        if isinstance(child, str):
            yield child.strip()
        elif child.tag != "svg" and child.tag not in BLOCKS:
            yield from words(child)


def page_lines(node):
    """Every text of a page, and where its marks are; grids, ticks and legends have no lines."""
    if node.kinds & {"swatch", "scale"}:
        return
    places = [f"{key}={node.attributes[key]}" for key in PLACES if key in node.attributes]
    text = " · ".join(filter(None, words(node))) if node.tag in BLOCKS else ""
    if (text or places) and not node.kinds & {"grid", "tick", "axis"} and node.tag != "svg":
        kind = ".".join([node.tag, *sorted(node.kinds)])
        yield " ".join(filter(None, [kind, *places, text and f"| {text}"]))
    for child in node.children:
        if not isinstance(child, str) and child.tag != "script":
            yield from page_lines(child)


def body_lines(text):
    (body,) = parse_page(text).all("body")
    return list(page_lines(body))


def of_result(content):
    terminal = printed(*result_tables([content]), *result_notes(content))
    return [*body_lines(render_page(content, links=LINKS)), "", terminal]


def of_comparison(content):
    page = render_comparison(content, pages={"m0": "m 0/report.html"}, links=LINKS)
    terminal = printed(*comparison_tables(content), *comparison_notes(content))
    return [*body_lines(page), "", terminal]


def of_inspection(content):
    page = body_lines(render_inspection(content, links=LINKS))
    return [*page, "", printed(inspection_view(content))]


def of_explanation(**changes):
    crossed = {"edge_index": [[0, 1, 0, 2, 2, 3, 1, 2], [1, 0, 2, 0, 3, 2, 2, 1]]}
    drawn = draw_explanation(explained(**crossed, **changes), [f"n{place}" for place in range(8)])
    return drawn.replace("><", ">\n<").splitlines()


def paper():
    result = make_result(["a", "b", "c"], classes=3, rare=1, seeds=(5, 6), epochs=5)
    return result | {"complete": True, "changed_from_paper": []}


def published():
    content = compared(80.0, 70.0, 60.0)
    for method in content["methods"]:
        method["paper"] = {"balanced_accuracy": {"mean": 77.0, "std": 1.0}}
    return content


SNAPSHOTS = {
    "run": lambda: of_result(paper()),
    "run-fraud": lambda: of_result(make_fraud()),
    "run-several": lambda: printed(*result_tables([paper(), make_fraud()])).splitlines(),
    "compare": lambda: of_comparison(published()),
    "compare-few": lambda: of_comparison(compared(80.0, 79.0, splits=4, significant=False)),
    "inspect": lambda: of_inspection(stored_look()),
    "explain": lambda: of_explanation(cluster=[4, 4, 1, 4, 2]),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_it_is_shown_as_before(name):
    path, text = FOLDER / f"{name}.txt", "\n".join(SNAPSHOTS[name]()) + "\n"
    check_snapshot(path, text)
