import csv

import pandas as pd
import pytest
import torch
from small_desk import write_shop

import evengraph as eg
from evengraph.desk.label_file import Answers, Event
from evengraph.desk.nodes import open_nodes
from evengraph.desk.pages import csv_bytes, labelled_table, write_table
from evengraph.tables import open_graph

ANSWERS = Answers(
    [
        Event(node="a010", label="fraud", number=1),
        Event(node="a011", kind="unknown", number=2),
        Event(node="nobody", label="fraud", number=3),
        Event(node="a000", label="honest", number=4),  # another answer than in the table
    ]
)


def read(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_only_labels_change(tmp_path):
    shop = write_shop(tmp_path / "shop")
    before = read(shop / "nodes.csv")
    nodes = open_nodes(str(shop), {"label": "kind"})
    write_table(labelled_table(nodes, ANSWERS), tmp_path / "labelled.csv")
    after = read(tmp_path / "labelled.csv")
    expected = [list(row) for row in before]
    expected[11][1], expected[1][1] = "fraud", "honest"
    assert after == expected


def test_the_table_is_read_as_it_is(tmp_path):
    shop = write_shop(tmp_path / "shop")
    nodes = open_nodes(str(shop), {"label": "kind"})
    for name in ("labelled.csv", "labelled.parquet"):
        write_table(labelled_table(nodes, ANSWERS), tmp_path / name)
        tables = open_graph(tmp_path / name, edges=shop / "edges.csv", label="kind")
        assert int((tables.graph.y >= 0).sum()) == 7
        assert tables.graph.y[10] == tables.class_names.index("fraud")


def test_a_started_column_is_added(tmp_path):
    shop = write_shop(tmp_path / "shop")
    nodes = open_nodes(str(shop), {"label": "risk"}, classes=["fraud", "honest"])
    table = labelled_table(nodes, ANSWERS)
    assert table["risk"].dropna().tolist() == ["honest", "fraud"]
    assert b"a010,," in csv_bytes(table)


def test_numbers_as_classes_stay_readable(tmp_path):
    shop = write_shop(tmp_path / "shop")
    table = pd.read_csv(shop / "nodes.csv")
    table["kind"] = table["kind"].map({"fraud": 1, "honest": 0})
    table.to_parquet(shop / "nodes.parquet")
    (shop / "nodes.csv").unlink()
    nodes = open_nodes(str(shop), {"label": "kind"})
    answers = Answers([Event(node="a010", label="1", number=1)])
    write_table(labelled_table(nodes, answers), tmp_path / "labelled.parquet")
    path = tmp_path / "labelled.parquet"
    tables = open_graph(path, edges=shop / "edges.csv", label="kind")
    assert tables.class_names == ("0", "1")
    assert int((tables.graph.y >= 0).sum()) == 7


def test_a_graph_without_a_table_gives_ids_and_labels(tmp_path):
    graph = eg.toy(60, 120, 20, 2)
    graph.y[10:] = -1
    torch.save(graph, tmp_path / "graph.pt")
    nodes = open_nodes(str(tmp_path / "graph.pt"), {})
    table = labelled_table(nodes, Answers([Event(node="20", label="1", number=1)]))
    assert table.columns.tolist() == ["id", "label"]
    assert table["label"].notna().sum() == 11


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet, got .*x\.xlsx"):
        write_table(pd.DataFrame(), tmp_path / "x.xlsx")
