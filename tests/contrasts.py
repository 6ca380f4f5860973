"""Colours of a theme, and how well one can be told from another."""

import re

from evengraph.report.page import STYLE

LIGHT, DARK = re.findall(r"^:root {.*?^}", STYLE, re.MULTILINE | re.DOTALL)

Colour = tuple[float, ...]


def colours(theme: str) -> dict[str, Colour]:
    found: dict[str, Colour] = {
        name: tuple(int(code[at : at + 2], 16) for at in (0, 2, 4))
        for name, code in re.findall(r"--([\w-]+): #(\w{6});", theme)
    }
    shade = re.search(r"--shade: (\d+) (\d+) (\d+);", theme)
    assert shade is not None
    return found | {"shade": tuple(int(part) for part in shade.groups())}


def brightness(colour: Colour) -> float:
    parts = [c / 255 for c in colour]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)
