"""Readings: other interpretations of what the Uni-GNN paper leaves open, by name."""

from __future__ import annotations

from typing import NamedTuple

from evengraph.metrics.selection import StopOn

STOPS: dict[str, StopOn] = {"stop-on-loss": "loss", "stop-on-accuracy": "accuracy"}
NAMES = ("mean-loss", "unit-rows", *STOPS)


class Readings(NamedTuple):
    """What differs from the plain reading of the paper."""

    mean_loss: bool  # Eq. 8 divided by the sum of its weights, as torch's weighted mean is
    unit_rows: bool  # k-means (Eq. 3, 4) of rows scaled to length one
    stop_on: StopOn


def parse_readings(text: str) -> Readings:
    """Readings from their names, separated by commas; empty: the plain one."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    stops = [STOPS[name] for name in names if name in STOPS]
    if not set(names) <= set(NAMES) or len(stops) > 1 or len(set(names)) < len(names):
        raise ValueError(
            f"readings must be some of {', '.join(NAMES)}, with commas between them and at most "
            f"one stop, got {text!r}."
        )
    return Readings("mean-loss" in names, "unit-rows" in names, stops[0] if stops else "score")
