"""Pages in a real browser, from disk: they fit, are quiet and accessible, copy."""

import pytest
from samples import LONG, compared, look, make_fraud, make_result

from evengraph.report.compare_page import render_comparison
from evengraph.report.inspect_page import render_inspection
from evengraph.report.page import Link, write_html
from evengraph.report.run_page import render_page

ROOT = "document.documentElement"
NOTES = ["Edges are taken as undirected.", f"Column '{LONG}' was left out: it is empty."]
COMMAND = compared(80.0)["command"]


def _long_comparison():
    long = compared(80.0, 70.0, splits=2)
    long["methods"][0]["title"] = long["classes"][0] = long["command"] = LONG
    return render_comparison(long, links=[Link("comparison.csv", "Results as CSV")])


PAGES = {
    "run": lambda: render_page(make_result()),
    "run-long": lambda: render_page(make_result([LONG, "b", "c"], classes=3, rare=1, epochs=600)),
    "run-many": lambda: render_page(make_result(classes=40, rare=20, epochs=600)),
    "run-fraud": lambda: render_page(make_fraud()),
    "compare": lambda: render_comparison(
        compared(80.0, 70.0, 60.0), pages={f"m{place}": "a.html" for place in range(3)}
    ),
    "compare-long": _long_comparison,
    "inspect": lambda: render_inspection(look() | {"notes": NOTES}),
    "inspect-many": lambda: render_inspection(look(classes=40, labelled=300)),
    "inspect-long": lambda: render_inspection(look(word=LONG)),
    "inspect-whole": lambda: render_inspection(look(labelled=600)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, render in PAGES.items():
        write_html(render(), folder / f"{name}.html")
    return folder


@pytest.mark.parametrize("width", [320, 390, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_it_loads_quietly_and_nothing_overflows(browser, folder, name, width):
    path = folder / f"{name}.html"
    browser.open(path, width=width)
    browser.value("new Promise((done) => setTimeout(done, 30))")
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []
    assert browser.value(f"[{ROOT}.clientWidth, {ROOT}.scrollWidth]") == [width, width]
    cells = "[...document.querySelectorAll('.ladder .value, .bars .value, .shares td')]"
    over = f"{cells}.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert name.endswith(("many", "long")) or browser.value(over) == 0
    if width == 1440:
        box = "document.querySelector('[aria-label=\"Results per seed\"]')"
        assert browser.value(f"{box} ? {box}.scrollWidth - {box}.clientWidth : 0") == 0


@pytest.mark.parametrize("width", [320, 390, 1440])
def test_marks_of_a_list_stay_inside_its_card(browser, folder, width):
    browser.open(folder / "inspect.html", width=width)
    lists = "[...document.querySelectorAll('main ul')].filter((one) =>"
    lists += " getComputedStyle(one.firstElementChild).display == 'list-item'"
    lists += " && getComputedStyle(one).listStyleType != 'none')"
    rooms = browser.value(f"{lists}.map((one) => parseFloat(getComputedStyle(one).paddingLeft))")
    assert len(rooms) == 1
    assert min(rooms) >= 14  # a mark hangs out to the left of its line


@pytest.mark.parametrize("width", [390, 1280])
def test_dots_of_all_rows_share_one_axis(browser, folder, width):
    browser.open(folder / "compare.html", width=width)
    ends = browser.value(
        "[...document.querySelectorAll('.dots svg')].map((one) => one.getBoundingClientRect())"
        ".map((box) => [Math.round(box.left), Math.round(box.right)].join())"
    )
    assert len(ends) > 1
    assert len(set(ends)) == 1


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        *((name, 390, False) for name in ("run", "compare", "inspect")),
        *((name, 1440, True) for name in ("run", "compare", "inspect")),
        *((name, 1440, False) for name in ("run-fraud", "compare", "inspect", "inspect-many")),
    ],
)
def test_no_barrier_is_found(browser, folder, name, width, dark):
    browser.open(folder / f"{name}.html", width=width, dark=dark)
    assert not [one for one in browser.barriers() if one.startswith(("serious", "critical"))]


def test_the_button_copies_the_command(browser, folder):
    browser.open(folder / "compare.html", width=1280)
    browser.value(
        "navigator.clipboard.writeText = (text) => "
        "{ window.copied = text; return Promise.resolve(); }"
    )
    browser.point("document.querySelector('.command button')", click=True)
    assert browser.value("window.copied") == COMMAND
    assert browser.value("document.querySelector('.command button').textContent") == "Copied"
    assert browser.complaints == []


def test_without_a_clipboard_the_command_is_selected(browser, folder):
    browser.open(folder / "compare.html", width=390)
    browser.value("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    browser.value("document.querySelector('.command button').focus()")
    browser.press("Enter")
    browser.value("new Promise((done) => setTimeout(done, 20))")
    assert browser.value("String(getSelection())") == COMMAND
