"""What comes from files: limits, arrays, types of fields, parts of JSON."""

import io
import math
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core import untrusted as limits
from evengraph.core.untrusted import (
    LimitError,
    average,
    check_columns,
    check_dense,
    check_nodes,
    check_unpacked,
    csr_matrix,
    items,
    lookup,
    number,
    part,
    read_npz,
    sorted_unique,
)


def test_what_a_file_may_unpack_to_grows_with_it():
    check_unpacked(limits.FREE_BYTES, 1, "a.npz", "save it again")
    check_unpacked(100 * 10**8, 10**8, "a.npz", "save it again")
    with pytest.raises(LimitError, match=r"^a\.npz unpacks to 257 MiB; a file of 1 B may"):
        check_unpacked(limits.FREE_BYTES + 10**6, 1, "a.npz", "save it again")
    with pytest.raises(LimitError, match=r"may unpack to 9.3 GiB: save it again\.$"):
        check_unpacked(100 * 10**8 + 1, 10**8, "a.npz", "save it again")


def test_limits_of_sparse_features_nodes_and_columns():
    check_dense((34493, 8415), 1_137_311, "x")  # as sparse as those of Physics
    with pytest.raises(LimitError, match=r"x of shape \(20, 1000000000000\) with 5 stored values"):
        check_dense((20, 10**12), 5, "x")
    check_nodes(1_000_000, 0, "a.npz")
    with pytest.raises(LimitError, match="2 edges without features may name at most 1,000,200"):
        check_nodes(1_000_201, 2, "a.npz")
    check_columns(limits.MAX_COLUMNS, "nodes.csv")
    with pytest.raises(LimitError, match=r"nodes\.csv has 20,001 columns; a table may have"):
        check_columns(limits.MAX_COLUMNS + 1, "nodes.csv")


ARRAYS = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array(["a", "bc"]),
    "empty": np.zeros((0, 3)),
    "one": np.array(7),
    "flags": np.array([True, False]),
}


def saved(write=np.savez, **arrays):
    file = io.BytesIO()
    write(file, **arrays)
    return file


def with_header(header, content=b"", version=1):
    text = header.encode() + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        start = b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2, "little")
        archive.writestr("x.npy", start + text + content)
    return file


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_wrote(write):
    arrays = read_npz(saved(write, **ARRAYS), "a.npz")
    for key, expected in ARRAYS.items():
        assert arrays[key].dtype == expected.dtype
        assert arrays[key].tolist() == expected.tolist()
        assert arrays[key].flags.writeable
    assert list(read_npz(saved(**ARRAYS), "a.npz", "one".__eq__)) == ["one"]


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 400 + ", 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'shape': " + "(" * 300,
        "{'descr': '|S0', 'fortran_order': False, 'shape': (100000000,), }",
        "nothing",
    ],
    ids=["large", "400 digits", "negative", "objects", "nested", "no size", "no header"],
)
def test_headers_are_not_believed(header):
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^a\.npz cannot be read as npz: [^\n]+\.$"):
        read_npz(with_header(header, bytes(8)), "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_a_bomb_is_not_unpacked(monkeypatch):
    file = saved(np.savez_compressed, x=np.zeros(10**6))
    assert len(read_npz(file, "a.npz")["x"]) == 10**6
    monkeypatch.setattr(limits, "FREE_BYTES", 10**5)
    with pytest.raises(ValueError, match=r"a\.npz unpacks to 7.6 MiB; .* uncompressed"):
        read_npz(file, "a.npz")
    read_npz(saved(x=np.zeros(10**6)), "a.npz")  # on disk it takes what it takes in memory


def test_a_file_that_is_cut_off():
    content = saved(**ARRAYS).getvalue()
    for end in range(0, len(content), 97):
        with pytest.raises(ValueError, match=r"^a\.npz cannot be read as npz: [^\n]+\.$"):
            read_npz(io.BytesIO(content[:end]), "a.npz")


def test_an_unknown_format_of_arrays_is_refused():
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }"
    assert read_npz(with_header(header), "a.npz")["x"].shape == (0,)
    with pytest.raises(ValueError, match=r"x has the unknown format 9\.0"):
        read_npz(with_header(header, version=9), "a.npz")
    with pytest.raises(ValueError, match=r"^a\.npz cannot be read as npz: x holds records"):
        read_npz(saved(x=np.zeros(3, dtype=[("a", "i4")])), "a.npz")


def test_arrays_of_another_byte_order_are_read_in_that_of_the_machine():
    arrays = {"x": np.arange(3, dtype=">f4"), "text": np.array(["a", "bc"], dtype=">U2")}
    found = read_npz(saved(**arrays), "a.npz")
    for key, expected in arrays.items():
        assert found[key].dtype.isnative
        assert found[key].tolist() == expected.tolist()


@given(st.lists(st.integers(-5, 5)))
def test_sorted_unique_equals_numpy(values):
    codes = np.array(values, dtype=np.int64)
    found = sorted_unique(codes)
    assert found.dtype == np.int64
    assert found.tolist() == np.unique(codes).tolist()
    assert codes.tolist() == values


PARTS = {"data": [1.0, 2.0], "indices": [0, 2], "indptr": [0, 1, 2], "shape": [2, 3]}


def matrix(**changes):
    return csr_matrix([np.array(part) for part in (PARTS | changes).values()], "adj")


def test_csr_parts_make_a_matrix():
    assert matrix().toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    assert matrix(data=[1.0, 2.0, 9.0], indices=[0, 2, 99]).nnz == 2  # spare memory of SciPy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 3]}, "adj_indices must lie between 0 and 2, got 0 to 3"),
        ({"indices": [0, 2**31]}, "adj_indices must lie between 0 and 2"),
        ({"indices": [-1, 2]}, "adj_indices must lie between 0 and 2, got -1 to 2"),
        ({"indices": np.array([0, 2**63], dtype=np.uint64)}, r"adj_indices must be below 2\^63"),
        ({"indices": [0.0, 2.0]}, "adj_indices must be one row of integers, got float64"),
        ({"indptr": [0, 2, 1]}, "adj_indptr must be 3 numbers from 0 on that never fall"),
        ({"indptr": [0, -5, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": [1, 1, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": [0, 2]}, "adj_indptr must be 3 numbers"),
        ({"indptr": []}, "adj_indptr must be one row of integers"),
        ({"indptr": [0, 1, 1000]}, "adj_indptr ends at 1000, beyond the 2 values"),
        ({"data": [1.0]}, "adj_indptr ends at 2, beyond the 1 values in adj_data"),
        ({"data": ["a", "b"]}, "adj_data must be one row of numbers"),
        ({"shape": [2]}, "adj_shape must be two numbers from 0 on"),
        ({"shape": [-2, 3]}, "adj_shape must be two numbers from 0 on"),
        ({"shape": 7}, "adj_shape must be one row of integers"),
    ],
)
def test_csr_parts_that_would_reach_beyond_their_memory(changes, message):
    with pytest.raises(ValueError, match=message):
        matrix(**changes)


@pytest.mark.parametrize("value", [None, math.nan, -math.inf, 1e101, 10**400, "1", True, [1], {}])
def test_no_number(value):
    assert number(value) is None


@pytest.mark.parametrize("content", [None, [], "text", {}, {"key": None}, {"key": "text"}])
def test_missing_parts_are_empty(content):
    assert part(content, "key") == {}
    assert items(content, "key") == ()


@pytest.mark.parametrize(
    "keys", [("none", 1), ("key", 0), ("key", "a", "b"), ("key", "list", 2), ("key", "list", -1)]
)
def test_absent_parts(keys):
    content = {"key": {"a": 1, "list": [1, 2]}}
    assert lookup(content, *keys) is None
    assert part(content, *keys) == {}
    assert items(content, *keys) == ()
    assert part(content, "key") == content["key"]
    assert items(content, "key", "list") == [1, 2]
    assert lookup(content, "key", "list", 1) == 2


def test_numbers_and_the_average_of_what_is_defined():
    assert (number(3), number(-0.5)) == (3.0, -0.5)
    assert average([1.0, None, 4.0]) == 2.5
    assert average([None]) is None
