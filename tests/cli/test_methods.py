"""evengraph methods and data."""

import pytest

from command_line import call
from evengraph.methods import METHODS, Method


def shown(capsys, *arguments):
    assert call("methods", *arguments) == 0
    return " ".join(capsys.readouterr().out.split())


def test_methods_lists_every_method_with_its_idea(capsys):
    text = shown(capsys)
    for name, method in METHODS.items():
        assert f"{name} {method.__doc__.partition(chr(10))[0]}" in text
    assert "Propagate labels beyond neighbours" in text


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_shown_in_full(name, capsys):
    text = shown(capsys, name)
    for words in (METHODS[name].title, "Cost: O(", "Departs: ", "Reference: ", "max_epochs="):
        assert words in text
    assert "learning_rate: Adam's learning rate." in text  # of all methods
    assert "temperature: Softmax temperature" in shown(capsys, "graphens")


def test_a_plugin_without_a_docstring_is_listed(monkeypatch, capsys):
    class Bare(Method):
        _fit = _logits = None

    monkeypatch.setitem(METHODS, "bare", Bare)
    assert " bare evengraph methods NAME" in shown(capsys)


def test_what_a_method_uses_of_the_edges(capsys):
    for name, words in (
        ("gcn", "with their weights"),
        ("unison", "with their weights, each relation apart"),
        ("unignn", "without weights"),
        ("mlp", "not used"),
    ):
        assert f"Edges: {words} Defaults: " in shown(capsys, name)


def test_data_list_names_every_graph(capsys):
    from evengraph.datasets import DATASETS

    assert call("data", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DATASETS)
    line = next(line for line in shown.splitlines() if line.startswith("cora "))
    assert line.split()[1:5] == ["2,708", "5,278", "1,433", "7"]  # each edge once
