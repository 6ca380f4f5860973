import pytest
from small_desk import write_shop

import evengraph as eg
from evengraph.core.errors import ArgumentError
from evengraph.desk.nodes import open_nodes


def test_labels_rows_and_ids_come_from_the_table(tmp_path):
    nodes = open_nodes(str(write_shop(tmp_path / "shop")), {"label": "kind"})
    assert nodes.name == "shop"
    assert nodes.ids[:2] == ("a000", "a001")
    assert nodes.classes == ("fraud", "honest")
    assert nodes.labels[:6].tolist() == [0, 1, 1, 1, 1, 0]
    assert nodes.labels[6:].max() == -1
    assert nodes.rows["a007"] == 7
    names = [name for name, _ in nodes.cells(0)]
    assert names[0] == "amount"
    assert "id" not in names
    assert "kind" not in names


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
    assert nodes.column == "risk"
    assert nodes.labels.max() == -1
    with pytest.raises(ArgumentError, match=r"nodes\.csv has no column 'kidn'; to start one"):
        open_nodes(shop, {"label": "kidn"})


def test_words_that_mean_unlabelled_are_no_class(tmp_path):
    shop = write_shop(tmp_path / "shop", labelled=1)
    text = (shop / "nodes.csv").read_text().replace("a001,,", "a001,?,")
    (shop / "nodes.csv").write_text(text)
    nodes = open_nodes(str(shop), {"label": "kind", "unlabelled": ["?"]}, classes=["a", "b"])
    assert nodes.classes == ("fraud",)


def test_a_graph_without_a_table_shows_its_features(tmp_path):
    import torch

    graph = eg.toy(60, 120, 20, 2)
    graph.y[10:] = -1
    torch.save(graph, tmp_path / "graph.pt")
    nodes = open_nodes(str(tmp_path / "graph.pt"), {})
    cells = nodes.cells(3)
    assert cells
    values = [abs(float(text)) for _, text in cells]
    assert values == sorted(values, reverse=True)


def test_a_data_set_opens_by_name():
    nodes = open_nodes("toy", {})
    assert nodes.ids[5] == "5"
    assert len(nodes.classes) > 1
