"""Completion in the shell: as the shell asks for it, and the names that it offers."""

import json
import os
import subprocess
import sys

from evengraph.cli import options as completion
from evengraph.datasets import DATASETS
from evengraph.lab.sources import BEYOND, EXPERIMENTS
from evengraph.methods import METHODS

PROGRAM = "import sys; from evengraph.cli import main; main()"
ASK = """
import json, os, sys
from evengraph.cli import main
for words in json.loads(sys.argv.pop()):
    os.environ["COMP_WORDS"] = " ".join(["evengraph", *words])
    os.environ["COMP_CWORD"] = str(len(words))
    try:
        main()
    except SystemExit as stop:
        assert not stop.code
    print("", end="\\0")
assert "torch" not in sys.modules, "a shell does not wait for seconds"
"""
CASES = [
    (["comp"], ["compare"]),
    (["run", "c"], [*(name for name in DATASETS if name.startswith("c")), "customers"]),
    (["run", "customers/n"], ["customers/nodes.csv"]),
    (["run", "toy", "--method", "gcn,uni"], ["gcn,unignn", "gcn,unison"]),
    (["compare", "toy", "--method", "log"], ["logistic", "logitadjustment"]),
    (["methods", "lab"], ["labelpropagation"]),
    (["reproduce", "table"], ["table1", "table2", "table3", "tables.toml"]),
    (["run", "toy", "--see"], ["--splits"]),
]


def test_the_shell_is_offered_names_and_paths(tmp_path):
    (tmp_path / "customers").mkdir()
    (tmp_path / "customers" / "nodes.csv").touch()
    (tmp_path / "tables.toml").touch()
    (tmp_path / "table.txt").touch()
    shell = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps([words for words, _ in CASES])],
        env=os.environ | {"_EVENGRAPH_COMPLETE": "complete_bash"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shell.returncode == 0, shell.stderr
    offers = shell.stdout.split("\0")[:-1]
    for (words, expected), offer in zip(CASES, offers, strict=True):
        assert sorted(offer.split()) == sorted(expected), words


def test_it_can_be_installed(tmp_path):
    words = [sys.executable, "-c", PROGRAM, "--install-completion", "bash"]
    # the shell is the one that is named, not the one that the tests were started from, if any
    env = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run(words, env=os.environ | env, check=True, capture_output=True)
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "_EVENGRAPH_COMPLETE=complete_bash" in script.read_text()


def test_names_are_those_of_the_tables():
    assert completion.methods() == list(METHODS)
    assert completion.data_sets() == list(DATASETS)
    assert completion.experiments() == [*EXPERIMENTS, *BEYOND]


def test_a_method_is_not_offered_twice():
    assert "gcn" not in completion.complete_methods("mlp,gcn,")
    assert completion.complete_methods("mlp,gcn,ml") == []
    assert completion.complete_methods("mlp,gcn,au") == ["mlp,gcn,auto"]
    assert completion.complete_methods("al") == ["all"]
