"""The page of experiments in a real browser, from disk: it sorts, filters, marks and prints."""

import json
from dataclasses import replace

import pytest

from contrasts import LIGHT
from evengraph.lab.pages import render_overview
from evengraph.report.page import write_html

LONG = "Averylongnamewithoutanyspace" * 4
ROWS = '[...document.querySelectorAll("#all tbody tr")]'
SHOWN = f"{ROWS}.filter((row) => !row.hidden && row.offsetHeight > 0)"
PAPER, GAP, MACRO = 4, 5, 6  # columns
MARKED = '[...document.querySelectorAll(".marked")].map((one) => one.dataset.method)'


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


def column(page, place):
    """The values of a column from top to bottom; none where there is no number."""
    found = f"{ROWS}.map((row) => row.cells[{place}].dataset.value ?? null)"
    return [None if value is None else float(value) for value in page.value(found)]


def click(page, place):
    page.point(f"document.querySelectorAll('#all thead button')[{place}]", click=True)


def names(page):
    """Experiment, graph and method of the rows that one sees."""
    found = f"{SHOWN}.map((row) => Object.values(row.dataset).slice(0, 3))"
    return [tuple(row) for row in page.value(found)]


def choose(page, name, value):
    page.value(
        f"""(() => {{
          const one = document.querySelector("[data-filter={name}]");
          one.value = {json.dumps(value)};
          one.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }})()"""
    )


def count(page):
    return page.value('document.getElementById("count").textContent')


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


@pytest.mark.parametrize("place", [2, 3, PAPER, GAP, MACRO, 8])
def test_two_clicks_sort_numbers_both_ways_with_empty_cells_last(page, place):
    before = column(page, place)
    known = [value for value in before if value is not None]
    empty = [None] * (len(before) - len(known))
    click(page, place)
    assert column(page, place) == sorted(known, reverse=True) + empty
    click(page, place)
    assert column(page, place) == sorted(known) + empty
    states = 'document.querySelectorAll("#all th[aria-sort]")'
    assert page.value(f"[...{states}].map((one) => one.ariaSort)") == ["ascending"]


def test_words_are_sorted_from_a_to_z_first(page):
    words = f"{ROWS}.map((row) => row.cells[1].textContent)"
    before = page.value(words)
    click(page, 1)
    wanted = page.value(f'{words}.sort((a, b) => a.localeCompare(b, "en", {{ numeric: true }}))')
    assert page.value(words) == wanted != before
    assert [word for word in wanted if word[0] == "K"] == [f"K = {n}" for n in (3, 10, 20, 50)]
    click(page, 1)
    assert page.value(words)[0] == wanted[-1]


def test_choices_narrow_the_table(page, experiments):
    cells = [(b.title, c.dataset, c.label) for b in experiments for c in b.cells]
    assert names(page) == cells
    assert count(page) == "25 rows"
    choose(page, "experiment", "Ablation")
    assert names(page) == [one for one in cells if one[0] == "Ablation"]
    choose(page, "dataset", "pubmed")
    choose(page, "label", "no semantic")
    assert names(page) == [("Ablation", "pubmed", "no semantic")]
    assert count(page) == "1 of 25 rows"
    for name in ("experiment", "dataset"):
        choose(page, name, "")
    assert names(page) == [one for one in cells if one[2] == "no semantic"]
    choose(page, "label", "")
    assert count(page) == "25 rows"


def test_words_narrow_the_table_whatever_their_case(page, experiments):
    cells = [(b.title, c.dataset, c.label, c.setting) for b in experiments for c in b.cells]
    page.point("document.querySelector('input[type=search]')", click=True)
    page.write("LONGtail uni-gnn")
    assert names(page) == [one[:3] for one in cells if "longtail" in one[3] and one[2] == "Uni-GNN"]
    assert count(page) == "1 of 25 rows"
    page.value("document.querySelector('input[type=search]').select()")
    page.write("no such words")
    assert names(page) == []
    assert count(page) == "0 of 25 rows"


def test_pointing_at_a_method_marks_it_everywhere(page, experiments):
    assert page.value(MARKED) == []
    page.point('document.querySelector("[data-method=GCN]")')
    assert page.value(MARKED) == ["GCN"] * 3
    ground = 'getComputedStyle(document.querySelectorAll("[data-method=GCN]")[2]).backgroundColor'
    assert page.value(ground) == rgb(LIGHT, "band")
    page.point('document.querySelector("[data-method=LTE4G]")')
    assert page.value(MARKED) == ["LTE4G"] * 2
    page.point('document.querySelector("h1")')
    assert page.value(MARKED) == []


def test_a_button_highlights_a_method_until_it_is_pressed_again(page):
    button = 'document.querySelector("[data-highlight=LTE4G]")'
    page.value(f"{button}.focus()")
    page.press("Enter")
    assert page.value(MARKED) == ["LTE4G"] * 2
    assert page.value(f"{button}.ariaPressed") == "true"
    page.value(f"{button}.click()")
    assert page.value(MARKED) == []


def test_a_touch_highlights_a_method(page):
    row = 'document.querySelector("[data-method=GCN]")'
    page.value(f"{row}.scrollIntoView({{block: 'center'}})")
    x, y = page.value(f"(({{x, y}}) => [x + 20, y + 8])({row}.getBoundingClientRect())")
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    page.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.value("new Promise((done) => setTimeout(done, 50))")
    page.send("Emulation.setTouchEmulationEnabled", enabled=False)
    assert page.value(MARKED) == ["GCN"] * 3


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
    assert browser.value("document.querySelector('.filters').offsetHeight") == 0
    box = "document.querySelector('.tall')"
    assert browser.value(f"{box}.scrollHeight === {box}.clientHeight")
    folded = "[...document.querySelectorAll('details table')].map((one) => one.offsetHeight > 0)"
    assert set(browser.value(folded)) == {True}
    browser.resize(688)  # A4 between its margins; nothing is cut off
    boxes = "[document.documentElement, ...document.querySelectorAll('.scroll')]"
    assert set(browser.value(f"{boxes}.map((one) => one.scrollWidth - one.clientWidth)")) == {0}
    pages = browser.paper()
    assert pages.startswith(b"%PDF")
    assert pages.count(b"/Type /Page\n") > 1


def test_without_its_script_everything_can_be_read(browser, folder):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(folder / "index.html")
        assert len(browser.value(f"{SHOWN}.map((row) => row.textContent)")) == 25
        assert browser.complaints == []
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize(
    ("width", "dark"), [(1440, False), (1440, True), (390, False)], ids=["light", "dark", "narrow"]
)
def test_no_barrier_is_found(browser, folder, width, dark):
    browser.open(folder / "index.html", width=width, dark=dark)
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert not [one for one in browser.barriers() if one.startswith(("serious", "critical"))]
