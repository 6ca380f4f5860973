"""Propagation in blocks gives the bits of propagation in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evengraph.disk.propagation import ENTRY_BYTES, SHARE, Operator, Walk, Workspace
from evengraph.disk.tables import ArrayTable
from evengraph.ops.propagate import diffuse, neighbour_means, propagation_matrix
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal

CPU = torch.device("cpu")


def in_memory(matrix, x, walk):
    """The oracle."""
    if walk.kind in ("symmetric", "row"):
        propagation = propagation_matrix(matrix, CPU, how=walk.kind)
    else:
        propagation = neighbour_means(matrix, CPU)
    return diffuse(propagation, x, walk.steps, walk.teleport)


def everything(table):
    return table.read(slice(0, table.shape[0]))


@given(
    kind=st.sampled_from(["symmetric", "row", "mean"]),
    steps=st.integers(0, 5),
    teleport=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 99),
    width=st.integers(1, 20),
    memory=st.integers(1_500, 20_000),
)
@settings(max_examples=25)
def test_all_block_sizes_give_the_bits_of_the_product(
    tmp_path_factory, kind, steps, teleport, seed, width, memory
):
    matrix, x = random_matrix(30, 4, seed), normal(30, width, seed=seed, dtype=torch.float32)
    walk = Walk(kind, steps, teleport)
    space = Workspace(Arrays(matrix), tmp_path_factory.mktemp("space"), memory)
    found = everything(space.propagate(ArrayTable.of(x), walk))
    expected = in_memory(matrix, x, walk._replace(teleport=teleport))
    assert torch.equal(found, expected)


def test_small_memory_means_many_blocks(tmp_path):
    links = Arrays(random_matrix(60, 4, seed=0))
    space = Workspace(links, tmp_path, memory=3_500)
    table = space.propagate(ArrayTable.of(normal(60, 9, dtype=torch.float32)), Walk("mean", 1))
    assert len(table.parts()) > 2
    assert len(list(Operator(links, "mean").blocks(int(SHARE * 3_500)))) > 2


def test_fewer_columns_at_a_time_if_the_matrix_then_stays_in_memory(tmp_path, monkeypatch):
    links, x = Arrays(random_matrix(200, 4, seed=0)), normal(200, 64, dtype=torch.float32)
    made, block = [], Operator.block
    monkeypatch.setattr(Operator, "block", lambda *of: made.append(of[1]) or block(*of))
    walk, memory = Walk("symmetric", 5, 0.1), 110_000  # for 39 columns, or 32 with the matrix
    table = Workspace(links, tmp_path, memory).propagate(ArrayTable.of(x), walk)
    assert [stop - start for start, stop, _ in table.parts()] == [32, 32]
    assert len(made) == len(set(map(str, made)))  # each block once
    assert torch.equal(everything(table), in_memory(links.matrix, x, walk))


class Killed(Exception):
    """Stands for a signal."""


def test_after_a_kill_only_missing_columns_are_computed(tmp_path):
    links, x = Arrays(random_matrix(60, 4, seed=0)), normal(60, 9, dtype=torch.float32)
    table, walk, reads = ArrayTable.of(x), Walk("symmetric", 3, 0.1), []

    def progress(stage, share):
        reads.append(share)
        if len(reads) == 8:  # in the third block of columns
            raise Killed

    with pytest.raises(Killed):
        Workspace(links, tmp_path, 3_500, progress=progress).propagate(table, walk)
    again = Workspace(links, tmp_path, 2_500, progress=progress)  # with narrower blocks
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/columns-*.npy")}
    assert len(before) == 2
    result = again.propagate(table, walk)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert torch.equal(everything(result), in_memory(links.matrix, x, walk))
    count = len(reads)
    again.propagate(table, walk)
    assert len(reads) == count  # all is stored


def test_other_contents_are_not_mixed_up(tmp_path):
    x = normal(60, 3, dtype=torch.float32)
    matrices = [random_matrix(60, 4, seed) for seed in (0, 1)]
    for matrix in matrices:
        for features in (x, x + 1):
            for walk in (Walk("mean", 1), Walk("mean", 2), Walk("symmetric", 2, 0.1)):
                space = Workspace(Arrays(matrix), tmp_path, 10**6)
                found = everything(space.propagate(ArrayTable.of(features), walk))
                assert torch.equal(found, in_memory(matrix, features, walk))


def test_steps_of_means_share_what_is_stored(tmp_path):
    stages = []
    links, x = Arrays(random_matrix(60, 4, seed=0)), normal(60, 3, dtype=torch.float32)
    space = Workspace(links, tmp_path, 10**6, progress=lambda stage, share: stages.append(stage))
    space.propagate(ArrayTable.of(x), Walk("mean", 1), "one")
    space.propagate(ArrayTable.of(x), Walk("mean", 2), "two")
    assert stages == ["one", "two"]


def test_too_little_memory_or_disk_is_refused_first(tmp_path, monkeypatch):
    links, x = Arrays(random_matrix(60, 4, seed=0)), ArrayTable.of(normal(60, 3))
    with pytest.raises(ValueError, match=r"memory must be at least 1\.3 KiB for 60 nodes, got 1"):
        Workspace(links, tmp_path, 1_000).propagate(x, Walk("mean", 1))
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="needs 720 B for propagated features, and 100 B are free"):
        Workspace(links, tmp_path, 10**6).propagate(x, Walk("mean", 1))
    assert not list(tmp_path.glob("*/columns*"))


def test_entries_of_a_block_are_counted():
    assert ENTRY_BYTES >= 8 + 4 + 8 + 8 + 8  # owner, column, two factors and their product
