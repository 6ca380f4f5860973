"""Which column holds the ids."""

import numpy as np
import pandas as pd
import pytest

from evengraph.core.errors import ArgumentError
from evengraph.tables import from_frames
from evengraph.tables.columns import is_id_name, is_spare_id

ORDER = np.random.default_rng(0).permutation(40)
EDGES = pd.DataFrame({"from": range(39), "to": range(1, 40)})


def people(**columns):
    frame = pd.DataFrame({"kind": ["a", "b"] * 20, "age": np.arange(40) % 7})
    return frame.assign(**columns)


def opened(nodes, edges=EDGES, **options):
    return from_frames(nodes, edges, label="kind", **options)


def test_the_usual_column_is_not_the_one():
    own = opened(people(id=ORDER + 5000, new_id=ORDER))
    assert own.columns.id == "new_id"
    assert own.notes[0] == (
        "Using column 'new_id' as the id: the edges name its values, not those of 'id'."
    )
    assert "Left out column 'id': its values are distinct, like ids." in own.notes
    assert own.encoder.names == ("age",)
    row = int(np.flatnonzero(ORDER == 0)[0])
    neighbours = own.graph.edge_index[1][own.graph.edge_index[0] == row]
    assert own.ids[neighbours.numpy()].tolist() == [1]


def test_a_spare_id_that_is_named_is_a_feature():
    own = opened(people(id=ORDER + 5000, new_id=ORDER), features=["id"])
    assert own.encoder.names == ("id",)


@pytest.mark.parametrize("name", ["id", "Node_ID"])
def test_the_usual_column_comes_first(name):
    own = opened(people(other_id=ORDER, **{name: range(40)}))
    assert own.columns.id == name
    assert not any("as the id" in note for note in own.notes)


def test_an_id_column_comes_before_row_numbers():
    own = opened(people(user_id=ORDER))
    assert own.columns.id == "user_id"
    assert own.notes[0] == "Using column 'user_id' as the id: the edges name its values."


def test_row_numbers_come_before_a_column_of_another_name():
    own = opened(people(rank=ORDER))
    assert own.columns.id is None
    assert "No id column: ids are row numbers, counted from 0." in own.notes


def test_a_column_of_any_name_if_nothing_else_fits():
    names = [f"n{i}" for i in range(40)]
    edges = EDGES.map(lambda i: f"n{i}")
    assert opened(people(who=names), edges).columns.id == "who"
    with pytest.raises(ArgumentError, match="none that holds both ends of every edge; set id to"):
        opened(people(who=names[::-1]), edges.assign(to="z"))


def test_several_columns_that_fit_are_asked_about():
    with pytest.raises(
        ArgumentError, match="'a_id' and 'b_id' of nodes all fit the edges"
    ) as error:
        opened(people(a_id=ORDER, b_id=range(40)))
    assert error.value.argument == "id"
    assert opened(people(a_id=ORDER, b_id=range(40)), id="b_id").columns.id == "b_id"


def test_an_unknown_end_is_an_error_about_the_usual_column():
    with pytest.raises(ValueError, match="names '40', which is not the id of a node; 1 of 39"):
        opened(people(id=range(40), age=ORDER), EDGES.assign(to=[*range(1, 39), 40]))


@pytest.mark.parametrize("ids", [{}, {"id": range(40)}, {"user_id": [f"{i}" for i in range(40)]}])
def test_a_label_that_copies_the_ids(ids):
    nodes = people(**ids).assign(kind=[float(i) for i in range(40)])
    with pytest.raises(
        ArgumentError, match=r"column 'kind' copies the ids .* set label to another"
    ):
        opened(nodes)


def test_a_label_that_holds_the_ids_of_the_edges():
    nodes = people(id=ORDER + 5000).assign(kind=ORDER)
    with pytest.raises(ArgumentError, match="'kind' of nodes holds the ids that the edges name"):
        opened(nodes)


def test_names_of_ids():
    for name in (
        "id",
        "ID",
        "user_id",
        "new id",
        "userId",
        "UserID",
        "node",
        "account-key",
        "uuid",
    ):
        assert is_id_name(name), name
    for name in ("paid", "kid", "idle", "age", "nodes_seen", "valid", "Madrid"):
        assert not is_id_name(name), name


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (range(5), True),
        (list("abcde"), True),
        ([1, 1, 2], False),
        ([1.5, 2.5], False),
        (["a", None], False),
        ([[1], [2]], False),
        ([3], False),
    ],
)
def test_spare_ids(values, expected):
    assert is_spare_id(pd.Series(values, name="user_id")) == expected
    assert not is_spare_id(pd.Series(values, name="age"))
