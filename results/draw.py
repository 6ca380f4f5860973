"""Draw what stands in README.md, in docs and here from stored runs: `python results/draw.py`."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev

from evengraph.core.store import Job, Store
from evengraph.experiment.spec import Setup
from evengraph.methods import METHODS
from evengraph.report.store.comparisons import best_first
from evengraph.report.store.experiment_results import Cell, ExperimentResults, load_experiments

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
MANY = ("GCN", "LTE4G", "Uni-GNN")
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
ALSO = ("GCN", "Uni-GNN", "GraphENS", "BAT1", "ReNode + BAT", "GraphSHA", "Balanced softmax + TAM")
SHOWN = (
    *("GCN", "GraphSAGE", "GAT", "Re-weight", "Balanced softmax", "Balanced softmax, GraphSAGE"),
    *("SMOTE", "GraphSMOTE", "GraphENS + BAT", "GraphSHA", "LTE4G", "BAT1", "UNREAL", "Uni-GNN"),
    *("IceBerg", "Double balancing", "Double balancing, GraphSAGE"),
    *("MLP", "Label propagation", "Boosting"),
)
IN_ORDER = (
    *("GCN", "GraphSAGE", "Re-weight", "LTE4G", "UNREAL", "Uni-GNN", "IceBerg"),
    *("Double balancing", "Balanced softmax, GraphSAGE", "Double balancing, GraphSAGE"),
    *("MLP", "Label propagation", "Boosting"),
)
SPLITS = 10
NEAR = 2.0  # points

Place = tuple[str, str, str, str]  # graph, protocol, minority, ratio
Row = dict[str, str]


@cache
def paper_experiments() -> dict[str, ExperimentResults]:
    """The experiments of the full run."""
    return {results.name: results for results in load_experiments(Store(HERE / "reproduce.sqlite"))}


def front() -> str:
    """Nine methods on five set-ups over the paper's seeds, the paper's figures in brackets."""
    found = {name: results.with_equal_seeds() for name, results in paper_experiments().items()}
    lines = [f"| method | {' | '.join(FRONT.values())} |", "| --- |" + " --- |" * len(FRONT)]
    for label in found["table1"].labels:
        cells = []
        for setup in FRONT:
            cell = found["table2" if "longtail" in setup else "table1"].find(setup, label)
            assert cell is not None
            paper = cell.published(METRIC)
            cells.append(f"{cell.mean(METRIC):.1f} ({'–' if paper is None else paper})")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def twenty() -> str:
    """Three methods over twenty seeds, mean and deviation."""
    found = paper_experiments()
    lines = [f"| set-up | {' | '.join(MANY)} |", "| --- |" + " --- |" * len(MANY)]
    for setup, words in FRONT.items():
        results = found["table2" if "longtail" in setup else "table1"]
        cells = [_mean_of(results.find(setup, label)) for label in MANY]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean_of(cell: Cell | None) -> str:
    assert cell is not None
    return f"{cell.mean(METRIC):.1f} ± {cell.deviation(METRIC):.1f}"


# Beyond the paper.


def natural() -> str:
    """Graphs that are unequal by themselves: what `evengraph compare` said of two methods."""
    lines = ["| graph | GCN | Uni-GNN | ahead by |", "| --- | --- | --- | --- |"]
    for name, words in NATURAL.items():
        found = json.loads((HERE / "compare" / f"{name}.json").read_text(encoding="utf-8"))
        means = {m["label"]: m["figures"][METRIC]["mean"] for m in found["methods"]}
        (pair,) = found["pairs"]
        sign = 1 if pair["ahead"] == "unignn" else -1
        low, high = sorted(sign * pair[end] for end in ("low", "high"))
        ahead = f"{sign * pair['difference']:.1f} ({low:.1f} to {high:.1f})"
        lines.append(f"| {words} | {means['gcn']:.1f} | {means['unignn']:.1f} | {ahead} |")
    return "\n".join(lines)


def public() -> str:
    """The public split: every method that somebody published figures for, and some beside it."""
    results = _beyond("publicstep")
    lines = [f"| method | {' | '.join(PUBLIC.values())} |", "| --- |" + " --- |" * len(PUBLIC)]
    for label in best_first(results, METRIC):
        cells = [results.find(setup, label) for setup in PUBLIC]
        if label in ALSO or any(cell and cell.published(METRIC) for cell in cells):
            lines.append(f"| {label} | {' | '.join(map(_beside, cells))} |")
    return "\n".join(lines)


def raw() -> str:
    """IceBerg and what it is made of, with features scaled and as they come."""
    scaled, given = _beyond("publicstep"), _beyond("publicraw")
    heads = [f"{words}, {kind}" for words in PUBLIC.values() for kind in ("scaled", "as they come")]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for label in given.labels:
        cells = [results.find(setup, label) for setup in PUBLIC for results in (scaled, given)]
        lines.append(f"| {label} | {' | '.join(map(_beside, cells))} |")
    return "\n".join(lines)


def newer() -> str:
    """Later methods over the fourteen set-ups of the paper: means, and where they are ahead."""
    results = _beyond("newer")
    heads = ("method", "balanced accuracy", "Macro-F1", "ahead of GCN in", "ahead of Uni-GNN in")
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) - 1)]
    means = {label: _means(results, label, METRIC) for label in results.labels}
    for label in sorted(means, key=lambda label: -fmean(means[label])):
        first = [f"{fmean(_means(results, label, metric)):.1f}" for metric in (METRIC, "macro_f1")]
        ahead = [_ahead(means, label, other) for other in ("GCN", "Uni-GNN")]
        lines.append(f"| {' | '.join([label, *first, *ahead])} |")
    return "\n".join(lines)


def _means(results: ExperimentResults, label: str, metric: str) -> list[float]:
    cells = [results.find(setup, label) for setup in results.settings]
    return [cell.mean(metric) for cell in cells if cell is not None]


def _ahead(means: dict[str, list[float]], ours: str, theirs: str) -> str:
    pairs = zip(means[ours], means[theirs], strict=True)
    return "–" if ours == theirs else str(sum(one > other for one, other in pairs))


def gap(name: str, ours: str, theirs: str) -> str:
    """How far one method is ahead of another on the same splits, over all set-ups."""
    results = _beyond(name)
    gaps = []
    for setup in results.settings:
        one, other = results.find(setup, ours), results.find(setup, theirs)
        assert one is not None
        assert other is not None
        values, beside = one.by_seed(METRIC), other.by_seed(METRIC)
        gaps += [values[seed] - beside[seed] for seed in values]
    wins = sum(value > 0 for value in gaps)
    return f"{fmean(gaps):.1f} points in the mean, in {wins} of {len(gaps)} runs on the same split"


def patient() -> str:
    """The same gap to Uni-GNN as it is in the paper's tables, where training waits longer."""
    found = {name: results.with_equal_seeds() for name, results in paper_experiments().items()}
    newer = _beyond("newer")
    means, gaps, wins = [], [], 0
    for setup in newer.settings:
        ours = newer.find(setup, "IceBerg")
        theirs = found["table2" if "longtail" in setup else "table1"].find(setup, "Uni-GNN")
        assert ours is not None
        assert theirs is not None
        values, beside = ours.by_seed(METRIC), theirs.by_seed(METRIC)
        means.append(theirs.mean(METRIC))
        gaps += [values[seed] - beside[seed] for seed in values]
        wins += ours.mean(METRIC) > theirs.mean(METRIC)
    ahead = sum(gap > 0 for gap in gaps)
    return (
        f"Uni-GNN has {fmean(means):.1f} there, and IceBerg is ahead of that by "
        f"{fmean(gaps):.1f} points, in {ahead} of {len(gaps)} runs and {wins} of 14 set-ups"
    )


def rates() -> str:
    """IceBerg at each learning rate: over the paper's set-ups, and on four graphs."""
    newer, natural = _beyond("newer"), _beyond("natural")
    graphs = [setup.partition("-natural")[0] for setup in natural.settings]
    heads = ["learning rate", "fourteen set-ups", "ahead of Uni-GNN in", *graphs]
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) - 1)]
    ours = _by_rate()
    theirs = dict(zip(newer.settings, _means(newer, "Uni-GNN", METRIC), strict=True))
    for rate in (0.01, 0.03, 0.1):
        means = {setup: fmean(ours[setup, rate]) for setup in (*newer.settings, *natural.settings)}
        ahead = sum(means[setup] > theirs[setup] for setup in newer.settings)
        cells = [f"{fmean(means[setup] for setup in newer.settings):.1f}", str(ahead)]
        cells += [f"{means[setup]:.1f}" for setup in natural.settings]
        lines.append(f"| {rate} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_rate() -> dict[tuple[str, float], list[float]]:
    found: dict[tuple[str, float], list[float]] = defaultdict(list)
    for row in Store(HERE / "beyond.sqlite").rows():
        job = row.job
        if job.method == "iceberg" and job.imbalance != "publicstep":
            rate = job.method_fields["learning_rate"]
            found[_name_of(job), rate].append(row.outcome["metrics"][METRIC])
    return found


def _name_of(job: Job) -> str:
    fields = job.imbalance_fields
    return Setup(dataset=job.dataset, imbalance=job.imbalance, fields=fields).name


def published() -> str:
    """How many published figures come out within two points, or higher."""
    scaled, given = _beyond("publicstep"), _beyond("publicraw")
    counts = []
    for metric, words in ((METRIC, "balanced accuracies"), ("macro_f1", "Macro-F1")):
        first, either, total = 0, 0, 0
        for cell in scaled.cells:
            paper = cell.published(metric)
            if paper is None:
                continue
            other = given.find(cell.setting, cell.label)
            both = [cell.mean(metric), *([other.mean(metric)] if other else [])]
            total += 1
            first += both[0] >= paper - NEAR
            either += max(both) >= paper - NEAR
        counts.append(f"of {total} published {words} {first} with scaled features and {either}")
    return f"{counts[0]} with the better of the two, {counts[1]}"


def ceiling() -> str:
    """What the network of UNREAL has with twenty labels in every class, and a plain GCN."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with (HERE / "tried.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["imbalance"] == "publicstep" and row["ratio"] == "1.0":
                found[row["dataset"], row["method"]].append(float(row[METRIC]))
    words = [f"{fmean(found[key]):.1f}" for key in product(("cora", "citeseer"), ("unreal", "gcn"))]
    return (
        f"it has {words[0]} on Cora and {words[2]} on CiteSeer, where two plain convolutions have "
        f"{words[1]} and {words[3]}"
    )


def graphs() -> str:
    """Graphs that are unequal by themselves: balanced accuracy and Macro-F1 of many methods."""
    results = _beyond("natural")
    heads = [setup.partition("-natural")[0] for setup in results.settings]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for label in best_first(results, METRIC):
        if label in SHOWN:
            cells = [results.find(setup, label) for setup in results.settings]
            lines.append(f"| {label} | {' | '.join(map(_two, cells))} |")
    return "\n".join(lines)


def _two(cell: Cell | None) -> str:
    if cell is None or len(cell.rows) < SPLITS:
        return "–"
    return f"{_mean_of(cell)} / {cell.mean('macro_f1'):.1f}"


def order() -> str:
    """Graphs of two classes: average precision of the rare one, for those of note."""
    results = _beyond("natural")
    setups = [setup for setup in results.settings if _of_two(results, setup)]
    heads = [setup.partition("-natural")[0] for setup in setups]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for label in IN_ORDER:
        cells = [results.find(setup, label) for setup in setups]
        means = [cell.mean("positive_average_precision") for cell in cells if cell is not None]
        lines.append(f"| {label} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return "\n".join(lines)


def _of_two(results: ExperimentResults, setup: str) -> bool:
    cell = results.find(setup, "GCN")
    return cell is not None and "positive_average_precision" in cell.rows[0].outcome["metrics"]


def _beyond(name: str) -> ExperimentResults:
    return _all_beyond()[name]


@cache
def _all_beyond() -> dict[str, ExperimentResults]:
    return {results.name: results for results in load_experiments(Store(HERE / "beyond.sqlite"))}


def _beside(cell: Cell | None) -> str:
    """Mean and deviation over all ten seeds, and what was published in brackets."""
    if cell is None or len(cell.rows) < SPLITS:
        return "–"
    paper = cell.published(METRIC)
    return _mean_of(cell) + ("" if paper is None else f" ({paper})")


# Other readings of the methods.


def rows() -> list[Row]:
    """Every run of the readings."""
    with (HERE / "readings.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tried(method: str) -> dict[Place, dict[str, list[Row]]]:
    """Runs of a method at the paper's seeds, by set-up and settings."""
    runs: dict[Place, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows():
        if row["method"] == method and row["split"] == row["seed"] and row["seed"] in SEEDS:
            setup = (row["dataset"], row["imbalance"], row["minority"], row["ratio"])
            runs[setup][row["fields"]].append(row)
    return runs


def validation(runs: list[Row]) -> float:
    """What settings are chosen by."""
    return fmean(float(row["validation"]) for row in runs)


HEAD = """# The sound readings

Where the public code of a method slips, our default is what the published figures came from, and
an option mends it. What the options give in five set-ups, beside the published reading: classes
filled up (`copies=0`, or `balance=True`), and slips of the public code mended as well
(`sound=True`, for Embed-SMOTE `layers=2`). Balanced accuracy in percent over seeds 5, 6, 7, mean
(deviation); drawn from [readings.csv](readings.csv) by `python results/draw.py`.
"""


def readings() -> str:
    """The whole of readings.md."""
    names = {setup.rsplit("-", 1)[0]: words for setup, words in FRONT.items()}
    lines = [HEAD, f"| method | options | {' | '.join(names.values())} |"]
    lines.append("| --- | --- |" + " --- |" * len(names))
    for method in METHODS:
        found: dict[str, dict[str, list[Row]]] = defaultdict(dict)
        for setup, settings in tried(method).items():
            name = "-".join(part for part in setup[:3] if part)
            if name not in names or setup[3] not in ("0.1", "0.01"):
                continue
            for fields, runs in sorted(settings.items()):
                kind = _kind(fields)
                known = found[kind].get(name)
                if known is None or validation(runs) > validation(known):
                    found[kind][name] = runs
        kinds = [kind for kind in found if len(found[kind]) == len(names)]
        if not any(word in kind for kind in kinds for word in OPTIONS):
            continue
        for kind in sorted(kinds, key=lambda kind: (_variant(kind), len(kind))):
            title = f"{METHODS[method].title}{_variant(kind)}"
            words = ", ".join(f"`{word}`" for word in kind.split() if word in OPTIONS)
            cells = [_mean(found[kind][name]) for name in names]
            lines.append(f"| {title} | {words or 'as published'} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _kind(fields: str) -> str:
    """The options among the settings, and the variant of GraphSMOTE."""
    return " ".join(w for w in fields.split() if w in OPTIONS or w.startswith("variant="))


def _variant(kind: str) -> str:
    words = [word.partition("=")[2] for word in kind.split() if word.startswith("variant=")]
    return f" {words[0]}" if words else ""


def _mean(runs: list[Row]) -> str:
    values = [float(row[METRIC]) for row in runs]
    return f"{fmean(values):.1f} ({pstdev(values):.1f})"


if __name__ == "__main__":
    (HERE / "readings.md").write_text(readings(), encoding="utf-8")
    print(front(), twenty(), newer(), public(), raw(), graphs(), order(), natural(), sep="\n\n")
