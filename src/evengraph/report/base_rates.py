"""Results at other base rates, averaged over runs, for the terminal and the page of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from evengraph.report.untrusted import average, items, lookup, number, part

QUANTITIES = {"alarms": 1000, "precision": 100, "average_precision": 100, "cost": 1000}


def base_rate_rows(result: Mapping[str, Any]) -> list[tuple[str, list[float | None]]]:
    """A caption and values per share of the rarer class, that of the test nodes first.

    Alarms per 1,000 nodes, precision and average precision in percent, and with costs the cost per
    1,000 nodes. Empty for results without base rates.
    """
    sweeps = _sweeps(result)
    names = [name for name in QUANTITIES if name != "cost" or has_costs(result)]
    rows = []
    for index, entries in enumerate(zip(*sweeps, strict=False)):
        share = average(number(lookup(entry, "base_rate")) for entry in entries)
        if share is None:
            continue
        means = {name: average(number(lookup(entry, name)) for entry in entries) for name in names}
        values = [None if m is None else QUANTITIES[name] * m for name, m in means.items()]
        rows.append((f"{100 * share:.3g}%{'' if index else ' (test nodes)'}", values))
    return rows


def has_costs(result: Mapping[str, Any]) -> bool:
    """Whether the base rates come with costs."""
    return any(number(lookup(sweep, 0, "cost")) is not None for sweep in _sweeps(result))


def describe_threshold(result: Mapping[str, Any]) -> str:
    """What the threshold is by which base rates are computed, and what they assume."""
    recall = average(number(lookup(sweep, 0, "recall")) for sweep in _sweeps(result))
    miss, alarm = (number(part(result, "costs").get(name)) for name in ("miss", "alarm"))
    goal = "best F1 on validation nodes"
    if miss is not None and alarm is not None:
        goal = f"lowest cost on validation nodes (a miss costs {miss:g}, an alarm {alarm:g})"
    found = "an undefined part" if recall is None else f"{100 * recall:.1f}%"
    return (
        f"The threshold has the {goal}; it finds {found} of the rarer class at any share, if nodes "
        "of a class look the same."
    )


def _sweeps(result: Mapping[str, Any]) -> list[Sequence[Any]]:
    return [rates for run in items(result, "runs") if (rates := items(run, "base_rates"))]
