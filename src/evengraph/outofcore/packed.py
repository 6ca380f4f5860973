"""What propagation needs of a packed graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from evengraph.disk import PackedGraph
from evengraph.outofcore.tables import ArrayTable, joined_hash

LINKS = ("indptr", "indices", "edge_weight")


@dataclass(frozen=True, eq=False)
class PackedLinks:
    """The edges of a packed graph; labels and features do not change their hash."""

    graph: PackedGraph

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.graph.num_nodes

    @property
    def content_hash(self) -> str:
        """A hash of the edges and their weights."""
        arrays = self.graph.header["arrays"]
        return joined_hash(*(arrays[name]["sha256"] for name in LINKS if name in arrays))

    @property
    def edge_weight(self) -> NDArray[Any] | None:
        """Weights of the edges; None if there are none."""
        return self.graph.edge_weight

    def array(self, name: str) -> NDArray[Any]:
        """A memory map of its own, whose pages leave memory with it."""
        return self.graph.array(name)


def features(graph: PackedGraph) -> ArrayTable:
    """The features of a packed graph."""
    return ArrayTable(lambda: graph.array("x"), graph.header["arrays"]["x"]["sha256"])
