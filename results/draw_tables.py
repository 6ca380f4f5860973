"""Draw the last tables of docs/results/unison.md: `python results/draw_tables.py`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evengraph.metrics.significance import holm, t_test

HERE = Path(__file__).parent
OURS = "evengraph"
OVERLAP = 0.85 / 0.15  # test nodes over labelled ones, on the table that was trained on
ALPHA = 0.05
METRICS = {"bacc": "balanced accuracy", "ap": "average precision"}


def rows() -> pd.DataFrame:
    """Every model of every draw."""
    return pd.read_csv(HERE / "tables.csv", dtype={"commit": str})


def compared(frame: pd.DataFrame, *, transfer: bool) -> str:
    """Means over the draws, and how far the worst draw is behind its best alternative."""
    frame = frame[(frame["trained_on"] != frame["predicted"]) == transfer]
    lines, p_values = [], []
    for (trained, label, predicted), group in frame.groupby(["trained_on", "label", "predicted"]):
        task = f"{_title(trained)} to {_title(predicted)}" if transfer else _title(trained)
        for metric, title in METRICS.items():
            table = group.pivot(index="draw", columns="model", values=metric)
            others = table.drop(columns=OURS)
            worst = (table[OURS] - others.max(axis="columns")).min()
            best = others.mean().idxmax()
            gaps = list(table[OURS] - others[best])
            gap, low, high, p = t_test(gaps, overlap=0.0 if transfer else OVERLAP)
            cells = [f"{table[OURS].mean():.1f}", f"{others[best].mean():.1f} ({best})"]
            cells += [f"{gap:+.1f}{{}} ({low:.1f} to {high:.1f})", f"{worst:+.1f}"]
            lines.append([task, label, title, *cells])
            p_values.append(p)
    for line, p in zip(lines, holm(p_values), strict=True):
        line[5] = line[5].format("*" if p < ALPHA else "")
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
