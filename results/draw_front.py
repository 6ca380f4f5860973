"""Draw the results of the default for README.md and docs/benchmarks.md from stored runs.

python results/draw_front.py            print the table
python results/draw_front.py --write    put it between the marks of both pages
"""

from __future__ import annotations

import re
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from evengraph.lab.results import (
    ALPHA,
    Cell,
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
SPLITS = 10
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


@cache
def now() -> dict[str, Cell]:
    """Settings with ten runs of auto as it is now."""
    (results,) = load_experiments(Store(HERE / "auto.sqlite"))
    cells = {cell.setting: cell for cell in results.cells if len(cell.rows) == SPLITS}
    return {setting: cells[setting] for setting in portfolio().settings if setting in cells}


def default() -> str:
    """Auto beside GCN and the best other row, with the interval of the difference from GCN."""
    others = [label for label in portfolio().labels if label != "Auto"]
    best = f"best of {len(others)} methods, by test"
    lines = [f"| graph | GCN | {best} | `auto` | `auto` minus GCN (95%) |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for setting, gap in zip(now(), _gaps("GCN"), strict=True):
        means = (_cell(setting, "GCN").mean(_metric(setting)), _highest(setting), _mean(setting))
        values = " | ".join(f"{mean:.1f}" for mean in means)
        lines.append(f"| {_name(setting)} | {values} | {gap} |")
    return "\n".join(lines)


def present() -> str:
    """Auto as it is now beside that of version 0.2.0."""
    lines = ["| graph | `auto` of 0.2.0 | `auto` now | difference (95%) |"]
    lines.append("| --- | --- | --- | --- |")
    for setting, gap in zip(now(), _gaps("Auto"), strict=True):
        before = _cell(setting, "Auto").mean(_metric(setting))
        lines.append(f"| {_name(setting)} | {before:.1f} | {_mean(setting):.1f} | {gap} |")
    return "\n".join(lines)


def _gaps(label: str) -> list[str]:
    """Auto minus another row, with intervals, and stars after correction for all settings."""
    gaps = [paired_gaps(now()[s], _cell(s, label), _metric(s)) for s in now()]
    corrected = holm([gap.evidence.p for gap in gaps])
    return [
        f"{round(gap.mean, 1) + 0.0:+.1f}{'*' if p < ALPHA else ''} "
        f"({gap.band[0]:.1f} to {gap.band[1]:.1f})"
        for gap, p in zip(gaps, corrected, strict=True)
    ]


def _mean(setting: str) -> float:
    return now()[setting].mean(_metric(setting))


FRESH = HERE / "draws.csv"
SETS = {
    "pay11": "generated payments",
    "minesweeper": "Minesweeper",
    "reddit-user": "Reddit users",
    "twitch-es-mature": "Twitch ES, mature",
    "twitch-ru-partner": "Twitch RU, partner",
}
LABELS = {
    "few-10": "10 of 500 labels",
    **{f"natural-{number}": f"{number} positives" for number in (15, 30, 100)},
    "10%": "10% of labels",
}
MODELS = {
    "auto": "`auto`",
    "mean-2hop": "mean of both",
    "lightgbm-2hop": "LightGBM, two hops",
    "logistic-2hop": "logistic regression, two hops",
    "isotonic-2hop": "LightGBM, two hops, isotonic",
    "platt-2hop": "logistic regression, two hops, sigmoid",
    "lightgbm": "LightGBM, no graph",
    "logistic": "logistic regression, no graph",
}


@cache
def fresh() -> Any:
    """Every model of draws that all have, on draws of labels that nothing was chosen on."""
    rows = pd.read_csv(FRESH)
    models = rows.groupby(["set", "regime", "draw"])["method"].transform("nunique")
    return rows[models == len(MODELS)]


def _means(value: str) -> Any:
    return fresh().pivot_table(index=["set", "regime"], columns="method", values=value)


def draws() -> str:
    """Mean average precision of `auto` and alternatives, and the worst quarter of its draws."""
    worst = fresh()[fresh()["method"] == "auto"].groupby(["set", "regime"])["score"]
    quarter = worst.apply(lambda some: some.nsmallest(max(1, len(some) // 4)).mean())
    heads = [*list(MODELS.values())[:4], "highest of seven", "worst quarter of `auto`"]
    lines = [f"| graph | labels | {' | '.join(heads)} |", "| --- " * (len(heads) + 2) + "|"]
    means = _means("score")
    for name, regime in product(SETS, LABELS):
        row = means.loc[name, regime]
        values = [*row[list(MODELS)[:4]], row.drop("auto").max(), quarter[name, regime]]
        lines.append(
            f"| {SETS[name]} | {LABELS[regime]} | {' | '.join(f'{v:.1f}' for v in values)} |"
        )
    return "\n".join(lines)


def lead() -> str:
    """In how many rows `auto` is ahead of all alternatives, and where it is not."""
    means = _means("score")
    gaps = means["auto"] - means.drop(columns="auto").max(axis=1)
    behind = gaps[gaps < 0].groupby("set")
    where = [f"{SETS[n]} in {len(some)}, by {-some.min():.1f} at most" for n, some in behind]
    return f"ahead of all seven in {(gaps > 0).sum()} of {len(gaps)} rows; behind on {_and(where)}"


def probabilities() -> str:
    """What probabilities are worth, on labels as frequent as the classes."""
    rows = fresh()[fresh()["regime"] != "few-10"].copy()
    rows["near"] = 100 * (rows["mean_p"] / rows["share"]).between(1 / 1.5, 1.5)
    columns = ["near", "ece", "brier", "cost50", "cost10", "recall1"]
    means = rows.groupby(["set", "regime", "method"])[columns].mean()
    for cost in ("cost50", "cost10"):
        base = means.xs("mean-2hop", level="method")[cost]
        means[cost] = means[cost] / base.reindex(means.index.droplevel("method")).to_numpy()
    found = means.groupby("method").mean()
    heads = "mean within 1.5 of the share | calibration error | Brier score | cost 50:1 | cost 10:1"
    lines = [f"| probabilities | {heads} | recall at 1% |", "| --- " * 7 + "|"]
    for name, title in MODELS.items():
        near, ece, brier, fifty, ten, recall = found.loc[name]
        shown = f"{near:.0f}% | {ece:.3f} | {brier:.3f} | {fifty:.2f} | {ten:.2f} | {recall:.1%}"
        lines.append(f"| {title} | {shown} |")
    return "\n".join(lines)


def coverage() -> str:
    """Shares of test nodes whose set of `auto`, for 90% of each class, holds their class."""
    rows = fresh()[fresh()["method"] == "auto"]
    found = rows.groupby("regime")[["covered", "rare"]].mean()
    order = {"natural-15": "15 positives", "natural-30": "30", "natural-100": "100", "10%": "10%"}
    return _and([f"{found['rare'][key]:.1%} with {name}" for key, name in order.items()])


def _and(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _name(setting: str) -> str:
    ranked = " (AP)" if _metric(setting) == RANKING else ""
    return NAMES[setting.partition("-natural")[0]] + ranked


def _highest(setting: str) -> float:
    others = (label for label in portfolio().labels if label != "Auto")
    return max(_cell(setting, label).mean(_metric(setting)) for label in others)


def _metric(setting: str) -> str:
    found = _cell(setting, "Auto").rows[0].outcome["metrics"]
    return RANKING if RANKING in found else METRIC


def _cell(setting: str, label: str) -> Cell:
    cell = portfolio().find(setting, label)
    assert cell is not None
    return cell


DRAWN = (default, present, draws, lead, probabilities, coverage)


def write() -> None:
    """Put the table into the pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(rf"\g<1>{default()}\n\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    write() if "--write" in sys.argv else print(*(draw() for draw in DRAWN), sep="\n\n")
