"""The examples run, are short, and say what they promise."""

import importlib.util
import runpy
from pathlib import Path

import pytest

import evengraph as eg

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


def run(name, *arguments):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(arguments)


@pytest.fixture
def nowhere(monkeypatch):
    """No graph can be had, as on a new machine without a network."""

    def refuse(name):
        raise eg.datasets.DataNotFound(f"There is no {name} here.")

    monkeypatch.setattr(eg, "load", refuse, raising=False)


def test_there_are_three():
    assert [path.stem for path in EXAMPLES] == ["citation", "fraud", "own_csv"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_the_shops_of_the_readme_are_those_of_the_example(tmp_path):
    (path,) = (path for path in EXAMPLES if path.stem == "own_csv")
    runpy.run_path(str(path))["write_files"](tmp_path)
    for name in ("nodes.csv", "edges.csv"):
        assert (tmp_path / name).read_bytes() == (path.parent / "shops" / name).read_bytes()


def test_citation(nowhere, capsys):
    run("citation", "--epochs", "3")
    printed = capsys.readouterr().out
    assert "generated graph" in printed
    assert "labels of each class: [20, 20, 2, 2, 2]" in printed
    assert "GCN" in printed
    assert "Uni-GNN" in printed


def test_fraud(nowhere, capsys):
    run("fraud", "--epochs", "3", "--nodes", "10")
    printed = capsys.readouterr().out
    assert printed.count("average precision") == 2
    assert printed.count("of the 10 likeliest") == 2
    assert printed.count("from validation") == 2


def test_own_csv(capsys):
    run("own_csv", "--epochs", "60")
    printed = capsys.readouterr().out
    assert "Edges are treated as undirected." in printed
    assert "balanced accuracy on test nodes: " in printed
    assert "p_fraud" in printed
    assert printed.count("shop-100") == 5
