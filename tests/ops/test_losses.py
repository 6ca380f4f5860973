"""Losses that know about class sizes, each against a sum over nodes and classes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from evengraph.ops.losses import (
    CLASS_LOSSES,
    NAMED_LOSSES,
    ClassTerms,
    LabelledLoss,
    balanced_softmax,
    class_cross_entropy,
    class_loss,
    conflict_weights,
    effective_number_weights,
    focal_cross_entropy,
    inverse_class_weights,
    labelled_loss,
    log_sizes,
    prior_offsets,
    weighted_cross_entropy,
)
from evengraph.ops.sparse import undirected_adjacency
from small_graphs import edges, normal

WEIGHTS = torch.tensor([0.05, 0.5, 1.0], dtype=torch.float64)
GAMMAS = [0.0, 0.5, 1.0, 2.0]


def rows_of(size, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return 2 * normal(size, 3, seed=seed), torch.randint(3, (size,), generator=stream)


def test_one_over_the_class_size():
    weights = inverse_class_weights(torch.tensor([20, 4, 1]))
    torch.testing.assert_close(weights, torch.tensor([0.05, 0.25, 1.0]))


def test_an_empty_class_weighs_nothing():
    assert inverse_class_weights(torch.tensor([2, 0])).tolist() == [0.5, 0]


def test_each_class_weighs_the_same_in_all():
    counts = torch.tensor([341, 158, 73, 34, 15, 7, 3])
    weights = inverse_class_weights(counts, torch.float64)
    torch.testing.assert_close(weights * counts, torch.ones(7, dtype=torch.float64))


@given(st.integers(1, 9), st.integers(0, 99), st.sampled_from([None, WEIGHTS]), st.booleans())
def test_gamma_zero_is_cross_entropy(size, seed, weights, on_mean):
    logits, labels = rows_of(size, seed)
    logits.requires_grad_()
    ours = focal_cross_entropy(logits, labels, 0, weights, on_mean=on_mean)
    theirs = cross_entropy(logits, labels, weights)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits)
    )


@given(
    st.integers(1, 9), st.integers(0, 99), st.sampled_from(GAMMAS), st.sampled_from([None, WEIGHTS])
)
def test_each_node_has_a_factor_of_its_own(size, seed, gamma, weights):
    logits, labels = rows_of(size, seed)
    total = norm = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(row[label]) / sum(math.exp(value) for value in row)
        weight = 1.0 if weights is None else float(weights[label])
        total += weight * (1 - p) ** gamma * -math.log(p)
        norm += weight
    value = focal_cross_entropy(logits, labels, gamma, weights)
    assert value.item() == pytest.approx(total / norm, rel=1e-9)


@given(
    st.integers(1, 9), st.integers(0, 99), st.sampled_from(GAMMAS), st.sampled_from([None, WEIGHTS])
)
def test_one_factor_from_the_mean(size, seed, gamma, weights):
    logits, labels = rows_of(size, seed)
    value = focal_cross_entropy(logits, labels, gamma, weights, on_mean=True)
    factor = (1 - math.exp(-cross_entropy(logits, labels).item())) ** gamma
    assert value.item() == pytest.approx(
        factor * cross_entropy(logits, labels, weights).item(), rel=1e-9
    )


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


def same_value_and_gradient(ours, theirs, logits):
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits)
    )


def logit_adjusted(logits, labels, counts, tau):
    offsets = tau * log_sizes(counts, logits.dtype) if tau else None
    return class_cross_entropy(logits, labels, offsets=offsets)


def class_balanced(logits, labels, counts, beta):
    return class_cross_entropy(logits, labels, effective_number_weights(counts, beta, logits.dtype))


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


def test_without_adjustment_or_with_equal_classes_it_is_cross_entropy():
    logits, labels = rows_of(9)
    logits.requires_grad_()
    plain = cross_entropy(logits, labels)
    same_value_and_gradient(logit_adjusted(logits, labels, COUNTS, 0), plain, logits)
    plain = cross_entropy(logits, labels)
    same_value_and_gradient(balanced_softmax(logits, labels, torch.full((3,), 7)), plain, logits)


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


def test_log_sizes_are_logarithms():
    assert log_sizes(COUNTS).tolist() == pytest.approx([math.log(20), math.log(4), 0])
    assert log_sizes(torch.tensor([1, 0])).tolist() == [0, -math.inf]


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


@given(st.integers(1, 9), st.integers(0, 99), st.sampled_from([0.0, 0.9, 0.9999]))
def test_class_balanced_is_a_weighted_mean(size, seed, beta):
    logits, labels = rows_of(size, seed)
    total = norm = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        weight = (1 - beta) / (1 - beta ** int(COUNTS[label]))
        total -= weight * math.log(math.exp(row[label]) / sum(map(math.exp, row)))
        norm += weight
    assert float(class_balanced(logits, labels, COUNTS, beta)) == pytest.approx(total / norm)


def test_class_balanced_lies_between_plain_and_inverse_weights():
    logits, labels = rows_of(9)
    logits.requires_grad_()
    plain = cross_entropy(logits, labels)
    same_value_and_gradient(class_balanced(logits, labels, COUNTS, 0), plain, logits)
    inverse = cross_entropy(logits, labels, inverse_class_weights(COUNTS, torch.float64))
    nearly = class_balanced(logits, labels, COUNTS, 1 - 1e-9)
    torch.testing.assert_close(nearly, inverse, rtol=1e-5, atol=1e-8)


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


def test_a_weighted_sum_by_hand():
    logits, labels = rows_of(7)
    weights = torch.arange(7.0, dtype=torch.float64)
    losses = cross_entropy(logits, labels, reduction="none")
    expected = sum(float(w * v) for w, v in zip(weights, losses, strict=True))
    assert weighted_cross_entropy(logits, labels, weights).item() == pytest.approx(expected)


# Losses by name

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


@given(st.sampled_from(CLASS_LOSSES), st.booleans(), st.integers(0, 99))
def test_losses_of_classes(name, weighed, seed):
    logits = normal(6, 3, seed=seed)
    weights = normal(6, seed=seed + 1).abs() if weighed else None
    found = class_loss(name, LABELS, LABEL_COUNTS, weights)(logits)
    each = weights.tolist() if weighed else [1.0] * 6
    assert found.item() == pytest.approx(written_out(name, logits, LABELS, [3, 2, 1], each))


@given(st.sampled_from(NAMED_LOSSES), st.booleans(), st.integers(0, 99))
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


def test_the_weights_of_renode_are_those_of_its_defaults():
    loss = labelled_loss("renode", RING, NODES, LABELS, LABEL_COUNTS)
    sizes = torch.tensor([2 / 3, 1, 2])[LABELS]
    by_rank = conflict_weights(RING, NODES, LABELS, LABEL_COUNTS, 0.5, 1.5)
    torch.testing.assert_close(loss.weights, by_rank * sizes)


@pytest.mark.parametrize("offsets", [None, torch.tensor([0.5, -1.0, 2.0])])
def test_margins_are_added(offsets):
    logits, margins = normal(6, 3), normal(6, 3, seed=1)
    loss = LabelledLoss(LABELS, offsets=offsets)
    torch.testing.assert_close(loss(logits, margins), loss(logits + margins))
    assert loss(logits, torch.zeros(())) == loss(logits)


def test_reweighting_gives_every_class_the_same_say():
    logits = normal(6, 3).float()
    mean = cross_entropy(logits, LABELS, 1 / LABEL_COUNTS)
    torch.testing.assert_close(class_loss("reweight", LABELS, LABEL_COUNTS)(logits), mean)
