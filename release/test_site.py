"""The documentation as a site: built without a complaint, complete, and usable from disk."""

import re
import warnings
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import pytest

import evengraph as eg
from chromium import BROWSER, Chromium

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"^(https?:)?//")
FAULTS = """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
  .map((one) => [one.id, one.nodes.length, one.nodes[0].html]))"""


class Loaded(HTMLParser):
    """What a browser fetches for a page by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        fetched = tag == "link" and attrs.get("rel") not in ("canonical", "next", "prev")
        for name in ("src", "srcset", "data", *(["href"] if fetched else [])):
            self.found.append(attrs.get(name) or "")


def build_site(folder):
    """Strictly: a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of plugins
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)


def test_the_site(tmp_path, monkeypatch):
    """One test, because building takes seconds: every part of it looks at the same site."""
    pytest.importorskip("mkdocstrings")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    site = tmp_path / "site"
    build_site(site)
    check_pages(site)
    if BROWSER is not None:
        browser = Chromium(tmp_path / "profile")
        try:
            check_missing_page(browser, site)
            check_search(browser, site)
            check_enlarging(browser, site)
            check_barriers(browser, site)
        finally:
            browser.close()


@pytest.mark.slow
def test_no_page_has_a_barrier(tmp_path, monkeypatch):
    """Every page at both widths, light and dark: a quarter of an hour."""
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("axe_core_python")
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome found")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    site = tmp_path / "site"
    build_site(site)
    names = [path.relative_to(site).with_suffix("") for path in sorted(site.rglob("*.html"))]
    looks = [(name, width, dark) for name in names for width in (1280, 390) for dark in (0, 1)]
    browser = Chromium(tmp_path / "profile")
    browser.patience = 300  # axe takes half a minute for the largest page
    try:
        check_barriers(browser, site, looks)
    finally:
        browser.close()


def check_pages(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    reference = (site / "reference" / "methods.html").read_text(encoding="utf-8")
    for cls in eg.METHODS.values():
        assert f'id="evengraph.methods.{cls.__name__}"' in reference, cls.__name__
    definitions = (site / "metrics.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in definitions for name in eg.metrics.METRICS)
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "own-data.html" in index
    assert ".py.html" not in index  # code is on the site, and not among what is found
    assert (site / "repository" / "results" / "readings.html").exists()
    assert (site / "repository" / "results" / "reproduce.sqlite").exists()
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert not [source for source in loaded.found if OUTSIDE.match(source)], page
    for sheet in site.rglob("*.css"):
        words = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", words), sheet


def wait_for(browser, expression, seconds=20):
    """Whether something becomes true in the page."""
    until = monotonic() + seconds
    while not (found := browser.value(expression)) and monotonic() < until:
        sleep(0.1)
    return found


def check_missing_page(browser, site):
    """What a server shows for an address that does not exist is styled, and leads home."""
    browser.open(site / "404.html", width=1280)
    assert browser.complaints == []
    home = browser.value("document.querySelector('.md-logo').href")
    assert home == (site / "index.html").as_uri()


ANSWERS = {
    "missing values": "Your own data",
    "gpu": "Large graphs",
    "unbalanced": "Choosing a method",
    "fraud": "Fraud and rare classes",
    "csv": "Your own data",
    "probability": "Predict and explain",
    "threshold": "Fraud and rare classes",
    "time": "Your own data",
    "large graph": "Large graphs",
    "pytorch geometric": "Python: scikit-learn and PyG",
    "confusion matrix": "Metrics",
}


def check_search(browser, site):
    """What people ask for comes first; from a file, where browsers start no workers."""
    browser.open(site / "index.html", width=1280)
    meta = "document.querySelector('.md-search-result__meta').textContent"
    browser.value("document.querySelector('.md-search__input').focus()")
    assert wait_for(browser, f"!{meta}.includes('Initializing')")
    first = "document.querySelector('.md-search-result__item :is(h1, h2)')?.textContent"
    for query, page in ANSWERS.items():
        browser.value("document.querySelector('.md-search__input').select()")
        browser.write(query)
        browser.send("Input.dispatchKeyEvent", type="keyUp", key="x", windowsVirtualKeyCode=88)
        assert wait_for(browser, f"{first} === {page!r}"), (query, browser.value(first))
    assert browser.complaints == []


def check_enlarging(browser, site):
    """A figure opens by the keyboard and closes with Escape; the focus is back on it."""
    browser.open(site / "paper.html", width=1280)
    browser.value("document.querySelector('button.figure').focus()")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, **key)
    small, large = (f"document.querySelector('{one} img').width" for one in (".figure", "dialog"))
    assert browser.value("document.querySelector('dialog.enlarged').open")
    assert browser.value(large) > 1.3 * browser.value(small)
    escape = {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27}
    browser.send("Input.dispatchKeyEvent", type="keyDown", **escape)
    assert wait_for(browser, "document.querySelector('dialog') === null")
    assert browser.value("document.activeElement.matches('.figure')")


LOOKS = [("index", 1280, False), ("index", 390, True), ("paper", 390, False)]
LOOKS += [("metrics", 1280, True), ("disk", 390, True)]


def check_barriers(browser, site, looks=LOOKS):
    """No finding of axe and no sideways scroll, at both widths, light and dark."""
    package = find_spec("axe_core_python")
    if package is None:
        return
    source = Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    for page, width, dark in looks:
        browser.open(site / f"{page}.html", width=width, dark=bool(dark))
        browser.value("localStorage.clear(), true")  # the palette of the page before
        browser.open(site / f"{page}.html", width=width, dark=bool(dark))
        assert browser.value("document.documentElement.scrollWidth") <= width, page
        browser.value(f"{source}; true")
        assert browser.value(FAULTS) == [], (page, width, dark)
