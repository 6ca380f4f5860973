"""Rows in blocks."""

import torch

from evengraph.disk.propagation import LEAST_ROWS, MOST_ROWS, RowBlocks, block_rows
from evengraph.disk.tables import ArrayTable
from small_graphs import normal


def test_blocks_are_all_rows_in_their_order():
    x, nodes = normal(30, 4, dtype=torch.float32), torch.tensor([3, 29, 0, 7, 7, 12, 1])
    rows = RowBlocks(ArrayTable.of(x), nodes, 3)
    assert rows.shape == (7, 4)
    places, blocks = zip(*rows, strict=True)
    assert [len(block) for block in blocks] == [3, 3, 1]
    assert torch.equal(torch.cat(blocks), x[nodes])
    assert [x[nodes][some].shape for some in places] == [block.shape for block in blocks]
    assert torch.equal(next(iter(rows))[1], x[nodes[:3]])  # it can be read again


def test_a_sample_is_spread_over_all_rows():
    x = torch.arange(100.0).unsqueeze(1)
    rows = RowBlocks(ArrayTable.of(x), torch.arange(100), 7)
    assert rows.sample(4).flatten().tolist() == [0, 25, 50, 75]
    for count in (100, 1000):
        assert torch.equal(rows.sample(count), x)
    assert RowBlocks(ArrayTable.of(x), torch.arange(0), 7).sample(5).shape == (0, 1)


def test_the_size_of_a_block_follows_memory_and_width():
    assert block_rows(100, 1) == LEAST_ROWS
    assert block_rows(1, 2**40) == MOST_ROWS
    assert block_rows(100, 4 * 64 * 100 * 5000) == 5000
    assert block_rows(0, 2**40) == MOST_ROWS
