"""Completion in the shell: as the shell asks for it, and the names that it offers."""

import os
import subprocess
import sys

import pytest

from evengraph.cli import completion
from evengraph.datasets import DATASETS
from evengraph.experiment.spec import BEYOND, EXPERIMENTS
from evengraph.methods import METHODS

PROGRAM = "import sys; from evengraph.cli import main; main()"


def complete(folder, *words):
    """What bash would offer for the last word."""
    asked = {
        "_EVENGRAPH_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("evengraph", *words)),
        "COMP_CWORD": str(len(words)),
    }
    shell = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM],
        env=os.environ | asked,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torch" not in shell.stderr  # a shell does not wait for seconds
    return shell.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], ["compare"]),
        (["run", "c"], [*(name for name in DATASETS if name.startswith("c")), "customers"]),
        (["run", "customers/n"], ["customers/nodes.csv"]),
        (["run", "toy", "--method", "gcn,uni"], ["gcn,unignn", "gcn,unison"]),
        (["compare", "toy", "--methods", "log"], ["logistic", "logitadjustment"]),
        (["methods", "lab"], ["labelpropagation"]),
        (["reproduce", "table"], ["table1", "table2", "table3", "tables.toml"]),
        (["run", "toy", "--see"], ["--seeds"]),
    ],
)
def test_the_shell_is_offered_names_and_paths(tmp_path, words, expected):
    (tmp_path / "customers").mkdir()
    (tmp_path / "customers" / "nodes.csv").touch()
    (tmp_path / "tables.toml").touch()
    (tmp_path / "table.txt").touch()
    assert sorted(complete(tmp_path, *words)) == sorted(expected)


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
