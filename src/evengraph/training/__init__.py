"""The training loop with its progress and checkpoints, and several processes that share it."""

from evengraph.training.loop import Callback, Epoch, History, train

__all__ = ["Callback", "Epoch", "History", "train"]
