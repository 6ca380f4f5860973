import numpy as np
import pytest

from evengraph.disk import PackWriter
from evengraph.disk.writer import EdgeSorter


@pytest.mark.parametrize("memory", [10**9, 9000, 400])
def test_pairs_are_sorted_in_both_directions(tmp_path, memory):
    rng = np.random.default_rng(0)
    pairs = rng.integers(50, size=(2, 300))
    expected = {(a, b) for a, b in np.hstack([pairs, pairs[::-1]]).T.tolist() if a != b}
    with PackWriter(tmp_path / "graph", {}) as writer:
        sorter = EdgeSorter(writer, 50, 300, memory)
        for start in range(0, 300, 70):
            sorter.add(*pairs[:, start : start + 70])
        sorter.write()
        indptr, indices = writer.read("indptr"), writer.read("indices")
        sources = np.repeat(np.arange(50), np.diff(indptr))
        assert list(zip(sources.tolist(), indices.tolist(), strict=True)) == sorted(expected)
        assert not list(sorter.folder.iterdir())


def test_less_memory_means_more_files(tmp_path):
    with PackWriter(tmp_path / "graph", {}) as writer:
        assert EdgeSorter(writer, 50, 300, 10**9).size == 50
        assert EdgeSorter(writer, 50, 300, 4000).size < 50
