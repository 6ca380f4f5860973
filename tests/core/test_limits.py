"""Limits: what small files may ask for, and that real ones stay far below."""

import pytest

from evengraph.core import untrusted as limits
from evengraph.core.untrusted import (
    LimitError,
    check_columns,
    check_dense,
    check_nodes,
    check_unpacked,
)


def test_what_a_file_may_unpack_to_grows_with_it():
    check_unpacked(limits.FREE_BYTES, 1, "a.npz", "save it again")
    check_unpacked(100 * 10**8, 10**8, "a.npz", "save it again")
    with pytest.raises(LimitError, match=r"^a\.npz unpacks to 257 MiB; a file of 1 B may"):
        check_unpacked(limits.FREE_BYTES + 10**6, 1, "a.npz", "save it again")
    with pytest.raises(LimitError, match=r"may unpack to 9.3 GiB: save it again\.$"):
        check_unpacked(100 * 10**8 + 1, 10**8, "a.npz", "save it again")


def test_sparse_features_may_be_as_sparse_as_those_of_physics():
    check_dense((34493, 8415), 1_137_311, "x")
    with pytest.raises(LimitError, match=r"x of shape \(20, 1000000000000\) with 5 stored values"):
        check_dense((20, 10**12), 5, "x")


def test_nodes_that_edges_may_name():
    check_nodes(1_000_000, 0, "a.npz")
    with pytest.raises(LimitError, match="2 edges without features may name at most 1,000,200"):
        check_nodes(1_000_201, 2, "a.npz")


def test_columns_of_a_table():
    check_columns(limits.MAX_COLUMNS, "nodes.csv")
    with pytest.raises(LimitError, match=r"nodes\.csv has 20,001 columns; a table may have"):
        check_columns(limits.MAX_COLUMNS + 1, "nodes.csv")
