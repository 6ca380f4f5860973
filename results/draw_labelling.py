"""Draw the tables and the figures of docs/results/labelling.md: `python results/draw_labelling.py`.

Tables are put between the marks of the page, the figures into docs/labelling.svg and
docs/labelling-ap.svg, all from labelling.csv and labelling-expected.csv.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from evengraph.metrics.significance import Evidence, holm, t_test

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results" / "labelling.md"
FIGURES = {"bacc": "labelling.svg", "ap": "labelling-ap.svg"}
METRICS = {"bacc": "balanced accuracy, %", "ap": "average precision, %"}
TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "computers": "Computers",
    "physics": "Physics",
    "twitch-ru": "Twitch RU",
    "twitch-es": "Twitch ES",
}
LAST = 200  # labels
HALVES = 1.0  # test nodes over the others
ALPHA = 0.05
Curves = dict[tuple[str, str], dict[int, list[dict[str, float]]]]
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "svg.hashsalt": "evengraph",  # the same results give the same file
    "svg.fonttype": "none",
}


@cache
def curves() -> Curves:
    """Scores of every start, by graph and strategy, then by number of labels."""
    found: Curves = defaultdict(lambda: defaultdict(list))
    with (HERE / "labelling.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            values = {name: float(row[name]) for name in ("seed", "bacc", "ap", "rare", "classes")}
            found[row["graph"], row["strategy"]][int(row["labels"])].append(values)
    for sizes in found.values():
        for rows in sizes.values():
            rows.sort(key=lambda row: row["seed"])
    return found


def graphs() -> dict[str, str]:
    """The graphs that have been run, with their titles."""
    return {name: title for name, title in TITLES.items() if (name, "default") in curves()}


def mean(graph: str, strategy: str, labels: int, metric: str) -> float:
    """The mean over all starts."""
    return fmean(row[metric] for row in curves()[graph, strategy][labels])


def needed(graph: str, strategy: str, metric: str) -> int | None:
    """The fewest labels whose mean reaches that of random labelling with all; None if none does."""
    target = mean(graph, "random", LAST, metric)
    sizes = sorted(curves()[graph, strategy])
    return next((size for size in sizes if mean(graph, strategy, size, metric) >= target), None)


def rare_per_100(graph: str, strategy: str) -> float:
    """Nodes of the rarest class among 100 labels."""
    return 100 * mean(graph, strategy, LAST, "rare") / LAST


def gap(graph: str, strategy: str, labels: int, metric: str) -> Evidence:
    """The difference from random on the same starts, tested with regard to shared nodes."""
    one, other = (
        {row["seed"]: row[metric] for row in curves()[graph, name][labels]}
        for name in (strategy, "random")
    )
    return t_test([value - other[seed] for seed, value in one.items()], overlap=HALVES)


def table(strategy: str = "default") -> str:
    """A strategy beside random: labels for the same score, scores with 100, rare nodes."""
    lines = [
        "| graph | labels needed to match 200 random ones: bAcc, AP | bAcc with 100: random, "
        f"{strategy} | AP | rarest class per 100: random, {strategy} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for graph, title in graphs().items():
        counts = ", ".join(
            "more" if count is None else str(count)
            for count in (needed(graph, strategy, metric) for metric in ("bacc", "ap"))
        )
        cells = [title, counts]
        for metric in ("bacc", "ap"):
            values = [f"{mean(graph, s, 100, metric):.1f}" for s in ("random", strategy)]
            mean_gap, low, high, _ = gap(graph, strategy, 100, metric)
            interval = f"{mean_gap:+.1f}, {low:.1f} to {high:.1f}"
            cells.append(f"{values[0]}, {values[1]} ({interval})")
        cells.append(", ".join(f"{rare_per_100(graph, s):.1f}" for s in ("random", strategy)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def findings() -> str:
    """What the table shows, in sentences."""
    few: dict[str, list[str]] = {}
    for metric in FIGURES:
        counts = {title: needed(graph, "default", metric) for graph, title in graphs().items()}
        few[metric] = [title for title, count in counts.items() if count and count <= LAST / 2]
    gaps = _all_gaps("default")
    below = [(-found.mean, metric) for metric, found in gaps if found.mean < 0]
    better, clear = _significant(gaps)
    worst = {m: max((value for value, metric in below if metric == m), default=0) for m in FIGURES}
    ratios = {
        title: rare_per_100(graph, "default") / rare_per_100(graph, "random")
        for graph, title in graphs().items()
    }
    shown = ", ".join(f"{title} {ratio:.1f}" for title, ratio in ratios.items())
    return (
        f"- **100 chosen labels or fewer first reach the balanced accuracy of {LAST} random ones** "
        f"on {len(few['bacc'])} of {len(graphs())} graphs: {_listed(few['bacc'])}; their average "
        f"precision on {_listed(few['ap'])}. This is the first crossing of two noisy curves, which "
        "may cross again.\n"
        f"- **Of {len(gaps)} differences from random**, with 10 to {LAST} labels, {better} are "
        f"significantly above zero and {clear} below, corrected for shared nodes and for all of "
        f"them: ten trials are few. {len(below)} are below zero, by at most {worst['bacc']:.1f} "
        f"points of balanced accuracy and {worst['ap']:.1f} of average precision.\n"
        f"- **The rarest class** is found more often than by random labelling, by a factor of: "
        f"{shown}.\n"
        f"{_single_strategies()}"
    )


def _all_gaps(strategy: str) -> list[tuple[str, Evidence]]:
    """The difference from random in both scores, on every graph and with every number of labels."""
    return [
        (metric, gap(graph, strategy, labels, metric))
        for graph in graphs()
        for metric in FIGURES
        for labels in curves()[graph, strategy]
    ]


def _significant(gaps: list[tuple[str, Evidence]]) -> tuple[int, int]:
    """How many are significantly above and below zero, corrected for all of them."""
    p_values = holm([found.p for _, found in gaps])
    signs = [f.mean > 0 for (_, f), p in zip(gaps, p_values, strict=True) if p < ALPHA]
    return sum(signs), len(signs) - sum(signs)


def _single_strategies() -> str:
    """How the best single strategy compares with the default."""
    names = [name for name in _strategies() if name != "random"]
    gaps = {name: _all_gaps(name) for name in names}
    gains = {name: fmean(found.mean for _, found in some) for name, some in gaps.items()}
    best = max((name for name in names if name != "default"), key=gains.__getitem__)
    return (
        "- **Single strategies.** Averaged over all graphs, both scores and all numbers of labels, "
        f"the default gains {gains['default']:.1f} points on random labelling. The best single "
        f"strategy, {best}, gains {gains[best]:.1f}."
    )


def _listed(names: list[str]) -> str:
    """Names with commas and `and`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def starts_sentence() -> str:
    """What the tables of all strategies hold."""
    (count,) = {len(rows) for sizes in curves().values() for rows in sizes.values()}
    return (
        f"All strategies with 100 labels, {count} trials each: balanced accuracy of random "
        "labelling, and the difference of each from it on the same trials; a star: significant, "
        "corrected for shared nodes and for all differences of the table."
    )


def every_strategy(metric: str, labels: int = 100) -> str:
    """What each strategy has more than random on the same starts."""
    names = [name for name in _strategies() if name != "random"]
    pairs = [(g, name) for g in graphs() for name in names if (g, name) in curves()]
    found = {pair: gap(*pair, labels, metric) for pair in pairs}
    p_values = dict(zip(pairs, holm([one.p for one in found.values()]), strict=True))
    lines = [f"| graph | random | {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) + 1)}"]
    for graph, title in graphs().items():
        cells = [title, f"{mean(graph, 'random', labels, metric):.1f}"]
        for name in names:
            star = "*" if p_values.get((graph, name), 1.0) < ALPHA else ""
            shown = (graph, name) in found
            cells.append(f"{found[graph, name].mean:+.1f}{star}" if shown else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(metric: str) -> None:
    """A score against labels: random, the default and the other strategies in grey."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    looks: dict[str, dict[str, Any]] = {
        "random": {"color": "#18202b", "linestyle": "--"},
        "default": {"color": "#d55e00", "linewidth": 2},
    }
    names = _strategies()
    names.sort(key=lambda name: name in looks)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 4, figsize=(10, 5), sharex=True, layout="constrained")
        for axis, (graph, title) in zip(axes.flat, graphs().items(), strict=False):
            for name in names:
                look = looks.get(name, {"color": "#c3cad3", "linewidth": 1})
                if (graph, name) in curves():
                    _line(axis, graph, name, metric, look)
            axis.set_title(title)
        for axis in axes.flat[len(graphs()) :]:
            axis.axis("off")
        axes.flat[-1].legend(
            *_handles(axes.flat[0], ("default", "random")), loc="center", frameon=False
        )
        figure.supxlabel("labels")
        figure.supylabel(METRICS[metric])
        figure.savefig(HERE.parent / "docs" / FIGURES[metric], metadata={"Date": None})
        plt.close(figure)


def _line(axis: Any, graph: str, name: str, metric: str, look: dict[str, Any]) -> None:
    sizes = sorted(curves()[graph, name])
    scores = [[row[metric] for row in curves()[graph, name][size]] for size in sizes]
    values = [fmean(each) for each in scores]
    axis.plot(sizes, values, label=name, **look)
    if name in ("random", "default"):
        tests = [t_test(each) for each in scores]
        low, high = [one.low for one in tests], [one.high for one in tests]
        axis.fill_between(sizes, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _handles(axis: Any, names: tuple[str, ...]) -> tuple[list[Any], list[str]]:
    lines = {line.get_label(): line for line in axis.get_lines()}
    others = [line for name, line in lines.items() if name not in names][:1]
    titles = [*names, *["the other strategies"] * len(others)]
    return [*(lines[name] for name in names), *others], titles


def _strategies() -> list[str]:
    """Strategies that have been run, the default and random first."""
    names = sorted({strategy for _, strategy in curves()})
    return sorted(names, key=lambda name: name not in ("default", "random"))


def expected() -> str:
    """What 100 labels expect of 100 more, and what came, by graph."""
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    with (HERE / "labelling-expected.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            values = {name: float(row[name]) for name in row if name not in ("graph", "commit")}
            rows[row["graph"]].append(values)
    lines = [
        "| graph | gain of 100 labels after 100: expected, real | real gain in the interval | "
        "balanced accuracy with 100: expected, real |",
        "| --- | ---: | ---: | ---: |",
    ]
    for graph in (name for name in TITLES if name in rows):
        each = rows[graph]
        gains = [row["later"] - row["now"] for row in each]
        inside = sum(
            row["gain_low"] <= gain <= row["gain_high"]
            for row, gain in zip(each, gains, strict=True)
        )
        means = [fmean(row[name] for row in each) for name in ("gain", "now_score", "now")]
        lines.append(
            f"| {TITLES[graph]} | {means[0]:.1f}, {fmean(gains):.1f} | {inside} of {len(each)} | "
            f"{means[1]:.1f}, {means[2]:.1f} |"
        )
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with all tables between their marks."""
    tables = {
        "default": table(),
        "findings": findings(),
        "starts": starts_sentence(),
        "all": every_strategy("bacc"),
        "all-ap": every_strategy("ap"),
        "expected": expected(),
    }
    for name, drawn in tables.items():
        first, last = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, rest = text.split(first)
        text = before + first + "\n" + drawn + "\n" + last + rest.split(last)[1]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.path.insert(0, str(HERE.parent))
    from tools.picture_sources import record

    for metric, name in FIGURES.items():
        draw(metric)
        record(name)
