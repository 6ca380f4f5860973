"""Nodes to label, and the labelled table."""

import csv

import pandas as pd
import pytest
import torch
from small_desk import write_shop

import evengraph as eg
from evengraph.core.errors import ArgumentError
from evengraph.desk.label_file import Answers, Event
from evengraph.desk.nodes import csv_bytes, labelled_table, open_nodes, write_table
from evengraph.tables import open_graph


def test_labels_rows_and_ids_come_from_the_table(tmp_path):
    nodes = open_nodes(str(write_shop(tmp_path / "shop")), {"label": "kind"})
    assert (nodes.name, nodes.ids[:2]) == ("shop", ("a000", "a001"))
    assert nodes.classes == ("fraud", "honest")
    assert nodes.labels[:6].tolist() == [0, 1, 1, 1, 1, 0]
    assert nodes.labels[6:].max() == -1
    assert nodes.rows["a007"] == 7
    assert {name for name, _ in nodes.cells(0)} - {"country"} == {"amount"}
    toy = open_nodes("toy", {})  # a data set, by its name
    assert toy.ids[5] == "5"
    assert len(toy.classes) > 1


@pytest.mark.parametrize("labelled", [0, 1, 2])
def test_few_labels_or_none_will_do(tmp_path, labelled):
    shop = write_shop(tmp_path / "shop", labelled=labelled)
    nodes = open_nodes(str(shop), {"label": "kind"}, classes=["fraud", "honest"])
    assert nodes.classes == ((), ("fraud",), ("fraud", "honest"))[labelled]
    assert int((nodes.labels >= 0).sum()) == labelled
    assert not any("kind" in name for name in nodes.feature_names)


def test_a_column_can_be_started_if_its_classes_are_named(tmp_path):
    shop = str(write_shop(tmp_path / "shop"))
    nodes = open_nodes(shop, {"label": "risk", "drop": ["kind"]}, classes=["low", "high"])
    assert (nodes.column, nodes.labels.max()) == ("risk", -1)
    table = labelled_table(nodes, ANSWERS)
    assert table["risk"].dropna().tolist() == ["honest", "fraud"]
    assert b"a010,," in csv_bytes(table)
    with pytest.raises(ArgumentError, match=r"nodes\.csv has no column 'kidn'; to start one"):
        open_nodes(shop, {"label": "kidn"})


def test_words_that_mean_unlabelled_are_no_class(tmp_path):
    path = write_shop(tmp_path / "shop", labelled=1) / "nodes.csv"
    path.write_text(path.read_text().replace("a001,,", "a001,?,"))
    columns = {"label": "kind", "unlabelled": ["?"]}
    assert open_nodes(str(path.parent), columns, classes=["a", "b"]).classes == ("fraud",)


def test_a_graph_without_a_table_has_its_features_ids_and_labels(tmp_path):
    graph = eg.toy(60, 120, 20, 2)
    graph.y[10:] = -1
    torch.save(graph, tmp_path / "graph.pt")
    nodes = open_nodes(str(tmp_path / "graph.pt"), {})
    cells = nodes.cells(3)
    assert cells
    values = [abs(float(text)) for _, text in cells]
    assert values == sorted(values, reverse=True)
    table = labelled_table(nodes, Answers([Event(node="20", label="1", number=1)]))
    assert table.columns.tolist() == ["id", "label"]
    assert table["label"].notna().sum() == 11


ANSWERS = Answers(
    [
        Event(node="a010", label="fraud", number=1),
        Event(node="a011", kind="unknown", number=2),
        Event(node="nobody", label="fraud", number=3),
        Event(node="a000", label="honest", number=4),  # another answer than in the table
    ]
)


def test_only_labels_change_and_the_table_is_read_as_it_is(tmp_path):
    shop = write_shop(tmp_path / "shop")
    table = labelled_table(open_nodes(str(shop), {"label": "kind"}), ANSWERS)
    for name in ("labelled.csv", "labelled.parquet"):
        write_table(table, tmp_path / name)
        tables = open_graph(tmp_path / name, edges=shop / "edges.csv", label="kind")
        assert int((tables.graph.y >= 0).sum()) == 7
        assert tables.graph.y[10] == tables.class_names.index("fraud")
    before, after = (
        list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        for path in (shop / "nodes.csv", tmp_path / "labelled.csv")
    )
    before[11][1], before[1][1] = "fraud", "honest"
    assert after == before
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet, got .*x\.xlsx"):
        write_table(table, tmp_path / "x.xlsx")


def test_numbers_as_classes_stay_readable(tmp_path):
    shop = write_shop(tmp_path / "shop")
    table = pd.read_csv(shop / "nodes.csv")
    table["kind"] = table["kind"].map({"fraud": 1, "honest": 0})
    table.to_parquet(shop / "nodes.parquet")
    (shop / "nodes.csv").unlink()
    nodes = open_nodes(str(shop), {"label": "kind"})
    answers = Answers([Event(node="a010", label="1", number=1)])
    write_table(labelled_table(nodes, answers), tmp_path / "labelled.parquet")
    tables = open_graph(tmp_path / "labelled.parquet", edges=shop / "edges.csv", label="kind")
    assert tables.class_names == ("0", "1")
    assert int((tables.graph.y >= 0).sum()) == 7
