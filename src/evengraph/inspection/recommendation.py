"""Recommendations: what to do with a graph, in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evengraph.inspection.findings import (
    FEW_EDGES,
    MISLEADING,
    OUT_OF_REACH,
    capitalise,
    far_shares,
    join_names,
    percent,
)
from evengraph.methods import METHODS
from evengraph.metrics.selection import has_rare_class

if TYPE_CHECKING:
    from evengraph.inspection.inspection import Inspection

IMBALANCED = 3.0  # largest class over smallest: from here accuracy is misleading

HETEROPHILY_METHODS = ",".join(name for name, kind in METHODS.items() if kind.suits_heterophily)
"""Methods to compare on GraphSAGE where neighbours differ in class."""
HETEROPHILY_OPTIONS = ("--methods", HETEROPHILY_METHODS, "--set", "backbone=sage")
"""Options of evengraph compare that do so."""
BASELINE = next(kind.title for kind in METHODS.values() if kind.role == "baseline")


def avoids_neighbours(inspection: Inspection) -> bool:
    """Whether neighbours mislead, so that methods must separate a node from them."""
    adjusted, edges = inspection.homophily.adjusted, inspection.homophily.edges
    return adjusted is not None and edges >= FEW_EDGES and adjusted < MISLEADING


def recommend(inspection: Inspection) -> tuple[str, ...]:
    """Recommended next steps, in sentences."""
    labels, reach = inspection.labels, inspection.reach
    sentences = []
    leaky = [leak.column for leak in inspection.leaks if leak.kind != "id"]
    if leaky:
        sentences.append(f"First remove {join_names(leaky)} from the features.")
    if sum(count > 0 for count in labels.labelled) < 2:
        return (*sentences, "Label nodes of at least two classes before training.")
    imbalanced = labels.ratio is not None and labels.ratio >= IMBALANCED
    far = reach.nodes > 0 and max(far_shares(reach)) >= OUT_OF_REACH
    if not inspection.edges.pairs:
        sentences.append("Without edges, use the default, which includes models of features alone.")
    elif avoids_neighbours(inspection):
        sentences.append(
            "Compare methods on GraphSAGE, which separates a node from its neighbours, including "
            "models that ignore edges; the default includes some of them."
        )
    elif imbalanced or far:
        reasons = ["classes are imbalanced"] * imbalanced
        reasons += ["many nodes are far from labels"] * far
        *titles, last = [kind.title for kind in METHODS.values() if kind.portfolio]
        sentences.append(
            f"{capitalise(' and '.join(reasons))}: use the default, which selects among "
            f"{', '.join(titles)} and {last}, or compare them with {BASELINE}."
        )
    else:
        sentences.append(f"A plain {BASELINE} may be enough; compare it with the default.")
    if imbalanced:
        share = percent(max(labels.labelled) / labels.num_labelled)
        rare = has_rare_class(labels.labelled)
        other = "the average precision of the rarer class" if rare else "Macro-F1"
        sentences.append(
            f"Judge by balanced accuracy or {other}: always predicting the largest class would "
            f"be correct for {share} of the labelled nodes."
        )
    return tuple(sentences)
