"""Tables of a model: new nodes are encoded as in training, and training tables are found again."""

import pandas
import pytest

import evengraph as eg
from evengraph.pipeline.model_info import (
    ModelInfo,
    TrainedOn,
    as_pair,
    open_new_nodes,
    training_paths,
)

NODES = pandas.DataFrame(
    {"id": [f"n{i}" for i in range(12)], "kind": list("aabb") * 3, "size": [1.0, 2.0, 5.0, 6.0] * 3}
)
EDGES = pandas.DataFrame({"source": ["n0", "n1", "n2"], "target": ["n1", "n4", "n3"]})


@pytest.fixture(scope="module")
def info():
    tables = eg.open_graph(NODES, edges=EDGES, label="kind")
    return ModelInfo(encoder=tables.encoder, columns=tables.columns)


def test_new_nodes_are_encoded_as_in_training(info):
    new = open_new_nodes(info, ("a", "b"), NODES, EDGES, columns={})
    assert new.tables.graph.x.equal(eg.open_graph(NODES, edges=EDGES, label="kind").graph.x)
    some = NODES.assign(kind=["a"] * 10 + [""] * 2)
    left = open_new_nodes(info, ("a", "b"), some, EDGES, only_unlabelled=True, columns={})
    assert left.ids.tolist() == ["n10", "n11"]


def test_a_column_may_have_another_name(info):
    renamed = EDGES.rename(columns={"source": "from"})
    new = open_new_nodes(info, ("a", "b"), NODES, renamed, columns={"source": "from"})
    assert new.tables.graph.num_edges == 6


def test_training_tables_are_found_or_asked_for(info, tmp_path):
    with pytest.raises(ValueError, match="known must be given"):
        training_paths(info)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    info = ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": str(edges)}))
    with pytest.raises(ValueError, match=r"nodes.csv no longer exists"):
        training_paths(info)
    nodes.touch()
    edges.touch()
    assert training_paths(info) == (str(nodes), str(edges))
    comma = tmp_path / "a,b.csv"
    comma.touch()
    info = ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": str(comma)}))
    assert training_paths(info) == (str(nodes), str(comma))
    with pytest.raises(ValueError, match="known must be given"):
        training_paths(ModelInfo(trained_on=TrainedOn(str(nodes), {"edges": ""})))
    assert as_pair("folder") == ("folder", None)


@pytest.mark.parametrize("options", [{"directed": True}, {"type": "way"}, {"weight": "strength"}])
def test_edges_of_graphml_are_read_as_in_training(options, tmp_path):
    networkx = pytest.importorskip("networkx")
    network = networkx.DiGraph()
    for i in range(12):
        network.add_node(f"n{i}", size=float(i % 5), kind="ab"[i % 2])
        network.add_edge(f"n{i}", f"n{(i + 1) % 12}", way="pq"[i % 2], strength=1.0 + i % 3)
    networkx.write_graphml(network, tmp_path / "g.graphml")
    own = eg.open_graph(tmp_path / "g.graphml", label="kind", **options)
    info = ModelInfo(encoder=own.encoder, columns=own.columns)
    new = open_new_nodes(info, ("a", "b"), tmp_path / "g.graphml", columns={}).tables.graph
    assert new.x.equal(own.graph.x)
    for name in ("edge_weight", "relation_index"):
        assert (name in new) == (name in own.graph)
        assert name not in new or new[name].equal(own.graph[name])
