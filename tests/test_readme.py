"""The front page: its code runs, and its numbers come from stored runs."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    code = code.replace('eg.load("cora")', "eg.toy()").replace("recluster_every=50", "max_epochs=2")
    exec(compile(code, "README.md", "exec"), {})
    figures, recalls = capsys.readouterr().out.strip().splitlines()
    assert all(0 <= float(word) <= 1 for word in figures.split())
    assert len(json.loads(recalls)) == 5


STORED = {path.stem: json.loads(path.read_text()) for path in (ROOT / "results").glob("*.json")}


@pytest.mark.parametrize("name", STORED)
def test_stored_results_are_in_the_table(name):
    result = STORED[name]
    cells = []
    for metric in ("balanced_accuracy", "macro_f1"):
        paper = result["paper"][metric]
        cells.append(f"{result['mean'][metric]:.1f} ± {result['std'][metric]:.1f}")
        cells.append(f"{paper['mean']} ± {paper['std']}")
    method = {"gcn": "GCN", "unignn": "Uni-GNN"}[result["method"]["name"]]
    assert f"| {method} | {' | '.join(cells)} |" in README


def test_every_row_has_a_stored_run():
    rows = re.findall(r"^\| .*\| (?:GCN|Uni-GNN) \|", README, flags=re.M)
    assert len(rows) == len(STORED) > 0


@pytest.mark.parametrize("name", STORED)
def test_stored_results_say_where_they_come_from(name):
    result = STORED[name]
    assert result["seeds"] == [5, 6, 7]
    assert result["complete"]
    commit = result["environment"]["commit"]
    assert commit
    assert not commit.endswith("+")  # code that nobody can look up


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
