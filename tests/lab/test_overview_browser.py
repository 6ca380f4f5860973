"""The page of experiments in a real browser, from disk: nothing overflows, and it prints."""

from dataclasses import replace

import pytest

from contrasts import LIGHT
from evengraph.lab.pages import render_overview
from evengraph.report.page import write_html

LONG = "Averylongnamewithoutanyspace" * 4


@pytest.fixture(scope="module")
def folder(experiments, tmp_path_factory):
    """The page; one with a lot in it; and one with very long names."""
    folder = tmp_path_factory.mktemp("pages")
    many, long = (named(experiments, name) for name in ("a rather long name of ", LONG))
    for name, shown in (("index", experiments), ("many", many), ("long", long)):
        write_html(render_overview(shown), folder / f"{name}.html")
    return folder


def named(experiments, word):
    """The experiments with more set-ups, and this word before every name."""
    more = [replace(c, setting=f"{c.setting}-{n}") for n in range(4) for c in experiments[0].cells]
    more = [replace(c, setting=f"{word}{c.setting}", label=f"{word}{c.label}") for c in more]
    curves = [replace(c, label=f"{word}{c.label}") for c in experiments[2].cells]
    first = replace(experiments[0], cells=more, title=f"{word}{experiments[0].title}")
    return [first, replace(experiments[2], cells=curves), experiments[1]]


@pytest.fixture
def page(browser, folder):
    browser.open(folder / "index.html")
    return browser


def test_the_page_asks_nothing_and_complains_of_nothing(page, folder):
    page.value("new Promise((done) => setTimeout(done, 50))")
    assert page.requests == [(folder / "index.html").as_uri()]
    assert page.complaints == []


def test_complaints_and_requests_are_noticed(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text('<img src="file:///nowhere.png"><script>nothing()</script>', encoding="utf-8")
    browser.open(path)
    assert len(browser.requests) == 2
    assert browser.complaints


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *((name, width) for name in ("index", "many") for width in (320, 390, 768, 1440)),
        *(("long", width) for width in (390, 1440)),
    ],
)
def test_nothing_overflows_sideways(browser, folder, name, width):
    browser.open(folder / f"{name}.html", width=width)
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    root = "document.documentElement"
    assert browser.value(f"[{root}.clientWidth, {root}.scrollWidth]") == [width, width]


def rgb(theme, name):
    code = theme.split(f"--{name}: #")[1][:6]
    return f"rgb({', '.join(str(int(code[at : at + 2], 16)) for at in (0, 2, 4))})"


def test_on_paper_everything_is_there_and_light(browser, folder):
    browser.open(folder / "index.html", dark=True)
    browser.look(dark=True, medium="print")
    assert browser.value("getComputedStyle(document.body).color") == rgb(LIGHT, "ink")
    folded = "[...document.querySelectorAll('details table')].map((one) => one.offsetHeight > 0)"
    assert set(browser.value(folded)) == {True}
    browser.resize(688)  # A4 between its margins; nothing is cut off
    boxes = "[document.documentElement, ...document.querySelectorAll('.scroll')]"
    assert set(browser.value(f"{boxes}.map((one) => one.scrollWidth - one.clientWidth)")) == {0}
    pages = browser.paper()
    assert pages.startswith(b"%PDF")
    assert pages.count(b"/Type /Page\n") > 1
