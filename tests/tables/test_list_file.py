"""A JSON file {node: [items]} beside the tables."""

import json
import re

import pandas as pd
import pytest

import evengraph as eg
from evengraph.tables.open import open_graph, read_tables

LISTS = {str(10 + i): [i % 3, 3 + i % 2, *([5, 5] if i % 4 else [])] for i in range(30)}


@pytest.fixture
def folder(tmp_path):
    rows = [f"{900 + i},{10 + (7 * i) % 30},{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "nodes.csv").write_text("code,id,kind\n" + "\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n10,11\n12,13\n")
    (tmp_path / "features.json").write_text(json.dumps(LISTS))
    return tmp_path


def expected(own, items):
    return [[float(int(item) in LISTS[str(id)]) for item in items] for id in own.ids]


def test_it_is_found_beside_the_tables(folder):
    own = open_graph(folder, label="kind", features=None, drop=["code"])
    assert own.encoder.names == tuple(f"features.json={item}" for item in range(6))
    assert own.graph.x.tolist() == expected(own, range(6))
    assert "features.json: 6 items of 30 nodes as 0/1 features." in own.notes
    same = open_graph(folder / "nodes.csv", edges=folder / "edges.csv", label="kind", drop=["code"])
    assert same.graph.x.tolist() == own.graph.x.tolist()


def test_an_option_names_another_file(folder):
    (folder / "other.json").write_text(json.dumps({"10": [1], "11": [1], "99": [1]}))
    nodes, _ = read_tables(folder, lists=folder / "other.json")
    assert nodes.set_index("id")["features.json"].dropna().to_dict() == {"10": [1], "11": [1]}
    assert nodes.attrs["notes"] == ["other.json: 1 key of 3 left out: no such id."]
    frames = pd.read_csv(folder / "nodes.csv"), pd.read_csv(folder / "edges.csv")
    nodes, _ = read_tables(*frames, folder / "other.json")
    assert nodes["features.json"].notna().sum() == 2
    assert "features.json" not in read_tables(*frames)[0]


def test_row_numbers(folder):
    (folder / "features.json").write_text(json.dumps({"0": [1], "2": [2]}))
    nodes, _ = read_tables(folder)
    assert nodes["features.json"].dropna().to_dict() == {0: [1], 2: [2]}


@pytest.mark.parametrize("name", ["id", "new_id"])
def test_of_several_columns_that_fit_the_id_is_used(folder, name):
    rows = [f"{10 + (11 * i) % 30},{10 + (7 * i) % 30},{'ab'[i % 2]}" for i in range(30)]
    (folder / "nodes.csv").write_text(f"rank,{name},kind\n" + "\n".join(rows) + "\n")
    own = open_graph(folder, label="kind", id=name, drop=["rank"])
    assert own.graph.x.tolist() == expected(own, range(6))
    if name == "id":
        found = open_graph(folder, label="kind", drop=["rank"])
        assert found.graph.x.tolist() == own.graph.x.tolist()
    other = open_graph(folder, label="kind", id="rank", drop=[name])
    assert other.graph.x.tolist() == expected(other, range(6))


def test_row_numbers_that_a_count_nearly_fits(folder):
    rows = [f"n{i},{1 + i},{'ab'[i % 2]}" for i in range(30)]
    (folder / "nodes.csv").write_text("id,rank,kind\n" + "\n".join(rows) + "\n")
    (folder / "edges.csv").write_text("source,target\nn10,n11\nn12,n13\n")
    (folder / "features.json").write_text(json.dumps({str(i): [i] for i in range(30)}))
    nodes, _ = read_tables(folder)
    assert nodes["features.json"].tolist() == [[i] for i in range(30)]


def test_keys_of_other_nodes(folder):
    (folder / "features.json").write_text(json.dumps({"x": [1], "y": [2]}))
    own = open_graph(folder, label="kind")
    assert any("features.json is not used: its keys are not ids" in note for note in own.notes)
    with pytest.raises(ValueError, match=r"its keys, such as 'x', are not the values of a column"):
        open_graph(folder, label="kind", lists=folder / "features.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "must be an object of nodes and lists, such as"),
        ("{}", "must be an object of nodes and lists, such as"),
        ('{"10": [1', "is not JSON"),
        ('{"10": [1], "11": 5}', "node '11' holds 5; expected a list, as in"),
        ("", "features.json is empty"),
    ],
)
def test_bad_files(folder, content, message):
    (folder / "features.json").write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        open_graph(folder, label="kind")
    assert "\n" not in str(caught.value)


def test_no_such_file(folder):
    with pytest.raises(FileNotFoundError, match=r"none\.json does not exist"):
        open_graph(folder, label="kind", lists=folder / "none.json")


def test_a_model_reads_it_again(folder, tmp_path):
    lists = folder / "features.json"
    (folder / "named").mkdir()
    lists = lists.rename(folder / "named" / "lists.json")
    model = eg.TableModel(eg.Logistic()).fit(folder, label="kind", drop=["code"], lists=lists)
    model.save(folder / "model")
    model = eg.TableModel.load(folder / "model")
    with pytest.raises(ValueError, match=r"has no column 'features\.json'"):
        model.open(folder)
    assert model.open(folder, lists=lists).tables.graph.num_features == 6
    assert model.explain("10") is not None
