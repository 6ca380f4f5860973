import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from evengraph.disk import PackedGraph, PackError, is_packed, pack_graph


@pytest.fixture
def packed(tmp_path):
    """A star of one hub and six leaves, and two more nodes that form a pair."""
    edges = torch.tensor([[0] * 6 + [7], [1, 2, 3, 4, 5, 6, 8]])
    graph = Data(x=torch.arange(18.0).reshape(9, 2), edge_index=edges, y=torch.arange(9) % 3 - 1)
    return pack_graph(graph, tmp_path / "graph")


def test_counts_and_arrays_are_as_documented(packed):
    assert (packed.num_nodes, packed.num_edges, packed.num_features) == (9, 14, 2)
    assert packed.class_names == ("0", "1")
    assert packed.num_classes == 2
    assert packed.indptr.tolist() == [0, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert packed.indices.tolist() == [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 8, 7]
    assert packed.y.tolist() == [-1, 0, 1] * 3
    assert packed.ids.tolist() == list(range(9))
    dtypes = [array.dtype for array in (packed.indptr, packed.indices, packed.x, packed.y)]
    assert dtypes == [np.int64, np.int32, np.float32, np.int32]
    assert isinstance(packed.x, np.memmap)
    assert not packed.x.flags.writeable
    assert packed.edge_weight is None
    assert packed.mask("train") is None


def test_blocks_cover_all_rows_within_the_limit(packed):
    blocks = list(packed.row_blocks(40, row_bytes=4, edge_bytes=4))
    assert [(block.start, block.stop) for block in blocks] == [(0, 2), (2, 7), (7, 9)]
    for block in blocks:
        edges = packed.indptr[block.stop] - packed.indptr[block.start]
        assert 4 * (block.stop - block.start) + 4 * edges <= 40


def test_a_row_that_does_not_fit_is_a_block_of_its_own(packed):
    blocks = list(packed.row_blocks(8, row_bytes=4, edge_bytes=4))
    assert [block.start for block in blocks] == list(range(9))
    assert len(list(packed.row_blocks("1GB"))) == 1


def test_a_changed_header_or_file_is_an_error(packed):
    header = packed.path / "graph.json"
    content = json.loads(header.read_text())
    header.write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(PackError, match=r"must have format 1, got 99"):
        PackedGraph.open(packed.path)
    header.write_text("{")
    with pytest.raises(PackError, match="is damaged"):
        PackedGraph.open(packed.path)
    header.write_text(json.dumps(content))
    np.save(packed.path / "y.npy", np.zeros(8, dtype=np.int32))
    with pytest.raises(PackError, match=r"y.npy must have shape \[9\], got \[8\]"):
        PackedGraph.open(packed.path)
    (packed.path / "y.npy").unlink()
    with pytest.raises(PackError, match=r"y.npy is missing or damaged"):
        PackedGraph.open(packed.path)


def test_a_truncated_array_is_an_error(packed):
    file = packed.path / "x.npy"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(PackError, match=r"x.npy is missing or damaged"):
        PackedGraph.open(packed.path)


def test_an_array_with_a_header_of_python_2_is_an_error_not_a_warning(packed):
    file = packed.path / "y.npy"
    header = file.read_bytes()
    file.write_bytes(header.replace(b"(9,), }  ", b"(9L,), } ", 1))
    assert file.read_bytes() != header
    with pytest.raises(PackError, match=r"y.npy is missing or damaged: Reading `.npy`"):
        PackedGraph.open(packed.path)


def test_an_array_of_a_deprecated_type_is_an_error_not_a_warning(packed):
    file = packed.path / "y.npy"
    file.write_bytes(file.read_bytes().replace(b"'<i4'", b"'|a4'", 1))
    with pytest.raises(PackError, match=r"y.npy (is missing or damaged|must have dtype)"):
        PackedGraph.open(packed.path)


def test_a_shape_of_many_digits_is_an_error(packed):
    file = packed.path / "y.npy"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"(9,), }" + b" " * 30, b"(" + b"9" * 31 + b",), }", 1))
    assert file.read_bytes() != content
    with pytest.raises(PackError, match=r"y.npy is missing or damaged"):
        PackedGraph.open(packed.path)


def test_checksums_find_a_flipped_bit_on_request(packed):
    PackedGraph.open(packed.path, verify=True)
    file = packed.path / "indices.npy"
    content = bytearray(file.read_bytes())
    content[-4] ^= 1
    file.write_bytes(content)
    PackedGraph.open(packed.path)
    with pytest.raises(PackError, match=r"indices.npy was changed after packing"):
        PackedGraph.open(packed.path, verify=True)


def test_the_content_hash_is_of_the_arrays_alone(packed, tmp_path):
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    first, second = pack_graph(graph, tmp_path / "a"), pack_graph(graph, tmp_path / "b")
    assert first.content_hash == second.content_hash != packed.content_hash


def test_is_packed_tells_a_packed_graph_from_other_folders(packed, tmp_path):
    assert is_packed(packed.path)
    assert is_packed(str(packed.path))
    assert not is_packed(tmp_path)
    assert not is_packed(packed)
    with pytest.raises(FileNotFoundError, match="is no packed graph"):
        PackedGraph.open(tmp_path)
