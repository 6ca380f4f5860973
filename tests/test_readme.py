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


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
