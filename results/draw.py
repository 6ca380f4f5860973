"""Draw the tables of docs and readings.md from stored runs: `python results/draw.py`."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from evengraph.lab.results import ALPHA, Cell, ExperimentResults, load_experiments, paired_gaps
from evengraph.lab.spec import Setup
from evengraph.lab.store import Store
from evengraph.methods import METHODS
from evengraph.metrics.significance import holm
from evengraph.pipeline.parameters import paper_cell

HERE = Path(__file__).parent
SEEDS = {"5", "6", "7"}
METRIC = "balanced_accuracy"
OPTIONS = {"sound=True", "balance=True", "copies=0", "layers=2"}
FRONT = {
    "cora-step-3-0.1": "Cora, 3 classes, 10%",
    "citeseer-step-3-0.1": "CiteSeer, 3 classes, 10%",
    "pubmed-step-1-0.1": "PubMed, 1 class, 10%",
    "cora-longtail-0.01": "Cora, long tail 1%",
    "citeseer-longtail-0.01": "CiteSeer, long tail 1%",
}
TWENTY_SEEDS = ("GCN", "LTE4G", "Uni-GNN")
NATURAL = {
    "computers": "Amazon Computers, 10 classes",
    "physics": "Coauthor Physics, 5 classes",
    "reddit-user": "reddit-user, 2 classes",
}
PUBLIC = {
    "cora-publicstep-3-0.1": "Cora",
    "citeseer-publicstep-3-0.1": "CiteSeer",
    "pubmed-publicstep-1-0.1": "PubMed",
}
PUBLIC_METHODS = (
    "GCN",
    "Uni-GNN",
    "Unison",
    "GraphENS",
    "BAT1",
    "ReNode + BAT",
    "GraphSHA",
    "Balanced softmax + TAM",
)
NATURAL_METHODS = (
    *("GCN", "GraphSAGE", "GAT", "Re-weight", "Balanced softmax", "Balanced softmax, GraphSAGE"),
    *("SMOTE", "GraphSMOTE", "GraphENS + BAT", "GraphSHA", "LTE4G", "BAT1", "UNREAL", "Uni-GNN"),
    *("IceBerg", "Double balancing", "Double balancing, GraphSAGE"),
    *("MLP", "Label propagation", "Boosting"),
)
RANKING_METHODS = (
    *("GCN", "GraphSAGE", "Re-weight", "LTE4G", "UNREAL", "Uni-GNN", "IceBerg"),
    *("Double balancing", "Balanced softmax, GraphSAGE", "Double balancing, GraphSAGE"),
    *("MLP", "Label propagation", "Boosting"),
)
SPLITS = 10
TOLERANCE = 2.0  # points below a published value that still reproduce it

Row = dict[str, str]


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    columns = list(header)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@cache
def paper_experiments() -> dict[str, ExperimentResults]:
    """Experiments of the paper."""
    return {results.name: results for results in load_experiments(Store(HERE / "reproduce.sqlite"))}


@cache
def other_experiments() -> dict[str, ExperimentResults]:
    """Experiments beyond the paper."""
    return {results.name: results for results in load_experiments(Store(HERE / "beyond.sqlite"))}


def _find(results: ExperimentResults, setting: str, label: str) -> Cell:
    cell = results.find(setting, label)
    assert cell is not None
    return cell


def _paper_cell(setting: str, label: str, *, equal_seeds: bool) -> Cell:
    results = paper_experiments()["table2" if "longtail" in setting else "table1"]
    return _find(results.with_equal_seeds() if equal_seeds else results, setting, label)


def front() -> str:
    """Nine methods in five settings over seeds 5, 6, 7; published means in brackets."""
    rows = []
    for label in paper_experiments()["table1"].labels:
        cells = [_paper_cell(setting, label, equal_seeds=True) for setting in FRONT]
        means = [(f"{cell.mean(METRIC):.1f}", cell.published(METRIC)) for cell in cells]
        rows.append([label, *(f"{m} ({'–' if paper is None else paper})" for m, paper in means)])
    return _table(["method", *FRONT.values()], rows)


def twenty() -> str:
    """Mean and deviation of three methods over twenty seeds."""
    rows = []
    for setting, title in FRONT.items():
        cells = [_paper_cell(setting, label, equal_seeds=False) for label in TWENTY_SEEDS]
        rows.append([title, *map(_mean_text, cells)])
    return _table(["setting", *TWENTY_SEEDS], rows)


def _mean_text(cell: Cell) -> str:
    return f"{cell.mean(METRIC):.1f} ± {cell.deviation(METRIC):.1f}"


# Beyond the paper.


def natural() -> str:
    """Two methods on naturally imbalanced graphs, as `evengraph compare` found."""
    rows = []
    for name, title in NATURAL.items():
        result = json.loads((HERE / "compare" / f"{name}.json").read_text(encoding="utf-8"))
        means = {m["label"]: m["figures"][METRIC]["mean"] for m in result["methods"]}
        (pair,) = result["pairs"]
        sign = 1 if pair["ahead"] == "unignn" else -1
        low, high = sorted(sign * pair.get(f"wide_{end}", pair[end]) for end in ("low", "high"))
        difference = f"{sign * pair['difference']:.1f} ({low:.1f} to {high:.1f})"
        rows.append([title, f"{means['gcn']:.1f}", f"{means['unignn']:.1f}", difference])
    return _table(["graph", "GCN", "Uni-GNN", "difference"], rows)


def best_first(results: ExperimentResults, metric: str) -> list[str]:
    """Names of the methods by relative rank over the settings in which each was run."""
    ranks: dict[str, list[float]] = {label: [] for label in results.labels}
    for setting in results.settings:
        cells = sorted(results.table_cells(setting), key=lambda cell: -cell.mean(metric))
        for rank, cell in enumerate(cells):
            ranks[cell.label].append(rank / len(cells))
    return sorted(ranks, key=lambda label: fmean(ranks[label]) if ranks[label] else 1.0)


def public() -> str:
    """The public split: every method with published values, and some others."""
    results = other_experiments()["publicstep"]
    rows = []
    for label in best_first(results, METRIC):
        cells = [results.find(setting, label) for setting in PUBLIC]
        if label in PUBLIC_METHODS or any(cell and cell.published(METRIC) for cell in cells):
            rows.append([label, *map(_with_published, cells)])
    return _table(["method", *PUBLIC.values()], rows)


def raw() -> str:
    """IceBerg and its parts, with scaled and with raw features."""
    both = other_experiments()["publicstep"], other_experiments()["publicraw"]
    header = [f"{title}, {kind}" for title in PUBLIC.values() for kind in ("scaled", "raw")]
    rows = []
    for label in both[1].labels:
        cells = [results.find(setting, label) for setting in PUBLIC for results in both]
        rows.append([label, *map(_with_published, cells)])
    return _table(["method", *header], rows)


HEAVY = ("heavyscaled", "heavyraw")
GRAPHS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "computers": "Computers"}


def heavier() -> str:
    """Unison as it is now, and others with raw features, at ratios 10 and 20."""
    found = {one.name: one for one in load_experiments(Store(HERE / "public.sqlite"), HEAVY)}
    settings = found["heavyraw"].settings
    rows = []
    for kind, label in ((HEAVY[0], "Unison"), *((HEAVY[1], x) for x in found["heavyraw"].labels)):
        cells = [found[kind].find(setting, label) for setting in settings]
        features = kind.removeprefix("heavy")
        rows.append([f"{label}, {features} features", *map(_with_published, cells)])
    published = [paper_cell(*_where(setting), "UNREAL", table="published") for setting in settings]
    means = [f"({cell[METRIC]['mean']})" for cell in published if cell is not None]
    where = [(_where(setting)[0], _where(setting)[2]["ratio"]) for setting in settings]
    titles = [f"{GRAPHS[graph]}, {1 / ratio:.0f}" for graph, ratio in where]
    return _table(["method", *titles], [*rows, ["UNREAL, published", *means]])


def drawn() -> str:
    """Unison on splits like those of UNREAL's authors, beside their values."""
    ours, theirs = _heavier_scores("heavier.csv"), _heavier_scores("heavier-published.csv")
    rows = []
    for graph, ratio in dict.fromkeys(key[:2] for key in ours):
        name = f"{GRAPHS[graph]}, " + (f"ratio {ratio}" if ratio != "0" else "1% of each class")
        shown = [ours[graph, ratio, label] for label in ("unison", "balancedsoftmax")]
        means = [f"{fmean(one):.1f} ± {stdev(one):.1f}" if one else "–" for one in shown]
        published = [theirs[graph, ratio, label] for label in ("Balanced softmax", *UNREALS)]
        rows.append([name, *means, *(f"({one[0]})" if one else "–" for one in published)])
    header = ["setting", "Unison", "balanced softmax", "theirs", "UNREAL", "UNREAL, GAT"]
    return _table(header, rows)


def drawn_verdict() -> str:
    """Where Unison is above UNREAL, and how far our balanced softmax is from theirs."""
    ours, theirs = _heavier_scores("heavier.csv"), _heavier_scores("heavier-published.csv")
    keys = [key[:2] for key in ours if key[2] == "unison"]
    leads = {key: fmean(ours[*key, "unison"]) - theirs[*key, "UNREAL"][0] for key in keys}
    above = [key for key in keys if leads[key] > 0]
    both = [key for key in above if fmean(ours[*key, "unison"]) > theirs[*key, UNREALS[1]][0]]
    gaps = [
        fmean(values) - theirs[*key, "Balanced softmax"][0]
        for (*key, label), values in ours.items()
        if label == "balancedsoftmax"
    ]
    low, high = min(leads.values()), max(leads.values())
    return (
        f"Unison is above UNREAL with a GCN in {len(above)} of {len(leads)} settings, by "
        f"{low:+.1f} to {high:+.1f} points over all, and above both its networks in {len(both)}; "
        f"our balanced softmax differs from theirs by "
        f"{min(gaps):+.1f} to {max(gaps):+.1f}"
    )


UNREALS = ("UNREAL", "UNREAL, GAT")


def _heavier_scores(name: str) -> dict[tuple[str, str, str], list[float]]:
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["graph"], row["ratio"], row["method"]].append(float(row[METRIC]))
    return found


def public_leads() -> str:
    """How far Unison is above the next row of the public split, and what a paired test says."""
    results = other_experiments()["publicstep"]
    tests = []
    for setting in PUBLIC:
        ranked = sorted(results.table_cells(setting), key=lambda cell: -cell.mean(METRIC))
        assert ranked[0].label == "Unison"
        tests.append(paired_gaps(*ranked[:2], METRIC).evidence)
    assert min(holm([test.p for test in tests])) > ALPHA
    means, ps = ([format(getattr(t, name), form) for t in tests] for name, form in FORMS)
    return f"by {_listed(means)} points; none is significant (p = {_listed(ps)})"


FORMS = (("mean", ".1f"), ("p", ".2f"))


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _where(setting: str) -> tuple[str, str, dict[str, Any]]:
    dataset, imbalance, minority, ratio = setting.split("-")
    return dataset, imbalance, {"minority": int(minority), "ratio": float(ratio)}


def _with_published(cell: Cell | None) -> str:
    """Mean and deviation over all ten seeds, the published mean in brackets."""
    if cell is None or len(cell.rows) < SPLITS:
        return "–"
    paper = cell.published(METRIC)
    return _mean_text(cell) + ("" if paper is None else f" ({paper})")


def newer() -> str:
    """Later methods over the fourteen settings of the paper: means, and number of wins."""
    results = other_experiments()["newer"]
    means = {label: _means(results, label, METRIC) for label in results.labels}
    rows = []
    for label in sorted(means, key=lambda label: -fmean(means[label])):
        scores = [f"{fmean(_means(results, label, metric)):.1f}" for metric in (METRIC, "macro_f1")]
        rows.append([label, *scores, *(_wins(means, label, x) for x in ("GCN", "Uni-GNN"))])
    header = ("method", "balanced accuracy", "Macro-F1", "better than GCN in")
    return _table([*header, "better than Uni-GNN in"], rows)


def _means(results: ExperimentResults, label: str, metric: str) -> list[float]:
    cells = [results.find(setting, label) for setting in results.settings]
    return [cell.mean(metric) for cell in cells if cell is not None]


def _wins(means: dict[str, list[float]], label: str, other: str) -> str:
    pairs = zip(means[label], means[other], strict=True)
    return "–" if label == other else str(sum(mean > against for mean, against in pairs))


def gap(name: str, label: str, other: str) -> str:
    """Mean difference of two methods on the same splits over all settings, and wins."""
    results = other_experiments()[name]
    cells = [(_find(results, s, label), _find(results, s, other)) for s in results.settings]
    gaps = [gap for pair in cells for gap in paired_gaps(*pair, METRIC).values]
    wins = sum(gap > 0 for gap in gaps)
    return f"{fmean(gaps):.1f} points on average, in {wins} of {len(gaps)} runs on the same split"


def patient() -> str:
    """The same gap to Uni-GNN with the patience of the paper's tables, which is longer."""
    results = other_experiments()["newer"]
    gaps, means, wins = [], [], 0
    for setting in results.settings:
        cell = _find(results, setting, "IceBerg")
        other = _paper_cell(setting, "Uni-GNN", equal_seeds=True)
        gaps += paired_gaps(cell, other, METRIC).values
        means.append(other.mean(METRIC))
        wins += cell.mean(METRIC) > other.mean(METRIC)
    runs = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} runs"
    return (
        f"Uni-GNN reaches {fmean(means):.1f} there, and IceBerg is better by {fmean(gaps):.1f} "
        f"points, in {runs} and {wins} of 14 settings"
    )


def rates() -> str:
    """IceBerg at each learning rate, in the settings of the paper and on four graphs."""
    newer, natural = (other_experiments()[name] for name in ("newer", "natural"))
    values = _by_rate()
    others = dict(zip(newer.settings, _means(newer, "Uni-GNN", METRIC), strict=True))
    rows = []
    for rate in (0.01, 0.03, 0.1):
        means = {s: fmean(values[s, rate]) for s in (*newer.settings, *natural.settings)}
        wins = sum(means[setting] > others[setting] for setting in newer.settings)
        row = [str(rate), f"{fmean(means[setting] for setting in newer.settings):.1f}", str(wins)]
        rows.append([*row, *(f"{means[setting]:.1f}" for setting in natural.settings)])
    header = ["learning rate", "fourteen settings", "better than Uni-GNN in"]
    return _table([*header, *_graphs(natural.settings)], rows)


def _graphs(settings: Iterable[str]) -> list[str]:
    return [setting.partition("-natural")[0] for setting in settings]


def _by_rate() -> dict[tuple[str, float], list[float]]:
    """Values of IceBerg by setting and learning rate."""
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for row in Store(HERE / "beyond.sqlite").rows(method="iceberg"):
        job = row.job
        if job.imbalance != "publicstep":
            fields = job.imbalance_fields
            name = Setup(dataset=job.dataset, imbalance=job.imbalance, fields=fields).name
            rate = job.method_fields["learning_rate"]
            values[name, rate].append(row.outcome["metrics"][METRIC])
    return values


def published() -> str:
    """Number of published values that reproduce within two points, or are exceeded."""
    scaled, raw = (other_experiments()[name] for name in ("publicstep", "publicraw"))
    counts = []
    for metric, title in ((METRIC, "balanced accuracies"), ("macro_f1", "Macro-F1 values")):
        first, either, total = 0, 0, 0
        for cell in scaled.cells:
            paper = cell.published(metric)
            if paper is None:
                continue
            other = raw.find(cell.setting, cell.label)
            means = [cell.mean(metric), *([other.mean(metric)] if other else [])]
            total += 1
            first += means[0] >= paper - TOLERANCE
            either += max(means) >= paper - TOLERANCE
        counts.append((first, either, total, title))
    (a, b, n, title), (c, d, m, other_title) = counts
    return (
        f"{a} of {n} published {title} with scaled features, {b} with the better of the two; "
        f"{c} and {d} of {m} {other_title}"
    )


def ceiling() -> str:
    """Accuracy of UNREAL's network with twenty labels in every class, and of a plain GCN."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    with (HERE / "tried.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["imbalance"] == "publicstep" and row["ratio"] == "1.0":
                values[row["dataset"], row["method"]].append(float(row[METRIC]))
    keys = product(("cora", "citeseer"), ("unreal", "gcn"))
    means = [f"{fmean(values[key]):.1f}" for key in keys]
    return (
        f"it reaches {means[0]} on Cora and {means[2]} on CiteSeer, where two plain convolutions "
        f"reach {means[1]} and {means[3]}"
    )


def graphs() -> str:
    """Naturally imbalanced graphs: balanced accuracy and Macro-F1 of many methods."""
    results = other_experiments()["natural"]
    rows = []
    for label in best_first(results, METRIC):
        if label in NATURAL_METHODS:
            cells = [results.find(setting, label) for setting in results.settings]
            rows.append([label, *map(_both_metrics, cells)])
    return _table(["method", *_graphs(results.settings)], rows)


def _both_metrics(cell: Cell | None) -> str:
    if cell is None or len(cell.rows) < SPLITS:
        return "–"
    return f"{_mean_text(cell)} / {cell.mean('macro_f1'):.1f}"


def order() -> str:
    """Graphs of two classes: average precision of the rare one."""
    results, metric = other_experiments()["natural"], "positive_average_precision"
    baselines = [_find(results, setting, "GCN") for setting in results.settings]
    settings = [c.setting for c in baselines if metric in c.rows[0].outcome["metrics"]]
    rows = []
    for label in RANKING_METHODS:
        cells = [_find(results, setting, label) for setting in settings]
        rows.append([label, *(f"{cell.mean(metric):.1f}" for cell in cells)])
    return _table(["method", *_graphs(settings)], rows)


# Other variants of the methods.


def rows() -> list[Row]:
    """Every run of readings.csv."""
    with (HERE / "readings.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tried(method: str) -> dict[tuple[str, ...], dict[str, list[Row]]]:
    """Runs of a method at seeds 5, 6, 7, by setting and hyperparameters."""
    runs: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows():
        if row["method"] == method and row["split"] == row["seed"] and row["seed"] in SEEDS:
            setting = tuple(row[name] for name in ("dataset", "imbalance", "minority", "ratio"))
            runs[setting][row["fields"]].append(row)
    return runs


def validation(runs: list[Row]) -> float:
    """Score by which hyperparameters are selected."""
    return fmean(float(row["validation"]) for row in runs)


HEAD = """# Fixed variants of the comparison methods

Where the public code of a method has an error, our default repeats it, since the published values
came from it, and an option fixes it. The table shows what the options change in five settings:
classes filled up to the same size (`copies=0`, or `balance=True`), and errors of the public code
fixed as well (`sound=True`, for Embed-SMOTE `layers=2`). Balanced accuracy in percent over seeds
5, 6, 7, mean (deviation); drawn from [readings.csv](readings.csv) by `python results/draw.py`.
"""


def readings() -> str:
    """The text of readings.md."""
    names = {setting.rsplit("-", 1)[0]: title for setting, title in FRONT.items()}
    rows = []
    for method in METHODS:
        variants = _best_by_variant(method, names)
        complete = [variant for variant, runs in variants.items() if len(runs) == len(names)]
        if not any(option in variant for variant in complete for option in OPTIONS):
            continue
        for variant in sorted(complete, key=lambda variant: (_suffix(variant), len(variant))):
            title = f"{METHODS[method].title}{_suffix(variant)}"
            options = ", ".join(f"`{word}`" for word in variant.split() if word in OPTIONS)
            means = [_mean(variants[variant][name]) for name in names]
            rows.append([title, options or "as published", *means])
    return f"{HEAD}\n{_table(['method', 'options', *names.values()], rows)}\n"


def _best_by_variant(method: str, names: Mapping[str, str]) -> dict[str, dict[str, list[Row]]]:
    """Runs of the best hyperparameters on validation, by variant and setting."""
    variants: dict[str, dict[str, list[Row]]] = defaultdict(dict)
    for setting, candidates in tried(method).items():
        name = "-".join(part for part in setting[:3] if part)
        if name not in names or setting[3] not in ("0.1", "0.01"):
            continue
        for fields, runs in sorted(candidates.items()):
            best = variants[_variant(fields)]
            if name not in best or validation(runs) > validation(best[name]):
                best[name] = runs
    return variants


def _variant(fields: str) -> str:
    """The options among the hyperparameters, and the variant of GraphSMOTE."""
    return " ".join(w for w in fields.split() if w in OPTIONS or w.startswith("variant="))


def _suffix(variant: str) -> str:
    words = [word.partition("=")[2] for word in variant.split() if word.startswith("variant=")]
    return f" {words[0]}" if words else ""


def _mean(runs: list[Row]) -> str:
    values = [float(row[METRIC]) for row in runs]
    return f"{fmean(values):.1f} ({stdev(values):.1f})"


if __name__ == "__main__":
    (HERE / "readings.md").write_text(readings(), encoding="utf-8")
    print(front(), twenty(), newer(), public(), raw(), graphs(), order(), natural(), sep="\n\n")
