"""Measurements of one graph, for tests of findings and recommendations."""

from dataclasses import replace
from typing import Any

from evengraph.inspection.inspection import Inspection
from evengraph.inspection.measures import (
    Components,
    Degrees,
    Edges,
    Features,
    Homophily,
    Labels,
    Reach,
)

GRAPH = Inspection(
    name="",
    num_nodes=1000,
    labels=Labels(
        names=("fine", "fraud"),
        labelled=(340, 12),
        hidden=(0, 0),
        num_labelled=352,
        num_unlabelled=648,
        labelled_share=0.352,
        ratio=340 / 12,
    ),
    homophily=Homophily(
        edges=500,
        edge=0.81,
        by_chance=0.5,
        adjusted=0.62,
        per_class=(0.9, 0.5),
        neighbours=(900, 100),
    ),
    edges=Edges(listed=4000, pairs=2000, repeated=0, to_itself=0, one_way=0, directed=False),
    degrees=Degrees(
        median=3, mean=4.0, largest=50, isolated=0, isolated_share=0.0, bins=((1, 1, 1000),)
    ),
    components=Components(count=1, largest=1000, unlabelled=0, unlabelled_nodes=0),
    reach=Reach(
        hops=4,
        nodes=648,
        per_class=((600, 640, 648, 648), (100, 402, 500, 640)),
        any_class=(610, 645, 648, 648),
        beyond=0,
        never_per_class=(0, 0),
        never=0,
    ),
    features=Features(
        count=10,
        density=0.5,
        constant=0,
        missing=0,
        empty_nodes=0,
        duplicate_nodes=0,
        conflicting_nodes=0,
    ),
    leaks=(),
)


def changed(**changes: Any) -> Inspection:
    """The graph with other measurements, given as whole parts or as the values that differ."""
    parts = {
        name: replace(getattr(GRAPH, name), **change) if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(GRAPH, **parts)
