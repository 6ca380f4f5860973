"""Files of a run: pages that link to one another, commands that can be pasted."""

import json

import pytest
from command_line import COLUMNS, call

TINY = ["--set", "max_epochs=2", "--splits", "5-5"]


def test_pages_of_several_methods_link_to_one_another(tmp_path, capsys):
    words = ["run", "toy", "--method", "gcn,reweight", *TINY, "--out", tmp_path / "r"]
    assert call(*words) == 0
    comparison = json.loads((tmp_path / "r" / "comparison.json").read_text())
    assert comparison["command"] == f"evengraph {' '.join(map(str, words))}"
    assert comparison["protocol"]["name"] == "step"
    assert [len(one["runs"]) for one in comparison["methods"]] == [1, 1]
    assert comparison["methods"][0]["changed"] == ["max_epochs"]
    page = (tmp_path / "r" / "comparison.html").read_text()
    own = (tmp_path / "r" / "gcn" / "report.html").read_text()
    for name in ("gcn", "reweight"):
        assert f'href="{name}/report.html"' in page
    assert 'href="../comparison.html"' in own
    assert 'href="../reweight/report.html"' in own
    shown = " ".join(capsys.readouterr().out.split())
    assert comparison["verdict"]["sentences"][0] in shown


def test_what_follows_a_comparison_has_its_split(tmp_path):
    """By default `run` makes a step imbalance of a data set, and `compare` does not."""
    words = ["toy", "--method", "gcn,reweight", "--set", "max_epochs=2", "--splits", "1"]
    assert call("compare", *words, "--train", "0.2", "--out", tmp_path / "c") == 0
    (command,) = json.loads((tmp_path / "c" / "comparison.json").read_text())["commands"]
    assert "--split natural --train 0.2 --val 0.1" in command
    assert call("run", "toy", "--method", "gcn,reweight", *TINY, "--out", tmp_path / "r") == 0
    (command,) = json.loads((tmp_path / "r" / "comparison.json").read_text())["commands"]
    assert "--split step --minority 3 --ratio 0.1" in command


@pytest.mark.parametrize(("folds", "expected"), [(5, ["--split folds --val 0.1"]), (3, [])])
def test_run_follows_a_cross_validation_that_it_can_repeat(folds, expected, tmp_path):
    words = ["toy", "--method", "gcn,reweight", "--set", "max_epochs=2", "--folds", folds]
    assert call("compare", *words, "--out", tmp_path) == 0
    commands = json.loads((tmp_path / "comparison.json").read_text())["commands"]
    assert len(commands) == len(expected)
    assert all(part in command for part, command in zip(expected, commands, strict=True))
    for command in commands:
        assert call(*command.split()[1:-1], tmp_path / "m", *TINY) == 0


def test_what_to_do_after_a_run_of_own_tables(shop, capsys):
    words = ["shop", *COLUMNS, "--method", "gcn", *TINY, "--out", "r"]
    assert call("run", *words) == 0
    result = json.loads((shop / "r" / "result.json").read_text())
    first, compare, mapped = result["commands"]
    assert mapped == f"{result['command']} --map"
    assert first == f"{result['command']} --save model"
    assert compare == "evengraph compare shop --label kind --id account"
    assert call("run", *words, "--save", "model") == 0
    result = json.loads((shop / "r" / "result.json").read_text())
    predict, explain, *_ = result["commands"]
    assert predict.startswith("evengraph predict model shop --out")
    capsys.readouterr()
    for command in (predict, explain):
        assert call(*command.split()[1:]) == 0
    page = (shop / "r" / "report.html").read_text()
    assert 'href="predictions.csv"' in page
    assert 'href="result.json"' in page
