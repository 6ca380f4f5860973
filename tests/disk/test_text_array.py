import numpy as np
import pytest

from evengraph.disk.packed_graph import TextArray, encode_texts

TEXTS = ["a", "", "zürich", "x" * 300, "b,c", "日本"]


@pytest.fixture
def array():
    content, lengths = encode_texts(TEXTS)
    return TextArray(content, np.concatenate([[0], np.cumsum(lengths)]))


def test_rows_slices_and_lists_give_the_texts(array):
    assert (len(array), array.shape) == (6, (6,))
    assert array[2] == "zürich"
    assert array[-1] == "日本"
    assert array[1:4].tolist() == TEXTS[1:4]
    assert array[::2].tolist() == TEXTS[::2]
    assert array[4:4].tolist() == []
    assert array[[5, 0]].tolist() == ["日本", "a"]
    assert array[np.arange(6) > 3].tolist() == TEXTS[4:]
    assert np.asarray(array).tolist() == TEXTS


def test_a_row_beyond_the_end_is_an_error(array):
    with pytest.raises(IndexError):
        array[6]
