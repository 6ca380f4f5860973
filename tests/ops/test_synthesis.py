"""Rare classes, copies, peers and sampled neighbours against plain versions and exact laws."""

import math
from collections import Counter
from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.core.rng import seeded
from evengraph.ops import synthesis
from evengraph.ops.sparse import Sparse, from_scipy, undirected_adjacency
from evengraph.ops.synthesis import (
    AttachedGraph,
    GraphWithCopies,
    Pairs,
    StackedFeatures,
    VirtualNodes,
    draw_members,
    draw_pairs,
    interpolate,
    link_probabilities,
    nearest_in_class,
    plan_copies,
    random_shares,
    rare_classes,
    sample_neighbours,
)
from small_graphs import (
    check_law,
    dense_adjacency,
    dense_row,
    dense_symmetric,
    edge_lists,
    edges,
    normal,
    random_edges,
)

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
        ([3_000_000, 2_000_000, 100], [2]),  # squares do not overflow
    ],
)
def test_rare_classes_by_ratio(counts, rare):
    found = rare_classes(torch.tensor(counts))
    assert found.dtype == torch.bool
    assert found.nonzero().flatten().tolist() == rare


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
    copied = set(result.labels.tolist())
    whole = [place for place, label in enumerate(labels.tolist()) if label in copied]
    assert sorted(result.members.tolist()) == whole


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


def test_equal_rows_are_peers():
    assert nearest_in_class(torch.zeros(2, 3), torch.tensor([1, 1])).tolist() == [1, 0]


@pytest.mark.parametrize("rows", [1, 3, 19, 40])
def test_nearest_peers_in_blocks(monkeypatch, rows):
    x, labels = normal(40, 3), torch.arange(40) % 7 % 4
    labels[33] = 4  # alone
    whole = nearest_in_class(x, labels)
    assert whole.tolist() == [plain_peer(x, labels.tolist(), row) for row in range(40)]
    monkeypatch.setattr(synthesis, "BLOCK_ENTRIES", rows * 40)
    assert torch.equal(nearest_in_class(x, labels), whole)
    monkeypatch.setattr(synthesis, "BLOCK_ENTRIES", rows)  # less than one row
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


# The source 0 knows 2, 3 and 4, the target 1 knows 4 and 5, and 6 knows nobody.
SMALL = matrix_of(edges([(0, 2), (0, 3), (0, 4), (1, 4), (1, 5)]), 7)


def law(share):
    return {2: share / 3, 3: share / 3, 4: share / 3 + (1 - share) / 2, 5: (1 - share) / 2}


def test_two_neighbours_are_drawn_one_after_the_other():
    count = 20_000
    shares = torch.tensor([0.6, 0.2]).repeat(count)  # two kinds of new nodes take turns
    zero = torch.zeros(2 * count, dtype=torch.long)
    with seeded(1):
        new, found = sample_neighbours(SMALL, zero, zero + 1, shares, zero + 2)
    lists = drawn(new, found, 2 * count)
    for kind, share in enumerate((0.6, 0.2)):
        frequency = Counter(frozenset(nodes) for nodes in lists[kind::2])
        for (one, p), (other, q) in combinations(law(share).items(), 2):
            chance = p * q * (1 / (1 - p) + 1 / (1 - q))
            assert_near(frequency[frozenset((one, other))] / count, chance, count)


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


def test_peers_far_from_the_origin():
    x = normal(200, 3, dtype=torch.float32) + 1000
    labels = torch.zeros(200, dtype=torch.long)
    distance = torch.cdist(x.double(), x.double()).fill_diagonal_(torch.inf)
    assert torch.equal(nearest_in_class(x, labels), distance.argmin(1))


def test_weights_say_how_likely_a_neighbour_is():
    count = 10_000
    law = torch.tensor([[0, 3.0, 1.0, 0], [0, 0, 0, 2.0]]).to_sparse_csr()
    zero = torch.zeros(count, dtype=torch.long)
    with seeded(0):
        _, found = sample_neighbours(law, zero, zero, torch.ones(count), zero + 1)
    frequency = Counter(found.tolist())
    assert set(frequency) == {1, 2}
    assert_near(frequency[1] / count, 3 / 4, count)


# Who is mixed with whom.


def counted(counts):
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_every_class_reaches_the_largest(counts, luck):
    labels = counted(counts).tolist()
    luck.shuffle(labels)
    labels = torch.tensor(labels)
    with seeded(luck.randrange(1000)):
        pairs = draw_pairs(labels, torch.tensor(counts))
    added = torch.bincount(pairs.labels, minlength=len(counts))
    assert (torch.tensor(counts) + added == max(counts)).all()
    assert torch.equal(labels[pairs.sources], pairs.labels)
    assert ((pairs.targets >= 0) & (pairs.targets < labels.numel())).all()
    assert ((pairs.shares > 0) & (pairs.shares < 1)).all()
    if max(counts) > 1:  # a class of one is never a target
        assert (torch.tensor(counts)[labels[pairs.targets]] > 1).all()


def many_pairs(counts, times=400):
    labels = counted(counts)
    with seeded(0):
        drawn = [draw_pairs(labels, torch.tensor(counts)) for _ in range(times)]
    return labels, Pairs(*(torch.cat(parts) for parts in zip(*drawn, strict=True)))


def test_targets_are_drawn_by_the_logarithm_of_their_class():
    counts = [12, 4, 2, 1]
    labels, pairs = many_pairs(counts)
    chances = [math.log(counts[label]) / counts[label] for label in labels.tolist()]
    expected = [chance / sum(chances) for chance in chances]
    check_law(torch.bincount(pairs.targets, minlength=19).tolist(), expected)


def test_sources_are_drawn_evenly():
    _, pairs = many_pairs([12, 4, 2, 1])
    for label, (first, size) in enumerate([(0, 12), (12, 4), (16, 2), (18, 1)]):
        drawn = pairs.sources[pairs.labels == label] - first
        check_law(torch.bincount(drawn, minlength=size).tolist(), [1 / size] * size)


def test_shares_follow_a_beta_law():
    shares = many_pairs([12, 1])[1].shares.double()
    assert shares.mean().item() == pytest.approx(0.5, abs=0.015)
    assert shares.var().item() == pytest.approx(0.05, abs=0.003)
    cube = shares.pow(4).mean().item()  # of Beta(2, 2): 2 * 3 * 4 * 5 / (4 * 5 * 6 * 7)
    assert cube == pytest.approx(1 / 7, abs=0.01)


def test_equal_classes_have_no_pairs_even_if_of_one():
    for counts in ([1, 1, 1], [5, 5]):
        pairs = draw_pairs(counted(counts), torch.tensor(counts))
        assert [part.numel() for part in pairs] == [0] * 4


# One member of a group.


def test_members_are_drawn_by_their_chances():
    groups = torch.tensor([1, 0, 1, 3, 1, 0])
    chances = torch.tensor([1.0, 5.0, 2.0, 9.0, 1.0, 0.0])
    with seeded(0):
        found = draw_members(chances, groups, torch.ones(4000, dtype=torch.long))
    check_law(torch.bincount(found, minlength=6)[[0, 2, 4]].tolist(), [0.25, 0.5, 0.25])
    assert draw_members(chances, groups, torch.tensor([0, 3, 0])).tolist() == [1, 3, 1]
    assert draw_members(chances, groups, NOTHING).shape == (0,)


def test_without_chances_members_are_drawn_evenly():
    groups = torch.tensor([0, 1, 1, 1])
    with seeded(0):
        found = draw_members(torch.tensor([4.0, 0, 0, 0]), groups, torch.ones(3000).long())
    check_law(torch.bincount(found, minlength=4).tolist()[1:], [1 / 3] * 3)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e3)), min_size=1, max_size=30),
    st.integers(0, 99),
)
def test_a_member_is_of_the_group_asked_for(members, seed):
    groups = torch.tensor([group for group, _ in members])
    chances = torch.tensor([chance for _, chance in members])
    wanted = groups.repeat(3)
    with seeded(seed):
        found = draw_members(chances, groups, wanted)
    assert torch.equal(groups[found], wanted)


KINDS = st.fixed_dictionaries(
    {
        "both_ways": st.booleans(),
        "loop": st.sampled_from([0.0, 1.0]),
        "how": st.sampled_from(["row", "symmetric"]),
    }
)


@st.composite
def attachments(draw):
    """Weights among a few nodes, some without any, and edges to new ones, some twice or at 0."""
    num_known, num_new = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    kept = draw(st.lists(st.booleans(), min_size=num_known**2, max_size=num_known**2))
    known = normal(num_known, num_known, seed=draw(st.integers(0, 99))).abs()
    known = known * torch.tensor(kept).reshape(num_known, num_known)
    weight = st.sampled_from([0.0, 0.3, 1.0, 2.0])
    ends = st.tuples(st.integers(0, num_known - 1), st.integers(0, max(num_new - 1, 0)), weight)
    links = draw(st.lists(ends, max_size=8)) if num_new else []
    nodes, new = (torch.tensor([link[i] for link in links], dtype=torch.long) for i in (0, 1))
    weights = torch.tensor([link[2] for link in links], dtype=torch.float64)
    return known, nodes, new, weights, num_new


def dense_attached(known, nodes, new, weights, num_new, *, both_ways, loop, how):
    """The matrix of all nodes, normalised; a node whose row has no weights counts for nothing."""
    num_known = known.shape[0]
    size = num_known + num_new
    matrix = torch.zeros(size, size, dtype=torch.float64)
    matrix[:num_known, :num_known] = known
    for place in range(num_new):
        matrix[num_known + place, num_known + place] = loop
    for node, place, weight in zip(nodes.tolist(), new.tolist(), weights, strict=True):
        matrix[num_known + place, node] += weight
        if both_ways:
            matrix[node, num_known + place] += weight
    sums = matrix.sum(1)
    sums = torch.where(sums > 0, sums, torch.inf)
    if how == "row":
        return matrix / sums.unsqueeze(1)
    return matrix / sums.sqrt().unsqueeze(1) / sums.sqrt()


def value_and_gradients(make, weights, x):
    weights, x = weights.clone().requires_grad_(), x.clone().requires_grad_()
    value = make(weights) @ x
    upstream = normal(*value.shape, seed=5)
    gradients = torch.autograd.grad(value, [weights, x], upstream, allow_unused=True)
    return [
        value.detach(),
        *(
            torch.zeros_like(of) if gradient is None else gradient
            for gradient, of in zip(gradients, (weights, x), strict=True)
        ),
    ]


@given(attachments(), KINDS, st.integers(1, 3))
def test_products_and_gradients_equal_the_dense_matrix(attachment, kind, width):
    known, nodes, new, weights, num_new = attachment
    x = normal(known.shape[0] + num_new, width)
    sparse, sums = Sparse.from_dense(known), known.sum(1)
    ours = value_and_gradients(
        lambda weights: AttachedGraph(sparse, sums, nodes, new, weights, num_new, **kind),
        weights,
        x,
    )
    theirs = value_and_gradients(
        lambda weights: dense_attached(known, nodes, new, weights, num_new, **kind), weights, x
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other)


@given(attachments(), KINDS, KINDS, st.integers(0, 3), st.data())
def test_new_nodes_can_be_attached_to_a_graph_that_has_some(first, one, other, more, data):
    known, nodes, new, weights, num_new = first
    inner = AttachedGraph(
        Sparse.from_dense(known), known.sum(1), nodes, new, weights, num_new, **one
    )
    size = known.shape[0] + num_new
    assert inner.shape == (size, size)
    links = st.tuples(st.integers(0, size - 1), st.integers(0, max(more - 1, 0)))
    drawn = data.draw(st.lists(links, max_size=5)) if more else []
    ends, starts = (torch.tensor([link[i] for link in drawn], dtype=torch.long) for i in (0, 1))
    ones = torch.ones(len(drawn), dtype=torch.float64)
    matrix = dense_attached(*first, **one)
    x = normal(size + more, 2)
    outer = AttachedGraph(inner, matrix.sum(1), ends, starts, ones, more, **other)
    assert outer.shape == (size + more, size + more)
    expected = dense_attached(matrix, ends, starts, ones, more, **other) @ x
    torch.testing.assert_close(outer @ x, expected)


@st.composite
def graphs_and_copies(draw):
    edge_index, size = draw(edge_lists())
    seeds = draw(st.lists(st.integers(0, size - 1), max_size=8))
    return dense_adjacency(edge_index, size, undirected=True) + torch.eye(size), seeds


@given(graphs_and_copies(), st.sampled_from([None, "row", "symmetric"]))
def test_repeating_nodes_repeats_rows_and_columns(drawn, how):
    matrix, seeds = drawn
    index = [*range(matrix.shape[0]), *seeds]
    expected = matrix[index][:, index]
    graph, seeds = Sparse.from_dense(matrix), torch.tensor(seeds, dtype=torch.long)
    repeated = GraphWithCopies(graph, seeds)
    if how is not None:
        sums = expected.sum(1)
        if how == "row":
            expected = expected / sums.unsqueeze(1)
        else:
            expected = expected * (sums.unsqueeze(1) * sums) ** -0.5
        repeated = GraphWithCopies.normalised(Sparse.from_dense(matrix.float()), seeds, how)
    x = normal(len(index), 3).to(torch.float64 if how is None else torch.float32).requires_grad_()
    value, weight = repeated @ x, normal(len(index), 3, seed=1)
    (gradient,) = torch.autograd.grad((value * weight).sum(), x)
    assert repeated.shape == (len(index), len(index))
    torch.testing.assert_close(value.double(), expected @ x.double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), expected.t() @ weight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
def test_features_of_known_and_new_nodes(sparse):
    known, new = normal(5, 4).relu(), normal(2, 4, seed=1).requires_grad_()
    weight = normal(4, 3, seed=2)
    stacked = StackedFeatures(Sparse.from_dense(known) if sparse else known, new)
    assert stacked.shape == (7, 4)
    expected = torch.cat([known, new]) @ weight
    torch.testing.assert_close(stacked @ weight, expected)
    (ours,) = torch.autograd.grad((stacked @ weight).square().sum(), new)
    (theirs,) = torch.autograd.grad(expected.square().sum(), new)
    torch.testing.assert_close(ours, theirs)


# Who is linked, worked by hand.


def test_the_uncertain_ones_of_a_class_are_at_risk():
    # nodes 0 and 1 are predicted to be of class 0, whose mean uncertainty is 0.3; 2 of class 1
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1], [0.2, 0.8, 0.0]])
    predicted, counts = torch.tensor([0, 0, 1]), torch.tensor([20, 20, 2])
    found = link_probabilities(probabilities, predicted, probabilities, counts)
    expected = torch.tensor([[0, 0, 0], [0, 0.2 * 0.8, 0.2 * 0.2], [0, 0, 0]])
    torch.testing.assert_close(found, expected)


def test_neighbours_may_say_what_else_a_node_is():
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1]])
    neighbours = torch.tensor([[2.0, 0, 0], [1.0, 0, 3.0]])
    predicted, counts = torch.tensor([0, 0]), torch.tensor([5, 5, 5])
    found = link_probabilities(probabilities, predicted, neighbours, counts)
    assert found[1].tolist() == pytest.approx([0, 0, 0.2])
    lonely = link_probabilities(probabilities, predicted, torch.zeros(2, 3), counts)
    assert not lonely.any()


# The larger graph.

EDGES = random_edges(40, 90)
NODES, LABELS, COUNTS = torch.tensor([5, 0, 9]), torch.tensor([0, 2, 1]), torch.tensor([1, 1, 1])


def virtual_nodes(variant="BAT1", how="row", x=None):
    x = normal(40, 6, dtype=torch.float32) if x is None else x
    matrix = undirected_adjacency(EDGES, 40)
    return VirtualNodes(matrix, x, NODES, LABELS, COUNTS, variant, how)


def drawn_by(logits, variant):
    """Classes that a node may be instead, in the place where chances are made of them."""
    seen = []

    def spy(*args):
        seen.append(args)
        return link_probabilities(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthesis, "link_probabilities", spy)
        virtual_nodes(variant).link(logits)
    return seen[0]


def test_what_is_known_is_not_guessed():
    logits = 3 * normal(40, 3, dtype=torch.float32)
    probabilities, predicted, instead, counts = drawn_by(logits, "BAT0")
    assert torch.equal(predicted[NODES], LABELS)
    others = torch.ones(40).bool()
    others[NODES] = False
    assert torch.equal(predicted[others], logits.argmax(1)[others])
    assert instead is probabilities
    assert counts is COUNTS
    torch.testing.assert_close(probabilities, logits.softmax(1))


def test_neighbours_are_asked_for_what_they_are_predicted_to_be():
    _, predicted, instead, _ = drawn_by(3 * normal(40, 3, dtype=torch.float32), "BAT1")
    matrix = dense_adjacency(EDGES, 40, undirected=True)
    hot = torch.eye(3, dtype=torch.float64)[predicted]
    torch.testing.assert_close(instead.double(), matrix @ hot)


@pytest.mark.parametrize("how", ["row", "symmetric"])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_larger_graph_and_its_features(how, sparse, monkeypatch):
    x, logits = normal(40, 6, dtype=torch.float32), normal(40, 3, dtype=torch.float32)
    links = torch.zeros(40, 3)
    links[[0, 7, 7, 30], [1, 0, 2, 1]] = 1
    monkeypatch.setattr(synthesis, "link_probabilities", lambda *args: links)
    linked, means = virtual_nodes(how=how, x=Sparse.from_dense(x) if sparse else x).link(logits)
    larger = torch.zeros(43, 43, dtype=torch.float64)
    larger[:40, :40] = dense_adjacency(EDGES, 40, undirected=True)
    larger[:40, 40:], larger[40:, :40] = links, links.t()
    expected = {"row": dense_row, "symmetric": dense_symmetric}[how](larger)
    torch.testing.assert_close((linked @ torch.eye(43)).double(), expected, rtol=1e-5, atol=1e-6)
    predicted = logits.argmax(1)
    predicted[NODES] = LABELS
    for label in range(3):
        torch.testing.assert_close(means[label], x[predicted == label].mean(0))
