"""The page of an inspection in a real browser, from disk."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import BROWSER, Chromium
from looks import LONG, look

from evengraph.report.inspect_page import write_inspection

if BROWSER is None:
    pytest.skip("no Chromium or Chrome found", allow_module_level=True)

PAGES = {
    "plain": {},
    "many": {"classes": 40, "labelled": 300},
    "long": {"word": LONG},
    "whole": {"labelled": 600},
}
NOTES = ["Edges are taken as undirected.", f"Column '{LONG}' was left out: it is empty."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks")
    for name, options in PAGES.items():
        write_inspection(look(**options), folder / f"{name}.html")
    write_inspection(look() | {"notes": NOTES}, folder / "notes.html")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Chromium(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("width", [320, 390, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_it_loads_quietly_and_nothing_overflows(browser, folder, name, width):
    path = folder / f"{name}.html"
    browser.open(path, width=width)
    browser.value("new Promise((done) => setTimeout(done, 30))")
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []
    root = "document.documentElement"
    assert browser.value(f"[{root}.clientWidth, {root}.scrollWidth]") == [width, width]


def test_figures_stay_inside_their_cells(browser, folder):
    for width in (390, 1440):
        browser.open(folder / "plain.html", width=width)
        wide = "[...document.querySelectorAll('.ladder .value, .bars .value, .shares td')]"
        over = f"{wide}.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        assert browser.value(over) == 0


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_marks_of_a_list_stay_inside_its_card(browser, folder, width):
    browser.open(folder / "notes.html", width=width)
    lists = "[...document.querySelectorAll('main ul')].filter((one) =>"
    lists += " getComputedStyle(one.firstElementChild).display == 'list-item'"
    lists += " && getComputedStyle(one).listStyleType != 'none')"
    rooms = browser.value(f"{lists}.map((one) => parseFloat(getComputedStyle(one).paddingLeft))")
    assert len(rooms) == 1
    assert min(rooms) >= 14  # a mark hangs out to the left of its line
    assert browser.value("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("plain", 1440, False), ("plain", 1440, True), ("plain", 390, False), ("many", 1440, False)],
)
def test_no_barrier_is_found(browser, folder, name, width, dark):
    found = find_spec("axe_core_python")
    if found is None:
        pytest.skip("axe-core-python is not installed")
    source = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    browser.open(folder / f"{name}.html", width=width, dark=dark)
    browser.value(f"{source}; true")
    faults = browser.value(
        """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
          .filter((one) => ["serious", "critical"].includes(one.impact))
          .map((one) => [one.id, one.nodes.length, one.nodes[0].html]))"""
    )
    assert faults == []
    assert browser.value("axe.run(document).then((found) => found.passes.length)") > 10
