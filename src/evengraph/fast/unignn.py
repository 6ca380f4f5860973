"""Quick form of Uni-GNN: the same mathematics as `evengraph.methods.unignn`, in less time.

- Both passes of an epoch share the first layer; dense features are propagated over A_struct once.
- The pass with dropout computes the logits of the few nodes in the loss, and the last layer at
  their neighbours only.
- Clusters are sorted once, so that propagating over them is two linear passes.
- Nodes of the training graph keep inputs and clusters that are there already.
- On a GPU several fits are one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.core.rng import generator
from evengraph.core.task import Task
from evengraph.fast.dropout import Noise, relu_dropout
from evengraph.fast.replicas import Batch, Fit, fit_as_batch
from evengraph.methods.bases.method import same_graph
from evengraph.metrics.multiclass import batched_stopping_scores, stopping_score
from evengraph.nn.networks import GraphClassifier
from evengraph.ops.losses import weighted_cross_entropy
from evengraph.ops.pseudo import log_odds, select_pseudo_labels, select_pseudo_mask
from evengraph.ops.semantic import (
    Clusters,
    fill_empty,
    kmeans,
    prepare_clusters,
    semantic_propagate,
    start_seeds,
    unit_rows,
)
from evengraph.ops.sparse import (
    Sparse,
    propagation_matrix,
    sparsify,
    undirected_adjacency,
)
from evengraph.ops.structural import path_weights

LARGE = 2**16
# nodes are few if N exceeds this many times their number; the second from LARGE nodes on
FEW, FEW_OF_MANY = 8, 3

FindClusters = Callable[[int, "Tensor | Sparse"], Clusters]
"""Gives the clusters of a layer from the layer's input."""


# The functions of the form. Each takes a UniGNN.


def fit(method: Any, task: Task, seed: int) -> bool:
    """Algorithm 1, with one first layer for both passes of an epoch; on a GPU as a batch of one."""
    if fit_as_batch(method, task, seed):
        return True
    graph, every = task.graph, method.recluster_every
    inputs = connect(method, graph)
    net = UnifiedNetwork(method, method._new_network())
    with torch.no_grad():
        net.first_layer(inputs, net.recluster)  # clusters the features
    select, numbers = _selection(method, task), count()

    def epoch() -> tuple[Tensor, Tensor]:
        return unified_epoch(
            net,
            inputs,
            net.stored,
            select=select,
            score=lambda logits: stopping_score(method.stop_on, logits, task),
            recluster=net.recluster if is_due(next(numbers), every) else None,
        )

    method._train(net, epoch)
    net.clear_cache()
    _set_fitted(method, net, graph, inputs)
    return True


def is_due(epoch: int, every: int) -> bool:
    """Whether new clusters are found before an epoch."""
    return epoch == 0 or (every > 0 and epoch % every == 0)


def logits(method: Any, graph: Data) -> Tensor:
    net, inputs, find = inputs_and_clusters(method, graph)
    result: Tensor = net(inputs, find)
    return result


def walk(method: Any, find: Callable[[int, Tensor | Sparse], Tensor]) -> None:
    """Compute all layers of the training graph with clusters that a function finds."""
    net, _, inputs = _quick(method)

    def prepared(layer: int, embeddings: Tensor | Sparse) -> Clusters:
        return net.prepare(find(layer, embeddings))

    net.embed(net.first_layer(inputs, prepared), inputs, prepared)


def batching(method: Any) -> type[Batch]:
    """One batch of runs of the same network."""
    return UnifiedBatch


class _Quick(NamedTuple):
    """What is kept beside a fitted method; a loaded one may have no graph."""

    net: UnifiedNetwork
    graph: Any
    inputs: Any


def _set_fitted(method: Any, net: UnifiedNetwork, graph: Data, inputs: Connectivity) -> None:
    method.net_, method.graph_ = net.shared[0], graph
    method.quick_ = _Quick(net, graph, inputs)


def _quick(method: Any) -> _Quick:
    """What was kept of the fit; a loaded method, and one fitted otherwise, has no inputs yet."""
    kept: _Quick | None = getattr(method, "quick_", None)
    if kept is None or kept.net.shared[0] is not method.net_:
        inputs = None if method.graph_ is None else connect(method, method.graph_)
        kept = _Quick(UnifiedNetwork(method, method.net_), method.graph_, inputs)
        method.quick_ = kept
    return kept


def inputs_and_clusters(
    method: Any, graph: Data
) -> tuple[UnifiedNetwork, Connectivity, FindClusters]:
    """The network, its inputs of a graph, and the source of the graph's clusters."""
    net, known_graph, inputs = _quick(method)
    if inputs is not None and same_graph(graph, known_graph):
        return net, inputs, net.stored
    inputs = connect(method, graph)
    find = method._known_or_nearest(graph)
    return net, inputs, lambda layer, embeddings: net.prepare(find(layer, embeddings))


def connect(method: Any, graph: Data) -> Connectivity:
    device, x = graph.x.device, sparsify(graph.x.float())
    matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
    adjacency = structural = propagation_matrix(matrix, device)
    if method.alpha_ > 1:
        paths = path_weights(matrix, method.alpha_, method.memory_limit)
        structural = propagation_matrix(paths, device)
    along_paths = structural @ x if isinstance(x, Tensor) else None
    return Connectivity(x, structural, adjacency, along_paths)


def _selection(method: Any, task: Task) -> Callable[[Tensor], Examples]:
    """The examples of an epoch, labelled nodes first, from logits without dropout."""
    labelled, counts, unlabelled = task.train_nodes, task.class_counts, ~task.train
    labels = task.graph.y[labelled]
    weights = method._omega(counts)[labels]

    def select(logits: Tensor) -> Examples:
        probabilities = logits.t().softmax(0).t()  # torch vectorises over nodes, not classes
        chosen = select_pseudo_labels(
            *(method.pseudo_labels, probabilities, counts, unlabelled, method.threshold),
            order=_order(method, logits),
        )
        return Examples(
            targets=torch.cat([labels, chosen.labels]),
            weights=weights,
            nodes=torch.cat([labelled, chosen.nodes]),
            pseudo_weight=method.pseudo_weight,
        )

    return select


# The network.


class Connectivity(NamedTuple):
    """The network's view of a graph: its features, and A_struct and A, both normalised."""

    x: Tensor | Sparse
    structural: Sparse
    adjacency: Sparse
    along_paths: Tensor | None = None  # A_struct X of dense features, propagated only once


class UnifiedNetwork(nn.Module):
    """The network of a UniGNN, with the same weights and clusters: in training, both change."""

    def __init__(self, method: Any, net: Any) -> None:
        super().__init__()
        self.num_clusters, self.share = method.num_clusters, method.share_embeddings
        self.dropout, self.cluster_starts = method.dropout, method.cluster_starts
        self.unit_length = method.unit_rows
        self.noise: Noise | None = None
        self.weights = net.weights
        self.encoders = tuple(sorted(net.weights[0]))  # semantic, structural: order of the columns
        for name, clusters in net.named_buffers():
            self.register_buffer(name, clusters)
        conv, linear = net.classifier["conv"], net.classifier["linear"]
        self.width, hidden = conv["weight"].shape
        with torch.device("meta"):
            self.classifier = GraphClassifier(self.width, hidden, len(linear.bias), method.dropout)
        self.classifier.conv.weight, self.classifier.conv.bias = conv["weight"], conv["bias"]
        self.classifier.linear = linear
        self.shared = (net,)  # in a tuple, as it is no part of this module
        self._prepared: dict[int, Clusters] = {}

    def forward(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        return self.logits(self.first_layer(inputs, clusters), inputs, clusters)

    def embed(
        self,
        first: Tensor,
        inputs: Connectivity,
        clusters: FindClusters,
        *,
        dropout: bool = False,
        layers: int | None = None,
    ) -> Tensor:
        """Outputs of all layers, or the first ones, side by side, from that of `first_layer`."""
        joint = self.activate(first, dropout)
        for layer in range(1, layers or len(self.weights)):
            joint = self.activate(self.layer(layer, joint, inputs, clusters), dropout)
        return joint

    def first_layer(self, inputs: Connectivity, clusters: FindClusters) -> Tensor:
        """The first layer of both encoders side by side, before the activation."""
        return self.layer(0, inputs.x, inputs, clusters)

    def logits(
        self,
        first: Tensor,
        inputs: Connectivity,
        clusters: FindClusters,
        *,
        dropout: bool = False,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """Logits of all nodes, or of selected ones, from the output of `first_layer`."""
        # the logits of a few nodes need the last layer at their neighbours only
        if nodes is None or not self.selects(nodes, inputs):
            joint = self.embed(first, inputs, clusters, dropout=dropout)
            logits: Tensor = self.classifier(joint, inputs.adjacency, dropout=dropout)
            return logits if nodes is None else logits[nodes]
        near, adjacency = self.restrict(nodes, inputs)
        if near is None:  # fewer rows, so propagate before the product
            joint = adjacency @ self.embed(first, inputs, clusters, dropout=dropout)
            return self.classifier.classify_propagated(joint, dropout=dropout)
        last = len(self.weights) - 1
        joint = self.embed(first, inputs, clusters, dropout=dropout, layers=max(last, 1))
        if last:
            joint = self.activate(self.layer(last, joint, inputs, clusters, near), dropout)
        joint = joint if last else joint[near]
        some: Tensor = self.classifier(joint, adjacency, dropout=dropout)
        return some

    def selects(self, nodes: Tensor, inputs: Connectivity) -> bool:
        """Whether `logits` computes these nodes only, on a CPU."""
        num_nodes = inputs.adjacency.shape[0]
        times = FEW if num_nodes < LARGE else FEW_OF_MANY
        return nodes.is_cpu and times * nodes.numel() < num_nodes

    def restrict(self, nodes: Tensor, inputs: Connectivity) -> tuple[Tensor | None, Sparse]:
        """The nodes at which the last layer is needed, None for all; A from these to the selected.

        If most nodes are neighbours of selected ones, selecting them costs more than it saves.
        """
        adjacency = inputs.adjacency.rows(nodes)
        near, between = adjacency.without_empty_columns()
        return (near, between) if 2 * near.numel() < adjacency.shape[1] else (None, adjacency)

    def activate(self, raw: Tensor, dropout: bool) -> Tensor:
        return relu_dropout(raw, self.dropout, training=dropout, noise=self.noise)

    def layer(
        self,
        number: int,
        joint: Tensor | Sparse,
        inputs: Connectivity,
        clusters: FindClusters,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """One layer of both encoders before its activation, of all nodes or of selected ones."""
        weights: nn.ParameterDict = self.weights[number]
        groups = clusters(number, joint) if "semantic" in weights else None
        along_paths = inputs.along_paths if number == 0 else None
        separate = number > 0 and not self.share
        outputs = []
        for index, name in enumerate(self.encoders):
            if name == "structural" and along_paths is not None:
                outputs.append(along_paths @ weights[name])
                continue
            x = joint
            if separate:
                assert isinstance(joint, Tensor)
                x = joint.chunk(len(self.encoders), dim=-1)[index]
            over = groups if name == "semantic" else inputs.structural
            outputs.append(_encode(x, weights[name], over, nodes))
        return torch.cat(outputs, dim=-1)

    def cluster_rows(self, embeddings: Tensor | Sparse) -> Tensor | Sparse:
        """What k-means groups: the input of a layer, or its direction."""
        return unit_rows(embeddings) if self.unit_length else embeddings

    # Sources of clusters, each a `FindClusters`.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """The latest clusters of the training graph."""
        if layer not in self._prepared:
            self._prepared[layer] = self.prepare(self.get_buffer(f"clusters_{layer}"))
        return self._prepared[layer]

    def recluster(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Run k-means from the latest clusters (Eq. 3, 4) and store the result."""
        last = self._prepared[layer].assignment if layer in self._prepared else None
        seed = int(torch.randint(2**31, ()))
        rows, starts = self.cluster_rows(embeddings), self.cluster_starts
        assignment = kmeans(rows, self.num_clusters, seed, start=last, starts=starts)
        return self.store(layer, assignment)

    def store(self, layer: int, assignment: Tensor) -> Clusters:
        """Store new clusters where a recorded epoch reads them."""
        self.get_buffer(f"clusters_{layer}").copy_(assignment)
        found = self.prepare(assignment)
        if layer in self._prepared:
            self._prepared[layer].take(found)
        else:
            self._prepared[layer] = found
        return self._prepared[layer]

    def prepare(self, assignment: Tensor) -> Clusters:
        """Clusters of all nodes, or of those of all runs, (R, N), as one large set."""
        runs = assignment if assignment.dim() == 2 else assignment.unsqueeze(0)
        first = torch.arange(len(runs), device=runs.device).unsqueeze(1) * self.num_clusters
        return prepare_clusters(
            (runs + first).flatten(), len(runs) * self.num_clusters, torch.float32
        )

    def clear_cache(self) -> None:
        """Drop what was derived from clusters that the best weights may have replaced."""
        self._prepared.clear()


def _encode(
    x: Tensor | Sparse, weight: Tensor, over: Sparse | Clusters | None, nodes: Tensor | None
) -> Tensor:
    """Eq. 2 over a matrix, Eq. 6 over clusters; a few nodes propagate before the product."""
    assert over is not None
    if nodes is None:
        narrow = x @ weight
        return over @ narrow if isinstance(over, Sparse) else semantic_propagate(narrow, over)
    assert isinstance(x, Tensor)
    if isinstance(over, Sparse):
        return (over.rows(nodes) @ x) @ weight
    return semantic_propagate(x, over, nodes) @ weight


# An epoch, of one run or of several.


class Examples(NamedTuple):
    """The labelled and pseudo-labelled nodes of an epoch's loss.

    A single run lists its nodes, labelled ones first, and the pseudo-labels share one weight. In a
    batch every node has a weight, so that shapes do not depend on which nodes are selected.
    """

    targets: Tensor  # (n + m,), or (R, N)
    weights: Tensor  # of the labelled nodes, (n,), or of all, (R, N)
    nodes: Tensor | None = None  # (n + m,); None: all nodes
    pseudo_weight: float = 0.0


def unified_epoch(
    net: UnifiedNetwork,
    inputs: Connectivity,
    clusters: FindClusters,
    *,
    select: Callable[[Tensor], Examples],
    score: Callable[[Tensor], Tensor],
    recluster: FindClusters | None = None,
) -> tuple[Tensor, Tensor]:
    """Loss and score of one run, or of each in a batch: one pass without dropout, one with it."""
    # `select` and `score` take the logits without dropout; `recluster` finds new clusters first
    first = net.first_layer(inputs, clusters)  # no dropout before it: both passes share it
    with torch.no_grad():
        clean = net.logits(first, inputs, recluster or clusters)
        examples = select(clean)
    logits = net.logits(first, inputs, clusters, dropout=True, nodes=examples.nodes)
    return unified_loss(logits, examples), score(clean)


def unified_loss(logits: Tensor, examples: Examples) -> Tensor:
    """Weighted sum over labelled nodes plus weighted mean over pseudo-labels (Eq. 8, 13, 14)."""
    targets, weights = examples.targets, examples.weights
    if weights.dim() == 2:
        return weighted_cross_entropy(logits, targets, weights)
    num_labelled = weights.numel()
    labelled, pseudo = logits.tensor_split([num_labelled])
    loss = weighted_cross_entropy(labelled, targets[:num_labelled], weights)
    if pseudo.shape[0]:
        loss = loss + examples.pseudo_weight * cross_entropy(pseudo, targets[num_labelled:])
    return loss


def _order(method: Any, logits: Tensor) -> Tensor | None:
    """What ranks confident nodes, if not their probability."""
    return log_odds(logits) if method.ranked_by == "log_odds" else None


class UnifiedBatch(Batch):
    """Uni-GNN for several runs on one graph."""

    def __init__(self, fits: Sequence[Fit]) -> None:
        super().__init__(fits)
        method, net = self.method, self.net
        self.inputs = connect(method, fits[0].task.graph)
        self.unlabelled = torch.stack([~fit.task.train for fit in fits])
        counts = torch.stack([fit.task.class_counts for fit in fits])
        self.wanted = counts.max(1, keepdim=True).values - counts
        self.is_first = True
        if "semantic" in net.encoders:
            rows, starts = net.cluster_rows(self.inputs.x), net.cluster_starts
            seeds: list[int] = self.seeds[:, 0].tolist()
            found = {one: kmeans(rows, net.num_clusters, one, starts=starts) for one in seeds}
            net.store(0, torch.stack([found[one] for one in seeds]))

    def network(self, method: Any) -> nn.Module:
        return UnifiedNetwork(method, method._new_network())

    def class_weights(self, task: Task) -> Tensor:
        weights: Tensor = self.method._omega(task.class_counts)
        return weights

    def epoch(self) -> tuple[Tensor, Tensor]:
        on = self.method.stop_on
        return unified_epoch(
            self.net,
            self.inputs,
            self.net.stored,
            select=self._select,
            score=lambda logits: batched_stopping_scores(on, *self.validation(logits)),
        )

    def _select(self, logits: Tensor) -> Examples:
        method, probabilities = self.method, logits.softmax(-1)
        chosen, predicted = select_pseudo_mask(
            *(method.pseudo_labels, probabilities, self.wanted, self.unlabelled, method.threshold),
            order=_order(method, logits),
        )
        share = method.pseudo_weight / chosen.sum(1, keepdim=True).clamp(min=1)
        weights = torch.where(chosen, share, self.weight)
        return Examples(torch.where(chosen, predicted, self.labels), weights)

    @torch.no_grad()
    def before(self, epoch: int) -> None:
        """Find new clusters where they are due (Eq. 3, 4)."""
        if is_due(epoch, self.method.recluster_every):
            self.is_first = epoch == 0
            first = self.net.first_layer(self.inputs, self.net.stored)
            self.net.embed(first, self.inputs, self._recluster)

    def _recluster(self, layer: int, embeddings: Tensor) -> Clusters:
        net = self.net
        found = batched_kmeans(
            net.cluster_rows(embeddings),
            net.num_clusters,
            seeds=self.seeds[:, layer].tolist(),
            start=None if self.is_first else net.get_buffer(f"clusters_{layer}"),
            starts=net.cluster_starts,
        )
        return net.store(layer, found)  # type: ignore[no-any-return]

    def keep(self, rows: Sequence[int]) -> None:
        super().keep(rows)
        self.net.clear_cache()

    def on_end(self, fit: Fit, net: Any) -> None:
        """Use the clusters that belong to the best weights."""
        net.clear_cache()
        _set_fitted(fit.method, net, fit.task.graph, self.inputs)


# K-means of several sets of rows at once, with the same launches as for one.


CHUNK = 2**26  # distances in memory at a time
ITERATIONS, TOLERANCE = 100, 1e-4  # as in `kmeans`
SCALE = 2.0**40  # shares of a total as integers, whose sums do not depend on the order


def batched_kmeans(
    x: Tensor,
    k: int,
    *,
    seeds: Sequence[int],
    start: Tensor | None = None,
    starts: int = 1,
) -> Tensor:
    """Cluster R sets of rows, (R, N, d), like `kmeans`."""
    x = x - x.mean(1, keepdim=True)
    norms = x.square().sum(2)  # (R, N)
    smallest_move = TOLERANCE * norms.mean(1) / x.shape[2]
    if start is not None:
        return _lloyd(x, norms, _means(x, start, k), smallest_move)[0]
    results, totals = [], []
    for numbers in zip(*(start_seeds(seed, starts) for seed in seeds), strict=True):
        result, distance = _lloyd(x, norms, _plus_plus(x, norms, k, numbers), smallest_move)
        results.append(result)
        totals.append(distance.double().sum(1))
    best = torch.stack(totals).argmin(0)  # (R,)
    return torch.stack(results)[best, torch.arange(x.shape[0], device=x.device)]


def _lloyd(x: Tensor, norms: Tensor, means: Tensor, smallest_move: Tensor) -> tuple[Tensor, Tensor]:
    """Lloyd's iterations from given means: clusters and squared distances of all sets, (R, N)."""
    assignment, distance = _nearest(x, norms, means)
    moving = torch.ones_like(smallest_move, dtype=torch.bool)
    for _ in range(ITERATIONS):
        _fill(assignment, distance, means.shape[1])
        moved = _means(x, assignment, means.shape[1])
        move = (moved - means).square().sum((1, 2))
        after, further = _nearest(x, norms, moved)
        settled = (move <= smallest_move) | (after == assignment).all(1)
        which = moving.unsqueeze(1)  # sets that have settled before stay as they are
        assignment = torch.where(which, after, assignment)
        distance, means = torch.where(which, further, distance), moved
        moving &= ~settled
        if not moving.any():
            break
    _fill(assignment, distance, means.shape[1])
    return assignment, distance


def _means(x: Tensor, assignment: Tensor, k: int) -> Tensor:
    """Mean row of each cluster, (R, K, d); zero for one without rows."""
    # dense products need ten times the arithmetic of sorting rows by cluster, but few launches
    sums, sizes = x.new_zeros(len(x), k, x.shape[2]), _sizes(assignment, k)
    rows = max(CHUNK // sizes.numel(), 1)
    for part, ids in zip(x.split(rows, dim=1), assignment.split(rows, dim=1), strict=True):
        member = x.new_zeros(*ids.shape, k).scatter_(2, ids.unsqueeze(2), 1.0)
        sums.baddbmm_(member.transpose(1, 2), part)
    return sums / sizes.clamp(min=1).unsqueeze(2)


def _sizes(assignment: Tensor, k: int) -> Tensor:
    sizes = assignment.new_zeros(len(assignment), k)
    return sizes.scatter_add_(1, assignment, torch.ones_like(assignment))


def _nearest(x: Tensor, norms: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
    half = (means.square().sum(2) / 2).unsqueeze(1)  # (R, 1, K)
    rows = max(CHUNK // half.numel(), 1)
    parts = [
        torch.baddbmm(half, part, means.transpose(1, 2), alpha=-1).min(dim=2)
        for part in x.split(rows, dim=1)
    ]
    values, indices = (torch.cat(some, dim=1) for some in zip(*parts, strict=True))
    return indices, (norms + 2 * values).clamp_(min=0)


def _fill(assignment: Tensor, distance: Tensor, k: int) -> None:
    """Fill empty clusters, which are rare, set by set."""
    for one in (_sizes(assignment, k) == 0).any(1).nonzero().flatten().tolist():
        fill_empty(assignment[one], distance[one], k)


def _plus_plus(x: Tensor, norms: Tensor, k: int, seeds: Sequence[int]) -> Tensor:
    """Initial means of each set by greedy k-means++, (R, K, d)."""
    shape = k, 2 + int(math.log(k))
    streams = [torch.rand(shape, generator=generator(s), dtype=torch.float64) for s in seeds]
    draws, index = torch.stack(streams).to(x.device), torch.arange(len(x), device=x.device)
    first = (draws[:, 0, 0] * x.shape[1]).long()
    rows, closest = [first], _distances(x, norms, first.unsqueeze(1)).squeeze(2)  # (R, N)
    for step in range(1, k):
        total = closest.sum(1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        mass = (closest.double() / total * SCALE).long().cumsum(1)
        targets = (draws[:, step] * mass[:, -1:]).long()
        tried = torch.searchsorted(mass, targets, right=True).clamp_(max=x.shape[1] - 1)
        candidates = torch.minimum(_distances(x, norms, tried), closest.unsqueeze(2))
        best = candidates.sum(1).argmin(1)
        closest = candidates[index, :, best]
        rows.append(tried[index, best])
    return _rows(x, torch.stack(rows, 1))


def _distances(x: Tensor, norms: Tensor, rows: Tensor) -> Tensor:
    """Squared distances of all rows of each set to selected ones, (R, N, number of rows)."""
    products = torch.bmm(x, _rows(x, rows).transpose(1, 2))
    selected = norms.gather(1, rows).unsqueeze(1)
    return (norms.unsqueeze(2) + selected - 2 * products).clamp_(min=0)


def _rows(x: Tensor, rows: Tensor) -> Tensor:
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))
