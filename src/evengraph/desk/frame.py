"""The frame of the desk's pages, and forms that only our own pages can send."""

from __future__ import annotations

from collections.abc import Mapping

from evengraph.desk.access import Session
from evengraph.report.page import STYLE, read_asset
from evengraph.report.svg.markup import Attribute, Markup, tag

STYLESHEET = STYLE + read_asset(__package__, "desk.css")
SCRIPT = read_asset(__package__, "desk.js")

PAGES = {"/": "Label", "/queue": "Queue", "/done": "Done", "/export.csv": "Export"}
OTHER_KEYS = {"d": "don't know", "u": "undo", "n": "note", "← →": "other nodes"}
KEYS = {"1–9": "class", **OTHER_KEYS}
TRIAGE_KEYS = {"1": "confirm", "2": "dismiss", **OTHER_KEYS}


def frame(
    title: str, session: Session, *main: Markup, side: Markup | None = None, here: str = "/"
) -> str:
    """A page with the navigation above it."""
    links = [
        tag("a", text, href=path, aria_current="page" if path == here else None)
        for path, text in PAGES.items()
    ]
    who = form(
        session,
        "/who",
        tag("label", "You are", for_="who"),
        field("who", value=session.who, maxlength=60, autocomplete="off"),
        tag("button", "Save", class_="quiet-button"),
        class_="who",
    )
    top = tag("header", tag("p", title, class_="name"), tag("nav", *links), who, class_="desk-top")
    said = tag("p", id="said", role="status", class_="said")
    body = tag("main", said, tag("div", *main, class_="work"), side or "", class_="desk")
    return document(title, top, body)


def document(title: str, *body: Markup) -> str:
    """A whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/desk.css"),
        tag("title", f"{title} · evengraph desk"),
        tag("script", src="/desk.js", defer=True),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def form(session: Session, action: str, *parts: Markup, **attributes: Attribute) -> Markup:
    """A form with the token of the session."""
    token = hidden("form_token", session.form_token)
    return tag("form", token, *parts, action=action, method="post", **attributes)


def hidden(name: str, value: object) -> Markup:
    """A value that a form carries."""
    return tag("input", type="hidden", name_=name, value=str(value))


def field(name: str, **attributes: Attribute) -> Markup:
    """A line to write in."""
    return tag("input", type="text", name_=name, id=name, **attributes)


def keys(meanings: Mapping[str, str]) -> Markup:
    """What the keys do."""
    parts = [tag("li", tag("kbd", key), " ", meaning) for key, meaning in meanings.items()]
    return tag("ul", *parts, class_="keys")


def message_page(title: str, text: str) -> str:
    """A page that says why there is no other."""
    return document(title, tag("main", tag("h1", title), tag("p", text, class_="lead")))
