"""What a comparison says: which pairs were tested, with which interval, and how significantly.

Every function takes a comparison as `comparison.json` holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evengraph.metrics.significance import ENOUGH_SPLITS, FEWEST_SPLITS
from evengraph.report.untrusted import average, items, number, part

STRENGTH = {"clear": "significant", "here": "on these nodes", "noise": "not significant"}
TOO_FEW = "too few splits"
Comparison = Mapping[str, Any]


def too_few(comparison: Comparison) -> bool:
    """Whether an interval would be wider than any difference between methods."""
    return len(comparison["seeds"]) < ENOUGH_SPLITS


def behind_best(comparison: Comparison, label: str) -> Mapping[str, Any] | None:
    """The pair of a method and the best; None for the best itself."""
    both = {label, comparison["methods"][0]["label"]}
    pairs = (pair for pair in comparison["pairs"] if {pair["ahead"], pair["behind"]} == both)
    return next(pairs, None)


def pair_interval(pair: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval that belongs to the strength of a difference; None for a single split."""
    names = ("low", "high") if pair["strength"] == "here" else ("wide_low", "wide_high")
    low, high = (number(pair[name]) for name in names)
    return None if low is None or high is None else (low, high)


def pair_verdict(comparison: Comparison, pair: Mapping[str, Any]) -> str:
    """Whether a difference is significant, in a few words."""
    tested = len(comparison["seeds"]) >= FEWEST_SPLITS
    if tested and not comparison["conclusive"]:  # one split, several seeds
        return "cannot tell"
    if not tested or (too_few(comparison) and pair["strength"] == "noise"):
        return TOO_FEW
    return STRENGTH[pair["strength"]]


def split_values(method: Mapping[str, Any], metric: str) -> dict[int, float]:
    """The metric of a method for each split."""
    values = {run["seed"]: number(part(run, "metrics").get(metric)) for run in method["runs"]}
    return {seed: value for seed, value in values.items() if value is not None}


def recalls(method: Mapping[str, Any], index: int) -> float | None:
    """Mean recall of a class over splits, in percent; None if it was not recorded."""
    columns = [items(run, "per_class", "recall") for run in method["runs"]]
    return average(number(column[index]) for column in columns if index < len(column))


def training_counts(comparison: Comparison) -> list[float]:
    """Training nodes per class in the first split; all labelled nodes in older files."""
    first = comparison["methods"][0]["runs"][0]
    counts = items(first, "train_counts") or items(comparison, "class_counts")
    return [number(count) or 0.0 for count in counts]
