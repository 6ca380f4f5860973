"""The result of a run as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from evengraph.results import HEADLINE

TITLES = {"balanced_accuracy": "bAcc", "macro_f1": "Macro-F1", "g_mean": "G-mean"}


def result_table(result: Mapping[str, Any]) -> Table:
    """Seeds, their mean and deviation, and the paper's figures below."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("seed")
    for name in HEADLINE:
        table.add_column(TITLES[name], justify="right")
    for title in ("best at", "epochs", "seconds"):
        table.add_column(title, justify="right", style="dim")
    for run in result["runs"]:
        scores = (_number(run["metrics"][name]) for name in HEADLINE)
        spent = (str(run["best_epoch"]), str(run["epochs"]), f"{run['seconds']:.1f}")
        table.add_row(str(run["seed"]), *scores, *spent)
    mean, std, paper = result["mean"], result["std"], result["paper"]
    table.add_row()
    several = len(result["runs"]) > 1  # one run has no spread
    cells = [_spread(mean[name], std[name] if several else None) for name in HEADLINE]
    table.add_row("mean", *cells, style="bold")
    if paper:
        cells = [_spread(paper[name]["mean"], paper[name]["std"]) for name in HEADLINE]
        table.add_row("paper", *cells)
        gaps = [mean[name] - paper[name]["mean"] for name in HEADLINE]
        table.add_row("difference", *(f"{gap:+.1f}" for gap in gaps))
    return table


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.1f}"


def _spread(mean: float, deviation: float | None) -> str:
    return _number(mean) if deviation is None else f"{_number(mean)} ± {_number(deviation)}"
