"""Results of experiments: which stored runs make up each cell of a table or point of a curve."""

from __future__ import annotations

import tomllib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib.resources import files
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from evengraph.core.files import csv_text
from evengraph.lab.store import Row, Store
from evengraph.metrics.registry import HEADLINE, METRICS
from evengraph.metrics.significance import RESAMPLES, Evidence, holm, mean_ranks, t_test
from evengraph.report.markup import plural
from evengraph.report.view import setting_title


class Estimate(NamedTuple):
    """Values of a method or differences between two, one per seed, and the published mean."""

    label: str
    values: Sequence[float]
    paper: float | None
    overlap: float = 0.0  # of differences: test nodes over the other labelled nodes

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def evidence(self) -> Evidence:
        """The t-test of the mean, which allows for nodes that splits share."""
        return t_test(self.values, overlap=self.overlap)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% interval of the mean; None for a single seed."""
        return None if len(self.values) < 2 else self.evidence[1:3]

    @property
    def band(self) -> tuple[float, float]:
        """The interval, or the value of a single seed twice."""
        return self.interval or (self.mean, self.mean)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table or point of a curve, with its runs."""

    setting: str  # name of the data set with its split protocol
    dataset: str
    label: str  # display name of the method or variant
    varies: str | None  # the parameter that varies along a curve
    value: Any  # of that parameter
    selected: Mapping[str, Any]  # hyperparameters selected on validation
    paper: Mapping[str, Mapping[str, float | None]] | None  # published mean and deviation
    rows: Sequence[Row]  # one run per seed
    note: str = ""  # what the literature says about the parameter that varies
    role: str = ""  # of the method and its variants: "baseline", "highlight" or ""

    @property
    def name(self) -> str:
        """The label, with the value of the parameter that varies along a curve."""
        return self.label if self.value is None else f"{self.label} = {self.value}"

    @cached_property
    def _parsed(self) -> tuple[Mapping[str, Sequence[float]], set[str]]:
        """Values of every metric that all runs have, in their order, and the `criteria`."""
        outcomes = [dict(row.outcome.items()) for row in self.rows]  # slow
        metrics = [outcome["metrics"] for outcome in outcomes]
        names = [name for name in (metrics or [{}])[0] if all(name in one for one in metrics)]
        values = {name: array("d", (one[name] for one in metrics)) for name in names}
        return values, {str(o.get("criterion") or "Macro-F1") for o in outcomes}

    @property
    def criteria(self) -> set[str]:
        """What the validation scores are; rows that do not say it have Macro-F1."""
        return self._parsed[1]

    def by_seed(self, metric: str) -> dict[int, float]:
        seeds = (row.job.seed for row in self.rows)
        return dict(zip(seeds, self._parsed[0][metric], strict=True))

    def values(self, metric: str) -> list[float]:
        return list(self._parsed[0][metric])

    @cached_property
    def _means(self) -> dict[str, float]:
        return {name: fmean(values) for name, values in self._parsed[0].items()}

    def mean(self, metric: str) -> float:
        return self._means[metric]

    def deviation(self, metric: str) -> float:
        """Sample standard deviation over seeds; 0 for a single one."""
        values = self._parsed[0][metric]
        return stdev(values) if len(values) > 1 else 0.0

    def interval(self, metric: str) -> tuple[float, float] | None:
        """95% interval of the mean over splits of this graph; None for a single seed."""
        return self.estimate(metric).interval

    @property
    def overlap(self) -> float:
        """Test nodes of a split over the other labelled nodes of the graph, or of the split."""
        outcome = self.rows[0].outcome
        test = int(sum(outcome["per_class"]["support"]))
        others = _nodes().get(self.dataset, 0) - test
        return test / max(others if others > 0 else sum(outcome.get("class_counts", ())), 1)

    def estimate(self, metric: str) -> Estimate:
        """Values of the metric with the published mean."""
        return Estimate(self.label, self.values(metric), self.published(metric))

    def published(self, metric: str) -> float | None:
        return None if self.paper is None else self.paper[metric]["mean"]

    def with_seeds(self, seeds: Iterable[int]) -> Cell:
        wanted = set(seeds)
        return replace(self, rows=[row for row in self.rows if row.job.seed in wanted])


@cache
def _nodes() -> dict[str, int]:
    """Nodes of the data sets that come with the package; its registry would import torch."""
    text = files("evengraph").joinpath("datasets", "datasets.toml").read_text(encoding="utf-8")
    return {name: entry["counts"][0] for name, entry in tomllib.loads(text).items()}


@dataclass(frozen=True, kw_only=True)
class ExperimentResults:
    """Results of one experiment."""

    name: str
    title: str  # heading in reports
    kind: str  # "comparison", "ablation" or "sensitivity": which tables and plots to draw
    seeds: Sequence[int]  # those of the paper, on which hyperparameters were selected
    cells: Sequence[Cell]

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(cell.setting for cell in self.cells))

    @cached_property
    def _setting_titles(self) -> dict[str, str]:
        jobs = {cell.setting: cell.rows[0].job for cell in self.cells if cell.rows}
        titles = {
            setting: setting_title(job.dataset, {"name": job.imbalance, **job.imbalance_fields})
            for setting, job in jobs.items()
        }
        several = Counter(titles.values())  # settings may differ in what a title leaves out
        return {s: t if several[t] == 1 else f"{t} ({s})" for s, t in titles.items()}

    def setting_title(self, setting: str) -> str:
        """A setting in words: data set and split protocol."""
        return self._setting_titles.get(setting, setting)

    @property
    def has_paper(self) -> bool:
        return any(cell.paper for cell in self.cells)

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def reference(self) -> str:
        """Method that the others are compared with: the first tuned, highlighted, or of all."""
        tuned = [cell.label for cell in self.cells if cell.selected]
        highlighted = [cell.label for cell in self.cells if cell.role == "highlight"]
        return next(iter(tuned or highlighted or self.labels), "")

    def complete_settings(self) -> list[str]:
        """Settings in which every method was run."""
        return [s for s in self.settings if all(self.find(s, label) for label in self.labels)]

    def table_cells(self, setting: str) -> list[Cell]:
        """Cells of a setting that belong to no curve."""
        return [cell for cell in self.cells if cell.setting == setting and cell.varies is None]

    def find(self, setting: str, label: str) -> Cell | None:
        return next((cell for cell in self.table_cells(setting) if cell.label == label), None)

    def curves(self) -> dict[str, list[Cell]]:
        """Points of each curve by its name, which includes the setting if there are several."""
        curves: dict[str, list[Cell]] = {}
        points = [cell for cell in self.cells if cell.varies is not None]
        several = len({cell.setting for cell in points}) > 1
        for cell in points:
            name = f"{cell.label}, {cell.setting}" if several else cell.label
            curves.setdefault(name, []).append(cell)
        return curves

    def with_equal_seeds(self) -> ExperimentResults:
        """Copy with as many seeds in every cell, those of the selection, to compare means."""
        if len({len(cell.rows) for cell in self.cells}) < 2:
            return self
        cells = [cell.with_seeds(self.seeds) for cell in self.cells]
        return replace(self, cells=[cell for cell in cells if cell.rows])


def load_experiments(
    store: Store, names: Iterable[str] | None = None, *, parts: Sequence[str] = ()
) -> list[ExperimentResults]:
    """Read experiments of a store, with some parts of the outcomes of runs; by default all."""
    contents = store.experiments()
    contents = {name: contents[name] for name in contents if names is None or name in names}
    read = partial(store.scan, parts=parts, status="done")
    return [_experiment(name, content, read) for name, content in contents.items()]


def _experiment(
    name: str, content: Mapping[str, Any], read: Callable[..., Iterable[Row]]
) -> ExperimentResults:
    cells = [_cell(part, read) for part in content["cells"]]
    return ExperimentResults(
        name=name,
        title=content["title"],
        kind=content["draws"],
        seeds=content["seeds"],
        cells=[cell for cell in cells if cell.rows],
    )


def _cell(content: Mapping[str, Any], read: Callable[..., Iterable[Row]]) -> Cell:
    rows = {row.job.key: row for row in read(key=content["keys"])}
    return Cell(
        setting=content["setup"],
        selected=content["chosen"],
        rows=[rows[key] for key in content["keys"] if key in rows],
        **{name: content[name] for name in ("dataset", "label", "varies", "value", "paper")},
        note=content.get("note", ""),
        role=content.get("role", ""),  # absent in stores of earlier versions
    )


ALPHA = 0.05
MIN_SEEDS = 5  # common to both methods; fewer are not tested


class PairedTest(NamedTuple):
    """One method compared with another on the same seeds."""

    setting: str
    against: str  # the method that it is compared with
    gaps: Estimate  # one per common seed; positive if the method is better
    p: float  # of the paired t-test, corrected for nodes that splits share
    corrected: float  # for all comparisons, by Holm's method

    @property
    def verdict(self) -> str:
        """Whether the difference is significant, and confirms the published one if there is one."""
        (low, high), paper = self.gaps.band, self.gaps.paper
        if low == high == 0:
            return "identical"
        if low <= 0 <= high:
            return "not significant"
        if paper is not None and paper * self.gaps.mean < 0:
            return "opposite sign"
        if self.corrected >= ALPHA:
            return "uncorrected only"
        return "significant" if paper is None else "holds"


def compare(
    results: ExperimentResults, label: str, metric: str, *, variants: bool = False
) -> list[PairedTest]:
    """Compare a method with every other, or these variants with it, given enough common seeds."""
    pairs = []
    for setting in results.settings:
        cell = results.find(setting, label)
        others = [results.find(setting, other) for other in results.labels if other != label]
        pairs += [(cell, other) for other in others if cell is not None and other is not None]
    if variants:
        pairs = [(variant, full) for full, variant in pairs]
    gaps = [(other, paired_gaps(cell, other, metric)) for cell, other in pairs]
    tested = [(o.setting, o.label, gap) for o, gap in gaps if len(gap.values) >= MIN_SEEDS]
    p_values = [gap.evidence.p for _, _, gap in tested]
    tests = zip(tested, p_values, holm(p_values), strict=True)
    return [PairedTest(*names, p, corrected) for names, p, corrected in tests]


def paired_gaps(cell: Cell, other: Cell, metric: str) -> Estimate:
    """Difference of two cells for each common seed, in the order of the seeds."""
    values, others = cell.by_seed(metric), other.by_seed(metric)
    gaps = [values[seed] - others[seed] for seed in sorted(values.keys() & others.keys())]
    paper, reference = cell.published(metric), other.published(metric)
    published = None if paper is None or reference is None else paper - reference
    return Estimate(cell.label, gaps, published, cell.overlap)


def variant_gaps(results: ExperimentResults, setting: str, metric: str) -> list[Estimate]:
    """Differences of the variants from the full method in a setting, for the figures."""
    full = results.find(setting, results.reference)
    variants = [cell for cell in results.table_cells(setting) if cell is not full]
    gaps = [paired_gaps(cell, full, metric) for cell in variants if full is not None]
    return [gap for gap in gaps if gap.values]


class PublishedMean(NamedTuple):
    """A published mean and our runs."""

    cell: Cell  # our runs; if hyperparameters were selected, on other seeds where there are such
    metric: str
    paper: float  # the published mean
    selection: float  # our mean over the seeds of the selection, as many as the paper has
    chance: float  # probability that the mean of as few seeds, drawn from these runs, reaches it

    @property
    def verdict(self) -> str:
        """Whether our mean, rounded as published, reaches the paper's."""
        if round(self.cell.mean(self.metric), 1) >= self.paper:
            return "reached"
        return "below" if self.chance < ALPHA else "below, within chance"


def compare_with_paper(
    results: ExperimentResults, label: str, metrics: Sequence[str]
) -> list[PublishedMean]:
    """Compare every published mean of a method with our runs."""
    means = []
    for cell in results.cells:
        same = cell.with_seeds(results.seeds)
        if cell.label != label or cell.varies is not None or not same.rows:
            continue
        others = {row.job.seed for row in cell.rows} - set(results.seeds)
        ours = cell.with_seeds(others) if cell.selected and others else cell
        for metric in metrics:
            paper = cell.published(metric)
            if paper is not None:
                values, size = np.asarray(ours.values(metric)), (RESAMPLES, len(same.rows))
                drawn = np.random.default_rng(0).choice(values, size=size)
                chance = float((drawn.mean(axis=1).round(1) >= paper).mean())
                means.append(PublishedMean(ours, metric, paper, same.mean(metric), chance))
    return means


def rank_methods(results: ExperimentResults, metric: str) -> dict[str, float]:
    """Mean rank of each method over the settings in which all were run; 1 is best."""
    settings, values = results.complete_settings(), {}
    for label in results.labels:
        cells = [results.find(setting, label) for setting in settings]
        values[label] = [cell.mean(metric) for cell in cells if cell is not None]
    return mean_ranks(values)


METRIC = "balanced_accuracy"
MANY = 10  # more methods than this do not fit side by side


TITLES = {name: METRICS[name].short for name in HEADLINE}

Table = list[list[str]]


def table_csv(experiments: Iterable[ExperimentResults]) -> str:
    """Write every cell of every experiment, one line each."""
    return csv_text([_csv_line(results, cell) for results in experiments for cell in results.cells])


def _csv_line(results: ExperimentResults, cell: Cell) -> dict[str, Any]:
    line: dict[str, Any] = {
        "experiment": results.name,
        "setup": cell.setting,
        "method": cell.label,
        "varies": cell.varies or "",
        "value": "" if cell.value is None else cell.value,
        "seeds": len(cell.rows),
    }
    for metric in HEADLINE:
        low, high = cell.interval(metric) or (None, None)
        mean, paper = cell.mean(metric), cell.published(metric)
        values = {"": mean, "_std": cell.deviation(metric), "_low": low, "_high": high}
        values |= {"_paper": paper, "_difference": None if paper is None else mean - paper}
        for suffix, value in values.items():
            line[f"{metric}{suffix}"] = "" if value is None else round(value, 3)
    return line | {"chosen": selected_text(cell)}


def difference_text(value: float) -> str:
    """Format a difference with its sign; zero is never negative."""
    return f"{round(value, 1) + 0.0:+.1f}"


def interval_text(interval: tuple[float, float] | None, *, sign: bool = False) -> str:
    """Format an interval; empty if there is none."""
    number = difference_text if sign else "{:.1f}".format
    return " to ".join(map(number, interval or ()))


def mean_text(cell: Cell, metric: str) -> str:
    """Format mean (standard deviation); a single seed has no deviation."""
    mean = f"{cell.mean(metric):.1f}"
    return mean if len(cell.rows) == 1 else f"{mean} ({cell.deviation(metric):.1f})"


def selected_text(cell: Cell) -> str:
    """Format the hyperparameters selected on validation."""
    return ", ".join(f"{name} = {value}" for name, value in cell.selected.items())


# Tables as text, the header first, empty without rows.


def metrics_table(results: ExperimentResults) -> Table:
    """Mean and deviation of the headline metrics in every cell."""
    rows = [
        [
            cell.setting,
            cell.name,
            str(len(cell.rows)),
            *(mean_text(cell, metric) for metric in HEADLINE),
        ]
        for cell in results.cells
    ]
    return [["setting", "method", "seeds", *TITLES.values()], *rows]


def ranks_title(results: ExperimentResults) -> str:
    return f"Mean rank over {plural(len(results.complete_settings()), 'setting')} (1 is best)"


def ranks_table(results: ExperimentResults) -> Table:
    """Mean rank of each method for each metric, the best first."""
    ranks = {metric: rank_methods(results, metric) for metric in HEADLINE}
    labels = sorted(ranks[METRIC], key=lambda label: ranks[METRIC][label])
    rows = [[label, *(f"{ranks[metric][label]:.1f}" for metric in HEADLINE)] for label in labels]
    return [["method", *TITLES.values()], *rows] if rows else []


def paper_table(results: ExperimentResults) -> Table:
    """Published means of the tuned method and ours."""
    rows = [
        [
            mean.cell.setting,
            TITLES[mean.metric],
            f"{mean.cell.mean(mean.metric):.1f} ({len(mean.cell.rows)})",
            interval_text(mean.cell.interval(mean.metric)),
            f"{mean.paper:.1f}",
            difference_text(mean.cell.mean(mean.metric) - mean.paper),
            f"{mean.selection:.1f}",
            f"{100 * mean.chance:.0f}%",
            mean.verdict,
        ]
        for mean in compare_with_paper(results, results.reference, HEADLINE)
    ]
    seeds = f"seeds {', '.join(map(str, results.seeds))}"
    header = ["setting", "metric", "ours", "95% interval", "paper", "difference", seeds]
    return [[*header, "chance", "verdict"], *rows] if rows else []


def count_reached(table: Table) -> str:
    """Say how many published means a table of them reaches."""
    reached = sum(row[-1] == "reached" for row in table)
    return f"{reached} of {len(table) - 1} published means reached"


def paired_title(results: ExperimentResults) -> str:
    """Heading of the paired tests."""
    if results.kind != "ablation":
        return f"{results.reference} against the other methods on the same seeds"
    published = any(cell.paper for cell in results.cells)
    return "Which published differences hold" if published else f"Against {results.reference}"


def paired_table(results: ExperimentResults) -> Table:
    """Tests of each variant against the full method, or of a tuned method against every other."""
    variants = results.kind == "ablation"
    tests = []
    if variants or any(cell.selected for cell in results.cells):
        tests = compare(results, results.reference, METRIC, variants=variants)
    rows = [
        [
            test.setting,
            test.gaps.label if variants else test.against,
            "" if test.gaps.paper is None else difference_text(test.gaps.paper),
            difference_text(test.gaps.mean),
            interval_text(test.gaps.band, sign=True),
            f"{test.corrected:.2g}",
            test.verdict,
        ]
        for test in tests
    ]
    other = "variant" if variants else "against"
    header = ["setting", other, "paper", "ours", "95% interval", "p, corrected", "verdict"]
    return [header, *rows] if rows else []
