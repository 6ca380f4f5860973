"""Split protocols: each turns a graph and a seed into a task."""

from evengraph.splits.base import SplitProtocol
from evengraph.splits.bytime import ByTime
from evengraph.splits.folds import Folds
from evengraph.splits.given import Given
from evengraph.splits.longtail import LongTail
from evengraph.splits.natural import Natural
from evengraph.splits.publicstep import PublicStep
from evengraph.splits.step import Step

SPLITS = {
    "step": Step,
    "longtail": LongTail,
    "natural": Natural,
    "folds": Folds,
    "publicstep": PublicStep,
    "given": Given,
    "bytime": ByTime,
}

__all__ = [
    "SPLITS",
    "ByTime",
    "Folds",
    "Given",
    "LongTail",
    "Natural",
    "PublicStep",
    "SplitProtocol",
    "Step",
]
