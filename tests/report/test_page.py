import re

import pytest
from contrasts import DARK, LIGHT, colours, contrast

from evengraph.report.page import FLIP, STYLE, card, facts, glossary, html_page, legend, write_html


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
    defined = set(re.findall(r"(--[\w-]+):", STYLE)) | {"--share", "--columns"}  # set by the pages
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= defined


def test_the_page_knows_dark_narrow_and_print():
    assert "prefers-color-scheme: dark" in STYLE
    assert "@media (max-width:" in STYLE
    assert "@media print" in STYLE
    assert STYLE.count("{") == STYLE.count("}")


def test_a_page_allows_its_own_script_only(parse):
    plain = parse(html_page("Plain"))
    with_script = parse(html_page("Script", script="let a = 1"))
    assert not plain.all("script")
    assert [node.text for node in with_script.all("script")] == ["let a = 1"]
    for page, allowed in ((plain, False), (with_script, True)):
        (policy,) = [n for n in page.all("meta") if "http-equiv" in n.attributes]
        assert policy.attributes["content"].startswith("default-src 'none'")
        assert ("script-src 'sha256-" in policy.attributes["content"]) is allowed


def test_a_style_is_added_to_the_shared_one(parse):
    (style,) = parse(html_page("Page", style=".extra { margin: 0; }")).all("style")
    assert style.text == STYLE + ".extra { margin: 0; }"


def test_writing_is_atomic_and_survives_broken_unicode(tmp_path):
    path = tmp_path / "deep" / "page.html"
    write_html("broken \ud800 name", path)
    assert path.read_text(encoding="utf-8") == "broken &#55296; name"
    assert list(path.parent.iterdir()) == [path]


def test_elements(parse):
    assert parse(facts([("3", "nodes"), ("", "seed 5")])).text == "3 nodesseed 5"
    assert parse(card("Reach", "5", "%")).text == "Reach5%"
    assert legend([]) == ""
    page = parse(glossary("Terms", {"Reach": "How far."}))
    assert [node.text for node in page.all("dt")] == ["Reach"]
    assert [node.text for node in page.all("dd")] == ["How far."]
