"""Stored runs of the paper's settings, for the scripts that draw docs/reproduction.md.

Hyperparameters of Uni-GNN were selected on seeds 5 to 7. What is said of it rests on seeds 8 to 24,
which took no part in that; methods that have seeds 5 to 7 only are compared on those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from evengraph.lab.results import ALPHA, Cell, ExperimentResults, load_experiments, paired_gaps
from evengraph.lab.store import Store
from evengraph.metrics.significance import holm, t_test

HERE = Path(__file__).parent
STORES = {
    **dict.fromkeys(("table1", "table2", "table3", "figure2"), "reproduce"),
    **dict.fromkeys(("control", "budget"), "fair"),
    "machines": "machines",
    "starts": "starts",
    "ties": "ties",
}
METRIC = "balanced_accuracy"
METRICS = (METRIC, "macro_f1", "g_mean")
INDEPENDENT = METRICS[:2]  # with classes of equal size in the test, G-mean follows from recall
CHOICE, OUTSIDE = range(5, 8), range(8, 25)
OURS = "Uni-GNN"
TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

CellOf = Callable[[str], Cell]  # the cell of Uni-GNN in a setting


@cache
def experiment(name: str) -> ExperimentResults:
    """Results of a stored experiment."""
    (found,) = load_experiments(Store(HERE / f"{STORES[name]}.sqlite"), [name])
    return found


def cell(name: str, setting: str, label: str, seeds: Iterable[int] = OUTSIDE) -> Cell:
    """A cell of an experiment, with the runs of some seeds."""
    found = experiment(name).find(setting, label)
    assert found is not None, (name, setting, label)
    return found.with_seeds(seeds)


def paper_cell(setting: str, label: str, seeds: Iterable[int] = OUTSIDE) -> Cell:
    """A cell of the paper's two comparison tables."""
    return cell("table2" if "longtail" in setting else "table1", setting, label, seeds)


def settings(prefix: str = "") -> list[str]:
    """The fourteen settings, or those whose names begin so."""
    both = [*experiment("table1").settings, *experiment("table2").settings]
    return [name for name in both if name.startswith(prefix)]


def title(setting: str) -> str:
    """Such as Cora, 3 classes, 10%."""
    dataset, kind, *numbers = setting.split("-")
    if kind == "longtail":
        return f"{TITLES[dataset]}, long tail 1%"
    classes = "1 class" if numbers[0] == "1" else f"{numbers[0]} classes"
    return f"{TITLES[dataset]}, {classes}, {100 * float(numbers[1]):.0f}%"


def published(setting: str, label: str, metric: str = METRIC) -> float:
    """The paper's mean; minus infinity where it has none."""
    value = paper_cell(setting, label, CHOICE).published(metric)
    return float("-inf") if value is None else value


def reached(ours: CellOf, metrics: Sequence[str] = METRICS) -> list[bool]:
    """Whether each mean, rounded as published, is at least the paper's."""
    return [
        round(ours(setting).mean(metric), 1) >= published(setting, OURS, metric)
        for setting in settings()
        for metric in metrics
    ]


class Gaps(list[float]):
    """Differences on the same splits, and how much splits share: test nodes over the others."""

    def __init__(self, values: Iterable[float], overlap: float = 0.0) -> None:
        super().__init__(values)
        self.overlap = overlap


def differences(pairs: Iterable[tuple[Cell, Cell]]) -> list[Gaps]:
    """The first of each pair minus the second, for every seed."""
    found = [paired_gaps(*pair, METRIC) for pair in pairs]
    return [Gaps(gaps.values, gaps.overlap) for gaps in found]


def corrected(gaps: Iterable[Gaps]) -> list[float]:
    """The p value of each, corrected for what splits share and, by Holm's method, for all."""
    return holm([t_test(values, overlap=values.overlap).p for values in gaps])


def significant(gaps: Sequence[Gaps], among: Iterable[Gaps] = ()) -> int:
    """How many differences are above 0 after correction for them and the rest of their table."""
    tests = zip(gaps, corrected([*gaps, *among]), strict=False)
    return sum(p < ALPHA and fmean(values) > 0 for values, p in tests)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95% interval of a mean, or of a difference, which allows for what splits share."""
    found = t_test(values, overlap=values.overlap if isinstance(values, Gaps) else 0.0)
    return found.low, found.high


def estimate(values: Sequence[float], *, sign: str = "") -> str:
    """Mean with its interval, such as 75.6 (73.4 to 77.5)."""
    low, high = interval(values)
    mean = round(fmean(values), 1) + 0.0  # no minus before zero
    return f"{mean:{sign}.1f} ({low:.1f} to {high:.1f})"


def of(found: Sequence[bool]) -> str:
    """Such as 22 of 42."""
    return f"{sum(found)} of {len(found)}"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
