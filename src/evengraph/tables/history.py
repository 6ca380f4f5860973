"""EdgeHistory: a graph of tables as it was at a time, for splits by time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch_geometric.data import Data

from evengraph.tables.cells import table_name
from evengraph.tables.roles import read_times


class EdgeHistory:
    """Builds a graph again from the edges up to a time, as if later ones were not known yet.

    Features are fitted to what was known at that time, so that edges that came later have no
    influence on training, not even through a mean.

    Args:
        nodes: The nodes table.
        edges: The edges table.
        columns: `TableColumns` of both, without guesses.
        build: `build_graph`.
    """

    def __init__(self, nodes: Any, edges: Any, columns: Any, build: Callable[..., Any]) -> None:
        self.nodes, self.edges, self.columns, self.build = nodes, edges, columns, build
        self.times = read_times(
            edges[columns.edge_time], table_name(edges, "edges"), columns.date_order
        )
        self.latest: tuple[float, tuple[Data, Data]] | None = None

    def at(self, time: float) -> tuple[Data, Data]:
        """The graph as it was at a time, and that of today with the features fitted then.

        Edges without a time count as later. The second graph holds `encoder` and `columns`.
        """
        if self.latest is None or self.latest[0] != time:
            known = self.times <= time  # not so for NaN
            edges = self.edges[np.asarray(known)].reset_index(drop=True)
            edges.attrs = self.edges.attrs
            past = self.build(self.nodes, edges, self.columns)
            today = self.build(self.nodes, self.edges, past.columns, past.encoder).graph
            today.encoder, today.columns = past.encoder, past.columns
            del past.graph.history
            self.latest = time, (past.graph, today)
        return self.latest[1]
