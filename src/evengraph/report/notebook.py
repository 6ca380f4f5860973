"""How comparisons, inspections, explanations and models look in a notebook.

Every function takes what the object gives as JSON, and returns sections of the pages with their
style, which holds inside of the output alone.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report.compare_page import comparison_sections
from evengraph.report.inspect_page import STYLE as INSPECTION
from evengraph.report.inspect_page import inspection_sections
from evengraph.report.markup import Markup, integer, join, tag
from evengraph.report.model_card import CLASS_HEADS, tested
from evengraph.report.node_pictures import draw_explanation
from evengraph.report.page import (
    STYLE,
    section,
    table,
    table_row,
    verdict,
)
from evengraph.report.view import ComparisonView, InspectionView

FRAME = "& { padding: .2rem 1rem 1rem; border-radius: .6rem; max-width: 70rem;"
FRAME += " container-type: inline-size; } "  # narrow is the output, not the window


def comparison_html(comparison: Mapping[str, Any]) -> str:
    """The verdict, and the sections of the comparison page."""
    view = ComparisonView(comparison)
    return _output(verdict(view.verdict), *comparison_sections(view, {}))


def inspection_html(inspection: Mapping[str, Any]) -> str:
    """Findings and classes."""
    name = "evengraph-inspection"  # whose rules are for it alone
    return _output(*inspection_sections(InspectionView(inspection)), style=INSPECTION, name=name)


def explanation_html(explanation: Mapping[str, Any], ids: Sequence[str]) -> str:
    """The figure of an explanation; nodes without ids are numbered."""
    return f'<div style="max-width: 48rem">{draw_explanation(explanation, ids)}</div>'


def model_html(title: str, names: Sequence[str], counts: Sequence[int], extra: Any) -> str:
    """Scores of a model and its classes; `extra` is what its folder holds beside the method."""
    view = tested(extra, names, counts)
    rows = [table_row(row.name, row.cells) for row in view.classes]
    drawn = table("Classes", CLASS_HEADS, rows, "figures")
    said = verdict(view.verdict)
    return _output(section(f"{title}, {integer(sum(counts))} training labels", said, drawn))


def _output(*parts: Markup, style: str = "", name: str = "evengraph") -> str:
    """Parts of a page with their style; its rules reach nothing outside of the frame."""
    # the class is named twice: these rules outweigh those of a page around the output
    rules = (STYLE + style).replace(":root", "&")
    rules = rules.replace("@media (max-width", "@container (max-width")
    rules = re.sub(r"^(\s*)body {", r"\1& {", rules, flags=re.MULTILINE)
    scoped = tag("style", Markup(f".{name}.{name} {{ {FRAME}{rules} }}"))
    return str(tag("div", scoped, join(parts), class_=name))
