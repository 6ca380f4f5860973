"""Positions of an explained node and its neighbourhood: a tree of shortest paths on rings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Point = tuple[float, float]
Edge = tuple[int, int]


def path_tree(near: Mapping[str, Any]) -> dict[int, int]:
    """Return the node before each node on a path from the first one, by index.

    Nodes without a path, or whose path was left out, have none.
    """
    distances, before = near["distance"], {}
    joined: dict[int, list[int]] = {}
    for a, b in zip(*near["edge_index"], strict=True):
        joined.setdefault(a, []).append(b)
    for index, distance in enumerate(distances):
        nearer = [other for other in joined.get(index, []) if distances[other] == distance - 1]
        if distance > 0 and nearer:
            before[index] = min(nearer)
    return before


def ring_positions(
    distances: Sequence[int], before: Mapping[int, int], *, centre: Point, radius: float
) -> list[Point]:
    """Place the first node in the centre, the others on rings by distance, beside their path.

    Every node has a sector as wide as the number of leaves below it, so that paths do not cross.
    Nodes without a path share the outermost ring, and a sector of their own.
    """
    rings = ring_numbers(distances)
    step = radius / max(*rings, 1)
    children: dict[int, list[int]] = {}
    for index in range(1, len(rings)):
        children.setdefault(before.get(index, 0), []).append(index)
    width = [0] * len(rings)
    for index in sorted(range(len(rings)), key=lambda index: -rings[index]):
        width[index] = max(1, sum(width[child] for child in children.get(index, [])))
    sectors = {0: (-math.pi / 2, 1.5 * math.pi)}
    points = [centre] * len(rings)
    for index in sorted(range(len(rings)), key=lambda index: rings[index]):
        start, end = sectors[index]
        for child in children.get(index, []):
            share = (end - start) * width[child] / width[index]
            sectors[child] = (start, start + share)
            width[index] -= width[child]
            angle, far = start + share / 2, step * rings[child]
            x, y = centre[0] + far * math.cos(angle), centre[1] + far * math.sin(angle)
            points[child] = (round(x, 1), round(y, 1))
            start += share
    return points


def ring_numbers(distances: Sequence[int]) -> list[int]:
    """Return the ring of each node: its distance, one more than the largest without a path."""
    farthest = max(distances, default=0)
    return [farthest + 1 if distance < 0 else distance for distance in distances]
