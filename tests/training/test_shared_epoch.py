"""Epochs that processes share."""

import torch

from evengraph.training.loop import shared_epoch
from evengraph.training.ranks import ALONE
from rank_workers import gradients, run_ranks


def test_gradients_are_those_of_all_rows(tmp_path):
    expected = torch.tensor([[2 / 3 * (3 * 1 + 7 * 3 + 11 * 5), 2 / 3 * (3 * 2 + 7 * 4 + 11 * 6)]])
    for loss, score, gradient in run_ranks(tmp_path / "ranks", gradients):
        assert abs(loss - (9 + 49 + 121) / 3) < 1e-4
        assert score == 1  # that of the first process
        torch.testing.assert_close(gradient, expected)


def test_alone_an_epoch_stays_as_it_is():
    epoch = object()
    assert shared_epoch(None, epoch, ALONE) is epoch
