"""Contributions to a vote: shares of margins that sum to the margin of the mean."""

import pytest
import torch

from evengraph.methods import GCN, Auto, Boosting, Logistic
from evengraph.pipeline.attribution import (
    Contributions,
    gradient_times_input,
    margin_slope,
    vote_shares,
    weighted_sum,
)
from evengraph.pipeline.explanation import explain
from evengraph.testing import small_task


@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0, 60.0])
def test_margins_times_shares_are_the_margin_of_the_mean(scale):
    draw = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(5, 3, dtype=torch.float64, generator=draw)
    weights = torch.rand(5, dtype=torch.float64, generator=draw)
    weights = weights / weights.sum()
    direction = torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)
    rows, margins = logits.softmax(1), logits @ direction
    mean = weights @ rows
    expected = float(mean[1].log() - mean[2].log())
    shares = vote_shares(rows, margins, weights, direction)
    assert float(shares @ margins) == pytest.approx(expected, abs=1e-12, rel=1e-9)
    assert (shares > 0).all()


def test_the_slope_of_equal_values():
    one = torch.tensor(0.5, dtype=torch.float64)
    assert float(margin_slope(one, one)) == 2
    assert float(margin_slope(one, one + 1e-7)) == pytest.approx(2)


def test_origins_of_several_parts_are_joined():
    first = Contributions(torch.tensor(1.0), torch.ones(2), columns={"own": torch.ones(3)})
    second = Contributions(torch.tensor(2.0), torch.ones(2), columns={"others": torch.ones(3)})
    both = weighted_sum([first, second], [0.5, 0.25])
    assert float(both.value) == 1
    assert both.total.tolist() == [0.75, 0.75]
    assert both.columns["own"].tolist() == [0.5] * 3
    assert both.columns["others"].tolist() == [0.25] * 3


def test_gradient_times_input_by_hand():
    weight = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    x = torch.tensor([[-1.5, 2.0], [1.5, -2.0]])  # its mean is zero
    mix = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    direction = torch.tensor([1.0, -1.0])
    parts = gradient_times_input(lambda x: (mix @ x @ weight + 7)[0] @ direction, x, 0)
    assert parts.total.tolist() == [-3 - 6, 3 + 6]
    assert float(parts.value) == 0
    assert parts.columns["own"].tolist() == [-3, -6]
    assert parts.columns["others"].tolist() == [3, 6]
    moved = gradient_times_input(lambda x: (mix @ x @ weight)[0] @ direction, x + 9, 0)
    assert moved.total.tolist() == parts.total.tolist()


@pytest.mark.parametrize("node", [3, 120])
def test_an_average_is_explained_by_all_its_members(node):
    task = small_task()
    method = Auto(candidates="mlp", max_epochs=6).fit(task, seed=0)
    kinds = Boosting(context=True), GCN(), Logistic()
    method.members_ = [kind.set_params(max_epochs=6).fit(task, seed=0) for kind in kinds]
    method.weights_, method._predicted = [0.5, 0.3, 0.2], None
    found = explain(method, task.graph, node, task=task, top=99)
    rows = method.predict_proba(task.graph)[node].double().log()
    assert found.margin == pytest.approx(float(rows[found.predicted] - rows[found.runner_up]))
    assert {"own", "others"} <= {one.of for one in found.reasons}
