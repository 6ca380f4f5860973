"""Results of experiments: which stored runs make up each cell of a table or point of a curve."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from evengraph.core.store import Row, Store
from evengraph.metrics.significance import bootstrap_interval
from evengraph.report.run import captions


class Estimate(NamedTuple):
    """Values of a method or differences between two, one per seed, and the published mean."""

    label: str
    values: Sequence[float]
    paper: float | None

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return fmean(self.values)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% bootstrap interval of the mean; None for a single seed."""
        return bootstrap_interval(self.values)

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

    @cached_property
    def _metrics(self) -> dict[str, array[float]]:
        """Values of every metric that all runs have, in their order; outcomes are slow to parse."""
        outcomes = [row.outcome["metrics"] for row in self.rows]
        names = [name for name in (outcomes or [{}])[0] if all(name in o for o in outcomes)]
        return {name: array("d", (o[name] for o in outcomes)) for name in names}

    def by_seed(self, metric: str) -> dict[int, float]:
        """Value of the metric for each seed."""
        seeds = (row.job.seed for row in self.rows)
        return dict(zip(seeds, self._metrics[metric], strict=True))

    def values(self, metric: str) -> list[float]:
        """Values of the metric, one per run."""
        return list(self.by_seed(metric).values())

    def mean(self, metric: str) -> float:
        """Mean over seeds."""
        return fmean(self.values(metric))

    def deviation(self, metric: str) -> float:
        """Population standard deviation over seeds, as in the paper."""
        return pstdev(self.values(metric))

    def interval(self, metric: str) -> tuple[float, float] | None:
        """95% bootstrap interval of the mean; None for a single seed."""
        return bootstrap_interval(self.values(metric))

    def estimate(self, metric: str) -> Estimate:
        """Values of the metric with the published mean."""
        return Estimate(self.label, self.values(metric), self.published(metric))

    def published(self, metric: str) -> float | None:
        """Published mean, if there is one."""
        return None if self.paper is None else self.paper[metric]["mean"]

    def with_seeds(self, seeds: Iterable[int]) -> Cell:
        """Copy with the runs of these seeds only."""
        wanted = set(seeds)
        return replace(self, rows=[row for row in self.rows if row.job.seed in wanted])


@dataclass(frozen=True, kw_only=True)
class ExperimentResults:
    """Results of one experiment."""

    name: str
    title: str  # heading in reports
    kind: str  # "comparison", "ablation" or "sensitivity": which tables and figures to draw
    seeds: Sequence[int]  # those of the paper, on which hyperparameters were selected
    cells: Sequence[Cell]
    tsne: Mapping[str, Any] | None = None  # coordinates, classes and clusters of one run
    tsne_label: str = ""  # method that this run trained

    @property
    def settings(self) -> list[str]:
        """Names of the settings, in order."""
        return list(dict.fromkeys(cell.setting for cell in self.cells))

    @cached_property
    def _setting_titles(self) -> dict[str, str]:
        jobs = {cell.setting: cell.rows[0].job for cell in self.cells if cell.rows}
        titles = {
            setting: captions.setting(
                job.dataset, {"name": job.imbalance, **(job.imbalance_fields or {})}
            )
            for setting, job in jobs.items()
        }
        several = Counter(titles.values())  # settings may differ in what a title leaves out
        return {s: t if several[t] == 1 else f"{t} ({s})" for s, t in titles.items()}

    def setting_title(self, setting: str) -> str:
        """A setting in words: data set and split protocol."""
        return self._setting_titles.get(setting, setting)

    @property
    def has_paper(self) -> bool:
        """Whether any cell has a published result."""
        return any(cell.paper for cell in self.cells)

    @property
    def labels(self) -> list[str]:
        """Names of the methods and variants, in order."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def reference(self) -> str:
        """Method that the others are compared with: the first one tuned, or else the first."""
        tuned = [cell.label for cell in self.cells if cell.selected]
        return next(iter(tuned or self.labels), "")

    @property
    def baseline(self) -> str:
        """First method with the role of the baseline, or else the first of all."""
        return next(iter(self._with_role("baseline") or self.labels), "")

    @property
    def highlight(self) -> str:
        """Method to draw in the strongest colour: the first with that role, or the first tuned."""
        tuned = [cell.label for cell in self.cells if cell.selected]
        return next(iter(self._with_role("highlight") or tuned), "")

    def _with_role(self, role: str) -> list[str]:
        return [cell.label for cell in self.cells if cell.role == role]

    def complete_settings(self) -> list[str]:
        """Settings in which every method was run."""
        return [s for s in self.settings if all(self.find(s, label) for label in self.labels)]

    def table_cells(self, setting: str) -> list[Cell]:
        """Cells of a setting that belong to no curve."""
        return [cell for cell in self.cells if cell.setting == setting and cell.varies is None]

    def find(self, setting: str, label: str) -> Cell | None:
        """Cell of a table; None if nothing was run."""
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

    def with_paper_seeds(self) -> ExperimentResults:
        """Copy with the seeds on which hyperparameters were selected only."""
        cells = [cell.with_seeds(self.seeds) for cell in self.cells]
        return replace(self, cells=[cell for cell in cells if cell.rows])

    def with_equal_seeds(self) -> ExperimentResults:
        """Copy with the same number of seeds in every cell, so that means are comparable."""
        counts = {len(cell.rows) for cell in self.cells}
        return self if len(counts) < 2 else self.with_paper_seeds()


def load_experiments(
    store: Store, names: Iterable[str] | None = None, *, parts: Sequence[str] = ()
) -> list[ExperimentResults]:
    """Read experiments of a store.

    Args:
        store: The store.
        names: Which experiments; by default all.
        parts: The parts of the outcomes of runs that are needed; by default all.
    """
    contents = store.experiments()
    contents = {name: contents[name] for name in contents if names is None or name in names}
    rows = {row.job.key: row for row in store.scan(parts=parts, status="done")} if contents else {}
    experiments = []
    for name, content in contents.items():
        cells = [_cell(part, rows) for part in content["cells"]]
        key = content.get("map")
        experiments.append(
            ExperimentResults(
                name=name,
                title=content["title"],
                kind=content["draws"],
                seeds=content["seeds"],
                cells=[cell for cell in cells if cell.rows],
                tsne=store.tsne(key) if key else None,
                tsne_label=next((c["label"] for c in content["cells"] if key in c["keys"]), ""),
            )
        )
    return experiments


def _cell(content: Mapping[str, Any], rows: Mapping[str, Row]) -> Cell:
    return Cell(
        setting=content["setup"],
        selected=content["chosen"],
        rows=[rows[key] for key in content["keys"] if key in rows],
        **{name: content[name] for name in ("dataset", "label", "varies", "value", "paper")},
        note=content.get("note", ""),
        role=content.get("role", ""),  # absent in stores of earlier versions
    )
