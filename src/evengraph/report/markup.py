"""HTML and SVG elements as plain functions, escaped by construction."""

from collections.abc import Iterable
from html import escape

from evengraph.core.text import printable
from evengraph.core.untrusted import number
from evengraph.metrics.registry import METRICS


class Markup(str):
    """Text that is already HTML. A plain `str` is never trusted and gets escaped."""

    __slots__ = ()


Attribute = str | int | float | bool | None


def tag(name: str, *children: str, **attributes: Attribute) -> Markup:
    """Write one element; children that are not `Markup` are escaped.

    Attribute `class_` becomes `class` and `aria_label` becomes `aria-label`. `None` and `False`
    leave an attribute out, `True` writes it without a value.
    """
    opening = name
    for key, value in attributes.items():
        if value is not None and value is not False:
            opening += f" {key.rstrip('_').replace('_', '-')}"
            if value is not True:
                opening += f'="{_safe(f"{value:g}" if isinstance(value, float) else str(value))}"'
    if name in ("meta", "link", "br", "col", "input"):  # no closing tag in HTML
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    return Markup(_safe(between).join(_safe(part) for part in parts))


def _safe(text: str) -> str:
    return text if isinstance(text, Markup) else escape(printable(text), quote=True)


DASH = "–"
MINUS = "−"


def decimals(value: object, digits: int = 1) -> str:
    if (finite := number(value)) is None:
        return DASH
    # adding zero turns a rounded -0.0 into 0.0
    return f"{round(finite, digits) + 0.0:.{digits}f}".replace("-", MINUS)


def signed(value: float | None, digits: int = 1) -> str:
    """Format a difference with its sign."""
    text = decimals(value, digits)
    return f"+{text}" if value is not None and round(value, digits) > 0 else text


def integer(value: object) -> str:
    finite = number(value)
    return DASH if finite is None else f"{round(finite):,}".replace("-", MINUS)


def percentage(fraction: object, digits: int = 0) -> str:
    finite = number(fraction)
    return DASH if finite is None else f"{decimals(100 * finite, digits)}%"


def plus_minus(mean: object, std: object, digits: int = 1) -> str:
    """Format mean ± standard deviation, or the mean alone if that is undefined."""
    if number(mean) is None or number(std) is None:
        return decimals(mean, digits)
    return f"{decimals(mean, digits)} ± {decimals(std, digits)}"


def metric_value(name: str, mean: object, std: object = None, digits: int = 1) -> str:
    """Format a metric, which results hold in percent: a probability as such, others in percent."""
    if name in METRICS and METRICS[name].is_probability:
        mean, std = (None if (v := number(value)) is None else v / 100 for value in (mean, std))
        digits += 2
    return plus_minus(mean, std, digits)


def plural(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun: `1 seed`, `3 seeds`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
