"""Which nodes around a node to draw, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evengraph.desk.desk import Desk
from evengraph.desk.drawing import INNER, OUTER, Dot


def neighbourhood(desk: Desk, row: int) -> tuple[list[Dot], list[tuple[int, int]], int]:
    """Dots and edges around a node, and how many neighbours there are in all.

    Labelled nodes come first where there is no room for all.
    """
    matrix, labels = desk.nodes.adjacency, desk.labels()

    def first(rows: Iterable[int], count: int) -> list[int]:
        return sorted(rows, key=lambda other: (int(labels[other]) < 0, other))[:count]

    neighbours = {int(other) for other in matrix[[row]].indices} - {row}
    inner = first(neighbours, INNER)
    beyond = {int(other) for other in matrix[inner].indices} if inner else set()
    outer = first(beyond - neighbours - {row}, OUTER)
    places = {other: place for place, other in enumerate(inner)}
    # beside the neighbour that they hang on, so that few edges cross
    outer.sort(key=lambda other: min(places.get(int(o), INNER) for o in matrix[[other]].indices))
    rows = [row, *inner, *outer]
    rings = [0, *(1 for _ in inner), *(2 for _ in outer)]
    numbers = {name: number for number, name in enumerate(desk.classes)}
    dots = [
        _dot(desk, other, ring, int(labels[other]), numbers)
        for other, ring in zip(rows, rings, strict=True)
    ]
    part = matrix[rows][:, rows].tocoo()
    ends = zip(np.asarray(part.row).tolist(), np.asarray(part.col).tolist(), strict=True)
    return dots, sorted({(a, b) for a, b in ends if a < b}), len(neighbours)


def _dot(desk: Desk, row: int, ring: int, label: int, numbers: dict[str, int]) -> Dot:
    id = desk.nodes.ids[row]
    if label >= 0:
        return Dot(row=row, id=id, ring=ring, number=label, name=desk.classes[label])
    guess = desk.guess(row)
    if guess is None:
        return Dot(row=row, id=id, ring=ring)
    name, probability = guess
    return Dot(row=row, id=id, ring=ring, number=numbers[name], name=name, probability=probability)
