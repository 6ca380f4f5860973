"""evengraph methods and data."""

import re

import pytest

from command_line import call
from evengraph.cli.methods import describe_method
from evengraph.methods import METHODS, Method


def test_methods_lists_every_method_with_its_fields(capsys):
    assert call("methods") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for word in ("clusters_per_class=10", "patience=1000", "O(E h", "Alchihabi", "Kipf"):
        assert word in shown
    for name, method in METHODS.items():
        assert f"{name} {method.title} idea" in shown
    assert call("methods", "graphens") == 0
    shown = capsys.readouterr().out
    assert "Departs:" in shown
    assert "temperature=1.0" in shown
    assert "temperature: Softmax temperature" in shown
    assert "learning_rate: Adam's learning rate." in shown  # of all methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_described(name):
    words = describe_method(name)
    assert words["title"] == METHODS[name].title
    assert words["idea"].endswith(".")
    assert words["cost"].startswith("O(")
    assert re.search(r"\b(19[89]|20[0-3])\d\b", words["reference"])
    assert "max_epochs" in words["fields"]


def test_a_plugin_without_a_docstring_can_be_described(monkeypatch):
    class Bare(Method):
        _fit = _logits = None

    monkeypatch.setitem(METHODS, "bare", Bare)
    words = describe_method("bare")
    assert [words[key] for key in ("title", "idea", "cost", "reference")] == ["Bare", "", "", ""]


def test_what_a_method_uses_of_the_edges():
    edges = {name: describe_method(name)["edges"] for name in METHODS}
    assert edges["gcn"] == "with their weights"
    assert edges["unison"] == "with their weights, each relation apart"
    assert edges["unignn"] == "without weights"
    assert edges["mlp"] == "not used"


def test_data_list_names_every_graph(capsys):
    from evengraph.datasets import DATASETS

    assert call("data", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DATASETS)
    line = next(line for line in shown.splitlines() if line.startswith("cora "))
    assert line.split()[1:5] == ["2,708", "5,278", "1,433", "7"]  # each edge once
