"""The frame of a self-contained HTML page, and the elements that several pages share."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from evengraph.core.files import write_atomic
from evengraph.core.untrusted import items
from evengraph.report.markup import DASH, Markup, decimals, join, tag
from evengraph.report.view import timestamp


def read_asset(package: str, name: str) -> str:
    """Read a stylesheet or script of a page."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


STYLE = read_asset(__package__, "style.css")
DENSE = 12  # with more classes than this, rows are set closer and zeros are left out
# from this share on a shaded cell needs the opposite text colour; both text colours then reach a
# contrast of 4.5, in light and in dark
FLIP = 0.7


class Link(NamedTuple):
    """A file beside the page."""

    path: str  # relative to the page
    text: str


def html_page(title: str, *body: Markup, style: str = "", script: str = "") -> str:
    """Write a page that needs nothing from outside; `script` is all that the browser may run."""
    # the browser itself then refuses any outside request, whatever a result contains
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    policy += "form-action 'none'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        # an empty icon keeps the browser from requesting one
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(STYLE + style)),
    )
    scripts = [tag("script", Markup(script))] if script else []
    return f"<!doctype html>\n{tag('html', head, tag('body', *body, *scripts), lang='en')}\n"


def write_html(text: str, path: Path) -> None:
    # a lone surrogate in a name cannot be UTF-8; as a reference it shows as a replacement mark
    write_atomic(text.encode("utf-8", errors="xmlcharrefreplace"), Path(path))


def render(
    content: Mapping[str, Any],
    title: str,
    heading: Sequence[Markup],
    sections: Sequence[Markup],
    *,
    style: str = "",
) -> str:
    """Write the page of a file: its heading, sections, and a footer with version and date."""
    created = content.get("created")
    dated = [tag("time", timestamp(created), datetime=created)] if created else []
    body = tag("header", *heading), tag("main", *sections), footer(content.get("evengraph"), *dated)
    return html_page(title, *body, style=style, script=copy_script(content))


def headline(title: str, caption: str) -> Markup:
    """The title of a page, and what it says below in smaller type."""
    return tag("h1", title, tag("span", ", ", class_="unseen"), tag("span", caption))


def verdict(sentences: Sequence[str]) -> Markup:
    """The result in words, its first sentence in bold; nothing without any."""
    first, rest = sentences[:1], (f" {sentence}" for sentence in sentences[1:])
    return tag("p", tag("b", *first), *rest, class_="verdict") if sentences else Markup("")


def section(heading: str, *parts: Markup, kind: str | None = None, id: str | None = None) -> Markup:
    """A part of a page under its heading."""
    return tag("section", tag("h2", heading), *parts, class_=kind, id=id)


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """List a few numbers under the title, each with its noun."""
    lines = (tag("li", *((tag("b", n), " ") if n else ()), noun) for n, noun in pairs)
    return tag("ul", *lines, class_="facts")


def card(title: str, value: str, unit: str, *below: Markup) -> Markup:
    """Show one number in large type."""
    number = tag("p", tag("b", value), tag("span", unit) if unit else "", class_="figure")
    return tag("article", tag("h3", title), number, *below, class_="card")


def legend(entries: Iterable[Markup]) -> Markup:
    """List the marks of a chart; nothing without entries."""
    return tag("ul", *lines, class_="legend") if (lines := list(entries)) else Markup("")


def definitions(values: Mapping[str, Any]) -> Markup:
    pairs = (
        join((tag("dt", str(name)), tag("dd", DASH if value is None else str(value))))
        for name, value in values.items()
    )
    return tag("dl", *pairs, class_="pairs")


def folded(title: str, *parts: Markup) -> Markup:
    """Parts that are shown on a click."""
    return tag("details", tag("summary", title), *parts)


def glossary(heading: str, meanings: Mapping[str, str]) -> Markup:
    """Explain terms at the end of a page."""
    entries = (tag("div", tag("dt", n), tag("dd", text)) for n, text in meanings.items())
    return section(heading, tag("dl", *entries, class_="words"))


def settings(*groups: tuple[str, Mapping[str, Any]]) -> Markup:
    """Groups of names and values, folded under their titles."""
    return section("Settings", *(folded(title, definitions(values)) for title, values in groups))


def scroll(table: Markup, label: str, kind: str = "scroll") -> Markup:
    """Let a wide table scroll inside the page."""
    return tag("div", table, class_=kind, tabindex="0", role="region", aria_label=label)


def table(
    caption: str, heads: Iterable[str], rows: Iterable[Markup], kind: str, style: str | None = None
) -> Markup:
    """A table that scrolls inside the page; only screen readers get its caption."""
    cells = (h if isinstance(h, Markup) else tag("th", h, scope="col") for h in heads)
    unseen = tag("caption", caption, class_="unseen")
    head, body = tag("thead", tag("tr", *cells)), tag("tbody", *rows)
    return scroll(tag("table", unseen, head, body, class_=kind, style=style), caption)


def table_section(
    title: str, text: str, heads: Iterable[str], rows: Iterable[Markup], **options: Any
) -> Markup:
    """A table under a heading and a paragraph; `kind` and `id` as in `table` and `section`."""
    kind = options.pop("kind", "figures")
    return section(title, tag("p", text), table(title, heads, rows, kind), **options)


def table_row(name: str, cells: Iterable[str], kind: str | None = None) -> Markup:
    return tag("tr", tag("th", name, scope="row"), *(tag("td", c) for c in cells), class_=kind)


def shaded_table(label: str, heads: Sequence[str], rows: Sequence[Markup], even: int = 0) -> Markup:
    """A table of `shaded_row`; with `even`, so many columns of values are of the same width."""
    kinds = {"shares": True, "even": even, "dense": len(rows) > DENSE}
    kind = " ".join(kind for kind, applies in kinds.items() if applies)
    width = f"--columns: {even}" if even else None
    return table(label, [tag("td", class_="plain"), *heads], rows, kind, width)


def shaded_row(
    name: str, values: Iterable[float | None], unit: str, kind: str | None, size: str | None = None
) -> Markup:
    """Values in cells that are darker the closer they are to 100; `size` comes before them."""
    cells = [] if size is None else [tag("td", size, class_="plain")]
    for value in values:
        share = round(min(max(value or 0.0, 0.0), 100.0) / 100, 2)
        look = {"style": f"--share: {share:.2f}", "class_": "strong" if share >= FLIP else None}
        cells.append(tag("td", decimals(value, 0) + unit, **look))
    return tag("tr", tag("th", name, scope="row"), *cells, class_=kind)


def footer(version: object, *parts: str) -> Markup:
    """Close a page with the version that wrote it."""
    first = f"evengraph {version}" if version else "evengraph"
    return tag("footer", tag("p", join((first, *parts), " · ")))


def origin_section(content: Mapping[str, Any]) -> Markup:
    """The command that made a file, and next steps."""
    parts = []
    if isinstance(command := content.get("command"), str) and command:
        parts += [tag("h3", "Command that made this page"), command_block(command)]
    if commands := [text for text in items(content, "commands") if isinstance(text, str)]:
        parts += [tag("h3", "Next"), *map(command_block, commands)]
    heading = "Command and next steps"
    return section(heading, *parts, kind="origin", id="next") if parts else Markup("")


def copy_script(content: Mapping[str, Any]) -> str:
    """The script of the copy buttons; empty for a page without any."""
    needed = content.get("command") or items(content, "commands")
    return read_asset(__package__, "copy.js") if needed else ""


def page_links(links: Iterable[Link]) -> Markup:
    """Links to files beside the page in one line; nothing without any."""
    shown = [tag("a", link.text, href=quote(link.path)) for link in links]
    return tag("nav", join(shown, " · "), aria_label="Other pages") if shown else Markup("")


def command_block(command: str) -> Markup:
    """A command with a button that copies it; lines break between its words alone."""
    words = join((tag("span", word) for word in command.split(" ")), " ")
    text = tag("pre", tag("code", words), tabindex="0")
    button = tag("button", "Copy", type="button", hidden=True)
    return tag("div", text, button, class_="command")
