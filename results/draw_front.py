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
        name = NAMES[setting.partition("-natural")[0]] + (" (AP)" if metric == RANKING else "")
        highest = max(_cell(setting, label).mean(metric) for label in others)
        values = f"{gcn.mean(metric):.1f} | {highest:.1f} | {auto.mean(metric):.1f}"
        lines.append(f"| {name} | {values} | {gap.mean:+.1f}{star} ({low:.1f} to {high:.1f}) |")
    return "\n".join(lines)


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
    write() if "--write" in sys.argv else print(default())
