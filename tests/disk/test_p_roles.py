"""Labels that are read in blocks; test_pack.py compares all roles with the reader of tables."""

import numpy as np
import pytest
from tables_on_disk import assert_same, make_tables, write

from evengraph.disk import pack


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("evengraph.disk.pack_nodes.BLOCK_ROWS", 7)
    monkeypatch.setattr("evengraph.disk.pack_nodes.MAX_CELLS", 9)


LABELS = {
    "text": lambda rng: rng.choice([" a", "b", "", "NA"], 60),
    "numbers": lambda rng: rng.choice([10.0, 9.0, np.nan], 60),
    "integers": lambda rng: rng.integers(0, 4, 60),
    "truth": lambda rng: rng.random(60) < 0.3,
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_in_blocks_are_those_of_the_column(tmp_path, kind, suffix):
    nodes, edges = make_tables()
    nodes["label"] = LABELS[kind](np.random.default_rng(1))
    paths = write(nodes, tmp_path / f"n{suffix}"), write(edges, tmp_path / f"e{suffix}")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert_same(packed, *paths)
    assert sum(packed.header["class_counts"]) == (packed.y[:] >= 0).sum()


def test_a_column_of_too_many_labels_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("evengraph.disk.pack_nodes.MAX_VALUES", 20)
    nodes, edges = make_tables()
    nodes["label"] = np.repeat(np.arange(30), 2)
    paths = write(nodes, tmp_path / "n.csv"), write(edges, tmp_path / "e.csv")
    with pytest.raises(ValueError, match="column 'label'"):
        pack(paths[0], tmp_path / "graph", edges=paths[1])


def test_nodes_without_labels_have_no_class(tmp_path):
    nodes, edges = make_tables()
    paths = write(nodes[["id", "age"]], tmp_path / "n.csv"), write(edges, tmp_path / "e.csv")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert (packed.y[:] == -1).all()
