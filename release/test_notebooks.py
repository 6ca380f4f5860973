"""Notebooks and their pages are made from their sources, and show what these give."""

import json
from pathlib import Path

import pytest
from tools.notebooks import PAGES, SOURCES, notebook, page, read_cells, run_cells

NAMES = ["citation", "fraud", "own_method"]


def test_there_are_three_and_the_site_names_them():
    assert sorted(path.stem for path in SOURCES.glob("*.py")) == NAMES
    pages = (PAGES.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"notebooks/{name}.md" in pages for name in NAMES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_and_its_page_are_made_from_the_source(name):
    pytest.importorskip("pandas")
    cells = read_cells(SOURCES / f"{name}.py")
    content = json.loads((PAGES / f"{name}.ipynb").read_text(encoding="utf-8"))
    stored = [(cell["cell_type"], "".join(cell["source"])) for cell in content["cells"]]
    assert stored == cells, "run python -m tools.notebooks"
    outputs = [cell.get("outputs", []) for cell in content["cells"]]
    assert notebook(cells, outputs) == content
    text = page(content, name)
    assert str(Path.home()) not in text or Path.home() == Path("/")

    def kinds(shown):
        return [sorted(output.get("data", {"text": 0})) for output in shown]

    found = run_cells(cells, {"EPOCHS": 1, "SEEDS": [5]})
    assert [kinds(shown) for shown in found] == [kinds(shown) for shown in outputs]


def test_an_output_may_hold_blocks_of_code():
    output = {"output_type": "stream", "text": ["# Card\n", "```\n", "a\n", "```\n"]}
    content = {"cells": [{"cell_type": "code", "source": ["x"], "outputs": [output]}]}
    assert "````text\n# Card\n```\na\n```\n````" in page(content, "n")
