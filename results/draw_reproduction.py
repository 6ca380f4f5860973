"""Draw the tables of docs/reproduction.md from stored runs: `python results/draw_reproduction.py`.

Hyperparameters of Uni-GNN were selected on seeds 5 to 7. What is said of it rests on seeds 8 to 24,
which took no part in that; methods that have seeds 5 to 7 only are compared on those.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean

from evengraph.core.store import Store
from evengraph.metrics.significance import bootstrap_interval, holm, t_test
from evengraph.report.store.comparisons import ALPHA, paired_gaps
from evengraph.report.store.experiment_results import Cell, ExperimentResults, load_experiments

HERE = Path(__file__).parent
METRIC = "balanced_accuracy"
METRICS = (METRIC, "macro_f1", "g_mean")
INDEPENDENT = METRICS[:2]  # with classes of equal size in the test, G-mean follows from recall
CHOICE, OUTSIDE = range(5, 8), range(8, 25)
OURS = "Uni-GNN"
TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
CITESEER = 3327  # nodes
GRID = {
    "alpha": (1, 2),
    "clusters_per_class": (3, 4, 10, 20, 30),
    "threshold": (0.5, 0.7),
    "recluster_every": (50, 100),
}
ABLATIONS = {
    "Semantic Enc.": "semantic encoder only",
    "Imbalanced PL": "pseudo-labels without balance",
    "Drop L_ps": "no pseudo-labels",
    "Equal weights": "equal class weights",
    "Fixed A_sem": "clusters fixed at the start",
    "Ind. Enc.": "encoders that do not share",
    "Structural Enc.": "structural encoder only",
    "A_struct = A": "A_struct = A",
}


@cache
def experiments() -> dict[str, ExperimentResults]:
    """Experiments of the paper."""
    return {results.name: results for results in load_experiments(Store(HERE / "reproduce.sqlite"))}


def settings(prefix: str = "") -> list[str]:
    """The fourteen settings, or those whose names begin so."""
    both = [*experiments()["table1"].settings, *experiments()["table2"].settings]
    return [name for name in both if name.startswith(prefix)]


def cell(setting: str, label: str, seeds: Iterable[int] = OUTSIDE) -> Cell:
    """A cell of the two comparison tables, with the runs of some seeds."""
    results = experiments()["table2" if "longtail" in setting else "table1"]
    found = results.find(setting, label)
    assert found is not None
    return found.with_seeds(seeds)


def title(setting: str) -> str:
    """Such as Cora, 3 classes, 10%."""
    dataset, kind, *numbers = setting.split("-")
    if kind == "longtail":
        return f"{TITLES[dataset]}, long tail 1%"
    classes = "1 class" if numbers[0] == "1" else f"{numbers[0]} classes"
    return f"{TITLES[dataset]}, {classes}, {100 * float(numbers[1]):.0f}%"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Does Uni-GNN reach the paper's values?


def reached(setting: str, metric: str, seeds: Iterable[int]) -> bool:
    """Whether our mean, rounded as published, is at least the paper's."""
    ours = cell(setting, OURS, seeds)
    paper = ours.published(metric)
    assert paper is not None
    return round(ours.mean(metric), 1) >= paper


def count(seeds: Iterable[int], metrics: Sequence[str] = METRICS) -> str:
    """Such as 22 of 42."""
    found = [reached(setting, metric, seeds) for setting in settings() for metric in metrics]
    return f"{sum(found)} of {len(found)}"


def gains(label: str, seeds: Iterable[int]) -> list[list[float]]:
    """Uni-GNN minus another method for each seed, in every setting."""
    pairs = ((cell(s, OURS, seeds), cell(s, label, seeds)) for s in settings())
    return [list(paired_gaps(*pair, METRIC).values) for pair in pairs]


def corrected(label: str, seeds: Iterable[int]) -> list[float]:
    """The p value of each gain, corrected for all fourteen by Holm's method."""
    return holm([t_test(values).p for values in gains(label, seeds)])


def protocols() -> str:
    """The same questions on seeds outside and inside the choice of hyperparameters."""
    rows = []
    for name, seeds in (
        ("8 to 24, which took no part in the choice", OUTSIDE),
        ("5 to 7, the paper's three-run protocol", CHOICE),
    ):
        means = [f"{fmean(map(fmean, gains(label, seeds))):.1f}" for label in ("GCN", "LTE4G")]
        tests = ["–", "–"]
        if seeds is OUTSIDE:  # three runs are too few to test
            counts = [corrected(label, seeds) for label in ("GCN", "LTE4G")]
            tests = [f"{sum(p < ALPHA for p in values)} of {len(values)}" for values in counts]
        rows.append([name, count(seeds), count(seeds, INDEPENDENT), means[0], tests[0]])
        rows[-1] += [means[1], tests[1]]
    header = ("seeds", "cells that reach the paper's mean", "of them independent")
    return table(
        [*header, "above GCN by", "significantly in", "above LTE4G by", "significantly in"], rows
    )


def short_of_lte4g() -> str:
    """Where the advantage over LTE4G is not significant after correction."""
    found = [
        f"{title(setting)} (p = {p:.3f})"
        for setting, p in zip(settings(), corrected("LTE4G", OUTSIDE), strict=True)
        if p >= ALPHA
    ]
    return f"not significant after correction are {', '.join(found[:-1])} and {found[-1]}"


def front() -> str:
    """Three methods over the seeds outside the choice, with the paper's value of Uni-GNN."""
    rows = []
    for setting in settings():
        if "0.05" in setting or "-5-" in setting or "-2-" in setting:
            continue
        cells = [cell(setting, label) for label in ("GCN", "LTE4G", OURS)]
        means = [f"{c.mean(METRIC):.1f} ± {c.deviation(METRIC):.1f}" for c in cells]
        rows.append([title(setting), *means, f"{cells[2].published(METRIC)}"])
    return table(["setting", "GCN", "LTE4G", "Uni-GNN", "Uni-GNN in the paper"], rows)


def every_setting() -> str:
    """Uni-GNN in all settings: outside the choice, in the paper, over its three seeds."""
    rows = []
    for setting in settings():
        ours = cell(setting, OURS)
        paper, interval = ours.published(METRIC), ours.interval(METRIC)
        assert interval is not None
        verdict = "yes" if reached(setting, METRIC, OUTSIDE) else "no"
        if verdict == "no" and interval[1] >= (paper or 0):
            verdict = "no, the interval includes it"
        value = f"{ours.mean(METRIC):.1f} ({interval[0]:.1f} to {interval[1]:.1f})"
        three = f"{cell(setting, OURS, CHOICE).mean(METRIC):.1f}"
        rows.append([title(setting), value, f"{paper}", verdict, three])
    header = ["setting", "ours, seeds 8 to 24", "paper", "reached?", "ours, seeds 5 to 7"]
    return table(header, rows)


def ceiling(setting: str) -> float:
    """The best test result among the 40 settings of the grid over seeds 5 to 7."""
    chosen = cell(setting, OURS, CHOICE).rows[0].job
    values: dict[str, list[float]] = {}
    for row in Store(HERE / "reproduce.sqlite").rows(dataset=chosen.dataset, method="unignn"):
        job = row.job
        varied = {name: job.method_fields[name] for name in GRID}
        like_it = replace(chosen, seed=job.seed, method_fields=chosen.method_fields | varied)
        if job == like_it and job.seed in CHOICE and all(varied[n] in GRID[n] for n in GRID):
            values.setdefault(str(varied), []).append(row.outcome["metrics"][METRIC])
    assert len(values) == 40, (setting, len(values))
    return max(map(fmean, values.values()))


def ceilings() -> str:
    """What selection on the test nodes would reach on the long tails."""
    values = [f"{ceiling(setting):.1f}" for setting in settings() if "longtail" in setting]
    return f"the best of the forty on the test nodes would reach {values[0]} and {values[1]}"


def spread() -> str:
    """Standard deviation over single seeds on PubMed, and what that means for a mean of three."""
    values = [cell(setting, OURS).deviation(METRIC) for setting in settings("pubmed")]
    low, high = min(values), max(values)
    thirds = [value / 3**0.5 for value in (low, high)]
    return (
        f"{low:.0f} to {high:.0f} points, so that a mean of three moves by {thirds[0]:.0f} to "
        f"{thirds[1]:.0f}"
    )


# What the paper says of its comparison.


def published(setting: str, label: str, metric: str = METRIC) -> float:
    """The paper's mean; minus infinity where it has none."""
    value = cell(setting, label, CHOICE).published(metric)
    return float("-inf") if value is None else value


def gap(setting: str, label: str) -> float:
    """Our mean difference from a method, outside the choice."""
    return fmean(paired_gaps(cell(setting, OURS), cell(setting, label), METRIC).values)


def paper_gap(setting: str, label: str) -> float:
    """The same in the paper."""
    return round(published(setting, OURS) - published(setting, label), 1)


def falls() -> tuple[list[bool], list[bool]]:
    """For pairs of settings, one of them harder: whether it scores less, in ours and the paper."""
    steps = [s for s in settings() if "step" in s]
    ours, theirs = [], []
    for label in experiments()["table1"].labels:
        seeds = OUTSIDE if label in ("GCN", "LTE4G", OURS) else CHOICE
        for easy, hard in product(steps, steps):
            if _harder(easy, hard):
                means = [cell(s, label, seeds).mean(METRIC) for s in (easy, hard)]
                papers = [published(s, label) for s in (easy, hard)]
                ours.append(means[1] < means[0])
                theirs += [papers[1] < papers[0]] if min(papers) > 0 else []
    return ours, theirs


def _harder(easy: str, hard: str) -> bool:
    """Whether two settings differ in one thing, which is harder in the second."""
    (graph, _, classes, ratio), (other, _, more, less) = easy.split("-"), hard.split("-")
    if graph != other:
        return False
    fewer_labels = classes == more and float(less) < float(ratio)
    return fewer_labels or (ratio == less and int(more) > int(classes))


def best_others(seeds: Iterable[int]) -> list[tuple[str, str, float]]:
    """The best of the other eight methods in every setting, and how far Uni-GNN is above it."""
    found = []
    for setting in settings():
        labels = [label for label in experiments()["table1"].labels if label != OURS]
        values = {label: cell(setting, label, seeds).mean(METRIC) for label in labels}
        best = max(values, key=lambda label: values[label])
        found.append((setting, best, cell(setting, OURS, seeds).mean(METRIC) - values[best]))
    return found


def claims() -> str:
    """Every quantitative sentence of the paper's comparison, and what the stored runs say."""
    small = [s for s in settings() if "step" in s and not s.startswith("pubmed")]
    three = ("cora-step-3-0.1", "citeseer-step-3-0.1", "pubmed-step-1-0.1")
    tails = ("cora-longtail-0.01", "citeseer-longtail-0.01")
    fallen, fallen_paper = falls()
    above_gcn = [gap(s, "GCN") > 0 for s in settings()]
    others = best_others(CHOICE)
    ahead = [value > 0 for *_, value in others]
    most_small, most_pubmed = (
        [_exceeding(names, points, difference) for difference in (paper_gap, gap)]
        for names, points in ((small, 10), (settings("pubmed"), 13))
    )
    of_tails = [(label, value) for setting, label, value in others if setting in tails]
    rows = [
        [
            "“the performance of all methods diminishes with decreasing imbalance ratio and "
            "increasing numbers of minority classes”",
            f"{_of(fallen_paper)} pairs of settings",
            f"{_of(fallen)} pairs",
            f"holds, with {len(fallen) - sum(fallen)} exceptions",
        ],
        [
            "“consistently outperforms the underlying GCN baseline”",
            f"{_of([paper_gap(s, 'GCN') > 0 for s in settings()])} settings",
            f"{_of(above_gcn)} settings, significantly in "
            f"{sum(p < ALPHA for p in corrected('GCN', OUTSIDE))}",
            _holds(all(above_gcn)),
        ],
        [
            "“… and all other methods across all three datasets and various evaluation setups”",
            _paper_ahead(),
            f"{_of(ahead)} settings, on seeds 5 to 7",
            f"holds in all but {len(ahead) - sum(ahead)}",
        ],
        [
            "above GCN, “exceeding 10% in most cases for Cora and CiteSeer datasets”",
            *map(_of, most_small),
            _most(most_small),
        ],
        [
            "“and 13% for most instances of the PubMed dataset”",
            *map(_of, most_pubmed),
            _most(most_pubmed),
        ],
        [
            "above LTE4G “by around 3%, 5%, and 11%” on Cora (3, 10%), CiteSeer (3, 10%) and "
            "PubMed (1, 10%)",
            *(_listed([f(s, "LTE4G") for s in three]) for f in (paper_gap, gap)),
            _each(
                [gap(s, "LTE4G") > about - 1 for s, about in zip(three, (3, 5, 11), strict=True)]
            ),
        ],
        [
            "above GCN, “exceeding 8% and 12% on Cora-LT and CiteSeer-LT”",
            *(_listed([f(s, "GCN") for s in tails]) for f in (paper_gap, gap)),
            _each([gap(s, "GCN") > least for s, least in zip(tails, (8, 12), strict=True)]),
        ],
        [
            "“over all other class imbalance methods, surpassing 3% and 6% on Cora-LT and "
            "CiteSeer-LT”",
            _listed([min(paper_gap(s, x) for x in _with_paper(s)) for s in tails]),
            ", ".join(f"{value:.1f} above {label}" for label, value in of_tails)
            + ", on seeds 5 to 7",
            _each([v > least for (_, v), least in zip(of_tails, (3, 6), strict=True)]),
        ],
    ]
    return table(["the paper says", "its tables say", "our runs say", "verdict"], rows)


def _of(found: Sequence[bool]) -> str:
    return f"{sum(found)} of {len(found)}"


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _holds(found: bool) -> str:
    return "holds" if found else "does not hold"


def _each(found: Sequence[bool]) -> str:
    alike = len(set(found)) == 1
    return _holds(found[0]) if alike else ", ".join(map(_holds, found))


def _most(found: Sequence[Sequence[bool]]) -> str:
    """Whether most of ours are true, given those of the paper and ours."""
    theirs, ours = (sum(one) > len(one) / 2 for one in found)
    return _holds(ours) + ("" if theirs else ", nor in its own table")


def _exceeding(
    names: Sequence[str], points: float, difference: Callable[[str, str], float]
) -> list[bool]:
    return [difference(name, "GCN") > points for name in names]


def _with_paper(setting: str) -> list[str]:
    """Other methods that have a published mean in a setting."""
    labels = [label for label in experiments()["table1"].labels if label != OURS]
    return [label for label in labels if published(setting, label) > 0]


def _paper_ahead() -> str:
    least = [min(paper_gap(s, label) for label in _with_paper(s)) for s in settings()]
    ties = sum(value == 0 for value in least)
    return f"{sum(value > 0 for value in least)} of 14 settings, {ties} tie"


# How far labels reach, and what k-means makes of it.


def reach() -> str:
    """Percent of the nodes that two labels reach in two layers, on three splits of Cora."""
    rows = _rows("reach.csv")
    parts = []
    for readings in ("", "unit-rows"):
        some = [row for row in rows if row["readings"] == readings]
        shares, sizes = ([int(r[name]) for r in some] for name in ("clusters", "largest_cluster"))
        parts.append(
            f"{min(shares)} to {max(shares)}% of the nodes where the largest cluster has "
            f"{min(sizes)} to {max(sizes)} of 2,708"
        )
    return f"{parts[0]}, and {parts[1]}"


def crowded() -> str:
    """How often k-means puts most of CiteSeer's nodes into one of 120 clusters."""
    rows = _rows("clusterings.csv")
    lines = []
    for unit, starts in product(("False", "True"), ("1", "10")):
        some = [row for row in rows if (row["unit_rows"], row["starts"]) == (unit, starts)]
        sizes = [int(row["largest"]) for row in some]
        many = sum(2 * size > CITESEER for size in sizes)
        name = "scaled to length one" if unit == "True" else "as they are"
        lines.append([name, starts, f"{min(sizes):,} to {max(sizes):,}", f"{many} of {len(sizes)}"])
    header = ["rows", "starts", "nodes in the largest cluster", "seeds with most nodes in one"]
    return table(header, lines)


def _rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Ablations.


def variants() -> list[tuple[str, str, float | None, list[float]]]:
    """Variant, setting, the paper's difference from the full method, and ours per seed."""
    results = experiments()["table3"]
    found = []
    for label in ABLATIONS:
        for setting in results.settings:
            full, variant = results.find(setting, OURS), results.find(setting, label)
            assert full is not None
            assert variant is not None
            gaps = paired_gaps(variant.with_seeds(OUTSIDE), full.with_seeds(OUTSIDE), METRIC)
            found.append((label, setting, gaps.paper, list(gaps.values)))
    return found


def ablations() -> str:
    """What each variant loses, in the paper and in ours; a star: significant after correction."""
    found = variants()
    p_values = holm([t_test(values).p if any(values) else 1.0 for *_, values in found])
    lines: dict[str, list[str]] = {label: [title] for label, title in ABLATIONS.items()}
    for (label, _, paper, values), p in zip(found, p_values, strict=True):
        star = "*" if p < ALPHA else ""
        lines[label].append(f"{_signed(fmean(values))}{star} ({_signed(paper or 0.0)})")
    names = [title(setting) for setting in experiments()["table3"].settings]
    return table(["variant", *names], lines.values())


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")


def degradation() -> str:
    """In how many of the ablations the variant is worse, and in how many significantly."""
    found = variants()
    p_values = holm([t_test(values).p if any(values) else 1.0 for *_, values in found])
    worse = [fmean(values) < 0 for *_, values in found]
    sure = sum(bad and p < ALPHA for bad, p in zip(worse, p_values, strict=True))
    paper = sum((value or 0.0) < 0 for _, _, value, _ in found)
    return (
        f"in {paper} of {len(found)} cases; ours are worse in {sum(worse)}, significantly in {sure}"
    )


# Curves.


def curves() -> str:
    """Every point of the sensitivity curves over the seeds outside the choice."""
    rows = []
    for name, cells in experiments()["figure2"].curves().items():
        points = [c.with_seeds(OUTSIDE) for c in cells]
        text = ", ".join(f"{c.value}: {c.mean(METRIC):.1f}" for c in points)
        best = max(points, key=lambda c: c.mean(METRIC))
        low, high = bootstrap_interval(best.values(METRIC)) or (0.0, 0.0)
        rows.append([name, text, f"{best.value} ({low:.1f} to {high:.1f})"])
    return table(["parameter", "balanced accuracy at each value", "best (95% interval)"], rows)


if __name__ == "__main__":
    drawn = (protocols, front, every_setting, claims, ablations, curves)
    print(*(part() for part in drawn), sep="\n\n")
    print(short_of_lte4g(), ceilings(), degradation(), sep="\n")
