"""The training loop, progress bars, and many runs trained as one batch."""

from evengraph.training.loop import Callback, Epoch, History, follow, train

__all__ = ["Callback", "Epoch", "History", "follow", "train"]
