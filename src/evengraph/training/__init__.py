"""The training loop, progress bars, and many runs trained as one batch."""

from evengraph.training.loop import Callback, History, train, train_stepwise
from evengraph.training.shared_epoch import Epoch

__all__ = ["Callback", "Epoch", "History", "train", "train_stepwise"]
