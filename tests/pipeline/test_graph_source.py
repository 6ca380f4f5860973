"""Where a graph comes from, and the split that it gets by default."""

import pandas
import pytest
import torch

import evengraph as eg
from evengraph.pipeline.sources import open_dataset, open_tables
from evengraph.splits import ByTime, Given, Natural, Step

NODES = pandas.DataFrame(
    {
        "id": range(12),
        "label": ["a", "b"] * 6,
        "size": range(12),
        "since": [f"2024-01-{day:02d}" for day in range(1, 13)],
        "split": ["train", "train", "val", "val", "test", "test"] * 2,
    }
)
EDGES = pandas.DataFrame({"source": range(12), "target": [(n + 2) % 12 for n in range(12)]})
PLAIN = NODES.drop(columns="split")


@pytest.mark.parametrize(
    ("nodes", "columns", "split"),
    [
        (PLAIN, {}, Natural(train=0.6, val=0.2)),
        (PLAIN, {"time": "since"}, ByTime(train=0.6, val=0.2)),
        (NODES, {}, Given()),  # a column called split is recognised
        (NODES, {"split": "split"}, Given()),
        (NODES, {"time": "since"}, ByTime(train=0.6, val=0.2)),  # named beats recognised
        (NODES, {"time": "since", "split": "split"}, Given()),
    ],
)
def test_columns_decide_the_split(nodes, columns, split):
    assert open_tables(nodes, EDGES, **columns).make_split() == split


def test_a_data_set_gets_the_split_of_the_paper():
    source = open_dataset("toy")
    assert source.is_dataset
    assert source.make_split() == Step()
    assert source.data == source.name == "toy"


def test_masks_of_a_graph_decide():
    graph = eg.toy()
    assert open_tables(graph).make_split() == Natural(train=0.6, val=0.2)
    graph.train_mask = graph.test_mask = torch.zeros(2000, dtype=torch.bool)
    assert open_tables(graph).make_split() == Given()


def test_paths_are_absolute(tmp_path, monkeypatch):
    NODES.to_csv(tmp_path / "people.csv", index=False)
    EDGES.to_csv(tmp_path / "calls.csv", index=False)
    monkeypatch.chdir(tmp_path)
    source = open_tables("people.csv", "calls.csv", drop=["size", "since"], label="label")
    assert source.name == "people"
    assert source.data == str(tmp_path / "people.csv")
    edges = str(tmp_path / "calls.csv")
    assert source.columns == {"label": "label", "drop": "size,since", "edges": edges}
    assert not source.is_dataset


def test_objects_in_memory_have_no_path():
    source = open_tables(NODES, EDGES)
    assert source.data is None
    assert source.tables.class_names == ("a", "b")
