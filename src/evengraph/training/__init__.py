"""The training loop, progress bars, and many runs trained as one batch."""

from evengraph.training.loop import Callback, Epoch, History, train, train_stepwise

__all__ = ["Callback", "Epoch", "History", "train", "train_stepwise"]
