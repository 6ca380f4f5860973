"""BAT: its loss on the graph with virtual nodes, and its answer without them."""

from typing import get_args

import pytest
import torch
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

from evengraph.methods import BAT
from evengraph.ops import synthesis as virtual
from evengraph.ops.losses import NamedLoss
from evengraph.ops.synthesis import VirtualNodes
from small_graphs import dense_row, dense_symmetric, small_task


@pytest.mark.parametrize("loss", get_args(NamedLoss))
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

    monkeypatch.setattr(virtual, "link_probabilities", certain)
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


@pytest.mark.parametrize("variant", ["BAT0", "BAT1"])
def test_links_are_drawn_by_its_variant_in_every_epoch(variant, monkeypatch):
    drawn, real = [], VirtualNodes.link

    def spy(virtual, logits):
        drawn.append((virtual.variant, real(virtual, logits)))
        return drawn[-1][1]

    monkeypatch.setattr(VirtualNodes, "link", spy)
    BAT(variant=variant, max_epochs=8).fit(small_task(), seed=0)
    assert {found for found, _ in drawn} == {variant}
    assert len({tuple(graph.nodes.tolist()) for _, (graph, _) in drawn}) > 1


def test_it_validates_and_predicts_without_virtual_nodes():
    task = small_task()
    method = BAT(max_epochs=30).fit(task, seed=0)
    check_chosen(method, task)
    clean = method.net_(*method._inputs(task.graph)).softmax(1)
    torch.testing.assert_close(method.predict_proba(task.graph), clean)
