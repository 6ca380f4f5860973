"""Coverage and risk by hand."""

import pytest
import torch

from evengraph.metrics.decisions import RiskCurve

FIRST = torch.tensor([0.95, 0.9, 0.8, 0.7, 0.6, 0.55, 0.45, 0.1, 0.05, 0.02])
ROWS = torch.stack([FIRST, 1 - FIRST], dim=1)
LABELS = torch.tensor([0, 0, 0, 1, 0, 1, 1, 1, 1, 1])  # wrong at 0.7 and 0.55


def test_levels_by_hand():
    found = RiskCurve.of(LABELS, ROWS)
    assert found.nodes == 10
    everything = found.levels[0]
    assert everything.coverage == 1
    assert everything.confidence == 0  # also a node of less confidence than any of validation
    assert everything.error == pytest.approx(0.2)
    assert everything.balanced_error == pytest.approx((0 + 2 / 6) / 2)
    level = found.at_share(0.15)  # a tenth is too little
    assert level.coverage == pytest.approx(0.8)
    assert level.confidence == pytest.approx(0.6)
    assert level.error == pytest.approx(1 / 8)
    assert found.at_error(0.2) == everything
    assert found.at_error(0.1).coverage == pytest.approx(0.6)
    assert found.at_share(0) == everything


def test_equal_confidence_is_decided_together():
    found = RiskCurve.of(torch.tensor([0, 1, 0]), torch.full((3, 2), 0.5))
    assert len(found.levels) == 1
    assert found.at_share(0.5).coverage == 1


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_what_is_refused(value):
    found = RiskCurve.of(LABELS, ROWS)
    with pytest.raises(ValueError, match=r"abstain must lie in \[0, 1\)"):
        found.at_share(value)
    with pytest.raises(ValueError, match=r"max_error must lie in \[0, 1\)"):
        found.at_error(value)


def test_an_error_that_is_never_reached():
    found = RiskCurve.of(torch.tensor([1, 1]), torch.tensor([[0.9, 0.1], [0.8, 0.2]]))
    with pytest.raises(ValueError, match=r"max_error must be at least 1.000, the lowest error"):
        found.at_error(0.5)
