"""The map of nodes on a run's page, in a real browser: colours, zoom, tooltip, keys."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import BROWSER, Chromium
from made_up import node_map

from evengraph.report import write_page

if BROWSER is None:
    pytest.skip("no Chromium or Chrome found", allow_module_level=True)

BOX = "JSON.stringify(document.querySelector('.node-map .nodes').getBoundingClientRect())"
WIDTH = "parseFloat(document.querySelector('.node-map .nodes').getAttribute('width'))"
TIP = "document.querySelector('.tip')"


@pytest.fixture(scope="module")
def path(make, tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "report.html"
    nodes = node_map() | {"predicted": [n % 3 for n in range(60)], "seed": 5}
    write_page(make(classes=7, rare=3) | {"map": nodes}, path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Chromium(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(browser, path):
    browser.open(path, width=1280)
    return browser


def press(page, key, code=0):
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fills_the_width_and_loads_quietly(browser, path, width):
    browser.open(path, width=width)
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []
    root = "document.documentElement"
    assert browser.value(f"[{root}.clientWidth, {root}.scrollWidth]") == [width, width]
    widths = "['.frame', 'main'].map((name) => document.querySelector(name).clientWidth)"
    frame, main = browser.value(widths)
    assert frame > 0.8 * main


def test_buttons_choose_the_colours(page):
    fill = "[...document.querySelectorAll('.nodes circle')]"
    fill += ".map((one) => getComputedStyle(one).fill)"
    by_class = page.value(fill)
    assert len(set(by_class)) == 7
    page.point("document.querySelector('.switch [data-colours=cluster]')", click=True)
    assert len(set(page.value(fill))) == 10
    page.point("document.querySelector('.switch [data-colours=prediction]')", click=True)
    assert len(set(page.value(fill))) == 3
    pressed = "[...document.querySelectorAll('.switch [data-colours]')].map((b) => b.ariaPressed)"
    assert page.value(pressed) == ["false", "true", "false"]


def test_a_class_of_the_legend_is_highlighted(page):
    faint = "[...document.querySelectorAll('.nodes circle')]"
    faint += ".filter((one) => getComputedStyle(one).opacity < 0.5).length"
    page.point("document.querySelector('.classes button')", click=True)
    assert page.value(faint) == 60 - 9
    page.point("document.querySelector('.classes button')", click=True)
    assert page.value(faint) == 0


def test_buttons_and_keys_zoom_and_move(page):
    page.point("document.querySelector('[data-zoom=in]')", click=True)
    assert page.value(WIDTH) == 150
    page.value("document.querySelector('.frame').focus()")
    press(page, "+")
    assert page.value(WIDTH) == 225
    before = json.loads(page.value(BOX))
    left = "parseFloat(document.querySelector('.nodes').getAttribute('x'))"
    at = page.value(left)
    press(page, "ArrowRight", 39)
    assert page.value(left) < at
    assert before["width"] > 0
    press(page, "0")
    assert page.value(WIDTH) == 100
    press(page, "-")
    assert page.value(WIDTH) == 100


def test_pointing_at_a_node_names_it(page):
    assert page.value(f"{TIP}.hidden")
    page.point("document.querySelectorAll('.nodes circle')[5]")
    assert not page.value(f"{TIP}.hidden")
    assert page.value(f"{TIP}.textContent").startswith("Topic ")
    page.point("document.querySelector('h1')")
    assert page.value(f"{TIP}.hidden")


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_no_barrier_is_found(browser, path, width, dark):
    found = find_spec("axe_core_python")
    if found is None:
        pytest.skip("axe-core-python is not installed")
    source = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    browser.open(path, width=width, dark=dark)
    browser.value(f"{source}; true")
    faults = browser.value(
        """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
          .map((one) => [one.id, one.nodes.length, one.nodes[0].html]))"""
    )
    assert faults == []
