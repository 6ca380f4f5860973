"""BAT: who is at risk, who is linked to which virtual node, and the loss on the larger graph."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    by_conflict,
    check_chosen,
    dense_graph,
    dense_logits,
    first_loss,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy

from evengraph.methods import BAT, bat
from evengraph.methods.bat import link_chances
from evengraph.ops.labelled import NAMED_LOSSES
from small_graphs import dense_row, dense_symmetric, small_task

# Who is linked, worked by hand.


def test_the_uncertain_ones_of_a_class_are_at_risk():
    # nodes 0 and 1 are predicted to be of class 0, whose mean uncertainty is 0.3; 2 of class 1
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1], [0.2, 0.8, 0.0]])
    predicted, counts = torch.tensor([0, 0, 1]), torch.tensor([20, 20, 2])
    found = link_chances(probabilities, predicted, probabilities, counts)
    expected = torch.tensor([[0, 0, 0], [0, 0.2 * 0.8, 0.2 * 0.2], [0, 0, 0]])
    torch.testing.assert_close(found, expected)


def test_a_rare_class_keeps_whom_it_has_won():
    probabilities = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    predicted = torch.tensor([0, 0])
    for counts, risk in (([20, 20], 0.2), ([2, 20], 0.02)):
        found = link_chances(probabilities, predicted, probabilities, torch.tensor(counts))
        assert found[1].tolist() == pytest.approx([0, risk])


def test_neighbours_may_say_what_else_a_node_is():
    probabilities = torch.tensor([[0.9, 0.05, 0.05], [0.5, 0.4, 0.1]])
    neighbours = torch.tensor([[2.0, 0, 0], [1.0, 0, 3.0]])
    predicted, counts = torch.tensor([0, 0]), torch.tensor([5, 5, 5])
    found = link_chances(probabilities, predicted, neighbours, counts)
    assert found[1].tolist() == pytest.approx([0, 0, 0.2])
    lonely = link_chances(probabilities, predicted, torch.zeros(2, 3), counts)
    assert not lonely.any()


@given(st.integers(0, 999), st.integers(2, 5))
def test_chances_are_probabilities_and_never_of_the_own_class(seed, num_classes):
    stream = torch.Generator().manual_seed(seed)
    probabilities = (3 * torch.randn(12, num_classes, generator=stream)).softmax(1)
    predicted = torch.randint(num_classes, (12,), generator=stream)
    counts = torch.randint(1, 9, (num_classes,), generator=stream)
    found = link_chances(probabilities, predicted, probabilities, counts)
    assert (found >= 0).all()
    assert (found.sum(1) <= 1).all()
    assert not found[torch.arange(12), predicted].any()


# The larger graph.


@pytest.mark.parametrize("loss", NAMED_LOSSES)
@pytest.mark.parametrize("how", ["row", "symmetric"])
def test_the_loss_is_that_of_the_graph_with_virtual_nodes(how, loss, monkeypatch):
    task = task_with(6, 4, 2)
    seen = {}

    def certain(probabilities, predicted, instead, counts):
        """Every seventh node is linked to the virtual node of the class after its own."""
        seen["predicted"] = predicted
        chances = torch.zeros_like(probabilities)
        chosen = torch.arange(0, 150, 7)
        chances[chosen, (predicted[chosen] + 1) % 3] = 1
        seen["links"] = chances
        return chances

    monkeypatch.setattr(bat, "link_chances", certain)
    method, found = first_loss(BAT(normalisation=how, loss=loss), task)
    nodes, labels = labelled(task)
    predicted, links = seen["predicted"], seen["links"].double()
    assert torch.equal(predicted[nodes], labels)  # what is known is not guessed
    larger = torch.zeros(153, 153, dtype=torch.float64)
    larger[:150, :150] = dense_graph(task.graph)
    larger[:150, 150:], larger[150:, :150] = links, links.t()
    means = torch.stack([task.graph.x[predicted == label].mean(0) for label in range(3)])
    x = torch.cat([task.graph.x, means])
    matrix = {"row": dense_row, "symmetric": dense_symmetric}[how](larger)
    logits = dense_logits(method.net_, x, matrix)
    if loss == "balanced_softmax":
        logits = logits + torch.tensor([7.0, 5.0, 3.0]).log()
    rows = torch.cat([nodes, torch.arange(150, 153)])
    all_labels = torch.cat([labels, torch.arange(3)])
    each = cross_entropy(logits[rows], all_labels, reduction="none")
    if loss in ("reweight", "renode"):
        each = each * (5 / torch.tensor([7.0, 5.0, 3.0]))[all_labels]
    if loss == "renode":
        each[:12] *= by_conflict(task)
    assert found == pytest.approx(each.mean().item(), rel=1e-4)


def test_variants_ask_the_prediction_or_the_neighbours(monkeypatch):
    task = task_with(6, 4, 2)
    for variant in ("BAT0", "BAT1"):
        asked = []

        def spy(probabilities, predicted, instead, counts, asked=asked):
            asked.append((probabilities, predicted, instead))
            return link_chances(probabilities, predicted, instead, counts)

        monkeypatch.setattr(bat, "link_chances", spy)
        BAT(variant=variant, max_epochs=0).fit(task, seed=0)
        probabilities, predicted, instead = asked[0]
        if variant == "BAT0":
            assert instead is probabilities
        else:
            hot = torch.eye(3, dtype=torch.float64)[predicted]
            torch.testing.assert_close(instead.double(), dense_graph(task.graph) @ hot)


def test_it_validates_and_predicts_without_virtual_nodes():
    task = small_task()
    method = BAT(max_epochs=30).fit(task, seed=0)
    check_chosen(method, task)
    clean = method.net_(*method._inputs(task.graph)).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), clean)


def test_links_are_drawn_anew(monkeypatch):
    drawn = []
    real = bat.Attached

    def spy(*args, **fields):
        drawn.append(args[2])
        return real(*args, **fields)

    monkeypatch.setattr(bat, "Attached", spy)
    BAT(max_epochs=8).fit(small_task(), seed=0)
    assert len({tuple(ends.tolist()) for ends in drawn}) > 1


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="variant must be one of BAT0, BAT1"):
        dataclasses.replace(BAT(), variant="BAT2")
    with pytest.raises(ValueError, match=r"loss must be one of cross_entropy, .*renode, got 'tam'"):
        dataclasses.replace(BAT(), loss="tam")
