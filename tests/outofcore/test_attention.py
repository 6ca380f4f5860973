"""Attention over a graph on disk is that of memory."""

from itertools import pairwise

import pytest
import torch

from evengraph.disk.attention import attended_table
from evengraph.disk.propagation import Operator, Workspace
from evengraph.disk.tables import ArrayTable
from evengraph.nn.backbones import AttentionConv
from evengraph.ops.sparse import propagation_matrix
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal

CPU = torch.device("cpu")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("memory", "ends"),
    [(6_900, [0, 5, 10, 15, 20, 24]), (10**7, [0, 24])],
    ids=["across heads", "at once"],
)
def test_heads_in_blocks_equal_those_in_memory(tmp_path, memory, ends, weighted):
    matrix, x = random_matrix(60, 4, seed=1, weighted=weighted), normal(60, 7, dtype=torch.float32)
    conv = AttentionConv(7, 24)
    assert conv.heads == 8
    links, shares = Arrays(matrix, weighted), []
    space = Workspace(links, tmp_path, memory, progress=lambda _, share: shares.append(share))
    table = attended_table(conv, ArrayTable.of(5 * x), space, "attention")
    names = sorted(path.name for path in tmp_path.rglob("*.npy"))
    assert names == [f"columns-{first:06d}-{end:06d}.npy" for first, end in pairwise(ends)]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    blocks = len(list(Operator(links, "row").blocks(memory // 8)))
    assert len(shares) == blocks * (len(ends) - 1)
    with torch.no_grad():
        expected = conv(5 * x, propagation_matrix(matrix, CPU, how="row"))
    torch.testing.assert_close(table.read(slice(0, 60)), expected)  # the bias is zero


def test_too_little_memory_is_refused(tmp_path):
    space = Workspace(Arrays(random_matrix(60, 4, seed=1)), tmp_path, memory=2_000)
    with pytest.raises(ValueError, match=r"memory must be at least .* for 60 nodes"):
        attended_table(AttentionConv(7, 24), ArrayTable.of(normal(60, 7)), space, "attention")
