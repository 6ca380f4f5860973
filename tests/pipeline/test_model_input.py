"""What a model takes of graphs and tables: the graph, the nodes asked about, their ids."""

from types import SimpleNamespace

import numpy as np
import pytest

import evengraph as eg
from evengraph.pipeline.model_info import NewNodes
from evengraph.pipeline.sources import ModelInput

GRAPH, OTHER = eg.toy(), eg.toy(seed=1)


@pytest.fixture(autouse=True)
def alignment(monkeypatch):
    """Every graph has moved."""
    monkeypatch.setattr("evengraph.pipeline.sources.align", lambda *_: (OTHER, "Moved as a whole."))


def new_nodes(**options):
    columns = SimpleNamespace(id="account")
    tables = SimpleNamespace(graph=GRAPH, ids=np.array(["a", "b", "c"]), columns=columns)
    return NewNodes(tables=tables, rows=np.array([0, 2]), **options)


def test_tables_are_aligned_if_asked():
    given = ModelInput.of(new_nodes(), None, None, True)
    assert (given.graph, given.aligned) == (OTHER, "Moved as a whole.")
    assert {name: ids.tolist() for name, ids in given.ids.items()} == {"account": ["a", "c"]}
    assert given.rows.tolist() == [0, 2]
    plain = ModelInput.of(new_nodes(), None, None, False)
    assert (plain.graph, plain.aligned) == (GRAPH, "")


@pytest.mark.parametrize("new", [GRAPH, new_nodes(attached=True)])
def test_graphs_and_attached_nodes_stay_as_they_are(new):
    given = ModelInput.of(new, None, None, True)
    assert (given.graph, given.aligned) == (GRAPH, "")


def test_the_nodes_of_a_graph_are_numbered():
    given = ModelInput.of(GRAPH, None, None, True)
    assert given.ids["id"].tolist() == list(range(GRAPH.num_nodes))
    assert given.rows == slice(None)
