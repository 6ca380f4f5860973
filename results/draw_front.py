"""Draw the results of the default for README.md and docs/benchmarks.md from stored runs.

python results/draw_front.py            print the table
python results/draw_front.py --write    put it between the marks of both pages
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

from evengraph.lab.results import (
    ALPHA,
    Cell,
    Estimate,
    ExperimentResults,
    load_experiments,
    paired_gaps,
)
from evengraph.lab.store import Store
from evengraph.metrics.significance import holm

HERE = Path(__file__).parent
PAGES = (HERE.parent / "README.md", HERE.parent / "docs" / "benchmarks.md")
BLOCK = re.compile(r"(<!-- default -->\n).*?\n?(<!-- /default -->)", flags=re.S)
METRIC = "balanced_accuracy"
RANKING = "positive_average_precision"  # of the rarer of two classes
NAMES = {
    "computers": "Amazon Computers",
    "physics": "Coauthor Physics",
    "minesweeper": "Minesweeper",
    "dblp": "DBLP",
    "cora_ml": "Cora-ML",
    "blogcatalog": "BlogCatalog",
    "reddit-user": "Reddit users",
}


@cache
def portfolio() -> ExperimentResults:
    """Auto and single methods on naturally imbalanced graphs."""
    (results,) = load_experiments(Store(HERE / "unison.sqlite"), ["portfolio"])
    return results


def default() -> str:
    """Auto beside GCN and the best other row, with the interval of the difference from GCN."""
    others = [label for label in portfolio().labels if label != "Auto"]
    best = f"best of {len(others)} methods, by test"
    header = f"| graph | GCN | {best} | `auto` | `auto` minus GCN (95%) |"
    lines = [header, "| --- | --- | --- | --- | --- |"]
    tests = [_gap(setting) for setting in portfolio().settings]
    corrected = holm([gap.evidence.p for gap in tests])
    for setting, gap, p in zip(portfolio().settings, tests, corrected, strict=True):
        gcn, auto = _cell(setting, "GCN"), _cell(setting, "Auto")
        metric = _metric(setting)
        (low, high), star = gap.band, "*" if p < ALPHA else ""
        means = (gcn.mean(metric), _highest(setting), auto.mean(metric))
        values = " | ".join(f"{mean:.1f}" for mean in means)
        shown = f"{gap.mean:+.1f}{star} ({low:.1f} to {high:.1f})"
        lines.append(f"| {_name(setting)} | {values} | {shown} |")
    return "\n".join(lines)


def present() -> str:
    """Auto as it is now beside that of version 0.2.0, GCN and the best other row."""
    (results,) = load_experiments(Store(HERE / "auto.sqlite"))
    cells = {cell.setting: cell for cell in results.cells}
    old, gcn = (
        [paired_gaps(cells[s], _cell(s, label), _metric(s)) for s in cells]
        for label in ("Auto", "GCN")
    )
    p_values = holm([gap.evidence.p for gap in (*old, *gcn)])
    stars = ["*" if p < ALPHA else "" for p in p_values]
    shown = [
        f"{round(gap.mean, 1) + 0.0:+.1f}{star} ({gap.band[0]:.1f} to {gap.band[1]:.1f})"
        for gap, star in zip((*old, *gcn), stars, strict=True)
    ]
    names = ("of 0.2.0", "now", "now minus 0.2.0", "now minus GCN")
    lines = [f"| graph | GCN | best of 14 | {' | '.join(f'`auto` {name}' for name in names)} |"]
    lines.append("| --- " * 7 + "|")
    for setting, *gaps in zip(cells, shown[: len(cells)], shown[len(cells) :], strict=True):
        metric = _metric(setting)
        means = [_cell(setting, "GCN").mean(metric), _highest(setting)]
        means += [_cell(setting, "Auto").mean(metric), cells[setting].mean(metric)]
        values = " | ".join(f"{mean:.1f}" for mean in means)
        lines.append(f"| {_name(setting)} | {values} | {' | '.join(gaps)} |")
    return "\n".join(lines)


def _name(setting: str) -> str:
    ranked = " (AP)" if _metric(setting) == RANKING else ""
    return NAMES[setting.partition("-natural")[0]] + ranked


def _highest(setting: str) -> float:
    others = (label for label in portfolio().labels if label != "Auto")
    return max(_cell(setting, label).mean(_metric(setting)) for label in others)


def _gap(setting: str) -> Estimate:
    """Auto minus GCN on every split."""
    return paired_gaps(_cell(setting, "Auto"), _cell(setting, "GCN"), _metric(setting))


def _metric(setting: str) -> str:
    found = _cell(setting, "Auto").rows[0].outcome["metrics"]
    return RANKING if RANKING in found else METRIC


def _cell(setting: str, label: str) -> Cell:
    cell = portfolio().find(setting, label)
    assert cell is not None
    return cell


def write() -> None:
    """Put the table into the pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(rf"\g<1>{default()}\n\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    write() if "--write" in sys.argv else print(default(), present(), sep="\n\n")
