"""The section that every page ends with: the command behind it, other pages, and what to do next.

Commands have a button that copies them; without scripts it stays hidden.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from evengraph.report import page
from evengraph.report.formatting import DASH
from evengraph.report.svg.markup import Markup, join, tag
from evengraph.report.untrusted import items, part

SCRIPT = page.read_asset(__package__, "copy.js")
HEADING = "Command and next steps"


class Link(NamedTuple):
    """A file beside the page."""

    path: str  # relative to the page
    text: str


def origin_section(
    content: Mapping[str, Any],
    links: Iterable[Link] = (),
    *,
    changed: Mapping[str, Mapping[str, Any]] | None = None,
) -> Markup:
    """Command, parameters that differ from the defaults, other files, next commands.

    Args:
        content: Of a result file: `command` made it, `commands` come next.
        links: Other files of the same folder.
        changed: Parameters that differ from the defaults, by name of the method.
    """
    parts = []
    if isinstance(command := content.get("command"), str) and command:
        parts += [tag("h3", "Command that made this page"), command_block(command)]
    if changed is not None:
        parts += [tag("h3", "Parameters that differ from the defaults"), _changed(changed)]
    if commands := [text for text in items(content, "commands") if isinstance(text, str)]:
        parts += [tag("h3", "Next"), *map(command_block, commands)]
    if links := list(links):
        entries = (tag("li", tag("a", link.text, href=quote(link.path))) for link in links)
        parts += [tag("h3", "Other pages and files"), tag("ul", *entries, class_="links")]
    return page.section(HEADING, *parts, kind="origin", id="next") if parts else Markup("")


def copy_script(content: Mapping[str, Any]) -> str:
    """The script of the copy buttons; empty for a page without any."""
    return SCRIPT if content.get("command") or items(content, "commands") else ""


def page_links(links: Iterable[Link]) -> Markup:
    """The same links in one line, for the head of a page; nothing without any."""
    shown = [tag("a", link.text, href=quote(link.path)) for link in links]
    return tag("nav", join(shown, " · "), aria_label="Other pages") if shown else Markup("")


def command_block(command: str) -> Markup:
    """A command with a button that copies it; lines break between its words alone."""
    words = join((tag("span", word) for word in command.split(" ")), " ")
    text = tag("pre", tag("code", words), tabindex="0")
    button = tag("button", "Copy", type="button", hidden=True)
    return tag("div", text, button, class_="command")


def changed_params(method: Mapping[str, Any]) -> dict[str, Any] | None:
    """Parameters of a method that differ from the defaults; None if that was not recorded."""
    names = method.get("changed")
    if not isinstance(names, (list, tuple)):
        return None
    return {str(name): part(method, "fields").get(str(name)) for name in names}


def _changed(changed: Mapping[str, Mapping[str, Any]]) -> Markup:
    lines = {
        name: ", ".join(f"{key} = {DASH if v is None else v}" for key, v in values.items())
        for name, values in changed.items()
    }
    if not any(lines.values()):
        return tag("p", "None: every parameter has its default.", class_="quiet")
    if len(lines) == 1:
        return tag("p", *lines.values(), class_="quiet")
    return page.definitions({name: text or "none" for name, text in lines.items()})
