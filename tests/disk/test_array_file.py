import numpy as np
import pytest

from evengraph.disk.packed_graph import ArrayFile


def test_rows_are_appended(tmp_path):
    values = np.arange(30.0).reshape(10, 3)
    with ArrayFile(tmp_path / "x.npy", np.float16, 3) as file:
        for start in (0, 4, 8):
            file.append(values[start : start + 4])
        file.append(values[:0])
    read = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert read.dtype == np.float16
    assert np.array_equal(read, values)


def test_the_header_has_room_for_many_rows(tmp_path):
    with ArrayFile(tmp_path / "y.npy", np.int32) as file:
        file.append(np.arange(100_000))
    assert np.load(tmp_path / "y.npy")[-1] == 99_999


def test_rows_of_another_width_are_an_error(tmp_path):
    with (
        ArrayFile(tmp_path / "x.npy", np.float32, 3) as file,
        pytest.raises(ValueError, match=r"rows must have width 3, got shape \(2, 4\)"),
    ):
        file.append(np.ones((2, 4)))


def test_no_rows_are_an_array_too(tmp_path):
    with ArrayFile(tmp_path / "x.npy", np.float32, 3):
        pass
    assert np.load(tmp_path / "x.npy").shape == (0, 3)
