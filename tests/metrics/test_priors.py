"""Class shares by expectation maximisation, on nodes whose shares are known."""

import pytest
import torch

from evengraph.metrics.calibration import adjust_to_shares, estimate_shares


def posterior(x, share):
    """The probability of the second of two normal classes at -1 and 1, (N, 2)."""
    odds = (2 * x).exp() * share / (1 - share)
    second = odds / (1 + odds)
    return torch.stack([1 - second, second], dim=1)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_shares_are_found_and_corrected_for(share):
    draw = torch.Generator().manual_seed(0)
    labels = torch.rand(20_000, generator=draw, dtype=torch.float64) < share
    x = torch.randn(20_000, generator=draw, dtype=torch.float64) + 2 * labels - 1
    training = torch.tensor([0.6, 0.4])
    found = estimate_shares(posterior(x, 0.4), training)
    assert float(found[1]) == pytest.approx(share, abs=0.02)
    corrected = adjust_to_shares(posterior(x, 0.4), training, torch.tensor([1 - share, share]))
    torch.testing.assert_close(corrected, posterior(x, share), atol=1e-6, rtol=0)


def test_unchanged_shares_change_nothing():
    rows = torch.tensor([[0.2, 0.8], [0.7, 0.3]])
    mean = rows.double().mean(0)
    torch.testing.assert_close(estimate_shares(rows, mean), mean, atol=1e-5, rtol=0)
    torch.testing.assert_close(adjust_to_shares(rows, mean, mean), rows.double())


def test_a_class_that_is_gone():
    rows = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    shares = torch.tensor([1.0, 0.0])
    found = adjust_to_shares(rows, torch.tensor([0.5, 0.5]), shares)
    assert found.tolist() == [[0, 1], [1, 0]]  # the first row leaves no other class
