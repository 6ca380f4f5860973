"""Reasons: why a node is worth a label, in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from evengraph.labelling.evidence import Evidence

CLEAR, CLOSE = 0.5, 0.15  # probability of a likely class; gap below which two compete


def reasons(evidence: Evidence, nodes: Tensor, class_names: Sequence[str]) -> list[str]:
    """One short text per node."""
    if evidence.probabilities is None:
        return ["no label yet"] * len(nodes)
    top = evidence.probabilities[nodes].topk(2, dim=1)
    return [
        _guess(values, [class_names[index] for index in classes])
        for values, classes in zip(top.values.tolist(), top.indices.tolist(), strict=True)
    ]


def _guess(values: Sequence[float], names: Sequence[str]) -> str:
    """What the model thinks."""
    if values[0] - values[1] < CLOSE:
        return f"{names[0]} or {names[1]}"
    return f"likely {names[0]}" if values[0] > CLEAR else f"perhaps {names[0]}"
