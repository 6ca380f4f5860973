"""Links: nodes that share a value, such as the payments of one card, in linear time.

A value that m nodes share stands for m^2 edges, which are never made: sums over it go from node to
value and back, as semantic connectivity does with its clusters. Where nodes have times, a node's
sum holds the earlier ones alone, as a difference of cumulated sums in the order of time, so that
nothing of the future reaches it. A graph lists its links as `link_index`, (3, P): link, node and
value; and `num_links`.

Methods propagate along edges. Where there are no others (`links_only`), the nodes of a value are
joined by a few each: a ring in random order with chords, which has the same connected parts. Trees
do better without means over these edges: features and counted labels hold those over whole values.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from evengraph.core.rng import generator

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AHEAD = 3  # nodes of a value that each is joined with, and as many behind
LEAST = 0.01  # weight of an edge


class Link:
    """Which of N nodes share a value; with times, a node is reached by earlier ones alone.

    Shapes:
        nodes, values: (P,), pairs of a node and a value from 0
        times: (N,), NaN for unknown: such a node is neither reached nor reaches others
    """

    def __init__(self, nodes: Ints, values: Ints, size: int, times: Floats | None = None) -> None:
        self.times = None
        if times is not None:
            known = ~np.isnan(times[nodes])
            nodes, values = nodes[known], values[known]
            order = np.lexsort((times[nodes], values))
            nodes, values = nodes[order], values[order]
            self.times = times[nodes]
        self.nodes, self.values, self.size = nodes, values, size

    def at(self, times: Floats | None) -> Link:
        """The same with times."""
        return self if times is None else Link(self.nodes, self.values, self.size, times)

    def sums(self, x: Any, window: float = np.inf) -> Floats:
        """For every node the sum of x over those that share its value, (N, F).

        Without times the node itself is among them; `window` is how long before a node they are.
        """
        if self.times is None:
            count = int(self.values.max(initial=-1)) + 1
            entries = np.ones(len(self.nodes)), (self.nodes, self.values)
            members = sp.csr_matrix(entries, shape=(self.size, count))
            return np.asarray(members @ (members.T @ x))
        begin, end = self._earlier(self.times, window)
        totals = np.cumsum(np.concatenate([np.zeros((1, x.shape[1])), x[self.nodes]]), axis=0)
        result = np.zeros((self.size, x.shape[1]))
        np.add.at(result, self.nodes, totals[end] - totals[begin])
        return result

    def ages(self) -> Floats:
        """How long before every node the latest that reaches it is, NaN without one, (N,)."""
        result = np.full(self.size, np.nan)
        if self.times is not None:
            begin, end = self._earlier(self.times, np.inf)
            seen = np.flatnonzero(end > begin)
            np.fmin.at(result, self.nodes[seen], (self.times[seen] - self.times[end[seen] - 1]))
        return result

    def _earlier(self, times: Floats, window: float) -> tuple[Ints, Ints]:
        """From where to where the earlier pairs of each pair's value lie, (P,) each."""
        positions = np.arange(len(times))
        new = np.diff(self.values, prepend=-1) != 0
        begin = np.maximum.accumulate(np.where(new, positions, 0))
        new |= np.diff(times, prepend=-np.inf) != 0  # at the same time none is earlier
        end = np.maximum.accumulate(np.where(new, positions, 0))
        if np.isfinite(window) and len(times):
            since = times - times.min()
            keys = self.values * (since.max() + window + 1) + since
            begin = np.maximum(begin, np.searchsorted(keys, keys - window))
        return begin, np.maximum(begin, end)

    def edges(self) -> tuple[Ints, Ints, Floats]:
        """Source, target and weight of few edges among the nodes of every value, (E,) each.

        The more nodes share a value, the less an edge weighs.
        """
        shuffled = torch.randperm(len(self.nodes), generator=generator(0)).numpy()
        order = shuffled[np.argsort(self.values[shuffled], kind="stable")]
        nodes, values = self.nodes[order], self.values[order]
        first, count = np.searchsorted(values, values), np.bincount(values)[values]
        place, parts = np.arange(len(values)) - first, []
        for step in range(1, AHEAD + 1):
            some = np.flatnonzero(count > step)
            other = first[some] + (place[some] + step) % count[some]
            parts.append(np.stack([nodes[some], nodes[other], count[some]]))
        source, target, shared = np.concatenate(parts, axis=1)
        rarity = np.log(self.size / shared) / np.log(max(self.size, 2))
        return source, target, np.maximum(rarity, LEAST)


def without_link_edges(graph: Data) -> Data:
    """The graph without edges if these are of links."""
    if not graph.get("links_only"):
        return graph
    result = copy(graph)
    result.edge_index, result.edge_weight = graph.edge_index[:, :0], None
    return result


def links_of(graph: Any) -> list[Link]:
    """The links of a graph, without times."""
    if "link_index" not in graph:
        return []
    link, nodes, values = graph.link_index.cpu().numpy()
    chosen = [link == index for index in range(int(graph.num_links))]
    return [Link(nodes[some], values[some], int(graph.num_nodes)) for some in chosen]
