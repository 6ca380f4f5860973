import re

import pytest

from evengraph.report.matrix import FLIP
from evengraph.report.style import DARK, LIGHT, STYLE

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


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_reaches_aa_contrast(theme):
    found = colours(theme)
    for ground in ("page", "surface"):
        for text in ("ink", "muted", "rare", "accent"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_reach_the_contrast_of_graphics(theme):
    found = colours(theme)
    for mark in ("common", "rare", *(f"colour-{index}" for index in range(6))):
        assert contrast(found[mark], found["surface"]) >= 3, mark


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_counts_stay_readable_on_every_shade(theme):
    found = colours(theme)
    for step in range(1001):
        share = step / 1000
        ground = tuple(
            share * dark + (1 - share) * light
            for dark, light in zip(found["shade"], found["surface"], strict=True)
        )
        text = found["on-strong" if share >= FLIP else "on-weak"]
        assert contrast(text, ground) >= 4.5, share


def test_both_themes_name_the_same_colours():
    assert colours(LIGHT).keys() == colours(DARK).keys()


def test_every_variable_used_is_defined():
    defined = set(re.findall(r"(--[\w-]+):", STYLE)) | {"--share"}
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= defined


def test_the_page_knows_dark_narrow_and_print():
    assert "prefers-color-scheme: dark" in STYLE
    assert "@media (max-width:" in STYLE
    assert "@media print" in STYLE
    assert STYLE.count("{") == STYLE.count("}")
