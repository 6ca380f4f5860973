"""The front page: its length, its citation, its pictures."""

import re
import runpy
from pathlib import Path

import pytest
from tools.picture_sources import SOURCES, digest, recorded

import evengraph as eg

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_paper_is_cited_alike_everywhere():
    """The same title, authors and number on arXiv in the docs and in CITATION.cff."""
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    bibtex = " ".join(re.search(r"@misc\{(.*?)```", page, flags=re.S)[1].split())
    (title,) = re.findall(r'^    title: "(.*)"', citation, flags=re.M)
    assert title == re.search(r"title *= \{(.*?)\}, author", bibtex)[1].replace("{GNN}", "GNN")
    names = re.findall(r"family-names: (\w+)\n *given-names: (\w+)", citation)
    assert " and ".join(f"{last}, {first}" for last, first in names) in bibtex
    (number,) = re.findall(r"eprint *= \{(.*?)\}", bibtex)
    assert f"arXiv:{number}" in citation
    assert f"https://arxiv.org/abs/{number}" in citation


def test_it_is_short_and_its_pictures_say_what_they_show():
    assert len(README.split()) < 600
    shown = re.findall(r"!\[(.*?)\]\(", README) + re.findall(
        r'<img src="docs/hero.*?alt="(.*?)"', README
    )
    assert len(shown) == 6
    assert all(" " in text for text in shown)


def test_the_badges_and_the_hero_are_those_that_the_scripts_draw():
    badges, hero = (
        runpy.run_path(str(ROOT / "docs" / f"{name}.py")) for name in ("badges", "hero")
    )
    for stem, text in badges["badges"]().items():
        file = ROOT / "docs" / "badges" / f"{stem}.svg"
        assert file.read_text(encoding="utf-8") == text, "python docs/badges.py"
        assert f"(docs/badges/{stem}.svg)" in README
    assert f"version {eg.__version__}" in README
    assert (ROOT / "docs" / "hero.svg").read_text(encoding="utf-8") == hero["hero"]()


def test_the_picture_of_the_page_is_not_stale(tmp_path):
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    stored = (ROOT / "docs" / "report.digest").read_text(encoding="utf-8").strip()
    found = pictures["digest"](pictures["page"](tmp_path))
    assert found == stored, "the page has changed: make pictures"


def test_pages_quote_the_stored_run_of_the_example():
    example = runpy.run_path(str(ROOT / "docs" / "example.py"))
    transcript = example["TRANSCRIPT"].read_text(encoding="utf-8")
    for page in example["PAGES"]:
        text = page.read_text(encoding="utf-8")
        assert example["filled"](text, transcript) == text, "python docs/example.py"
    start = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in start for name in set(example["PARTS"]) - {"found"})
    commands = re.findall(r"^\$ (evengraph (?:run|predict) .*)$", transcript, flags=re.M)
    assert len(commands) == 2
    assert all(command in README for command in commands)


@pytest.mark.parametrize("name", SOURCES)
def test_no_picture_is_older_than_what_it_is_drawn_from(name):
    assert recorded()[name] == digest(name), f"stale: {SOURCES[name][0]}"


def test_every_picture_is_drawn_by_a_script_or_by_hand():
    by_hand = {"favicon.svg", "logo.svg", "unignn.svg", "unison.svg"}  # no numbers in them
    drawn = {*SOURCES, *by_hand, "badges", "hero.svg", "explain.svg"}
    drawn |= {"report.png", "report-dark.png"}
    docs = ROOT / "docs"
    found = [path.relative_to(docs) for kind in ("svg", "png") for path in docs.rglob(f"*.{kind}")]
    assert {path.parts[0] for path in found} == drawn


def test_the_methods_are_counted():
    built_in = [name for name in eg.METHODS if name not in eg.METHODS.packages]
    assert f"[{len(built_in)} methods](" in README
