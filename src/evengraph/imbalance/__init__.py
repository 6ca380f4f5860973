"""Protocols: small objects that turn a graph and a seed into a task."""

from evengraph.imbalance.base import Imbalance
from evengraph.imbalance.bytime import ByTime
from evengraph.imbalance.folds import Folds
from evengraph.imbalance.given import Given
from evengraph.imbalance.longtail import LongTail
from evengraph.imbalance.natural import Natural
from evengraph.imbalance.publicstep import PublicStep
from evengraph.imbalance.step import Step

IMBALANCES = {
    "step": Step,
    "longtail": LongTail,
    "natural": Natural,
    "folds": Folds,
    "publicstep": PublicStep,
    "given": Given,
    "bytime": ByTime,
}

__all__ = [
    "IMBALANCES",
    "ByTime",
    "Folds",
    "Given",
    "Imbalance",
    "LongTail",
    "Natural",
    "PublicStep",
    "Step",
]
