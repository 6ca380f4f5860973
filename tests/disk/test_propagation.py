"""Propagation in blocks and strips, against the matrix in memory."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import pad

from evengraph.datasets import toy
from evengraph.disk import pack_graph
from evengraph.disk import propagation as propagation_room
from evengraph.disk.learners import LEARNERS
from evengraph.disk.propagation import (
    ENTRY_BYTES,
    LEAST_ROWS,
    MOST_ROWS,
    Operator,
    RowBlocks,
    Walk,
    Workspace,
    block_rows,
    component_table,
    scale_of,
    view_tables,
)
from evengraph.disk.tables import features, row_slices
from evengraph.methods import Boosting
from evengraph.nn.members import Components, Diffusion, Views
from evengraph.ops.features import with_log_degree
from evengraph.ops.sparse import (
    diffuse,
    neighbour_means,
    normalise,
    propagation_matrix,
    to_scipy,
    weighted_adjacency,
)
from graphs_on_disk import Arrays, random_matrix, table_of
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
    found = everything(space.propagate(table_of(x), walk))
    expected = in_memory(matrix, x, walk._replace(teleport=teleport))
    assert torch.equal(found, expected)


@pytest.fixture
def links():
    return Arrays(random_matrix(60, 4, seed=0))


def test_fewer_columns_at_a_time_if_the_matrix_then_stays_in_memory(tmp_path, monkeypatch):
    links, x = Arrays(random_matrix(200, 4, seed=0)), normal(200, 64, dtype=torch.float32)
    made, block = [], Operator.block
    monkeypatch.setattr(Operator, "block", lambda *of: made.append(of[1]) or block(*of))
    walk, memory = Walk("symmetric", 5, 0.1), 110_000  # for 39 columns, or 32 with the matrix
    table = Workspace(links, tmp_path, memory).propagate(table_of(x), walk)
    assert [stop - start for start, stop, *_ in table.parts()] == [32, 32]
    assert len(made) == len(set(map(str, made)))  # each block once
    assert torch.equal(everything(table), in_memory(links.matrix, x, walk))


def test_after_a_kill_only_missing_columns_are_computed(tmp_path, links):
    x = normal(60, 9, dtype=torch.float32)
    table, walk, reads = table_of(x), Walk("symmetric", 3, 0.1), []

    def progress(stage, share):
        reads.append(share)
        if len(reads) == 8:  # in the third block of columns
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
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


def test_other_contents_are_not_mixed_up_and_steps_of_means_share_what_is_stored(tmp_path):
    x = normal(60, 3, dtype=torch.float32)
    matrices = [random_matrix(60, 4, seed) for seed in (0, 1)]
    for matrix in matrices:
        for some in (x, x + 1):
            for walk in (Walk("mean", 1), Walk("mean", 2), Walk("symmetric", 2, 0.1)):
                space = Workspace(Arrays(matrix), tmp_path, 10**6)
                found = everything(space.propagate(table_of(some), walk))
                assert torch.equal(found, in_memory(matrix, some, walk))
    assert len(list(tmp_path.iterdir())) == 2 * 2 * 3  # a second step of a mean starts at the first


def test_too_little_memory_or_disk_is_refused_first(tmp_path, monkeypatch, links):
    x = table_of(normal(60, 3))
    with pytest.raises(ValueError, match=r"memory must be at least 1\.3 KiB for 60 nodes, got 1"):
        Workspace(links, tmp_path, 1_000).propagate(x, Walk("mean", 1))
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="needs 720 B for propagated features, and 100 B are free"):
        Workspace(links, tmp_path, 10**6).propagate(x, Walk("mean", 1))
    assert not list(tmp_path.glob("*/columns*"))


KINDS = ("symmetric", "row", "mean", "mean transposed")


def dense(matrix, kind):
    """The oracle: float32."""
    if kind in ("symmetric", "row"):
        return normalise(matrix, kind).astype(np.float32).toarray()
    means = to_scipy(neighbour_means(matrix, CPU).matrix).toarray()
    return means if kind == "mean" else means.T


def on_disk(operator, memory):
    parts = [to_scipy(operator.block(rows)).toarray() for rows in operator.blocks(memory)]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", KINDS)
@given(nodes=st.integers(1, 30), seed=st.integers(0, 99), entries=st.integers(1, 200))
@settings(max_examples=20)
def test_blocks_hold_the_bits_of_the_matrix(kind, nodes, seed, entries):
    matrix = random_matrix(nodes, 4, seed)
    found = on_disk(Operator(Arrays(matrix), kind), entries * ENTRY_BYTES)
    assert np.array_equal(found, dense(matrix, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_divided_by_their_mean(kind):
    matrix = random_matrix(40, 5, seed=1, weighted=True)
    scaled = (matrix / matrix.data.mean(dtype=np.float64)).astype(np.float32).tocsr()
    found = on_disk(Operator(Arrays(matrix, weighted=True), kind), 20 * ENTRY_BYTES)
    np.testing.assert_allclose(found, dense(scaled, kind), rtol=1e-6)


def test_blocks_respect_the_limit_and_cover_all_rows():
    operator = Operator(Arrays(random_matrix(50, 6, seed=2)), "symmetric")
    blocks = list(operator.blocks(30 * ENTRY_BYTES))
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    assert (blocks[0].start, blocks[-1].stop) == (0, 50)
    sizes = [operator.block(rows)._nnz() for rows in blocks]
    assert max(sizes) <= 30
    assert sum(sizes) == operator.num_entries


def test_propagation_of_a_packed_graph(tmp_path):
    graph = toy(80, 200, 5, 2)
    graph.edge_weight = torch.rand(graph.num_edges) + 0.1
    packed = pack_graph(graph, tmp_path / "graph")
    space = Workspace(packed, tmp_path / "space", 10_000)
    found = everything(space.propagate(features(packed), Walk("symmetric", 3, 0.1)))
    spread = propagation_matrix(weighted_adjacency(graph), CPU)
    torch.testing.assert_close(found, diffuse(spread, graph.x, 3, 0.1))
    graph.y = 1 - graph.y
    labels = pack_graph(graph, tmp_path / "labels")
    graph.x = graph.x + 1
    other = pack_graph(graph, tmp_path / "features")
    assert packed.edges_hash == labels.edges_hash == other.edges_hash
    hashes = [features(each).content_hash for each in (packed, labels, other)]
    assert hashes[0] == hashes[1] != hashes[2]


ALL = slice(0, 60)


def test_means_of_features_and_degrees(tmp_path):
    matrix, x = random_matrix(60, 4, seed=0), normal(60, 5, dtype=torch.float32)
    space = Workspace(Arrays(matrix), tmp_path, 10**6)
    own, *found = (
        LEARNERS[Boosting](Boosting(hops=2, degree=True), space).tables(table_of(x)).values()
    )
    expected = with_log_degree(x, matrix)
    assert torch.equal(torch.cat([own.read(ALL), found[0].read(ALL)], dim=1), expected)
    means = neighbour_means(matrix, CPU)
    for table in found[1:]:
        expected = means @ expected
        assert torch.equal(table.read(ALL), expected)
    bare = LEARNERS[Boosting](Boosting(hops=2), space).tables(table_of(x))
    assert [table.shape for table in bare.values()] == [(60, 5)] * 3


NODES = 90


def features_of_components(width):
    """Columns of very different size, so that components are well apart."""
    x = normal(NODES, width, dtype=torch.float32)
    return x * torch.linspace(5, 0.1, width)


def propagation(matrix, walk):
    if walk.kind == "symmetric":
        spread = propagation_matrix(matrix, CPU)
        return (lambda x: diffuse(spread, x, walk.steps, walk.teleport),) * 2
    means = neighbour_means(matrix, CPU)
    return means.__matmul__, means.transposed_product


@pytest.mark.parametrize("walk", [Walk("symmetric", 3, 0.1), Walk("mean", 1)], ids=str)
@pytest.mark.parametrize("width", [6, 40])
@pytest.mark.parametrize("rows", [2**16, 17])
def test_components_are_those_in_memory(tmp_path, monkeypatch, walk, width, rows):
    monkeypatch.setattr(propagation_room, "row_slices", lambda size: row_slices(size, rows))
    x, matrix = features_of_components(width), random_matrix(NODES, 4, seed=0)
    memory, disk = Components(width, 10), Components(width, 10)
    expected = memory(x, *propagation(matrix, walk))
    space = Workspace(Arrays(matrix), tmp_path, 20_000)
    table = component_table(disk, table_of(x), space, walk, fit=True, stage="")
    found = table.read(slice(0, NODES))
    signs = (found * expected).sum(0).sign()  # a component may point either way
    torch.testing.assert_close(found * signs, expected, rtol=1e-3, atol=1e-5)
    if width <= 10 and rows > NODES:
        assert torch.equal(found, expected)
        assert torch.equal(disk.centre, memory.centre)
    again = component_table(disk, table_of(x), space, walk, fit=False, stage="")
    torch.testing.assert_close(again.read(slice(0, NODES)), found, rtol=1e-3, atol=1e-5)


def test_huge_features_stay_finite(tmp_path):
    x, matrix = features_of_components(40) * 1e30, random_matrix(NODES, 4, seed=0)
    space, part = Workspace(Arrays(matrix), tmp_path, 10**6), Components(40, 10)
    table = component_table(part, table_of(x), space, Walk("mean", 1), fit=True, stage="")
    assert torch.isfinite(table.read(slice(0, NODES))).all()
    assert scale_of(table_of(torch.zeros(5, 2))) == 1


NAMES = ("structural", "ego")


def new_views(num_features, relations=0):
    return Views(NAMES, num_features, 256, Diffusion(4, 0.1), relations)


def test_views_have_the_bits_of_those_in_memory(tmp_path):
    graph, other = toy(120, 300, 8, 3), toy(90, 200, 8, 3, seed=1)
    memory, disk = new_views(8), new_views(8)
    for index, (each, fit) in enumerate([(graph, True), (other, False)]):
        packed = pack_graph(each, tmp_path / str(index))
        space = Workspace(packed, tmp_path / "space", 400_000)
        found = view_tables(disk, features(packed), space, fit=fit)
        expected = memory(each, fit=fit)
        assert list(found) == list(NAMES)
        for view, table in zip(expected, found.values(), strict=True):
            rows = table.read(slice(0, each.num_nodes))
            torch.testing.assert_close(pad(rows, (0, memory.width - rows.shape[1])), view)
    for name, value in memory.state_dict().items():
        torch.testing.assert_close(disk.state_dict()[name], value)
    with pytest.raises(ValueError, match="Relations are not available"):
        view_tables(new_views(8, relations=2), features(packed), space, fit=True)


def test_blocks_are_all_rows_in_their_order():
    x, nodes = normal(30, 4, dtype=torch.float32), torch.tensor([3, 29, 0, 7, 7, 12, 1])
    rows = RowBlocks(table_of(x), nodes, 3)
    assert rows.shape == (7, 4)
    places, blocks = zip(*rows, strict=True)
    assert [len(block) for block in blocks] == [3, 3, 1]
    assert torch.equal(torch.cat(blocks), x[nodes])
    assert [x[nodes][some].shape for some in places] == [block.shape for block in blocks]
    assert torch.equal(next(iter(rows))[1], x[nodes[:3]])  # it can be read again


def test_a_sample_is_spread_over_all_rows():
    x = torch.arange(100.0).unsqueeze(1)
    rows = RowBlocks(table_of(x), torch.arange(100), 7)
    assert rows.sample(4).flatten().tolist() == [0, 25, 50, 75]
    assert torch.equal(rows.sample(1000), x)
    assert RowBlocks(table_of(x), torch.arange(0), 7).sample(5).shape == (0, 1)
    sizes = (100, 1), (1, 2**40), (0, 2**40), (100, 4 * 64 * 100 * 5000)  # width, memory
    assert [block_rows(*each) for each in sizes] == [LEAST_ROWS, MOST_ROWS, MOST_ROWS, 5000]
