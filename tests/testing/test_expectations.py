"""Every assertion of the contract holds of what is right and fails of what is not."""

import pytest
import torch

from evengraph.testing.method import (
    expect,
    expect_equal,
    expect_error,
    expect_probabilities,
)


def test_a_condition():
    expect(True, "no")
    expect(torch.tensor(True), "no")
    with pytest.raises(AssertionError, match="no"):
        expect(False, "no")


@pytest.mark.parametrize("other", [torch.tensor([1.0, 2.5]), torch.tensor([[1.0, 2.0]])])
def test_the_same_bits(other):
    values = torch.tensor([1.0, 2.0])
    expect_equal(values, values.clone(), "differ")
    with pytest.raises(AssertionError, match="differ"):
        expect_equal(values, other, "differ")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.ones(2, 3) / 3, "shape"),
        (torch.tensor([[float("nan"), 1.0]]), "finite"),
        (torch.tensor([[1.5, -0.5]]), "negative"),
        (torch.tensor([[0.5, 0.4]]), "sum to one"),
        (torch.tensor([[0.5, 0.5]], requires_grad=True), "gradients"),
    ],
)
def test_rows_are_probabilities(values, message):
    expect_probabilities(torch.tensor([[0.5, 0.5]]), 1, 2)
    with pytest.raises(AssertionError, match=message):
        expect_probabilities(values, 1, 2)


def test_an_error_with_its_words():
    def fail():
        raise ValueError("top must be at least 0.")

    assert expect_error(ValueError, "top", fail) == "top must be at least 0."
    with pytest.raises(AssertionError, match="does not contain 'node'"):
        expect_error(ValueError, "node", fail)
    with pytest.raises(AssertionError, match="no ValueError was raised"):
        expect_error(ValueError, "top", lambda: None)
