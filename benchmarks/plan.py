"""`python -m benchmarks.plan`: what graphs cost that nobody here has, from measured constants.

Disk and memory follow from the formats of arrays. Hours are measured core-seconds, multiplied:
docs/planning.md says on which machine, and what is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.timing import table

FLOAT, INDEX, POINTER = 4, 4, 8  # bytes
STEPS, HOPS = 20, 2  # of Unison's structural and ego view
BUFFERS, SHARE = 3, 0.125  # as in evengraph.outofcore.propagation
# Core-seconds at 10 million nodes (results/endtoend.txt): per undirected edge with a tenth
# of a node's features, and per entry of the matrix, column and step.
PACK_EDGE, STEP = 0.92e-6, 5.7e-9
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
    def spill(self) -> float:
        """Bytes that DuckDB writes beside it while it sorts, at most: keys, twice."""
        return 2 * 8 * self.entries

    @property
    def least(self) -> float:
        """Bytes of memory for one column at a time."""
        return (BUFFERS * FLOAT + 8) * self.nodes / (1 - SHARE)

    @property
    def passes(self) -> int:
        """How often all steps are taken, with as many columns as fit each time."""
        column = BUFFERS * FLOAT * self.nodes
        width = int((self.memory * (1 - SHARE) - 8 * self.nodes) // column)
        return -(-self.features // min(width, self.features))

    @property
    def traffic(self) -> float:
        """Bytes of the matrix that are read, if it does not stay in memory."""
        return self.passes * (STEPS + HOPS) * (INDEX * self.entries + POINTER * self.nodes)

    @property
    def pack_hours(self) -> float:
        """Hours to pack the tables, if all cores are used all the time."""
        return PACK_EDGE * self.edges / CORES / 3600

    @property
    def propagation_hours(self) -> float:
        """Hours of propagation, likewise."""
        return STEP * self.entries * self.features * (STEPS + HOPS) / CORES / 3600


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
            plan.spill / TERA,
            plan.least / 1e9,
            plan.memory / 1e9,
            plan.passes,
            plan.traffic / TERA,
            plan.pack_hours,
            plan.propagation_hours,
        ]
        for plan in PLANS
    ]
    # fmt: off
    header = ["graph", "packed TB", "propagated TB", "spill TB", "least memory GB", "memory GB",
              "passes", "read TB", "pack h", "propagate h"]
    # fmt: on
    table(f"Unison on {CORES} cores", header, rows)


if __name__ == "__main__":
    main()
