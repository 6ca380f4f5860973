"""Draw the tables of docs/sklearn.md from tables.csv: `python results/draw_tables.py`."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pandas as pd

from evengraph.metrics.significance import bootstrap_interval

HERE = Path(__file__).parent
OURS = "evengraph"
METRICS = {"bacc": "balanced accuracy", "ap": "average precision"}


def rows() -> pd.DataFrame:
    """Every model of every draw."""
    return pd.read_csv(HERE / "tables.csv", dtype={"commit": str})


def compared(frame: pd.DataFrame, *, transfer: bool) -> str:
    """Means over the draws, and how far the worst draw is behind its best alternative."""
    frame = frame[(frame["trained_on"] != frame["predicted"]) == transfer]
    lines = []
    for (trained, label, predicted), group in frame.groupby(["trained_on", "label", "predicted"]):
        task = f"{_title(trained)} to {_title(predicted)}" if transfer else _title(trained)
        for metric, title in METRICS.items():
            table = group.pivot(index="draw", columns="model", values=metric)
            others = table.drop(columns=OURS)
            worst = (table[OURS] - others.max(axis="columns")).min()
            best = others.mean().idxmax()
            gaps = list(table[OURS] - others[best])
            low, high = bootstrap_interval(gaps) or (0.0, 0.0)
            cells = [f"{table[OURS].mean():.1f}", f"{others[best].mean():.1f} ({best})"]
            cells += [f"{fmean(gaps):+.1f} ({low:.1f} to {high:.1f})", f"{worst:+.1f}"]
            lines.append([task, label, title, *cells])
    header = ["tables", "label", "metric", "evengraph", "best alternative", "difference (95%)"]
    header.append("worst draw")
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in (header, ["---"] * len(header), *lines)
    )


def behind(frame: pd.DataFrame) -> str:
    """In how many scores of single draws the best alternative is ahead by more than a point."""
    frame = frame[frame["trained_on"] == frame["predicted"]]
    gaps: list[float] = []
    for metric in METRICS:
        table = frame.pivot(index=["trained_on", "label", "draw"], columns="model", values=metric)
        gaps += list(table[OURS] - table.drop(columns=OURS).max(axis="columns"))
    return f"{sum(gap < -1 for gap in gaps)} of {len(gaps)} scores"


def draws(frame: pd.DataFrame) -> int:
    """How many draws there are of every task."""
    (number,) = set(frame.groupby(["trained_on", "label", "predicted"])["draw"].nunique())
    return int(number)


def _title(folder: object) -> str:
    return str(folder).removeprefix("twitch-").upper()


if __name__ == "__main__":
    found = rows()
    print(f"{draws(found)} draws, {behind(found)}\n")
    print(compared(found, transfer=False), compared(found, transfer=True), sep="\n\n")
