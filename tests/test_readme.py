"""The front page: its code runs, and its numbers come from stored runs."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    code = code.replace('eg.load("cora")', "eg.toy()").replace("eg.Auto()", "eg.Auto(max_epochs=2)")
    exec(compile(code, "README.md", "exec"), {})
    *summary, figures, recalls = capsys.readouterr().out.strip().splitlines()
    assert len(summary) == 3
    assert all(0 <= float(word) <= 1 for word in figures.split())
    assert len(json.loads(recalls)) == 5


def test_the_paper_is_cited_alike_everywhere():
    """The same title, authors and number on arXiv in the README and in CITATION.cff."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    bibtex = " ".join(re.search(r"@misc\{(.*?)```", README, flags=re.S)[1].split())
    (title,) = re.findall(r'^    title: "(.*)"', citation, flags=re.M)
    assert title == re.search(r"title *= \{(.*?)\}, author", bibtex)[1].replace("{GNN}", "GNN")
    names = re.findall(r"family-names: (\w+)\n *given-names: (\w+)", citation)
    assert " and ".join(f"{last}, {first}" for last, first in names) in bibtex
    (number,) = re.findall(r"eprint *= \{(.*?)\}", bibtex)
    assert f"arXiv:{number}" in citation
    assert f"https://arxiv.org/abs/{number}" in citation


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
