"""One self-contained HTML page for one result."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evengraph.core.files import write_atomic
from evengraph.report.run import sections, words
from evengraph.report.run.style import STYLE
from evengraph.report.run.values import class_rows
from evengraph.report.svg.markup import Markup, join, tag

# the browser itself then refuses any outside request, whatever a result may contain
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def render_page(result: Mapping[str, Any]) -> str:
    """Draw a result as HTML.

    The page needs nothing from outside and runs no script. Figures that are missing, null or NaN
    show as a dash.

    Args:
        result: What `evengraph run` found, as its result.json holds it.
    """
    rows = class_rows(result)
    main = tag(
        "main",
        sections.headline(result),
        sections.classes(result, rows),
        sections.learning(result),
        sections.mistakes(result, rows),
        sections.seeds(result),
        sections.settings(result),
        sections.notes(result),
    )
    body = tag("body", sections.header(result), main, _footer(result))
    return f"<!doctype html>\n{tag('html', head(_title(result)), body, lang='en')}\n"


def write_page(result: Mapping[str, Any], path: Path) -> None:
    """Write the page for a result, whole or not at all.

    Args:
        result: What `evengraph run` found.
        path: Where the page goes; an older page there is replaced.
    """
    # a lone surrogate in a name cannot be UTF-8; as a reference it shows as a replacement mark
    content = render_page(result).encode("utf-8", errors="xmlcharrefreplace")
    write_atomic(content, Path(path))


def head(title: str, style: str = STYLE) -> Markup:
    """Write the head of a page that needs nothing from outside and runs no script.

    Args:
        title: Its title.
        style: Its stylesheet.
    """
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        # an empty icon keeps a server from being asked for one
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )


def _title(result: Mapping[str, Any]) -> str:
    title = f"{words.method_title(result)} on {words.dataset_title(result)}"
    return f"{title}, {words.imbalance_words(result)}"


def _footer(result: Mapping[str, Any]) -> Markup:
    version = result.get("evengraph")
    pieces = [f"evengraph {version}" if version else "evengraph"]
    if (moment := words.day(result.get("created"))) is not None:
        pieces.append(tag("time", moment, datetime=str(result.get("created"))))
    return tag("footer", tag("p", join(pieces, " · ")))
