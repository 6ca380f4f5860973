"""evengraph pack: tables, data sets and generated graphs become a folder that commands take."""

import json

import numpy as np

from command_line import COLUMNS, call, read
from evengraph.disk import PackedGraph

LOGISTIC = ["--method", "logistic", "--set", "hops=1", "--set", "max_epochs=6", "--splits", "5-5"]


def test_a_packed_graph_gives_the_results_of_its_tables(shop, capsys):
    assert call("pack", "shop", *COLUMNS, "--out", "graph", "--memory", "1GB") == 0
    shown = capsys.readouterr()
    assert "120 nodes, " in shown.out
    assert "wrote graph" in shown.out
    assert "Merged" in shown.err
    for data, columns in (("shop", COLUMNS), ("graph", [])):
        assert call("run", data, *columns, *LOGISTIC, "--save", f"m-{data}", "--out", data[0]) == 0
    assert read(shop / "s" / "predictions.csv") == read(shop / "g" / "predictions.csv")
    assert call("predict", "m-graph", "graph", "--out", "p.csv") == 0
    assert len(read(shop / "p.csv")) == 120
    capsys.readouterr()
    assert call("inspect", "graph") == 0
    shown = capsys.readouterr().out
    assert "120 nodes" in shown
    assert "evengraph run graph --save model" in shown


def test_two_tables_and_parts_of_tables_are_packed(shop):
    folder = shop / "shop"
    assert call("pack", folder / "nodes.csv", folder / "edges.csv", *COLUMNS, "--out", "a") == 0
    lines = (folder / "nodes.csv").read_text().splitlines(keepends=True)
    for part, rows in enumerate((lines[1:50], lines[50:])):
        (shop / f"nodes-{part}.csv").write_text(lines[0] + "".join(rows))
    parts = [shop / "nodes-0.csv", shop / "nodes-1.csv"]
    assert call("pack", *parts, "--edges", folder / "edges.csv", *COLUMNS, "--out", "b") == 0
    assert PackedGraph.open("a").content_hash == PackedGraph.open("b").content_hash


def test_a_data_set_is_packed_in_half_precision(shop, capsys):
    assert call("pack", "toy", "--dtype", "float16", "--out", "toy") == 0
    packed = PackedGraph.open("toy")
    assert packed.x.shape == (2000, 256)
    assert packed.x.dtype == np.float16
    assert "2,000 nodes" in capsys.readouterr().out


def test_a_large_packed_graph_is_inspected_without_being_read(shop, capsys, monkeypatch):
    assert call("pack", "toy", "--out", "toy") == 0
    monkeypatch.setattr("evengraph.cli.inspect.LARGE", 10)
    monkeypatch.setattr("evengraph.cli.opening.open_data", None)
    capsys.readouterr()
    assert call("inspect", "toy") == 0
    shown = capsys.readouterr().out
    assert "2,000 nodes" in shown
    assert call("inspect", "toy", "--out", "look") == 2
    assert "it takes no other option than --json" in capsys.readouterr().err
    assert call("inspect", "toy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["num_nodes"] == 2000
