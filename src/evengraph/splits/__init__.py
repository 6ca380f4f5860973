"""Split protocols: each turns a graph and a seed into a task."""

from evengraph.splits.protocols import ByTime as ByTime
from evengraph.splits.protocols import Folds as Folds
from evengraph.splits.protocols import Given as Given
from evengraph.splits.protocols import LongTail as LongTail
from evengraph.splits.protocols import Natural as Natural
from evengraph.splits.protocols import PublicStep as PublicStep
from evengraph.splits.protocols import SemiSupervised as SemiSupervised
from evengraph.splits.protocols import SplitProtocol as SplitProtocol
from evengraph.splits.protocols import Step as Step

SPLITS = {
    "step": Step,
    "longtail": LongTail,
    "natural": Natural,
    "folds": Folds,
    "publicstep": PublicStep,
    "given": Given,
    "bytime": ByTime,
    "semisupervised": SemiSupervised,
}

DRAWS = {"semisupervised": 10}
"""Splits that are usually averaged over, where a protocol has a custom of its own."""
