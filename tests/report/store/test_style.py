import colorsys
import re

import pytest
from contrasts import DARK, LIGHT, colours, contrast

from evengraph.report.page import STYLE as SHARED
from evengraph.report.store.overview import SCRIPT
from evengraph.report.store.overview import STYLE as EXTRA

STYLE = SHARED + EXTRA
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def colour_of(kind):
    """The name of the colour that a class of text has."""
    return re.search(rf"\.{kind} {{ color: var\(--([\w-]+)\); }}", STYLE).group(1)


@THEMES
def test_figures_above_and_below_the_paper_reach_aa_contrast(theme):
    found = colours(theme)
    for kind in ("above", "below"):
        for ground in ("surface", "page"):  # a row under the pointer is of the page's colour
            assert contrast(found[colour_of(kind)], found[ground]) >= 4.5, (kind, ground)


@THEMES
def test_text_on_a_marked_line_reaches_aa_contrast(theme):
    found = colours(theme)
    assert ".dots .marked { background: var(--band); }" in STYLE
    for text in ("ink", "muted"):
        assert contrast(found[text], found["band"]) >= 4.5, text


def map_colours(theme=LIGHT):
    pattern = r"\.k(\d), [^{]*\.m\1 { fill: hsl\((\d+) (\d+)% var\(--light\)\); }"
    light, dark, paper = re.findall(r":root { --light: (\d+)%; }", STYLE)
    assert paper == light  # paper is white
    light = dark if theme == DARK else light
    for number, hue, fullness in re.findall(pattern, STYLE):
        parts = colorsys.hls_to_rgb(int(hue) / 360, int(light) / 100, int(fullness) / 100)
        yield number, tuple(255 * part for part in parts)


def test_a_map_has_ten_colours():
    found = dict(map_colours())
    assert sorted(found) == [str(n) for n in range(10)]
    assert len(set(found.values())) == 10


@THEMES
def test_dots_of_a_map_reach_the_contrast_of_graphics(theme):
    ground = colours(theme)["surface"]
    assert {n: c for n, c in map_colours(theme) if contrast(c, ground) < 3} == {}


def test_every_variable_used_is_defined():
    defined = set(re.findall(r"(--[\w-]+):", STYLE)) | {"--share"}
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= defined


def test_braces_match_and_no_element_is_closed():
    assert STYLE.count("{") == STYLE.count("}")
    assert "</" not in STYLE + SCRIPT


def test_the_script_asks_nothing_and_writes_no_markup():
    for word in ("innerHTML", "eval(", "fetch(", "XMLHttpRequest", "import(", "document.write"):
        assert word not in SCRIPT
