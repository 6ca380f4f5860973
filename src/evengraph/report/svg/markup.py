"""HTML and SVG elements as plain functions, escaped by construction."""

from collections.abc import Iterable
from html import escape

from evengraph.core.text import printable


class Markup(str):
    """Text that is already HTML. A plain `str` is never trusted and gets escaped."""

    __slots__ = ()


Attribute = str | int | float | bool | None

# elements that have no closing tag in HTML
_VOID = frozenset({"meta", "link", "br", "col", "input"})


def tag(name: str, *children: str, **attributes: Attribute) -> Markup:
    """Write one element; children that are not `Markup` are escaped.

    Attribute `class_` becomes `class` and `aria_label` becomes `aria-label`. `None` and `False`
    leave an attribute out, `True` writes it without a value.
    """
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Concatenate parts, escaping those that are not `Markup`."""
    return Markup(_safe(between).join(_safe(part) for part in parts))


def _safe(text: str) -> str:
    return text if isinstance(text, Markup) else escape(printable(text), quote=True)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(printable(text), quote=True)}"'
