import pandas as pd
import pytest
from tables_on_disk import make_tables

from evengraph.disk.engine import find_files
from evengraph.disk.pack_nodes import NodeTable


@pytest.fixture
def frame():
    return make_tables()[0]


@pytest.fixture
def files(frame, tmp_path):
    frame.iloc[:25].to_parquet(tmp_path / "0.parquet", row_group_size=7)
    frame.iloc[25:].to_parquet(tmp_path / "1.parquet")
    return find_files(tmp_path)


def test_columns_are_those_of_the_frame(frame, files):
    table = NodeTable(files, "nodes", drop=["pay"])
    assert table.columns == [name for name in frame.columns if name != "pay"]
    assert len(table) == table.num_rows == 60
    for column in table.columns:
        pd.testing.assert_series_equal(table[column], frame[column])
    assert table.iloc[0].to_dict()["id"] == frame["id"][0]


def test_a_stride_takes_every_so_many_rows_across_files(frame, files):
    table = NodeTable(files, "nodes", stride=7)
    assert len(table) == 9
    assert list(table["id"]) == list(frame["id"][::7])


def test_blocks_follow_one_another(frame, files):
    blocks = list(NodeTable(files, "nodes").blocks(["town", "id"], 10))
    assert [len(block) for block in blocks] == [10, 10, 5, 10, 10, 10, 5]
    rows = pd.concat(blocks, ignore_index=True)
    pd.testing.assert_frame_equal(rows, frame[["town", "id"]])
    assert blocks[0].attrs["file"] == "nodes"


def test_long_cells_are_known_before_they_are_read(tmp_path):
    frame = pd.DataFrame({"short": [1.0, 2.0], "long": ["a" * 999, "b" * 999]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = NodeTable(find_files(tmp_path), "nodes")
    assert table.cell_bytes(["long"]) > 900
    assert table.cell_bytes(["short"]) < 100
