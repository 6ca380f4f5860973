"""New rows below known ones: encoding, ids, and errors with rows of the new tables."""

from types import SimpleNamespace

import pandas
import pytest
import torch

from evengraph.pipeline.model_info import NewNodes, build_new_nodes
from evengraph.tables import TableColumns, UnknownNodeError, from_frames

KNOWN = (
    pandas.DataFrame({"id": ["a", "b", "c", "d"], "age": [1.0, 2.0, 3.0, 4.0]}),
    pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}),
)
NEW = (
    pandas.DataFrame({"id": ["x", "y", "z"], "age": [2.0, 5.0, 6.0]}),
    pandas.DataFrame({"source": ["x", "y"], "target": ["a", "x"]}),
)
COLUMNS = TableColumns(id="id", source="source", target="target")


@pytest.fixture
def encoder():
    return from_frames(*KNOWN, id="id").encoder


def test_new_nodes_stand_below_known_ones(encoder):
    new = build_new_nodes(NEW, KNOWN, COLUMNS, encoder)
    assert new.ids.tolist() == ["x", "y", "z"]
    assert new.tables.ids.tolist() == ["a", "b", "c", "d", "x", "y", "z"]
    known = from_frames(*KNOWN, id="id").graph
    assert torch.equal(new.tables.graph.x[:4], known.x)
    assert new.num_isolated == 1  # z; d is known and does not count
    assert not any("edge" in note and "no " in note for note in new.notes)


def test_new_nodes_may_stand_alone(encoder):
    edges = NEW[1].iloc[1:]
    new = build_new_nodes((NEW[0], edges), None, COLUMNS, encoder)
    beside = build_new_nodes(NEW, KNOWN, COLUMNS, encoder)
    assert torch.equal(new.tables.graph.x, beside.tables.graph.x[4:])
    assert new.num_isolated == 1


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": ["x", "a"], "age": [1, 2]}, {}, "1 of the new nodes are in the known graph"),
        ({"age": [1.0]}, {}, "nodes has no column 'id'"),
        ({"id": ["x"]}, {}, "nodes has no column 'age'"),
        ({"id": [], "age": []}, {}, "nodes has no rows"),
        ({"id": ["x"], "age": ["old"]}, {}, "row 1 holds 'old'"),
        ({}, {"source": ["x", "q"], "target": ["a", "a"]}, "row 2 names 'q'"),
        ({}, {"source": ["x"]}, "edges has no column 'target'"),
    ],
)
def test_errors_name_rows_of_the_new_tables(nodes, edges, message, encoder):
    tables = tuple(
        pandas.DataFrame(changed) if changed else table
        for changed, table in zip((nodes, edges), NEW, strict=True)
    )
    with pytest.raises(ValueError, match=message) as raised:
        build_new_nodes(tables, KNOWN, COLUMNS, encoder)
    assert isinstance(raised.value, UnknownNodeError) == ("names" in message)


@pytest.mark.parametrize(
    ("column", "expected"),
    [("new_id", "new_id"), (None, "id"), ("class", "id"), ("p_fraud", "id")],
)
def test_predictions_call_ids_as_the_table_does_unless_the_name_is_taken(column, expected):
    tables = SimpleNamespace(columns=TableColumns(id=column))
    assert NewNodes(tables=tables, rows=slice(None)).id_name == expected
