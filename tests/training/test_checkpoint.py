"""Training continues from a checkpoint as if there had been no break."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout, mse_loss

from evengraph.core.rng import seeded
from evengraph.training import train
from evengraph.training.loop import Checkpoint
from small_graphs import normal

PARAMS = {"learning_rate": 0.1, "weight_decay": 0.0, "max_epochs": 12, "patience": 100}


class Epochs:
    """A loss with dropout, and a count of epochs that the checkpoint has to store."""

    def __init__(self, net):
        self.net, self.x, self.count = net, normal(20, 3).float(), 0

    def __call__(self):
        self.count += 1
        loss = mse_loss(self.net(dropout(self.x)), self.x[:, :1])
        return loss, torch.tensor(float(-abs(self.count - 8)))

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def trained(checkpoint=None, stop_after=None):
    def on_epoch(history):
        if history.epochs == stop_after:
            raise RuntimeError("killed")

    with seeded(0):
        net = nn.Linear(3, 1)
        history = train(net, Epochs(net), checkpoint=checkpoint, on_epoch=on_epoch, **PARAMS)
    return history, net.weight.detach()


def test_a_killed_run_resumes_bit_by_bit(tmp_path):
    expected, weights = trained()
    path = tmp_path / "folder" / "run.pt"
    with pytest.raises(RuntimeError, match="killed"):
        trained(Checkpoint(path, every=0), stop_after=5)
    assert path.exists()
    history, again = trained(Checkpoint(path, every=0))
    assert (history.loss, history.score) == (expected.loss, expected.score)
    assert history.best_epoch == expected.best_epoch == 7
    assert torch.equal(again, weights)
    assert not path.exists()  # complete


def test_a_file_is_written_only_after_some_time(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.pt", every=1000)
    with pytest.raises(RuntimeError, match="killed"):
        trained(checkpoint, stop_after=5)
    assert not checkpoint.path.exists()
