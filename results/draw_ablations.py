"""Draw ablations, clusters and curves of docs/reproduction.md: `python results/draw_ablations.py`.

Balanced accuracy over seeds 8 to 24, which took no part in selecting hyperparameters.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import chain, product
from statistics import fmean

from paper_cells import (
    HERE,
    METRIC,
    OURS,
    OUTSIDE,
    Gaps,
    cell,
    corrected,
    differences,
    estimate,
    experiment,
    interval,
    table,
    title,
)

from evengraph.lab.results import ALPHA, paired_gaps

CITESEER = 3327  # nodes
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
THREE = range(8, 11)  # seeds that ran with ten starts, too
UNCHANGED = ("Structural Enc.", "A_struct = A")  # no clusters; alpha is 1 anyway


def settings(name: str = "table3") -> list[str]:
    """The four settings of the paper's ablations, or those that ran with ten starts."""
    return list(experiment(name).settings)


def losses(label: str) -> list[Gaps]:
    """A variant minus the full method for each seed, in every setting."""
    return [loss("table3", setting, label) for setting in settings()]


def loss(name: str, setting: str, label: str, seeds: Iterable[int] = OUTSIDE) -> Gaps:
    """The same in one setting of an experiment."""
    pair = cell(name, setting, label, seeds), cell(name, setting, OURS, seeds)
    return differences([pair])[0]


def published_loss(label: str, setting: str) -> float:
    """The same difference in the paper."""
    variant, full = (cell("table3", setting, name) for name in (label, OURS))
    return paired_gaps(variant, full, METRIC).paper or 0.0


def ablations() -> str:
    """What each variant loses, in the paper and in ours; a star: significant after correction."""
    p_values = iter(corrected(values for label in ABLATIONS for values in losses(label)))
    rows = []
    for label, name in ABLATIONS.items():
        row = [name]
        for setting, values in zip(settings(), losses(label), strict=True):
            star = "*" if next(p_values) < ALPHA else ""
            paper = _signed(published_loss(label, setting))
            row.append(f"{_signed(fmean(values))}{star} ({paper})")
        rows.append(row)
    return table(["variant", *map(title, settings())], rows)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")


def degradation() -> str:
    """In how many of the ablations the variant is worse, and in how many significantly."""
    found = [values for label in ABLATIONS for values in losses(label)]
    worse = [fmean(values) < 0 for values in found]
    sure = sum(bad and p < ALPHA for bad, p in zip(worse, corrected(found), strict=True))
    paper = [published_loss(*pair) < 0 for pair in product(ABLATIONS, settings())]
    return (
        f"in {sum(paper)} of {len(paper)} cases; ours are worse in {sum(worse)}, "
        f"significantly in {sure}"
    )


# Class weights and the scale of the loss; ties in confidence. Twenty seeds outside the choice.

TWENTY = range(8, 28)
EQUAL, KEPT, RANKED = "Equal weights", "Equal weights, total kept", "Ranked by log-odds"


def weights() -> str:
    """Equal weights as printed and with the total kept, and how much of the drop is scale."""
    rows = []
    gaps = {label: tied(label) for label in (EQUAL, KEPT)}
    p_values = iter(corrected([*gaps[EQUAL], *gaps[KEPT]]))
    stars = {label: ["*" if next(p_values) < ALPHA else "" for _ in settings()] for label in gaps}
    for index, setting in enumerate(settings()):
        full = cell("ties", setting, OURS, TWENTY).mean(METRIC)
        shown = [estimate(gaps[label][index], sign="+") + stars[label][index] for label in gaps]
        rows.append([title(setting), f"{full:.1f}", *shown])
    header = ["setting", "class weights", "equal weights minus it", "the same, total kept"]
    return table(header, rows)


def scale() -> str:
    """The mean drop of both, and where keeping the total changes anything."""
    printed, kept = (fmean(map(fmean, tied(label))) for label in (EQUAL, KEPT))
    gaps = tied(KEPT, EQUAL)
    sure = [p < ALPHA for p in corrected(gaps)]
    (place,) = (index for index, one in enumerate(sure) if one)
    others = [fmean(gap) for index, gap in enumerate(gaps) if index != place]
    return (
        f"the drop is {-kept:.1f} points on average instead of {-printed:.1f}. Nearly all of that "
        f"is {title(settings()[place])}, the only setting that it changes significantly, by "
        f"{estimate(gaps[place], sign='+')}; the others change by {min(others):+.1f} to "
        f"{max(others):+.1f}"
    )


def tied(label: str, other: str = OURS) -> list[Gaps]:
    """A variant minus another, in the four settings of the paper's ablation."""
    pairs = ((cell("ties", s, label, TWENTY), cell("ties", s, other, TWENTY)) for s in settings())
    return differences(pairs)


def tied_cuts() -> str:
    """How often the cut of the most confident nodes falls inside a tie."""
    shares = [int(row["tied"]) / int(row["cuts"]) for row in _rows("ties.csv")]
    return f"{min(shares):.0%} to {max(shares):.0%} of the cuts"


def ties() -> str:
    """What ranking by log-odds in double precision changes."""
    gaps = tied(RANKED)
    shown = [
        f"{estimate(gap, sign='+')} on {title(s)}" for s, gap in zip(settings(), gaps, strict=True)
    ]
    sure = sum(p < ALPHA for p in corrected(gaps))
    return f"{'; '.join(shown)}. {sure or 'None'} of these is significant"


# Clusters: how k-means starts.


def crowded() -> str:
    """How often k-means puts most of CiteSeer's nodes into one of 120 clusters."""
    rows = _rows("clusterings.csv")
    lines = []
    for unit, starts in product(("False", "True"), ("1", "10")):
        some = [row for row in rows if (row["unit_rows"], row["starts"]) == (unit, starts)]
        sizes = [int(row["largest"]) for row in some]
        many = sum(2 * size > CITESEER for size in sizes)
        name = "scaled to length one" if unit == "True" else "as they are"
        seconds = fmean(float(row["cpu_seconds"]) for row in some)
        sizes_text = f"{min(sizes):,} to {max(sizes):,}"
        lines.append([name, starts, sizes_text, f"{many} of {len(sizes)}", f"{seconds:.2f}"])
    header = ["rows", "starts", "nodes in the largest cluster", "seeds with most nodes in one"]
    return table([*header, "CPU seconds"], lines)


def starts() -> str:
    """What each variant loses over the settings that ran with ten starts, and with one."""
    rows = []
    for label, name in ABLATIONS.items():
        if label in UNCHANGED:
            continue
        row = [name]
        for kind, seeds in (("table3", OUTSIDE), ("table3", THREE), ("starts", THREE)):
            row.append(estimate(_pooled(kind, label, seeds), sign="+"))
        paper = fmean(published_loss(label, setting) for setting in settings("starts"))
        rows.append([*row, _signed(paper)])
    header = ["variant", "one start, seeds 8 to 24", "one start, seeds 8 to 10"]
    return table([*header, "ten starts, seeds 8 to 10", "paper"], rows)


def _pooled(name: str, label: str, seeds: Iterable[int]) -> Gaps:
    """What a variant loses in all runs of the settings that ran with ten starts."""
    found = [loss(name, setting, label, seeds) for setting in settings("starts")]
    return Gaps(chain(*found), fmean(gaps.overlap for gaps in found))


def reach() -> str:
    """Percent of the nodes that two labels reach in two layers, on three splits of Cora."""
    rows = _rows("reach.csv")
    parts = []
    for readings in ("", "unit-rows"):
        some = [row for row in rows if row["readings"] == readings]
        shares, sizes = ([int(r[name]) for r in some] for name in ("clusters", "largest_cluster"))
        parts.append(
            f"{min(shares)} to {max(shares)}% of the nodes ({fmean(shares):.0f}% on average) where "
            f"the largest cluster has {min(sizes)} to {max(sizes)} of 2,708"
        )
    return f"{parts[0]}, and {parts[1]}"


def _rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# Curves.


def curves() -> str:
    """Every point of the sensitivity curves over the seeds outside the choice."""
    rows = []
    for name, cells in experiment("figure2").curves().items():
        points = [c.with_seeds(OUTSIDE) for c in cells]
        text = ", ".join(f"{c.value}: {c.mean(METRIC):.1f}" for c in points)
        best = max(points, key=lambda c: c.mean(METRIC))
        low, high = interval(best.values(METRIC))
        rows.append([name, text, f"{best.value} ({low:.1f} to {high:.1f})"])
    return table(["parameter", "balanced accuracy at each value", "best (95% interval)"], rows)


if __name__ == "__main__":
    print(*(part() for part in (ablations, crowded, curves)), sep="\n\n")
    print(starts(), degradation(), reach(), weights(), scale(), ties(), sep="\n\n")
