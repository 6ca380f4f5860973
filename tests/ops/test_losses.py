"""Losses that know about class sizes, and pseudo-labels (Eq. 10 to 12), against plain versions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from evengraph.ops.losses import (
    ClassTerms,
    balanced_softmax,
    class_cross_entropy,
    class_loss,
    conflict,
    conflict_weights,
    effective_number_weights,
    focal_cross_entropy,
    inverse_class_weights,
    labelled_loss,
    log_sizes,
    prior_offsets,
    soft_labels,
    topology_margins,
)
from evengraph.ops.pseudo import (
    balanced_pseudo_labels,
    log_odds,
    select_pseudo_labels,
    select_pseudo_mask,
)
from evengraph.ops.sparse import Sparse, undirected_adjacency
from small_graphs import dense_symmetric, edges, normal

WEIGHTS = torch.tensor([0.05, 0.5, 1.0], dtype=torch.float64)
GAMMAS = [0.0, 0.5, 1.0, 2.0]


def rows_of(size, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return 2 * normal(size, 3, seed=seed), torch.randint(3, (size,), generator=stream)


def test_one_over_the_class_size():
    weights = inverse_class_weights(torch.tensor([20, 4, 1]))
    torch.testing.assert_close(weights, torch.tensor([0.05, 0.25, 1.0]))
    assert inverse_class_weights(torch.tensor([2, 0])).tolist() == [0.5, 0]


@given(
    st.integers(1, 9), st.integers(0, 99), st.sampled_from(GAMMAS), st.sampled_from([None, WEIGHTS])
)
def test_each_node_has_a_factor_of_its_own_or_all_that_of_the_mean(size, seed, gamma, weights):
    logits, labels = rows_of(size, seed)
    total = norm = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(row[label]) / sum(math.exp(value) for value in row)
        weight = 1.0 if weights is None else float(weights[label])
        total += weight * (1 - p) ** gamma * -math.log(p)
        norm += weight
    value = focal_cross_entropy(logits, labels, gamma, weights)
    assert value.item() == pytest.approx(total / norm, rel=1e-9)
    value = focal_cross_entropy(logits, labels, gamma, weights, on_mean=True)
    factor = (1 - math.exp(-cross_entropy(logits, labels).item())) ** gamma
    plain = cross_entropy(logits, labels, weights).item()
    assert value.item() == pytest.approx(factor * plain, rel=1e-9)


@pytest.mark.parametrize("on_mean", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_gradient_of_the_focal_loss(gamma, on_mean):
    logits, labels = rows_of(6)
    assert torch.autograd.gradcheck(
        lambda logits: focal_cross_entropy(logits, labels, gamma, WEIGHTS, on_mean=on_mean),
        logits.requires_grad_(),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("on_mean", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_a_perfect_prediction_has_a_finite_gradient(gamma, on_mean, dtype):
    for logits in ([[2000.0, 0.0]], [[2000.0, 0.0], [1.0, 1.0]]):
        rows = torch.tensor(logits, dtype=dtype, requires_grad=True)
        labels = torch.zeros(len(logits), dtype=torch.long)
        value = focal_cross_entropy(rows, labels, gamma, on_mean=on_mean)
        (gradient,) = torch.autograd.grad(value, rows)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()
        assert not gradient[0].any()


COUNTS = torch.tensor([20, 4, 1])


def logit_adjusted(logits, labels, counts, tau):
    offsets = tau * log_sizes(counts, logits.dtype) if tau else None
    return class_cross_entropy(logits, labels, offsets=offsets)


def compensated(logits, counts):
    return ClassTerms(predict_offsets=prior_offsets(counts, logits.dtype)).predict(logits)


@given(st.integers(1, 9), st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_adjusted_logits_by_hand(size, seed, tau):
    """p(y) = n_y ** tau e ** z_y / sum over c of n_c ** tau e ** z_c."""
    logits, labels = rows_of(size, seed)
    each = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        parts = [int(n) ** tau * math.exp(z) for n, z in zip(COUNTS, row, strict=True)]
        each.append(-math.log(parts[label] / sum(parts)))
    found = [logit_adjusted(logits[[i]], labels[[i]], COUNTS, tau).item() for i in range(size)]
    assert found == pytest.approx(each)
    mean = logit_adjusted(logits, labels, COUNTS, tau)
    assert float(mean) == pytest.approx(sum(each) / size)
    if tau == 1:
        balanced = balanced_softmax(logits, labels, COUNTS, reduction="none")
        assert balanced.tolist() == pytest.approx(each)
        assert float(balanced_softmax(logits, labels, COUNTS)) == pytest.approx(sum(each) / size)


def test_a_class_without_nodes_has_no_chance_in_training():
    logits, labels = rows_of(9)
    labels = labels % 2
    logits.requires_grad_()
    counts = torch.tensor([5, 2, 0])
    loss = balanced_softmax(logits, labels, counts)
    torch.testing.assert_close(loss, balanced_softmax(logits[:, :2], labels, counts[:2]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert (gradient[:, 2] == 0).all()
    assert torch.isfinite(gradient).all()


@given(st.integers(0, 99))
def test_compensation_undoes_class_sizes(seed):
    """Probabilities divided by class sizes, and scaled to sum to one again."""
    logits, _ = rows_of(5, seed)
    odds = logits.softmax(1) / COUNTS
    expected = odds / odds.sum(1, keepdim=True)
    torch.testing.assert_close(compensated(logits, COUNTS).softmax(1), expected)
    raised = logits + log_sizes(COUNTS, torch.float64)
    torch.testing.assert_close(compensated(raised, COUNTS), logits)


def test_compensation_leaves_an_empty_class_no_chance():
    logits, _ = rows_of(4)
    values = compensated(logits, torch.tensor([3, 0, 1])).softmax(1)
    assert (values[:, 1] == 0).all()
    torch.testing.assert_close(values.sum(1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.9999])
def test_effective_numbers_are_geometric_sums(beta):
    expected = [1 / sum(beta**k for k in range(n)) for n in COUNTS.tolist()]
    assert effective_number_weights(COUNTS, beta).tolist() == pytest.approx(expected, rel=1e-5)
    assert effective_number_weights(torch.tensor([0, 2]), beta)[0] == 0


@given(st.integers(1, 4), st.integers(2, 9), st.integers(0, 99))
def test_a_batch_of_runs_is_each_run(runs, size, seed):
    """A weight per node, 0 for unlabelled ones, gives value and gradient of each run alone."""
    stream = torch.Generator().manual_seed(seed)
    logits = normal(runs * size, 3, seed=seed).view(runs, size, 3).requires_grad_()
    labels = torch.randint(3, (runs, size), generator=stream)
    labelled = torch.rand(runs, size, generator=stream) < 0.6
    labelled[:, 0] = True
    offsets = normal(runs, 3, seed=seed + 1)
    weights = torch.where(labelled, WEIGHTS[labels], 0.0)
    shares = weights / weights.sum(1, keepdim=True)
    together = class_cross_entropy(logits, labels, shares, offsets.unsqueeze(1))
    alone = [
        class_cross_entropy(logits[run][nodes], labels[run][nodes], WEIGHTS, offsets[run])
        for run, nodes in enumerate(labelled)
    ]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=1e-12)
    ours, theirs = (torch.autograd.grad(value, logits)[0] for value in (together.sum(), sum(alone)))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


# Losses by name

NAMES = ("cross_entropy", "reweight", "balanced_softmax", "renode")

LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
NODES = torch.tensor([8, 0, 3, 4, 6, 1])
LABEL_COUNTS = torch.tensor([3, 2, 1])
RING = undirected_adjacency(edges([(node, (node + 1) % 9) for node in range(9)] + [(0, 4)]), 9)


def written_out(name, logits, labels, counts, weights):
    """The mean over nodes, one by one."""
    total = 0.0
    for row, label, weight in zip(logits.tolist(), labels.tolist(), weights, strict=True):
        if name == "balanced_softmax":
            row = [value + math.log(size) for value, size in zip(row, counts, strict=True)]
        if name in ("reweight", "renode"):
            weight *= sum(counts) / len(counts) / counts[label]
        chance = math.exp(row[label]) / sum(math.exp(value) for value in row)
        total -= weight * math.log(chance)
    return total / len(labels)


@given(st.sampled_from(NAMES), st.booleans(), st.integers(0, 99))
def test_losses_by_name(name, more, seed):
    """Nodes beyond the graph make their classes larger, and weigh one before that."""
    added = torch.tensor([0, 1, 2, 2]) if more else None
    labels, counts = (torch.cat([LABELS, added]), [4, 3, 3]) if more else (LABELS, [3, 2, 1])
    logits = normal(len(labels), 3, seed=seed)
    found = labelled_loss(name, RING, NODES, LABELS, LABEL_COUNTS, added)(logits)
    weights = [1.0] * len(labels)
    if name == "renode":
        weights[:6] = conflict_weights(RING, NODES, LABELS, LABEL_COUNTS).tolist()
        assert len(set(weights)) > 3
    expected = written_out(name, logits, labels, counts, weights)
    assert found.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["cross_entropy", "reweight", "balanced_softmax"])
def test_margins_are_added(name):
    logits, margins = normal(6, 3), normal(6, 3, seed=1)
    loss = class_loss(name, LABELS, LABEL_COUNTS)
    torch.testing.assert_close(loss(logits, margins), loss(logits + margins))
    assert loss(logits, torch.zeros(())) == loss(logits)


def path(num_nodes):
    """Nodes in a row, each joined to the next."""
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for node in range(num_nodes - 1):
        matrix[node, node + 1] = matrix[node + 1, node] = 1
    return dense_symmetric(matrix)


def dense_conflict(matrix, nodes, labels):
    """Totoro by its formula, row by row of the whole inverse."""
    size, num_classes = matrix.shape[0], max(labels) + 1
    walks = 0.15 * torch.linalg.inv(torch.eye(size, dtype=torch.float64) - 0.85 * matrix)
    means = [
        walks[[n for n, y in zip(nodes, labels, strict=True) if y == c]].mean(0)
        for c in range(num_classes)
    ]
    return [
        sum(float(walks[n] @ means[c]) for c in range(num_classes) if c != y)
        for n, y in zip(nodes, labels, strict=True)
    ]


@pytest.mark.parametrize(
    ("nodes", "labels"), [([0, 4, 6], [0, 0, 1]), ([6, 1, 3, 0, 2], [0, 1, 2, 1, 0])]
)
def test_conflicts_are_those_of_the_inverse(nodes, labels):
    matrix, classes = path(7), torch.tensor(labels)
    propagation = Sparse.from_dense(matrix.float())
    counts = torch.bincount(classes)
    found = conflict(propagation, torch.tensor(nodes), classes, counts)
    assert found.tolist() == pytest.approx(dense_conflict(matrix, nodes, labels), rel=1e-3)


def test_weights_run_down_half_a_cosine():
    # 0 - 1 - ... - 6; node 4 is nearer to the other class than 0, and 6 meets both of them
    nodes, labels, counts = torch.tensor([0, 4, 6]), torch.tensor([0, 0, 1]), torch.tensor([2, 1])
    line = edges([(node, node + 1) for node in range(6)])
    found = conflict_weights(undirected_adjacency(line, 7), nodes, labels, counts, 0.2, 1.0)
    met = dense_conflict(path(7), nodes.tolist(), labels.tolist())
    by_cosine = {rank: 0.2 + 0.4 * (1 + math.cos(math.pi * rank / 2)) for rank in range(3)}
    expected = [by_cosine[sorted(met).index(value)] for value in met]
    assert found.tolist() == pytest.approx(expected)
    assert conflict_weights(undirected_adjacency(line, 7), nodes, labels, counts).max() == 1.5
    alone = nodes[:1], labels[:1], torch.tensor([1, 0])
    assert conflict_weights(undirected_adjacency(line, 7), *alone).tolist() == [1.5]


def shares(size, num_classes, seed=0):
    return normal(size, num_classes, seed=seed).softmax(1)


def js(p, q):
    """Jensen-Shannon divergence of two lists."""
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sum(
        (a * math.log(a / m) + b * math.log(b / m)) / 2
        for a, b, m in zip(p, q, middle, strict=True)
    )


def by_hand(around, labels, connectivity, distribution):
    num_classes = around.shape[1]
    usual = []
    for label in range(num_classes):
        rows = [row for row, own in zip(around.tolist(), labels, strict=True) if own == label]
        usual.append([sum(column) / len(rows) for column in zip(*rows, strict=True)])
    found = []
    for row, y in zip(around.tolist(), labels, strict=True):
        line = []
        for k in range(num_classes):
            acm = min(1.0, row[y] / usual[y][y] * usual[y][k] / row[k])
            gap = max(js(usual[y], usual[k]), 1e-6)
            adm = (js(row, usual[y]) ** 2 + gap**2 - js(row, usual[k]) ** 2) / (2 * gap**2)
            line.append(0.0 if k == y else connectivity * math.log(acm) - distribution * adm)
        found.append(line)
    return torch.tensor(found, dtype=torch.float64)


@given(st.integers(0, 99), st.sampled_from([(2.5, 0.5), (1.0, 0.0), (0.0, 1.0)]))
def test_margins_by_hand(seed, strengths):
    labels = [0, 0, 1, 1, 1, 2, 0]
    around = shares(7, 3, seed)
    found = topology_margins(around, torch.tensor(labels), *strengths)
    torch.testing.assert_close(found, by_hand(around, labels, *strengths), rtol=1e-6, atol=1e-8)


def test_shares_of_nothing_give_no_infinities():
    around = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = topology_margins(around, torch.tensor([0, 0, 1, 2]), 2.5, 0.5)
    assert torch.isfinite(found).all()


def test_soft_labels_are_labels_or_smoothed_predictions():
    logits, counts = normal(5, 3), torch.tensor([6, 3, 1])
    found = soft_labels(logits, torch.tensor([4, 1]), torch.tensor([2, 0]), counts, 1.2)
    assert found[4].tolist() == [0, 0, 1]
    assert found[1].tolist() == [1, 0, 0]
    warmth = [0.4 * n / 10 + 0.6 for n in (6, 3, 1)]
    scale = [1.2 * (t + 1 - max(warmth)) for t in warmth]
    for node in (0, 2, 3):
        parts = [math.exp(float(z) * s) for z, s in zip(logits[node], scale, strict=True)]
        assert found[node].tolist() == pytest.approx([p / sum(parts) for p in parts])


@st.composite
def situations(draw):
    """Few distinct probabilities, so that many are equal or just at the threshold."""
    num_nodes, num_classes = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    grid = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
    rows = st.lists(grid, min_size=num_classes, max_size=num_classes)
    probabilities = draw(st.lists(rows, min_size=num_nodes, max_size=num_nodes))
    counts = draw(st.lists(st.integers(0, 5), min_size=num_classes, max_size=num_classes))
    unlabelled = draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes))
    threshold = draw(st.sampled_from([0.0, 0.25, 0.5, 0.99]))
    return (
        torch.tensor(probabilities).reshape(num_nodes, num_classes),
        torch.tensor(counts),
        torch.tensor(unlabelled, dtype=torch.bool),
        threshold,
    )


def confident(probabilities, unlabelled, threshold):
    """Eq. 11: class of each confident unlabelled node."""
    found = {}
    for node, row in enumerate(probabilities.tolist()):
        if unlabelled[node] and max(row) > threshold:
            found[node] = row.index(max(row))
    return found


def balanced(probabilities, counts, unlabelled, threshold):
    """Eq. 10 and 12: the most confident nodes of each class, as many as it lacks."""
    found = confident(probabilities, unlabelled, threshold)
    chosen = {}
    for label, size in enumerate(counts.tolist()):
        wanted = max(counts.tolist()) - size
        nodes = [node for node in found if found[node] == label]
        nodes.sort(key=lambda node: (-float(probabilities[node, label]), node))
        chosen |= dict.fromkeys(nodes[:wanted], label)
    return dict(sorted(chosen.items()))


@given(situations())
def test_balanced_equals_the_plain_version(situation):
    nodes, labels = balanced_pseudo_labels(*situation)
    expected = balanced(*situation)
    assert nodes.tolist() == list(expected)
    assert labels.tolist() == list(expected.values())


@given(situations())
def test_confident_takes_every_node_above_the_threshold(situation):
    probabilities, _, unlabelled, threshold = situation
    nodes, labels = select_pseudo_labels("all", *situation)
    expected = confident(probabilities, unlabelled, threshold)
    assert dict(zip(nodes.tolist(), labels.tolist(), strict=True)) == expected
    assert not select_pseudo_labels("none", *situation).nodes.numel()


@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 500), st.integers(1, 3))
def test_masks_of_several_replicas_choose_the_same(num_nodes, num_classes, seed, replicas):
    stream = torch.Generator().manual_seed(seed)
    grid = torch.randint(1, 5, (replicas, num_nodes, num_classes), generator=stream).float()
    probabilities = grid / grid.sum(2, keepdim=True)  # many are equal
    counts = torch.randint(1, 6, (replicas, num_classes), generator=stream)
    unlabelled = torch.rand(replicas, num_nodes, generator=stream) < 0.7
    wanted = counts.max(1, keepdim=True).values - counts
    chosen, labels = select_pseudo_mask("balanced", probabilities, wanted, unlabelled, 0.4)
    for replica in range(replicas):
        nodes, classes = balanced_pseudo_labels(
            probabilities[replica],
            counts[replica],
            unlabelled[replica],
            0.4,
        )
        assert chosen[replica].nonzero().flatten().tolist() == nodes.tolist()
        assert labels[replica][nodes].tolist() == classes.tolist()


def test_confidences_that_differ_by_the_last_bit_are_told_apart():
    """Also in the last of many classes, where class and confidence share one number."""
    confidence = torch.tensor([1 - 2**-23, 1 - 2**-24])
    probabilities = torch.zeros(1, 2, 9)
    probabilities[0, :, 8] = confidence
    wanted = torch.zeros(1, 9, dtype=torch.long)
    wanted[0, 8] = 1
    unlabelled = torch.ones(1, 2, dtype=torch.bool)
    chosen, _ = select_pseudo_mask("balanced", probabilities, wanted, unlabelled, 0.5)
    assert chosen.tolist() == [[False, True]]


@given(st.integers(2, 30), st.integers(2, 4), st.integers(0, 500))
def test_log_odds_rank_where_probabilities_round_to_one(num_nodes, num_classes, seed):
    logits = 40 * torch.randn(num_nodes, num_classes, generator=torch.Generator().manual_seed(seed))
    exact = logits.double().softmax(1).max(1).values
    order = log_odds(logits)
    shown = exact < 0.999  # in double precision, too, a probability rounds
    torch.testing.assert_close(order[shown], (exact / (1 - exact)).log()[shown])
    counts = torch.ones(num_classes, dtype=torch.long)
    counts[0] = 3  # all others take two
    everyone, threshold = torch.ones(num_nodes, dtype=torch.bool), 0.5
    nodes, _ = balanced_pseudo_labels(logits.softmax(1), counts, everyone, threshold, order)
    ranked = sorted(range(num_nodes), key=lambda node: -float(order[node]))
    sure = [node for node in ranked if logits[node].softmax(0).max() > threshold]
    of_class = {c: [n for n in sure if logits[n].argmax() == c] for c in range(1, num_classes)}
    assert nodes.tolist() == sorted(n for some in of_class.values() for n in some[:2])
    wanted = (3 - counts)[None]
    chosen, _ = select_pseudo_mask(
        "balanced", logits.softmax(1)[None], wanted, everyone[None], threshold, order[None]
    )
    assert chosen[0].nonzero().flatten().tolist() == nodes.tolist()


def test_an_unsure_node_of_one_class_does_not_count_for_another():
    """Less sure than one half, as in three classes and more."""
    probabilities = torch.tensor([[[0.4, 0.3, 0.3], [0.02, 0.95, 0.03], [0.03, 0.94, 0.03]]])
    everyone = torch.ones(1, 3, dtype=torch.bool)
    chosen, _ = select_pseudo_mask(
        "balanced", probabilities, torch.tensor([[0, 1, 0]]), everyone, 0.2
    )
    assert chosen.tolist() == [[False, True, False]]
