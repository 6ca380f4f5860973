"""Pseudo-labels against a plain version of Eq. 10 to 12."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from evengraph.ops.pseudo import balanced_pseudo_labels, confident_pseudo_labels, select_pseudo_mask


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
    nodes, labels = confident_pseudo_labels(probabilities, unlabelled, threshold)
    assert dict(zip(nodes.tolist(), labels.tolist(), strict=True)) == confident(
        probabilities, unlabelled, threshold
    )


@given(st.integers(1, 30), st.integers(2, 4), st.integers(0, 500), st.integers(1, 3))
def test_masks_of_several_replicas_choose_the_same(num_nodes, num_classes, seed, replicas):
    stream = torch.Generator().manual_seed(seed)
    grid = torch.randint(1, 5, (replicas, num_nodes, num_classes), generator=stream).float()
    probabilities = grid / grid.sum(2, keepdim=True)  # many are equal
    counts = torch.randint(1, 6, (replicas, num_classes), generator=stream)
    unlabelled = torch.rand(replicas, num_nodes, generator=stream) < 0.7
    thresholds = torch.tensor([0.3, 0.4, 0.5])[:replicas].unsqueeze(1)
    wanted = counts.max(1, keepdim=True).values - counts
    chosen, labels = select_pseudo_mask("balanced", probabilities, wanted, unlabelled, thresholds)
    for replica in range(replicas):
        nodes, classes = balanced_pseudo_labels(
            probabilities[replica],
            counts[replica],
            unlabelled[replica],
            float(thresholds[replica]),
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
    chosen, _ = select_pseudo_mask(
        "balanced", probabilities, wanted, unlabelled, torch.tensor([[0.5]])
    )
    assert chosen.tolist() == [[False, True]]


def test_an_unsure_node_of_one_class_does_not_count_for_another():
    """Less sure than one half, as in three classes and more."""
    probabilities = torch.tensor([[[0.4, 0.3, 0.3], [0.02, 0.95, 0.03], [0.03, 0.94, 0.03]]])
    everyone = torch.ones(1, 3, dtype=torch.bool)
    chosen, _ = select_pseudo_mask(
        "balanced", probabilities, torch.tensor([[0, 1, 0]]), everyone, torch.tensor([[0.2]])
    )
    assert chosen.tolist() == [[False, True, False]]
