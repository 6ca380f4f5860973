"""`python -m benchmarks.plan`: what graphs cost that nobody here has, from measured constants.

Disk and memory follow from the formats of arrays. Core-hours are measured core-seconds, multiplied:
docs/results/planning.md has this table, and says on which machine they were measured and what is
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evengraph.disk.propagation import BUFFERS, FACTOR, FEWER, FLOAT, KEPT_BYTES, LINE, SHARE

INDEX, POINTER = 4, 8  # bytes
STEPS, HOPS = 20, 2  # of Unison's structural and ego view
# Core-seconds at 10 million nodes (results/endtoend.txt): per undirected edge with a tenth
# of a node's features; per entry of the matrix, column and step; per entry of a block of the
# matrix that is made again for every step, if it does not stay in memory; per predicted node.
PACK_EDGE, STEP, BLOCK, PREDICT = 0.97e-6, 1.4e-9, 43e-9, 35e-6
HOUR = 3600


class Plan(NamedTuple):
    """A graph, and the memory of a machine."""

    name: str
    nodes: float
    edges: float  # undirected
    features: int
    memory: float  # bytes

    @property
    def entries(self) -> float:
        return 2 * self.edges

    @property
    def graph(self) -> float:
        """Bytes of the packed graph."""
        return self.nodes * (FLOAT * self.features + 2 * POINTER) + INDEX * self.entries

    @property
    def propagated(self) -> float:
        """Bytes of the propagated features: structural, and each hop."""
        return (1 + HOPS) * FLOAT * self.nodes * self.features

    @property
    def links(self) -> float:
        """Bytes of DuckDB's table of edges; ranges of them are sorted in memory."""
        return 2 * INDEX * self.edges

    @property
    def least(self) -> float:
        """Bytes of memory for one column at a time."""
        return (BUFFERS * FLOAT + FACTOR) * self.nodes / (1 - SHARE)

    @property
    def strips(self) -> tuple[int, bool]:
        """Columns at a time, and whether the matrix stays in memory; as `Workspace` does it."""
        column = BUFFERS * FLOAT * self.nodes
        room = self.memory * (1 - SHARE) - FACTOR * self.nodes
        width, beside = room // column, (room - KEPT_BYTES * (self.entries + self.nodes)) // column
        stays = FEWER * beside >= width
        width = beside if stays else width
        width = width if width < LINE else width // LINE * LINE
        return int(min(width, self.features)), stays

    @property
    def passes(self) -> int:
        """How often all steps are taken, with as many columns each time."""
        return -(-self.features // self.strips[0])

    @property
    def traffic(self) -> float:
        """Bytes of the matrix that are read from disk; once per view if it stays in memory."""
        times = 2 if self.strips[1] else self.passes * (STEPS + HOPS)
        return times * (INDEX * self.entries + POINTER * self.nodes)

    @property
    def pack_hours(self) -> float:
        """Core-hours to pack the tables."""
        return PACK_EDGE * self.edges / HOUR

    @property
    def propagation_hours(self) -> float:
        """Core-hours of propagation."""
        block = 0 if self.strips[1] else BLOCK * self.passes
        return self.entries * (STEP * self.features + block) * (STEPS + HOPS) / HOUR

    @property
    def prediction_hours(self) -> float:
        """Core-hours to predict all nodes."""
        return PREDICT * self.nodes / HOUR


PLANS = [
    Plan("10 million nodes", 1e7, 1e8, 64, 5e9),
    Plan("papers100M", 1.11e8, 1.6e9, 128, 64e9),
    Plan("a billion nodes", 1e9, 1e10, 64, 128e9),
]


ROWS: dict[str, Callable[[Plan], str]] = {
    "nodes": lambda plan: _count(plan.nodes),
    "undirected edges": lambda plan: _count(plan.edges),
    "features": lambda plan: f"{plan.features}",
    "packed graph": lambda plan: _size(plan.graph),
    "propagated features": lambda plan: _size(plan.propagated),
    "DuckDB's table of edges": lambda plan: _size(plan.links),
    "least memory, one column at a time": lambda plan: _size(plan.least),
    "memory planned with": lambda plan: _size(plan.memory),
    "columns at a time": lambda plan: f"{plan.strips[0]}",
    "matrix stays in memory": lambda plan: "yes" if plan.strips[1] else "no",
    "read from the matrix in all steps": lambda plan: _size(plan.traffic),
    "core-hours to pack": lambda plan: _rounded(plan.pack_hours),
    "core-hours to propagate": lambda plan: _rounded(plan.propagation_hours),
    "core-hours to predict all nodes": lambda plan: _rounded(plan.prediction_hours),
}


def _rounded(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _count(value: float) -> str:
    return f"{value / 1e9:g} billion" if value >= 1e9 else f"{value / 1e6:g} million"


def _size(size: float) -> str:
    return f"{_rounded(size / 1e12)} TB" if size >= 1e12 else f"{_rounded(size / 1e9)} GB"


def table() -> str:
    """All plans side by side, in Markdown."""
    rows = [["", *(plan.name for plan in PLANS)], ["---", *["---:"] * len(PLANS)]]
    rows += [[name, *map(value, PLANS)] for name, value in ROWS.items()]
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)


if __name__ == "__main__":
    print(table())
