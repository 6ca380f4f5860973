"""Generated graphs for demos, tests, docs and benchmarks of any size."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph.core.untrusted import sorted_unique

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TAIL = 2.0  # shape of the Pareto distribution of popularity: smaller means larger hubs
WORDS_PER_NODE = 12
TOPIC_SHARE = 0.25  # share of a node's words that depend on its class


def toy(
    num_nodes: int = 2000,
    num_edges: int = 8000,
    num_features: int = 256,
    num_classes: int = 5,
    seed: int = 0,
    *,
    homophily: float = 0.8,
    size_ratio: float = 0.2,
) -> Data:
    """Generate a graph with planted classes of unequal size.

    Class sizes fall geometrically from class 0 to the last. Every node has a popularity from a
    heavy-tailed distribution; edges join popular nodes more often, and mostly nodes of one class.
    Features are words: each node draws a dozen, some from the topic of its class, the others from
    a background that all classes share. The same arguments give the same graph, and no global
    random state is used.

    Args:
        num_nodes: At least one per class.
        num_edges: Entries of edge_index, so two for each undirected edge; must be even.
        num_features: Size of the vocabulary.
        num_classes: At least two.
        seed: Seed of the generator.
        homophily: Share of the edges that stay within a class, if classes are large enough.
        size_ratio: Smallest class over largest class, up to rounding.

    Shapes:
        x: (N, F), float32, zeros and ones
        edge_index: (2, E), sorted, both directions, no self-loops, no repeats
        y: (N,)
    """
    most = num_nodes * (num_nodes - 1)
    least = f"be at least num_classes, which is {num_classes}"
    range_ = f"lie in [0, {most}] for {num_nodes} nodes"
    even = "be even, since both directions of an edge count"
    for valid, name, value, bounds in (
        (num_classes >= 2, "num_classes", num_classes, "be at least 2"),
        (num_nodes >= num_classes, "num_nodes", num_nodes, least),
        (num_features >= 1, "num_features", num_features, "be at least 1"),
        (0 <= num_edges <= most, "num_edges", num_edges, range_),
        (num_edges % 2 == 0, "num_edges", num_edges, even),
        (seed >= 0, "seed", seed, "not be negative"),
        (0 <= homophily <= 1, "homophily", homophily, "lie in [0, 1]"),
        (0 < size_ratio <= 1, "size_ratio", size_ratio, "lie in (0, 1]"),
    ):
        if not valid:
            raise ValueError(f"{name} must {bounds}, got {value}.")
    rng = np.random.default_rng(seed)
    sizes = class_sizes(num_nodes, num_classes, size_ratio)
    labels = np.repeat(np.arange(num_classes), sizes)
    rng.shuffle(labels)
    edge_index = torch.from_numpy(_edges(rng, labels, sizes, num_edges // 2, homophily))
    # words follow Zipf's law over orders of the vocabulary: a topic prefers other words than the
    # background, but no word belongs to one class alone
    rank = word_ranks(rng, num_nodes, num_features)
    x = word_features(rng, labels, rank, word_orders(rng, num_features, num_classes))
    y = torch.from_numpy(labels)
    return Data(x=torch.from_numpy(x), edge_index=edge_index, y=y, name="toy")


def class_sizes(num_nodes: int, num_classes: int, size_ratio: float) -> Ints:
    """Split the nodes geometrically, at least one for each class."""
    shares = size_ratio ** np.linspace(0, 1, num_classes)
    exact = shares / shares.sum() * (num_nodes - num_classes)
    sizes = np.floor(exact).astype(np.int64) + 1
    sizes[np.argsort(sizes - exact, kind="stable")[: num_nodes - sizes.sum()]] += 1
    return -np.sort(-sizes)


def _edges(
    rng: np.random.Generator, labels: Ints, sizes: Ints, num_pairs: int, homophily: float
) -> Ints:
    """Draw exactly P distinct pairs, encoded as small * N + large; both directions, (2, 2 P)."""
    num_nodes = len(labels)
    draw = PairSampler(rng, labels, sizes, homophily)
    # every node is an end once before popularity decides, so that hardly any node is isolated
    ends = rng.permutation(num_nodes) if num_pairs >= num_nodes else np.empty(0, dtype=np.int64)
    pairs = sorted_unique(draw(num_pairs, ends))
    for _ in range(8):
        if missing := num_pairs - len(pairs):
            pairs = _extend(rng, pairs, draw(missing + missing // 4 + 16), missing)
    # fill up with uniform pairs, if the classes were too small for all edges
    if len(pairs) < num_pairs and num_nodes * (num_nodes - 1) // 2 <= 4 * num_pairs:
        small, large = np.triu_indices(num_nodes, k=1)
        pairs = _extend(rng, pairs, small * num_nodes + large, num_pairs - len(pairs))
    while len(pairs) < num_pairs:  # the graph is sparse, so most draws are new
        missing = num_pairs - len(pairs)
        ends = np.sort(rng.integers(num_nodes, size=(2, 2 * missing + 16)), axis=0)
        ends = ends[:, ends[0] != ends[1]]
        pairs = _extend(rng, pairs, ends[0] * num_nodes + ends[1], missing)
    small, large = np.divmod(pairs, num_nodes)
    keys = np.concatenate([pairs, large * num_nodes + small])
    keys.sort()
    return np.stack(np.divmod(keys, num_nodes))


class PairSampler:
    """Samples pairs by popularity; the second end is in the class of the first or in another."""

    def __init__(
        self, rng: np.random.Generator, labels: Ints, sizes: Ints, homophily: float
    ) -> None:
        self.rng, self.labels, self.homophily = rng, labels, homophily
        self.by_class = np.argsort(labels, kind="stable")
        popularity = 1 + rng.pareto(TAIL, size=len(labels))
        self.edges = np.concatenate([[0.0], np.cumsum(popularity)])  # interval bounds of the nodes
        bounds = self.edges[np.concatenate([[0], np.cumsum(sizes)])]
        self.low, self.high = bounds[:-1], bounds[1:]

    def __call__(self, count: int, ends: Ints | None = None) -> Ints:
        """Draw up to count pairs, self-loops dropped; `ends` fixes some of the first ends."""
        total = self.edges[-1]
        fixed = np.empty(0, dtype=np.int64) if ends is None else ends
        # the order of pairs does not matter, and searching sorted values is several times faster
        drawn = np.sort(self.rng.random(count - len(fixed))) * total
        first = np.concatenate([fixed, self._node(drawn)])
        low, high = self.low[self.labels[first]], self.high[self.labels[first]]
        position = self.rng.random(count)
        inside = low + position * (high - low)
        # skip the interval of the class itself: values beyond it move up by its length
        outside = position * (total - (high - low))
        outside += np.where(outside >= low, high - low, 0)
        second = self._node(np.where(self.rng.random(count) < self.homophily, inside, outside))
        small, large = np.minimum(first, second), np.maximum(first, second)
        apart = small != large
        pairs: Ints = small[apart] * len(self.labels) + large[apart]
        return pairs

    def _node(self, position: Floats) -> Ints:
        slot = np.searchsorted(self.edges, position, side="right") - 1
        # rounding can give the upper bound itself
        nodes: Ints = self.by_class[np.minimum(slot, len(self.labels) - 1)]
        return nodes


def _extend(rng: np.random.Generator, pairs: Ints, drawn: Ints, limit: int) -> Ints:
    """Add at most `limit` drawn pairs that are new; the result is sorted."""
    drawn = sorted_unique(drawn)
    if len(pairs):
        slot = np.minimum(np.searchsorted(pairs, drawn), len(pairs) - 1)
        drawn = drawn[pairs[slot] != drawn]
    if len(drawn) > limit:
        drawn = rng.choice(drawn, size=limit, replace=False)
    return np.sort(np.concatenate([pairs, drawn]), kind="stable")


def word_ranks(rng: np.random.Generator, num_nodes: int, num_features: int) -> Ints:
    """Draw a rank by Zipf's law for each word of each node, (N, W)."""
    law = np.cumsum(1 / np.arange(1, num_features + 1))
    drawn = rng.random((num_nodes, WORDS_PER_NODE)) * law[-1]
    ranks: Ints = np.minimum(np.searchsorted(law, drawn, side="right"), num_features - 1)
    return ranks


def word_orders(rng: np.random.Generator, num_features: int, num_classes: int) -> Ints:
    """One order of the vocabulary per class; the last row is the background, (C + 1, F)."""
    return rng.permuted(np.tile(np.arange(num_features), (num_classes + 1, 1)), axis=1)


def word_features(
    rng: np.random.Generator, labels: Ints, rank: Ints, orders: Ints
) -> NDArray[np.float32]:
    """Draw which words are on topic, and put a 1 for each, (N, F)."""
    on_topic = rng.random(rank.shape) < TOPIC_SHARE
    words = orders[np.where(on_topic, labels[:, None], len(orders) - 1), rank]
    x = np.zeros((len(labels), orders.shape[1]), dtype=np.float32)
    x[np.arange(len(labels))[:, None], words] = 1
    return x
