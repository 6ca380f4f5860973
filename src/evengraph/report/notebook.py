"""What notebooks show of results, comparisons, inspections, explanations, methods and models.

Every function takes what the object gives as JSON, and returns sections of the pages with their
style, which holds inside of the output alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.core.untrusted import items, part
from evengraph.report import page
from evengraph.report import result as captions
from evengraph.report.compare_page import comparison_sections, verdict
from evengraph.report.explain_page import draw_explanation
from evengraph.report.inspect_page import STYLE as INSPECTION
from evengraph.report.inspect_page import inspection_sections
from evengraph.report.markup import Markup, decimals, integer, join, tag
from evengraph.report.model_card import balanced_accuracy, class_scores, interval_text
from evengraph.report.run_page import result_sections

FRAME = "& { padding: .2rem 1rem 1rem; border-radius: .6rem; max-width: 70rem;"
FRAME += " container-type: inline-size; } "  # narrow is the output, not the window


def comparison_html(comparison: Mapping[str, Any]) -> str:
    """The verdict, and the sections of the comparison page."""
    return _output(verdict(comparison), *comparison_sections(comparison, {}))


def inspection_html(inspection: Mapping[str, Any]) -> str:
    """Findings, key numbers and classes."""
    name = "evengraph-inspection"  # whose rules are for it alone
    return _output(*inspection_sections(inspection), style=INSPECTION, name=name)


def results_html(results: Sequence[Mapping[str, Any]]) -> str:
    """Headline metrics and recall per class of each method."""
    parts = [
        part
        for result in results
        for part in (tag("h2", captions.title(result)), *result_sections(result))
    ]
    return _output(*parts)


def explanation_html(explanation: Mapping[str, Any], ids: Sequence[str]) -> str:
    """The figure of an explanation; nodes without ids are numbered."""
    nodes = explanation["neighbourhood"]["node_id"]
    known = list(ids) or [str(number) for number in range(max(nodes) + 1)]
    return f'<div style="max-width: 48rem">{draw_explanation(explanation, known)}</div>'


def method_html(method: Mapping[str, Any]) -> str:
    """Title, what is known of the fit, and parameters; those that were changed come first.

    Args:
        method: Its `title`, `params`, names that were `changed`, and `facts` as pairs.
    """
    changed = [str(name) for name in items(method, "changed")]
    params = part(method, "params")
    first = {name: str(params[name]) for name in changed if name in params}
    rest = {str(name): str(value) for name, value in params.items() if name not in changed}
    blocks = [page.definitions(first)] if first else []
    folded = tag("details", tag("summary", "Parameters with their default"), page.definitions(rest))
    facts = page.facts([(str(n), str(noun)) for n, noun in items(method, "facts")])
    return _output(page.section(str(method.get("title")), facts, *blocks, folded))


def model_html(title: str, names: Sequence[str], counts: Sequence[int], extra: Any) -> str:
    """Scores of a model and its classes.

    Args:
        title: Name of the method.
        names: The classes.
        counts: Labels that it learnt from, per class.
        extra: What its folder holds beside the method.
    """
    score, interval = balanced_accuracy(extra)
    unit = "" if interval is None else f"95% interval {interval_text(interval)}"
    labels = f"{integer(sum(counts))} training labels"
    card = page.card("Balanced accuracy on test nodes", decimals(score), unit)
    heads = ("class", "labels", "test nodes", "precision", "recall", "95% interval", "F1")
    cells = class_scores(extra, counts) or [[integer(count)] for count in counts]
    rows = [
        tag("tr", tag("th", name, scope="row"), *(tag("td", text) for text in row))
        for name, row in zip(names, cells, strict=False)
    ]
    columns = [tag("th", text, scope="col") for text in heads[: 1 + len(cells[0])]] if cells else []
    table = page.table("Classes", columns, rows, "figures")
    cards = tag("div", card, class_="cards") if score is not None else Markup("")
    return _output(page.section(f"{title}, {labels}", cards, table))


def _output(*parts: Markup, style: str = "", name: str = "evengraph") -> str:
    """Parts of a page with their style; rules inside of the frame reach nothing outside of it.

    The class is named twice: these rules outweigh those of a page around the output.
    """
    rules = (
        (page.STYLE + style)
        .replace(":root", "&")
        .replace("@media (max-width", "@container (max-width")
    )
    rules = re.sub(r"^(\s*)body {", r"\1& {", rules, flags=re.MULTILINE)
    scoped = tag("style", Markup(f".{name}.{name} {{ {FRAME}{rules} }}"))
    return str(tag("div", scoped, join(parts), class_=name))
