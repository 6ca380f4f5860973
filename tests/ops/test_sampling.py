"""Rare classes, copies, peers and sampled neighbours against plain versions and exact laws."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import seeded
from evengraph.ops import synthesis as sampling
from evengraph.ops.sparse import from_scipy, undirected_adjacency
from evengraph.ops.synthesis import (
    interpolate,
    nearest_in_class,
    plan_copies,
    random_shares,
    rare_classes,
    sample_neighbours,
)
from small_graphs import edge_lists, edges, normal

CPU = torch.device("cpu")
NOTHING = torch.zeros(0, dtype=torch.long)


@st.composite
def labellings(draw):
    """Classes of labelled nodes in any order, none without a node, and which of them are rare."""
    num_classes = draw(st.integers(1, 4))
    more = draw(st.lists(st.integers(0, num_classes - 1), max_size=9))
    labels = draw(st.permutations([*range(num_classes), *more]))
    rare = draw(st.lists(st.booleans(), min_size=num_classes, max_size=num_classes))
    return torch.tensor(labels), torch.tensor(rare)


@st.composite
def mixtures(draw):
    """A graph, and for some new nodes a source, a target and how many neighbours they want."""
    edge_index, num_nodes = draw(edge_lists(max_nodes=8))
    node = st.integers(0, num_nodes - 1)
    wishes = draw(st.lists(st.tuples(node, node, st.integers(0, 6)), max_size=8))
    sources, targets, degrees = torch.tensor(wishes, dtype=torch.long).reshape(-1, 3).unbind(1)
    return matrix_of(edge_index, num_nodes), sources, targets, degrees


def matrix_of(edge_index, num_nodes):
    return from_scipy(undirected_adjacency(edge_index, num_nodes), CPU, torch.float32)


def neighbours(matrix, node):
    return set(matrix.to_dense()[node].nonzero().flatten().tolist())


def drawn(new, found, count):
    """The neighbours of each new node, in the order in which they came."""
    lists = [[] for _ in range(count)]
    for owner, node in zip(new.tolist(), found.tolist(), strict=True):
        lists[owner].append(node)
    return lists


def plain_peer(x, labels, row):
    """The nearest other row of the class, the row itself if there is none."""
    others = [i for i in range(len(labels)) if i != row and labels[i] == labels[row]]
    return min(others, key=lambda i: math.dist(x[i].tolist(), x[row].tolist()), default=row)


def assert_near(frequency, chance, count):
    """Within five standard deviations of a binomial share."""
    assert abs(frequency - chance) < 5 * math.sqrt(chance * (1 - chance) / count)


@pytest.mark.parametrize(
    ("counts", "rare"),
    [
        ([341, 158, 73, 34, 15, 7, 3], [4, 5, 6]),  # Cora, long tail
        ([371, 147, 58, 23, 9, 3], [3, 4, 5]),  # CiteSeer, long tail
        ([20, 20, 20, 20, 2, 2, 2], [4, 5, 6]),
        ([20, 1, 20], [1]),
        ([20, 20, 20], []),
        ([4, 6, 9], [0]),  # the middle one is just the geometric mean
        ([4, 5, 9], [0, 1]),
        ([7], []),
    ],
)
def test_rare_classes_by_ratio(counts, rare):
    found = rare_classes(torch.tensor(counts))
    assert found.dtype == torch.bool
    assert found.nonzero().flatten().tolist() == rare


def test_large_counts_do_not_overflow():
    counts = torch.tensor([3_000_000, 2_000_000, 100])
    assert rare_classes(counts).tolist() == [False, False, True]


@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.data())
def test_rare_classes_by_number(counts, data):
    minority = data.draw(st.integers(1, len(counts) - 1))
    smallest = sorted(range(len(counts)), key=lambda label: (counts[label], -label))[:minority]
    found = rare_classes(torch.tensor(counts), minority)
    assert found.nonzero().flatten().tolist() == sorted(smallest)


@pytest.mark.parametrize("minority", [3, 4])
def test_not_every_class_can_be_rare(minority):
    with pytest.raises(ValueError, match=f"minority must be below the 3 classes, got {minority}"):
        rare_classes(torch.tensor([5, 2, 1]), minority)


def plain_counts(labels, rare, copies):
    """How often each labelled node is copied."""
    sizes = Counter(labels)
    turns = Counter()
    for label, is_rare in enumerate(rare):
        nodes = [place for place, own in enumerate(labels) if own == label]
        wanted = copies * len(nodes) * is_rare if copies else max(sizes.values()) - len(nodes)
        turns.update(nodes[turn % len(nodes)] for turn in range(wanted))
    return turns


@given(labellings(), st.integers(0, 3))
def test_copies_equal_the_plain_version(labelling, copies):
    labels, rare = labelling
    result = plan_copies(labels, rare, copies)
    positions = result.positions.tolist()
    assert Counter(positions) == plain_counts(labels.tolist(), rare.tolist(), copies)
    assert result.labels.tolist() == labels[result.positions].tolist()
    before = [positions[:place].count(node) for place, node in enumerate(positions)]
    assert result.rounds.tolist() == before
    assert result.num_rounds == max(before, default=0) + 1
    assert len(set(result.members.tolist())) == result.members.numel()


@given(labellings(), st.integers(0, 3))
def test_members_are_whole_classes(labelling, copies):
    labels, rare = labelling
    result = plan_copies(labels, rare, copies)
    copied = set(result.labels.tolist())
    expected = [place for place, label in enumerate(labels.tolist()) if label in copied]
    assert sorted(result.members.tolist()) == expected


@given(labellings())
def test_filling_up_makes_classes_equal(labelling):
    labels, rare = labelling
    result = plan_copies(labels, rare, 0)
    total = torch.bincount(torch.cat([labels, result.labels]))
    assert total.unique().numel() == 1
    assert total[0] == torch.bincount(labels).max()


@pytest.mark.parametrize("copies", [0, 1])
def test_nobody_to_copy(copies):
    for labels in (NOTHING, torch.tensor([1, 0, 0, 1])):
        result = plan_copies(labels, torch.tensor([False, False]), copies)
        for part in (result.members, result.originals, result.labels, result.rounds):
            assert part.shape == (0,)
            assert part.dtype == torch.int64
        assert result.num_rounds == 1
        assert random_shares(result, 2).shape == (0,)
        points, peers = interpolate(normal(len(labels), 3), labels, result, torch.zeros(0))
        assert points.shape == (0, 3)
        assert peers.shape == (0,)


@given(st.lists(st.integers(0, 2), max_size=14), st.integers(0, 500))
def test_nearest_peers_equal_the_plain_version(labels, seed):
    x = normal(len(labels), 2, seed=seed)
    expected = [plain_peer(x, labels, row) for row in range(len(labels))]
    found = nearest_in_class(x, torch.tensor(labels, dtype=torch.long))
    assert found.tolist() == expected
    assert found.dtype == torch.int64


def test_a_row_alone_in_its_class_is_its_own_peer():
    x = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    assert nearest_in_class(x, torch.tensor([0, 1, 2, 1])).tolist() == [0, 3, 2, 1]


def test_equal_rows_are_peers():
    assert nearest_in_class(torch.zeros(2, 3), torch.tensor([1, 1])).tolist() == [1, 0]


@pytest.mark.parametrize("rows", [1, 3, 19, 40])
def test_nearest_peers_in_blocks(monkeypatch, rows):
    x, labels = normal(40, 3), torch.arange(40) % 7 % 4
    labels[33] = 4  # alone
    whole = nearest_in_class(x, labels)
    assert whole.tolist() == [plain_peer(x, labels.tolist(), row) for row in range(40)]
    monkeypatch.setattr(sampling, "BLOCK_ENTRIES", rows * 40)
    assert torch.equal(nearest_in_class(x, labels), whole)
    monkeypatch.setattr(sampling, "BLOCK_ENTRIES", rows)  # less than one row
    assert torch.equal(nearest_in_class(x, labels), whole)


@given(labellings(), st.integers(0, 2), st.integers(0, 500))
def test_interpolation_and_its_gradient_equal_the_plain_version(labelling, count, seed):
    labels, rare = labelling
    x = normal(labels.numel(), 3, seed=seed).requires_grad_()
    copies = plan_copies(labels, rare, count)
    share = torch.rand(copies.labels.shape, generator=torch.Generator().manual_seed(seed)).double()
    share.requires_grad_()
    points, peers = interpolate(x, labels, copies, share)
    starts = copies.positions.tolist()
    assert peers.tolist() == [plain_peer(x, labels.tolist(), row) for row in starts]
    expected = [
        (1 - share[i]) * x[row] + share[i] * x[peers[i]] for i, row in enumerate(starts)
    ] or [x[:0].sum(0)]
    expected = torch.stack(expected)[: len(starts)]
    torch.testing.assert_close(points, expected)
    weight = normal(*points.shape, seed=seed + 1)
    ours = torch.autograd.grad(points, [x, share], weight)
    theirs = torch.autograd.grad(expected, [x, share], weight, allow_unused=True)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)


def test_gradients_flow_through_both_ends():
    x = torch.tensor([[0.0], [9.0], [1.0], [4.0]], requires_grad=True)
    labels = torch.tensor([1, 0, 1, 1])
    copies = plan_copies(labels, torch.tensor([False, True]), 1)
    share = torch.tensor([0.25, 0.5, 0.75])
    points, peers = interpolate(x, labels, copies, share)
    assert copies.positions.tolist() == [0, 2, 3]
    assert peers.tolist() == [2, 0, 2]
    assert points.flatten().tolist() == [0.25, 0.5, 1.75]
    (gradient,) = torch.autograd.grad(points[2], x)
    assert gradient.flatten().tolist() == [0, 0, 0.75, 0.25]


@given(labellings(), st.integers(0, 3))
def test_nothing_of_the_way_stays_and_all_of_it_arrives(labelling, count):
    labels, rare = labelling
    x = torch.arange(labels.numel()).double().square().unsqueeze(1)
    copies = plan_copies(labels, rare, count)
    size = copies.labels.numel()
    stays, _ = interpolate(x, labels, copies, torch.zeros(size).double())
    arrives, peers = interpolate(x, labels, copies, torch.ones(size).double())
    assert torch.equal(stays, x[copies.positions])
    assert torch.equal(arrives, x[peers])
    assert torch.equal(labels[peers], copies.labels)


@given(labellings(), st.integers(0, 3))
def test_one_share_for_each_class_and_round(labelling, count):
    labels, rare = labelling
    copies = plan_copies(labels, rare, count)
    share = random_shares(copies, rare.numel(), torch.Generator().manual_seed(1)).tolist()
    found = {}
    for key, value in zip(
        zip(copies.labels.tolist(), copies.rounds.tolist(), strict=True), share, strict=True
    ):
        assert found.setdefault(key, value) == value
        assert 0 <= value < 1
    assert len(set(found.values())) == len(found)


def test_shares_are_uniform_and_follow_the_stream(random_state):
    copies = plan_copies(torch.tensor([0]), torch.tensor([True]), 10_000)
    torch.manual_seed(0)
    before = random_state()
    first, again, other = (
        random_shares(copies, 1, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert random_state() == before
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    for bound in (0.1, 0.5, 0.9):
        assert_near((first < bound).double().mean().item(), bound, 10_000)
    with seeded(3):
        assert torch.equal(random_shares(copies, 1), first)


@given(mixtures(), st.integers(0, 99))
def test_sampled_neighbours_are_neighbours_and_as_many_as_wanted(mixture, seed):
    matrix, sources, targets, degrees = mixture
    stream = torch.Generator().manual_seed(seed)
    share = 0.05 + 0.9 * torch.rand(sources.shape, generator=stream)
    with seeded(seed):
        new, found = sample_neighbours(matrix, sources, targets, share, degrees)
    assert new.dtype == found.dtype == torch.int64
    for place, nodes in enumerate(drawn(new, found, sources.numel())):
        support = neighbours(matrix, sources[place]) | neighbours(matrix, targets[place])
        assert set(nodes) <= support
        assert len(set(nodes)) == len(nodes)
        assert len(nodes) == min(int(degrees[place]), len(support))


@given(mixtures(), st.booleans())
def test_one_neighbourhood_alone_is_taken_whole(mixture, of_source):
    matrix, sources, targets, _ = mixture
    chosen = sources if of_source else targets
    share = torch.full(sources.shape, float(of_source))
    degrees = matrix.crow_indices().diff().long()[chosen]
    new, found = sample_neighbours(matrix, sources, targets, share, degrees)
    for place, nodes in enumerate(drawn(new, found, sources.numel())):
        assert sorted(nodes) == sorted(neighbours(matrix, chosen[place]))


# The source 0 knows 2, 3 and 4, the target 1 knows 4 and 5, and 6 knows nobody.
SMALL = matrix_of(edges([(0, 2), (0, 3), (0, 4), (1, 4), (1, 5)]), 7)


def law(share):
    return {2: share / 3, 3: share / 3, 4: share / 3 + (1 - share) / 2, 5: (1 - share) / 2}


def test_one_neighbour_follows_the_mixture():
    count = 20_000
    shares = torch.tensor([0.7, 0.2]).repeat(count)  # two kinds of new nodes take turns
    with seeded(0):
        new, found = sample_neighbours(
            SMALL,
            torch.zeros(2 * count, dtype=torch.long),
            torch.ones(2 * count, dtype=torch.long),
            shares,
            torch.ones(2 * count, dtype=torch.long),
        )
    assert new.tolist() == list(range(2 * count))
    for kind, share in enumerate((0.7, 0.2)):
        frequency = Counter(found[kind::2].tolist())
        for node, chance in law(share).items():
            assert_near(frequency[node] / count, chance, count)


def test_two_neighbours_are_drawn_one_after_the_other():
    count, share = 20_000, 0.6
    zero = torch.zeros(count, dtype=torch.long)
    with seeded(1):
        new, found = sample_neighbours(SMALL, zero, zero + 1, torch.full((count,), share), zero + 2)
    frequency = Counter(frozenset(nodes) for nodes in drawn(new, found, count))
    chances = law(share)
    for one in chances:
        for other in chances:
            if one < other:
                p, q = chances[one], chances[other]
                assert_near(
                    frequency[frozenset((one, other))] / count,
                    p * q * (1 / (1 - p) + 1 / (1 - q)),
                    count,
                )


def test_a_lonely_source_leaves_the_draw_to_the_target():
    count = 10_000
    six = torch.full((count,), 6)
    with seeded(2):
        _, found = sample_neighbours(
            SMALL, six, torch.zeros_like(six), torch.full((count,), 0.9), torch.ones_like(six)
        )
    frequency = Counter(found.tolist())
    for node in (2, 3, 4):
        assert_near(frequency[node] / count, 1 / 3, count)


def test_nobody_to_draw():
    six = torch.tensor([6, 6])
    for matrix, nodes, degrees in [
        (SMALL, NOTHING, NOTHING),
        (SMALL, six, six),
        (SMALL, torch.tensor([0, 1]), torch.tensor([0, 0])),
        (matrix_of(edges([]), 7), six, six),
    ]:
        share = torch.full(nodes.shape, 0.5)
        new, found = sample_neighbours(matrix, nodes, nodes, share, degrees)
        assert new.shape == found.shape == (0,)
        assert new.dtype == found.dtype == torch.int64


def test_same_seed_same_neighbours():
    zero, share = torch.zeros(50, dtype=torch.long), torch.full((50,), 0.5)
    results = []
    for seed in (1, 1, 2):
        with seeded(seed):
            results.append(sample_neighbours(SMALL, zero, zero + 1, share, zero + 2)[1])
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_peers_far_from_the_origin():
    x = normal(200, 3, dtype=torch.float32) + 1000
    labels = torch.zeros(200, dtype=torch.long)
    distance = torch.cdist(x.double(), x.double()).fill_diagonal_(torch.inf)
    assert torch.equal(nearest_in_class(x, labels), distance.argmin(1))


def test_what_has_no_chance_is_never_drawn():
    graph = from_scipy(undirected_adjacency(edges([(0, 2), (1, 3)]), 4), CPU, torch.float32)
    one = torch.tensor([0])
    new, drawn = sample_neighbours(graph, one, one + 1, torch.ones(1), torch.tensor([2]))
    assert (new.tolist(), drawn.tolist()) == ([0], [2])


def test_weights_say_how_likely_a_neighbour_is():
    count = 10_000
    law = torch.tensor([[0, 3.0, 1.0, 0], [0, 0, 0, 2.0]]).to_sparse_csr()
    zero = torch.zeros(count, dtype=torch.long)
    with seeded(0):
        _, found = sample_neighbours(law, zero, zero, torch.ones(count), zero + 1)
    frequency = Counter(found.tolist())
    assert set(frequency) == {1, 2}
    assert_near(frequency[1] / count, 3 / 4, count)
