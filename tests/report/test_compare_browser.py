"""The page of a comparison in a real browser, from disk: it fits, is accessible, and copies."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import BROWSER, Chromium
from compared import compared

from evengraph.report.compare_page import write_comparison_page
from evengraph.report.page import Link

if BROWSER is None:
    pytest.skip("no Chromium or Chrome found", allow_module_level=True)

LONG = "Averylongnamewithoutanyspace" * 4
LINKS = [Link("comparison.csv", "Results as CSV")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    pages = {f"m{place}": f"m{place}/report.html" for place in range(3)}
    plain = compared(80.0, 70.0, 60.0)
    write_comparison_page(plain, folder / "plain.html", pages=pages, links=LINKS)
    long = compared(80.0, 70.0, splits=2)
    long["methods"][0]["title"] = long["classes"][0] = long["command"] = LONG
    write_comparison_page(long, folder / "long.html", links=LINKS)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Chromium(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["plain", "long"])
def test_it_loads_quietly_and_nothing_overflows(browser, folder, name, width):
    path = folder / f"{name}.html"
    browser.open(path, width=width)
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []
    root = "document.documentElement"
    assert browser.value(f"[{root}.clientWidth, {root}.scrollWidth]") == [width, width]


@pytest.mark.parametrize("width", [390, 1280])
def test_dots_of_all_rows_share_one_axis(browser, folder, width):
    browser.open(folder / "plain.html", width=width)
    for place in (0, 1):
        rows = f"[...document.querySelectorAll('.dots')[{place}].querySelectorAll('svg')]"
        ends = browser.value(
            f"{rows}.map((one) => one.getBoundingClientRect())"
            ".map((box) => [Math.round(box.left), Math.round(box.right)].join())"
        )
        assert len(set(ends)) == 1


def test_the_button_copies_the_command(browser, folder):
    browser.open(folder / "plain.html", width=1280)
    browser.value(
        "navigator.clipboard.writeText = (text) => "
        "{ window.copied = text; return Promise.resolve(); }"
    )
    browser.point("document.querySelector('.command button')", click=True)
    wanted = compared(80.0, 70.0, 60.0)["command"]
    assert browser.value("window.copied") == wanted
    assert browser.value("document.querySelector('.command button').textContent") == "Copied"
    assert browser.complaints == []


def test_without_a_clipboard_the_command_is_selected(browser, folder):
    browser.open(folder / "plain.html", width=390)
    browser.value("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    browser.value("document.querySelector('.command button').focus()")
    for kind in ("rawKeyDown", "char", "keyUp"):
        key = {"key": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        browser.send("Input.dispatchKeyEvent", type=kind, **key)
    browser.value("new Promise((done) => setTimeout(done, 20))")
    assert browser.value("String(getSelection())") == compared(80.0, 70.0, 60.0)["command"]


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, False), (1280, True)])
def test_no_barrier_is_found(browser, folder, width, dark):
    found = find_spec("axe_core_python")
    if found is None:
        pytest.skip("axe-core-python is not installed")
    source = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    browser.open(folder / "plain.html", width=width, dark=dark)
    browser.value(f"{source}; true")
    faults = browser.value(
        """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
          .map((one) => [one.id, one.nodes.length, one.nodes[0].html]))"""
    )
    assert faults == []
