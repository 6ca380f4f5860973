"""Reasons: why a node is worth a label, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from evengraph.labelling.evidence import GROUP, Evidence, new_class
from evengraph.labelling.hunt import find_hunt
from evengraph.ops.sparse import to_scipy

CLEAR, CLOSE = 0.5, 0.15  # probability of a likely class; gap below which two compete
SCARCE = 5  # labels of a class
NEAR = 2  # steps within which a label is near


def reasons(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> list[str]:
    """One short text per node: what it probably is, how well known its surroundings are."""
    places, followers = _places(evidence, nodes), _followers(evidence, nodes)
    guesses = [""] * len(nodes)
    if evidence.probabilities is not None:
        top = evidence.probabilities[nodes].topk(min(2, evidence.num_classes), dim=1)
        counts, hunt = evidence.counts.tolist(), find_hunt(evidence)
        rarest = None if hunt is None else hunt.label
        guesses = [
            _guess(values, classes, class_names, counts, rarest)
            for values, classes in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]
    texts = zip(guesses, places, followers, strict=True)
    return [", ".join(filter(None, parts)) or "no label nearby" for parts in texts]


def notes(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> tuple[str, ...]:
    """What to know about a batch as a whole, in sentences."""
    counts = evidence.counts.tolist()
    labelled = [name for name, count in zip(class_names, counts, strict=True) if count]
    texts = []
    if not labelled:
        texts.append("No label yet: nodes are chosen by the graph and the features alone.")
    elif len(labelled) == 1:
        texts.append(f"All labels are {labelled[0]}: nodes are chosen without a model.")
    missing = [name for name, count in zip(class_names, counts, strict=True) if not count]
    if labelled and missing:
        texts.append(f"No label yet of {', '.join(missing)}.")
    if alien := int(new_class(evidence)[nodes].sum()):
        where = "it is in a group" if alien == 1 else "they are in groups"
        texts.append(
            f"{alien} of {len(nodes)} may be of a class that nobody has labelled: {where} unlike "
            "every labelled node."
        )
    return tuple(texts)


def _guess(
    values: Sequence[float],
    classes: Sequence[int],
    names: Sequence[str],
    counts: Sequence[int],
    rarest: int | None,
) -> str:
    """What the model thinks, and whether it has seen little of it."""
    first = names[classes[0]]
    if len(values) > 1 and values[0] - values[1] < CLOSE:
        return f"{first} or {names[classes[1]]} ({values[0]:.0%}, {values[1]:.0%})"
    text = f"{'likely' if values[0] > CLEAR else 'perhaps'} {first} ({values[0]:.0%})"
    few = counts[classes[0]]
    if 0 < few <= SCARCE:
        return f"{text}, which has {few} label{'s' * (few != 1)}"
    return f"{text}, the rarest class" if classes[0] == rarest else text


def _places(evidence: Evidence, nodes: Tensor) -> list[str]:
    """How well known its surroundings are."""
    clusters, alien = evidence.clusters, new_class(evidence)
    sizes = clusters.sizes(evidence.labels < 0).tolist()
    labels = clusters.sizes(evidence.labels >= 0).tolist()
    texts = []
    for node, cluster in zip(nodes.tolist(), clusters.of[nodes].tolist(), strict=True):
        size = sizes[cluster]
        if alien[node]:
            texts.append(f"in a group of {size:,} unlike every label: a new class?")
        elif labels[cluster] == 0 and size >= GROUP:
            texts.append(f"in a group of {size:,} without a label")
        else:
            texts.append("")
    return texts


def _followers(evidence: Evidence, nodes: Tensor) -> list[str]:
    """How many nodes would have a label within two steps that have none now."""
    walk = to_scipy(evidence.operator.matrix)
    known = np.zeros(walk.shape[0], dtype=bool)
    known[evidence.known.numpy()] = True
    reached = _spread(walk, known)
    texts = []
    for node in nodes.tolist():
        around = _around(walk, node)
        fresh = around[~reached[around]]
        far = "far from any label" if len(evidence.known) and not reached[node] else ""
        count = len(fresh) - int(not reached[node])
        reached[fresh] = True
        follow = f"{count:,} node{'s' * (count != 1)} would follow" if count > 0 else ""
        texts.append(", ".join(filter(None, (far, follow))))
    return texts


def _spread(walk: sp.csr_matrix, start: np.ndarray) -> np.ndarray:
    """Nodes within NEAR steps of some nodes, bool, (N,)."""
    state = start.astype(np.float32)
    for _ in range(NEAR):
        state = (walk @ state > 0).astype(np.float32)  # the diagonal keeps what is there
    return state > 0


def _around(walk: sp.csr_matrix, node: int) -> np.ndarray:
    """Nodes within NEAR steps of a node, itself included, ascending."""
    nodes = np.array([node])
    for _ in range(NEAR):
        parts = [walk.indices[walk.indptr[one] : walk.indptr[one + 1]] for one in nodes]
        nodes = np.unique(np.concatenate(parts))
    return nodes
