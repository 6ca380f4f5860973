import re

import pytest
from contrasts import colours, contrast

from evengraph.report.run.matrix import FLIP
from evengraph.report.run.style import DARK, LIGHT, STYLE


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
