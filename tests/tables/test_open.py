"""open_graph: by the name of a folder or file."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

import evengraph as eg
from evengraph.tables.open import open_graph

NODES = "id,age,kind\nann,1,a\nbob,2,b\ncid,,a\n"
EDGES = "source,target\nann,bob\nbob,cid\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def test_a_folder(folder):
    own = eg.open_graph(str(folder), label="kind")
    assert own.ids.tolist() == ["ann", "bob", "cid"]
    assert own.graph.y.tolist() == [0, 1, 0]
    assert own.graph.num_edges == 4


def test_the_only_table_beside_the_edges(folder):
    (folder / "nodes.csv").rename(folder / "people.csv")
    assert open_graph(folder, label="kind").ids.tolist() == ["ann", "bob", "cid"]
    (folder / "cities.csv").write_text(NODES)
    found = complaint(folder, label="kind")
    assert "has no nodes table; name it nodes.csv; .tsv, " in found
    assert ".ndjson, " in found
    assert found.endswith(".parquet work as well.")


def test_two_tables(folder):
    pd.read_csv(folder / "edges.csv").to_parquet(folder / "ties.parquet")
    own = open_graph(folder / "nodes.csv", edges=folder / "ties.parquet", label="kind")
    assert torch.equal(own.graph.x, open_graph(folder, label="kind").graph.x)


def test_files_that_hold_a_graph(tmp_path):
    network = nx.path_graph(3)
    nx.set_node_attributes(network, {0: "a", 1: "b", 2: "a"}, "kind")
    nx.write_graphml(network, tmp_path / "g.graphml")
    edges = np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "g.npz", edge_index=edges, y=np.array([0, 1, 0]))
    torch.save({"edge_index": torch.tensor(edges), "y": torch.tensor([0, 1, 0])}, tmp_path / "g.pt")
    graphs = [
        open_graph(tmp_path / "g.graphml", label="kind"),
        open_graph(tmp_path / "g.npz"),
        open_graph(tmp_path / "g.pt"),
    ]
    for own in graphs:
        assert own.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
        assert own.graph.y.tolist() == [0, 1, 0]
    with pytest.raises(
        ValueError, match=r"g\.npz does not take label: its arrays have fixed names"
    ):
        open_graph(tmp_path / "g.npz", label="y")
    with pytest.raises(
        ValueError, match=r"g\.graphml does not take source: it holds nodes and edges"
    ):
        open_graph(tmp_path / "g.graphml", source="a")


def complaint(*arguments, **options):
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        open_graph(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_messages_name_the_file(folder):
    nodes = folder / "nodes.csv"
    assert f"{nodes} has no column 'topic'; its columns are: id, age" in complaint(
        folder, label="topic"
    )
    (folder / "edges.csv").write_text(EDGES + "ann,zoe\n")
    assert f"{folder / 'edges.csv'}, column 'target', row 3 names 'zoe'" in complaint(
        folder, label="kind"
    )
    nodes.write_text(NODES + "dee,inf,b\n")
    assert "names 'zoe'" in complaint(folder, label="kind")
    (folder / "edges.csv").write_text(EDGES)
    assert f"{nodes}, column 'age', row 4 is infinite" in complaint(folder, label="kind")
    nodes.write_text("id,age,kind\n")
    assert f"{nodes} has no rows" in complaint(folder, label="kind")
    nodes.write_text("id,age,kind\n1,1,a\n2,2,b\n3,3,a\n4,4,b\n5,five,a\n")
    (folder / "edges.csv").write_text("a,b\n1,2\n")
    assert (
        f"{nodes}, column 'age': 1 of 5 cells is not a number ('five' in row 5): mixed"
        in complaint(folder, label="kind")
    )


def test_a_formula_is_a_class_like_any_other(folder):
    (folder / "nodes.csv").write_text("id,kind\nann,=1+1\nbob,b\ncid,=1+1\n")
    assert open_graph(folder, label="kind").class_names == ("=1+1", "b")


def test_what_cannot_be_opened(folder):
    assert "edges must name the edges table that belongs to nodes.csv" in complaint(
        folder / "nodes.csv"
    )
    assert "does not take edges: a folder holds both" in complaint(folder, edges="edges.csv")
    assert "does not exist; expected a folder with a nodes and an edges table" in complaint(
        folder / "nothing"
    )
    assert "none.csv does not exist" in complaint(folder / "none.csv", edges=folder / "edges.csv")
    assert "none.csv does not exist, and edges must name" in complaint(folder / "none.csv")
    assert "g.npz does not exist" in complaint(folder / "g.npz")
    (folder / "g.txt").write_text("")
    assert "g.txt cannot be opened; expected a folder" in complaint(folder / "g.txt")
    assert "g.xlsx is a spreadsheet; save its sheet as CSV" in complaint(folder / "g.xlsx")
    (folder / "nodes.parquet").write_text("")
    assert "has several nodes tables: nodes.csv, nodes.parquet; keep one" in complaint(folder)
    for file in folder.glob("nodes.*"):
        file.unlink()
    assert "has no nodes table; name it nodes.csv" in complaint(folder)
    (folder / "Nodes.xlsx").write_text("")
    assert "Nodes.xlsx is a spreadsheet" in complaint(folder)


def test_several_edges_tables_are_types_of_edges(folder):
    (folder / "edges.csv").unlink()
    for name, ends in (("pays", "from,to"), ("knows", "a,b")):
        (folder / f"edges_{name}.csv").write_text(f"{ends}\nann,bob\nann,bob\n")
    paths = [str(folder / f"edges_{name}.csv") for name in ("knows", "pays")]
    frames = {"knows": paths[0], "pays": pd.read_csv(paths[1])}
    for own in (
        open_graph(folder, label="kind"),
        open_graph(folder / "nodes.csv", edges=paths, label="kind"),
        open_graph(folder / "nodes.csv", edges=",".join(paths), label="kind"),
        open_graph(folder / "nodes.csv", edges=frames, label="kind"),
    ):
        assert own.graph.relation_names == ("knows", "pays")
        assert own.graph.num_edges == 2
        assert own.columns.type == "type"
    (folder / "edges.csv").write_text(EDGES)
    assert "relation_index" not in open_graph(folder, label="kind").graph


def test_columns_of_edges_can_be_dropped(folder):
    (folder / "edges.csv").write_text("source,target,weight\nann,bob,1\nbob,cid,2\n")
    assert "edge_weight" in open_graph(folder, label="kind").graph
    own = open_graph(folder, label="kind", drop=["weight", "age"])
    assert "edge_weight" not in own.graph
    with pytest.raises(ValueError, match="has no column 'wieght'"):
        open_graph(folder, label="kind", drop=["wieght"])


def test_an_item_of_a_list_can_be_dropped():
    tags = ["a;b", "b", "a", "b;a"] * 2
    nodes = pd.DataFrame({"id": range(8), "tags": tags, "kind": list("xy") * 4})
    edges = pd.DataFrame({"source": range(7), "target": range(1, 8)})
    found = open_graph(nodes, edges=edges, label="kind", drop=["tags=b"])
    assert found.encoder.names == ("tags=a",)
    with pytest.raises(ValueError, match="no column 'tag=b'"):
        open_graph(nodes, edges=edges, label="kind", drop=["tag=b"])


def test_ends_of_several_edges_tables_are_named_or_guessed(tmp_path):
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "kind": ["x", "y", "x"], "age": [1, 2, 3]})
    calls = pd.DataFrame({"day": ["b", "b"], "who": ["a", "b"], "whom": ["b", "c"]})
    tables = {"calls": calls, "mails": calls[:1]}
    own = open_graph(nodes, edges=tables, source="who", target="whom", label="kind")
    assert (own.columns.source, own.columns.target) == ("who", "whom")
    assert own.graph.num_edges == 4
    usual = calls[["who", "whom"]].rename(columns={"who": "from", "whom": "to"})
    # a model of tables whose ends were guessed has stored the names source and target
    again = open_graph(nodes, edges={"calls": usual}, source="source", target="target")
    assert again.graph.num_edges == 4
    with pytest.raises(ValueError, match="has no column 'wo'"):
        open_graph(nodes, edges=tables, source="wo", target="whom", label="kind")
