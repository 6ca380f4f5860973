"""npz files of others: what NumPy writes is read alike, and nothing that they state is believed."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from evengraph.core import untrusted as limits
from evengraph.core.untrusted import read_npz

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


def test_arrays_of_another_byte_order_are_read_in_that_of_the_machine():
    arrays = {"x": np.arange(3, dtype=">f4"), "text": np.array(["a", "bc"], dtype=">U2")}
    found = read_npz(saved(**arrays), "a.npz")
    for key, expected in arrays.items():
        assert found[key].dtype.isnative
        assert found[key].tolist() == expected.tolist()


def test_records_are_refused():
    with pytest.raises(ValueError, match=r"^a\.npz cannot be read as npz: x holds records"):
        read_npz(saved(x=np.zeros(3, dtype=[("a", "i4")])), "a.npz")
