"""`python -m benchmarks.plan`: what graphs cost that nobody here has, from measured constants.

Disk and memory follow from the formats of arrays. Hours are measured core-seconds, multiplied:
docs/planning.md says on which machine, and what is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.timing import table
from evengraph.outofcore.operators import KEPT_BYTES
from evengraph.outofcore.propagation import BUFFERS, FACTOR, FEWER, FLOAT, LINE, SHARE

INDEX, POINTER = 4, 8  # bytes
STEPS, HOPS = 20, 2  # of Unison's structural and ego view
# Core-seconds at 10 million nodes (results/endtoend.txt): per undirected edge with a tenth
# of a node's features; per entry of the matrix, column and step; per entry of a block of the
# matrix that is made again for every step, if it does not stay in memory; per predicted node.
PACK_EDGE, STEP, BLOCK, PREDICT = 0.97e-6, 1.4e-9, 43e-9, 35e-6
CORES = 2
TERA = 1e12


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
        """Hours to pack the tables, if all cores are used all the time."""
        return PACK_EDGE * self.edges / CORES / 3600

    @property
    def propagation_hours(self) -> float:
        """Hours of propagation, likewise."""
        block = 0 if self.strips[1] else BLOCK * self.passes * CORES  # made by one core
        step = self.entries * (STEP * self.features + block)
        return step * (STEPS + HOPS) / CORES / 3600

    @property
    def prediction_hours(self) -> float:
        """Hours to predict all nodes, likewise."""
        return PREDICT * self.nodes / CORES / 3600


PLANS = [
    Plan("10 million nodes", 1e7, 1e8, 64, 5e9),
    Plan("papers100M", 1.11e8, 1.6e9, 128, 64e9),
    Plan("a billion nodes", 1e9, 1e10, 64, 128e9),
]


def main() -> None:
    rows: list[list[object]] = [
        [
            plan.name,
            plan.graph / TERA,
            plan.propagated / TERA,
            plan.links / TERA,
            plan.least / 1e9,
            plan.memory / 1e9,
            plan.strips[0],
            "yes" if plan.strips[1] else "no",
            plan.passes,
            plan.traffic / TERA,
            plan.pack_hours,
            plan.propagation_hours,
            plan.prediction_hours,
        ]
        for plan in PLANS
    ]
    # fmt: off
    header = ["graph", "packed TB", "propagated TB", "DuckDB TB", "least memory GB", "memory GB",
              "columns", "matrix stays", "passes", "read TB", "pack h", "propagate h",
              "predict h"]
    # fmt: on
    table(f"Unison on {CORES} cores", header, rows)


if __name__ == "__main__":
    main()
