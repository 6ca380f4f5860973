"""Draw the tables of docs/unison.md from stored runs: `python results/draw_unison.py`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from paper_cells import Gaps, corrected, interval, significant

from evengraph.lab.results import (
    ALPHA,
    Cell,
    ExperimentResults,
    PairedTest,
    compare,
    load_experiments,
)
from evengraph.lab.store import Store

HERE = Path(__file__).parent
METRIC = "balanced_accuracy"
RANKING = "positive_average_precision"  # of the rarer of two classes
PAPER_METRICS = (METRIC, "macro_f1", "g_mean")
DATASETS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}


@cache
def experiments() -> dict[str, ExperimentResults]:
    """Experiments with Unison and auto."""
    return {results.name: results for results in load_experiments(Store(HERE / "unison.sqlite"))}


def successor() -> str:
    """Every setting of the paper: means, and the difference from IceBerg with its interval."""
    results = experiments()["successor"]
    others = ("GCN", "Boosting", "Uni-GNN", "IceBerg")
    gaps = {c.setting: c for c in _compared("IceBerg")}
    rows = []
    for setting in results.settings:
        means = [_mean(_complete(results, setting, label)) for label in (*others, "Unison")]
        paper = _cell(results, setting, "Uni-GNN").published(METRIC)
        (low, high), mean = gaps[setting].gaps.band, gaps[setting].gaps.mean
        star = "*" if gaps[setting].corrected < ALPHA else ""
        rows.append(
            [_title(setting), *means, f"{paper}", f"{mean:+.1f}{star} ({low:.1f} to {high:.1f})"]
        )
    complete = [all(_complete(results, s, x) for s in results.settings) for x in others]
    last = [_average(label) if done else "" for label, done in zip(others, complete, strict=True)]
    rows.append(["**mean**", *last, f"**{_average('Unison')}**", _paper_average(), ""])
    header = ["setting", *others, "**Unison**", "Uni-GNN in the paper", "Unison minus IceBerg"]
    return _table(header, rows)


def front() -> str:
    """The averages over the settings of the paper, in one sentence."""
    others = ", ".join(f"{label} {_average(label)}" for label in ("IceBerg", "Uni-GNN", "GCN"))
    return f"Unison reaches a balanced accuracy of {_average('Unison')}, {others}"


def standing() -> str:
    """In how many settings Unison is ahead, and of how many published means."""
    parts = []
    for label in ("IceBerg", "Uni-GNN", "GCN"):
        tests = _compared(label)
        ahead = sum(test.gaps.mean > 0 for test in tests)
        sure = sum(test.gaps.mean > 0 and test.corrected < ALPHA for test in tests)
        parts.append(
            f"{label} in {ahead} of {len(tests)} settings, in {sure} of them significantly"
        )
    return f"ahead of {'; of '.join(parts)}"


def margin() -> str:
    """The difference from IceBerg over all settings and seeds."""
    gaps = [gap for test in _compared("IceBerg") for gap in test.gaps.values]
    wins = sum(gap > 0 for gap in gaps)
    return f"{fmean(gaps):.1f} points on average, in {wins} of {len(gaps)} runs on the same split"


def cells_of_the_paper() -> str:
    """How many of the paper's means of Uni-GNN are exceeded, and where not."""
    results = experiments()["successor"]
    above, below = 0, []
    for setting in results.settings:
        paper, own = (_cell(results, setting, label) for label in ("Uni-GNN", "Unison"))
        for metric in PAPER_METRICS:
            published = paper.published(metric)
            assert published is not None
            above += own.mean(metric) > published
            if own.mean(metric) <= published:
                below.append(setting)
    places = ", ".join(_title(setting) for setting in dict.fromkeys(below))
    rest = f", all but {places}" if places else ""
    return f"{above} of {above + len(below)} published means of Uni-GNN are exceeded{rest}"


def public() -> str:
    """Unison on the public split, with scaled and with raw features."""
    found = {results.name: results for results in load_experiments(Store(HERE / "beyond.sqlite"))}
    means = {}
    for name in ("publicstep", "publicraw"):
        cells = [_cell(found[name], setting, "Unison") for setting in found[name].settings]
        means[name] = _listed([f"{cell.mean(METRIC):.1f}" for cell in cells])
    return (
        f"{means['publicstep']} on Cora, CiteSeer and PubMed with scaled features, "
        f"{means['publicraw']} with raw ones"
    )


def small() -> str:
    """The long tails with the small committees that a first rule for the size gave them."""
    with (HERE / "unison-checks.csv").open(encoding="utf-8", newline="") as file:
        runs = [row for row in csv.DictReader(file) if row["code"] == "small"]
    means = {
        name: fmean(float(run[METRIC]) for run in runs if run["dataset"] == name.lower())
        for name in ("Cora", "CiteSeer")
    }
    return " and ".join(f"{mean:.1f} on {name}" for name, mean in means.items())


def parts() -> str:
    """The ablation: balanced accuracy in six settings, and the mean."""
    results = experiments()["parts"]
    rows = []
    for label in results.labels:
        cells = [_cell(results, setting, label) for setting in results.settings]
        means = [cell.mean(METRIC) for cell in cells]
        rows.append([label, *map(_mean, cells), f"{fmean(means):.1f}"])
    return _table(["", *map(_title, results.settings), "mean"], rows)


def variants() -> str:
    """The second search: validation scores over all settings, and gaps on the same splits."""
    with (HERE / "unison-variants.csv").open(encoding="utf-8", newline="") as file:
        runs = list(csv.DictReader(file))
    found: dict[tuple[str, ...], dict[tuple[str, ...], tuple[float, float]]] = {}
    for run in runs:
        scores = float(run["validation"]), float(run["balanced_accuracy"])
        shape = run["views"], run["members"], run["hidden"]
        found.setdefault(shape, {})[run["setting"], run["seed"]] = scores
    before = found["structural,semantic,ego", "3", "128"]
    rows = []
    for shape, scores in sorted(
        found.items(), key=lambda item: fmean(v for v, _ in item[1].values())
    ):
        gaps = [scores[split][0] - before[split][0] for split in before]
        error = stdev(gaps) / len(gaps) ** 0.5
        gap = f"{fmean(gaps):+.1f} ({error:.1f})" if any(gaps) else "–"
        means = [f"{fmean(column):.1f}" for column in zip(*scores.values(), strict=True)]
        rows.append([shape[0].replace(",", ", "), *shape[1:], means[0], gap, means[1]])
    header = ["views", "members per view", "width", "validation", "gain (standard error)"]
    return _table([*header, "balanced accuracy, test"], rows)


# Committees: what Unison's lead owes to its ten networks.

ALONE = "alone"  # the mean of all members, each without a vote


@cache
def committees() -> dict[str, dict[str, dict[int, dict[str, float]]]]:
    """Balanced accuracy of every part and of a member alone, by committee, setting and seed."""
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {}
    with (HERE / "committees.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            splits = found.setdefault(row["committee"], {}).setdefault(row["setting"], {})
            splits.setdefault(int(row["seed"]), {})[row["part"]] = float(row[METRIC])
    for splits in (one for committee in found.values() for one in committee.values()):
        for parts in splits.values():
            parts[ALONE] = fmean(value for part, value in parts.items() if part.isdigit())
    return found


def _shared(setting: str, other: str) -> list[int]:
    """Seeds of a setting that both committees have."""
    found = committees()
    return sorted(found["unison"][setting].keys() & found[other].get(setting, {}).keys())


def _score(committee: str, setting: str, part: str, other: str = "iceberg") -> float:
    """The mean of a part, on the splits that Unison and another committee have."""
    splits = committees()[committee][setting]
    return fmean(splits[seed][part] for seed in _shared(setting, other))


def _gaps(setting: str, part: str, other: str, theirs: str) -> Gaps:
    """A part of Unison minus one of another committee, on the splits that both have."""
    ours, rest = committees()["unison"][setting], committees()[other][setting]
    overlap = _cell(experiments()["successor"], setting, "Unison").overlap
    return Gaps((ours[s][part] - rest[s][theirs] for s in _shared(setting, other)), overlap)


def committee_table() -> str:
    """One network, one per view, and ten with Unison's vote, on the splits that all have."""
    settings = experiments()["successor"].settings
    p_values = corrected(_gaps(setting, "vote", "iceberg", "vote") for setting in settings)
    rows = []
    for setting, p in zip(settings, p_values, strict=True):
        cells = [f"{_score(*column[:1], setting, *column[1:]):.1f}" for column in COLUMNS]
        star = "*" if p < ALPHA else ""
        gaps = _gaps(setting, "vote", "iceberg", "vote")
        low, high = interval(gaps)
        shown = f"{fmean(gaps):+.1f}{star} ({low:.1f} to {high:.1f})"
        rows.append([_title(setting), *cells, shown])
    rows.append(["**mean**", *(f"{committee_mean(*column):.1f}" for column in COLUMNS), ""])
    return _table(["setting", *COLUMNS.values(), "ten, Unison minus IceBerg"], rows)


COLUMNS = {
    ("iceberg", ALONE): "IceBerg, one",
    ("iceberg", "best"): "IceBerg, best of ten on validation",
    ("iceberg", "vote"): "IceBerg, ten",
    ("unignn", "vote"): "Uni-GNN, ten",
    ("unison", "one"): "Unison, one per view",
    ("unison", "structural"): "Unison, five structural",
    ("unison", "vote"): "Unison, ten",
}


def committee_mean(committee: str, part: str, other: str = "iceberg") -> float:
    """The mean over the settings that Unison and another committee have."""
    settings = committees()[other]
    return fmean(_score(committee, setting, part, other) for setting in settings)


def committee_verdict(other: str = "iceberg", name: str = "IceBerg") -> str:
    """What is left of Unison's lead beside ten networks of another method."""
    settings = committees()[other]
    gaps = [_gaps(setting, "vote", other, "vote") for setting in settings]
    single = fmean(fmean(_gaps(setting, "vote", other, ALONE)) for setting in settings)
    one, ten = (committee_mean(other, part, other) for part in (ALONE, "vote"))
    return (
        f"ten networks of {name} gain {ten - one:.1f} points on one ({one:.1f} to {ten:.1f}), and "
        f"Unison's lead falls from {single:.1f} points to {fmean(map(fmean, gaps)):.1f}. It is "
        f"ahead in {sum(fmean(gap) > 0 for gap in gaps)} of {len(gaps)} settings, significantly "
        f"in {significant(gaps)}"
    )


def committee_places() -> str:
    """Where ten networks of Unison and ten of IceBerg differ, and how much is one setting."""
    found: dict[str, list[float]] = {}
    every = []
    for setting in committees()["iceberg"]:
        every.append(mean := fmean(_gaps(setting, "vote", "iceberg", "vote")))
        found.setdefault(DATASETS[setting.partition("-")[0]], []).append(mean)
    places = _listed([f"{fmean(found[name]):+.1f} on {name}" for name in DATASETS.values()])
    return f"{places}, and {fmean(sorted(every)[:-1]):+.1f} without its largest value"


def portfolio() -> str:
    """Auto and single methods on seven graphs, each by the metric that fits it."""
    results = experiments()["portfolio"]
    metrics = {setting: _metric(results, setting) for setting in results.settings}
    best = {s: _best(results, s, metrics[s]) for s in metrics}
    rows = []
    for label in results.labels:
        cells = [(s, _complete(results, s, label)) for s in results.settings]
        shown = ["–" if c is None else _bold(c.mean(metrics[s]), best[s]) for s, c in cells]
        worst = max(best[s] - c.mean(metrics[s]) for s, c in cells if c is not None)
        rows.append((worst if all(c for _, c in cells) else 1e3, [label, *shown]))
    complete = [[*row, f"{worst:.1f}" if worst < 1e3 else "–"] for worst, row in sorted(rows)]
    titles = [
        f"{s.partition('-natural')[0]}{' (AP)' if m == RANKING else ''}" for s, m in metrics.items()
    ]
    return _table(["method", *titles, "at worst behind"], complete)


def behind() -> str:
    """How far auto is behind the best method of the table at worst."""
    results = experiments()["portfolio"]
    gaps = []
    for setting in results.settings:
        metric = _metric(results, setting)
        best = _best(results, setting, metric)
        gaps.append(best - _cell(results, setting, "Auto").mean(metric))
    return f"{max(gaps):.1f} points at worst, {fmean(gaps):.1f} on average"


def _compared(label: str) -> list[PairedTest]:
    tests = compare(experiments()["successor"], "Unison", METRIC)
    return [test for test in tests if test.against == label]


def _best(results: ExperimentResults, setting: str, metric: str) -> float:
    cells = [_complete(results, setting, label) for label in results.labels]
    return max(cell.mean(metric) for cell in cells if cell is not None)


def _metric(results: ExperimentResults, setting: str) -> str:
    found = _cell(results, setting, "Auto").rows[0].outcome["metrics"]
    return RANKING if RANKING in found else METRIC


def _complete(results: ExperimentResults, setting: str, label: str) -> Cell | None:
    """The cell, if all its seeds were run."""
    cell = results.find(setting, label)
    return cell if cell is not None and len(cell.rows) == len(results.seeds) else None


def _cell(results: ExperimentResults, setting: str, label: str) -> Cell:
    cell = results.find(setting, label)
    assert cell is not None
    return cell


def _mean(cell: Cell | None) -> str:
    return "–" if cell is None else f"{cell.mean(METRIC):.1f} ± {cell.deviation(METRIC):.1f}"


def _bold(value: float, best: float) -> str:
    return f"**{value:.1f}**" if value == best else f"{value:.1f}"


def _average(label: str) -> str:
    results = experiments()["successor"]
    return f"{fmean(_cell(results, s, label).mean(METRIC) for s in results.settings):.1f}"


def _paper_average() -> str:
    results = experiments()["successor"]
    cells = [_cell(results, setting, "Uni-GNN") for setting in results.settings]
    return f"{fmean(float(cell.published(METRIC) or 0) for cell in cells):.1f}"


def _title(setting: str) -> str:
    """`CiteSeer 3, 10%` for `citeseer-step-3-0.1`."""
    dataset, kind, *numbers = setting.split("-")
    name = DATASETS.get(dataset, dataset)
    if kind == "natural":
        return name
    ratio = f"{100 * float(numbers[-1]):g}%"
    return f"{name}, long tail" if kind == "longtail" else f"{name} {numbers[0]}, {ratio}"


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sentences = (standing(), margin(), cells_of_the_paper(), public(), behind())
    print(successor(), *sentences, parts(), portfolio(), variants(), sep="\n\n")
