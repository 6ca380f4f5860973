"""The page of one result."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evengraph.report.page import footer, html_page, write_html
from evengraph.report.run import captions, sections
from evengraph.report.run.result_reader import class_rows
from evengraph.report.svg.markup import Markup, tag


def render_page(result: Mapping[str, Any]) -> str:
    """Render a result as HTML.

    The page is self-contained and runs no script. Values that are missing, null or NaN show as a
    dash.

    Args:
        result: Content of a result.json.
    """
    rows = class_rows(result)
    main = tag(
        "main",
        sections.headline(result),
        sections.classes(result, rows),
        sections.learning_curves(result),
        sections.confusion_matrix(result, rows),
        sections.seeds(result),
        sections.settings(result),
        sections.metric_glossary(result),
    )
    title = f"{captions.title(result)}, {captions.imbalance(result)}"
    return html_page(title, sections.header(result), main, _footer(result))


def write_page(result: Mapping[str, Any], path: Path) -> None:
    """Write the page of a result atomically.

    Args:
        result: Content of a result.json.
        path: Where the page goes; an older page there is replaced.
    """
    write_html(render_page(result), path)


def _footer(result: Mapping[str, Any]) -> Markup:
    created = result.get("created")
    moment = captions.timestamp(created)
    dated = [] if moment is None else [tag("time", moment, datetime=str(created))]
    return footer(result.get("evengraph"), *dated)
