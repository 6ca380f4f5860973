"""Draw comparison.md from comparison.csv: `python results/comparison.py`."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean, pstdev

from evengraph.experiment.describe import describe_method
from evengraph.experiment.paper import paper_cell
from evengraph.methods import METHODS

HERE = Path(__file__).parent
SEEDS = {"5", "6", "7"}
METRIC = "balanced_accuracy"
GRAPHS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

FRONT = {("3", "0.1"), ("1", "0.1")}  # minority and ratio of the set-ups on the front page

Setup = tuple[str, str, str, str]  # graph, protocol, minority, ratio
Row = dict[str, str]


def rows() -> list[Row]:
    """Every stored run."""
    with (HERE / "comparison.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chosen() -> dict[Setup, dict[str, list[Row]]]:
    """For each set-up and method the runs of the paper's seeds, settings picked on validation.

    Where a method ran with several settings, those with the highest mean validation score count.
    The sound forms and GraphSMOTE's variant O are no settings but methods of their own.
    """
    runs: dict[Setup, dict[str, dict[str, list[Row]]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows():
        if row["split"] != row["seed"] or row["seed"] not in SEEDS or "sound=True" in row["fields"]:
            continue
        setup = (row["dataset"], row["imbalance"], row["minority"], row["ratio"])
        title = describe_method(row["method"]).title
        if row["method"] == "graphsmote":
            title += " O" if "variant=O" in row["fields"] else " T"
        runs[setup][title].setdefault(row["fields"], []).append(row)
    return {
        setup: {title: max(tried.values(), key=_validation) for title, tried in methods.items()}
        for setup, methods in runs.items()
    }


def _validation(runs: list[Row]) -> float:
    return fmean(float(row["validation"]) for row in runs)


def title(setup: Setup) -> str:
    """A set-up in words."""
    graph, protocol, minority, ratio = setup
    share = f"{100 * float(ratio):g}%"
    if protocol == "longtail":
        return f"{GRAPHS[graph]}, long tail {share}"
    return f"{GRAPHS[graph]}, {minority} {'class' if minority == '1' else 'classes'}, {share}"


def paper(setup: Setup, method: str) -> dict[str, float | None] | None:
    """The paper's mean and deviation for a set-up and a method."""
    graph, protocol, minority, ratio = setup
    fields = {"ratio": float(ratio), "minority": int(minority) if minority else None}
    cell = paper_cell(graph, protocol, fields, method)
    return cell and cell[METRIC]


def shortfall(ours: float, theirs: dict[str, float | None]) -> float:
    """How far ours lies below the paper's beyond two points or 1.5 deviations, the larger."""
    allowed = max(2.0, 1.5 * (theirs["std"] or 0.0))
    return float(theirs["mean"] or 0.0) - allowed - ours


def text() -> str:
    """The whole file."""
    found = chosen()
    order = ["GraphSMOTE T" if name == "graphsmote" else cls.title for name, cls in METHODS.items()]
    order.insert(order.index("GraphSMOTE T") + 1, "GraphSMOTE O")
    lines = [
        "# All methods on the paper's fourteen set-ups",
        "",
        "Balanced accuracy in percent over seeds 5, 6, 7, mean (deviation), ours and below it the",
        "paper's; drawn from [comparison.csv](comparison.csv) by `python results/comparison.py`.",
        "A star: below the paper's by more than two points and more than 1.5 of its deviations.",
    ]
    short = []
    for graph, name in GRAPHS.items():
        setups = [setup for setup in found if setup[0] == graph]
        lines += ["", f"## {name}", ""]
        heads = [title(setup).partition(", ")[2] for setup in setups]
        lines.append(f"| method | {' | '.join(heads)} |")
        lines.append("| --- |" + " --- |" * len(setups))
        for method in order:
            cells = []
            for setup in setups:
                runs = found[setup][method]
                values = [float(row[METRIC]) for row in runs]
                theirs = paper(setup, runs[0]["method"])
                missing = shortfall(fmean(values), theirs) if theirs else 0.0
                star = "\\*" if missing > 0 else ""
                if star:
                    short.append((title(setup), method, fmean(values), theirs))
                cell = f"{fmean(values):.1f} ({pstdev(values):.1f}){star}"
                there = f"{theirs['mean']} ({theirs['std']})" if theirs else "out of memory"
                if not theirs and not method.startswith("GraphSMOTE"):
                    there = "–"
                cells.append(f"{cell}<br>{there}")
            lines.append(f"| {method} | {' | '.join(cells)} |")
    lines += ["", "## Short of the paper's", ""]
    lines += [
        f"- {where}, {method}: {ours:.1f} against {theirs['mean']} ({theirs['std']})."
        for where, method, ours, theirs in short
    ]
    return "\n".join([*lines, ""])


def summary() -> str:
    """One set-up of each kind, for the front page: ours, and the paper's in brackets."""
    found = chosen()
    setups = [setup for setup in found if setup[1] == "longtail" or setup[2:] in FRONT]
    setups.sort(key=lambda setup: setup[1] == "longtail")
    lines = [f"| method | {' | '.join(title(setup) for setup in setups)} |"]
    lines.append("| --- |" + " --- |" * len(setups))
    for method in found[setups[0]]:
        if method == "GraphSMOTE O":
            continue
        cells = []
        for setup in setups:
            runs = found[setup][method]
            theirs = paper(setup, runs[0]["method"])
            ours = fmean(float(row[METRIC]) for row in runs)
            cells.append(f"{ours:.1f} ({theirs['mean'] if theirs else '–'})")
        lines.append(f"| {method.removesuffix(' T')} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    (HERE / "comparison.md").write_text(text(), encoding="utf-8")
    print(summary())
