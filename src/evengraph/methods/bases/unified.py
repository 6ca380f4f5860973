"""One epoch of Uni-GNN, and runs of it as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.fast.kmeans import batched_kmeans, flatten_clusters
from evengraph.fast.subsets import Subset, make_subset, neighbour_mask
from evengraph.methods.bases.readings import Readings
from evengraph.metrics.selection import batched_stopping_scores
from evengraph.nn.unified import Connectivity, FindClusters, UnifiedNetwork
from evengraph.ops.losses import inverse_class_weights, weighted_cross_entropy
from evengraph.ops.pseudo import Selection, select_pseudo_mask
from evengraph.ops.semantic import Clusters, kmeans, prepare_clusters
from evengraph.ops.sparse import Sparse
from evengraph.training import History
from evengraph.training.batch.replicas import SYNC_EVERY, Run
from evengraph.training.batch.tasks import TaskReplicas


class Examples(NamedTuple):
    """The labelled and pseudo-labelled nodes of an epoch's loss.

    A single run lists its nodes, labelled ones first, and the pseudo-labels share one weight. In a
    batch every node has a weight, so that shapes do not depend on which nodes are selected.
    """

    targets: Tensor  # (n + m,), or (R, M)
    weights: Tensor  # of the labelled nodes, (n,), or of all, (R, M)
    nodes: Tensor | Subset | None = None  # (n + m,), or a subset per run; None: all nodes
    near: Subset | None = None  # the subset and its neighbours
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
    """Loss and score of one run, or of each in a batch: one pass without dropout, one with it.

    `select` and `score` take the logits without dropout; `recluster` finds new clusters first.
    """
    first = net.first_layer(inputs, clusters)  # no dropout before it: both passes share it
    with torch.no_grad():
        clean = net.logits(first, inputs, recluster or clusters)
        examples = select(clean)
    if isinstance(examples.nodes, Subset):
        assert examples.near is not None
        logits = net.subset_logits(first, inputs, clusters, examples.nodes, examples.near)
    else:
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


def labelled_weights(class_counts: Tensor, balance: bool, mean_loss: bool = False) -> Tensor:
    """The weight of a labelled node of each class: equal for all classes (Eq. 9), or for nodes.

    With `mean_loss` the weights of all labelled nodes sum to one, so that Eq. 8 is a mean.
    """
    weights = inverse_class_weights(class_counts) if balance else torch.ones_like(class_counts)
    return weights / (weights * class_counts).sum() if mean_loss else weights


@dataclass(kw_only=True)
class UnifiedRun(Run):
    """One run of Uni-GNN, with the parameters that may differ within a batch."""

    net: UnifiedNetwork
    cluster_seeds: Sequence[int]  # one per layer
    threshold: float
    pseudo_weight: float
    class_weights: bool
    readings: Readings
    recluster_every: int


class UnifiedReplicas(TaskReplicas[UnifiedRun]):
    """Uni-GNN for several runs on one graph, at most `slots` at a time."""

    def __init__(
        self,
        inputs: Connectivity,
        runs: Sequence[UnifiedRun],
        slots: int,
        pseudo_labels: Selection,
        **training: Any,
    ) -> None:
        net = runs[0].net
        super().__init__(runs, slots, net.width, **training)
        self.inputs, self.pseudo_labels, device = inputs, pseudo_labels, self.alive.device
        self.max_clusters = max(run.net.num_clusters for run in runs)
        self.layers = len(net.weights)
        self.unlabelled = torch.zeros_like(self.labels, dtype=torch.bool)
        self.wanted = torch.zeros(self.slots, self.num_classes, dtype=torch.long, device=device)
        self.threshold = torch.ones(self.slots, 1, device=device)
        self.pseudo_weight = torch.zeros(self.slots, 1, device=device)
        self.feature_clusters: dict[tuple[int, int], Tensor] = {}
        self.semantic = "semantic" in net.encoders
        self.stop_on = runs[0].readings.stop_on
        self.limits = self._limits(runs)
        able = net.share and self.layers > 1 and len(net.encoders) == 2
        self.few = able and 2 * self.limits[1] <= self.labels.shape[1]
        if self.semantic:
            self.prepared = [self._prepare(layer) for layer in range(self.layers)]

    def _limits(self, runs: Sequence[UnifiedRun]) -> tuple[int, int]:
        """Maximum number of examples of a run, and of these with their neighbours."""
        nodes = self.labels.shape[1]
        examples = 0
        for run in runs:
            counts: list[int] = run.task.class_counts.tolist()
            most = {"balanced": len(counts) * max(counts), "all": nodes, "none": sum(counts)}
            examples = max(examples, min(most[self.pseudo_labels], nodes))
        degrees = self.inputs.adjacency.matrix.crow_indices().diff()
        return examples, int(degrees.topk(examples).values.sum())

    def class_weights(self, run: UnifiedRun) -> Tensor:
        """As in a single run."""
        return labelled_weights(run.task.class_counts, run.class_weights, run.readings.mean_loss)

    def load(self, slot: int, run: UnifiedRun) -> None:
        """Copy parameters and the clusters of the features into a slot."""
        super().load(slot, run)
        counts = run.task.class_counts
        self.unlabelled[slot] = ~run.task.train
        self.wanted[slot] = counts.max() - counts
        self.threshold[slot], self.pseudo_weight[slot] = run.threshold, run.pseudo_weight
        if self.semantic:
            key = run.net.num_clusters, run.cluster_seeds[0]
            if key not in self.feature_clusters:
                rows = run.net.cluster_rows(self.inputs.x)
                clusters = kmeans(rows, *key, starts=run.net.cluster_starts)
                self.feature_clusters[key] = clusters
            self.net.get_buffer("clusters_0")[slot] = self.feature_clusters[key]

    def epoch(self) -> tuple[Tensor, Tensor]:
        """As in a single run; clusters are found in `pause`."""
        net: UnifiedNetwork = self.net  # type: ignore[assignment]
        return unified_epoch(net, self.inputs, self.stored, select=self._select, score=self.score)

    def score(self, logits: Tensor) -> Tensor:
        """What early stopping maximises, of each run, (R,)."""
        return batched_stopping_scores(self.stop_on, *self.validation(logits))

    def _select(self, logits: Tensor) -> Examples:
        probabilities = logits.softmax(-1)
        chosen, predicted = select_pseudo_mask(
            self.pseudo_labels, probabilities, self.wanted, self.unlabelled, self.threshold
        )
        share = self.pseudo_weight / chosen.sum(1, keepdim=True).clamp(min=1)
        weights = torch.where(chosen, share, self.weight)
        targets = torch.where(chosen, predicted, self.labels)
        if not self.few:
            return Examples(targets, weights)
        examples = chosen | ~self.unlabelled
        nodes = make_subset(examples, self.limits[0])
        near = make_subset(neighbour_mask(examples, self.inputs.adjacency), self.limits[1])
        weights = torch.where(nodes.nodes < 0, 0.0, weights.gather(1, nodes.padded))
        return Examples(targets.gather(1, nodes.padded), weights, nodes, near)

    # Clusters stay at one address: the recorded epoch reads them there.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """The latest clusters of all runs."""
        return self.prepared[layer]

    def _prepare(self, layer: int) -> Clusters:
        flat = flatten_clusters(self.net.get_buffer(f"clusters_{layer}"), self.max_clusters)
        return prepare_clusters(flat, self.slots * self.max_clusters, torch.float32)

    def _refresh(self, layer: int) -> None:
        """Update the prepared clusters from the buffers."""
        new, old = self._prepare(layer), self.prepared[layer]
        old.assignment.copy_(new.assignment)
        old.members.crow_indices().copy_(new.members.crow_indices())
        old.members.col_indices().copy_(new.members.col_indices())
        old.share.copy_(new.share)
        if old.chunks is not None and new.chunks is not None:
            for target, source in zip(old.chunks[:-1], new.chunks[:-1], strict=True):
                target.copy_(source)

    def epochs_until_pause(self, epochs: Mapping[int, int]) -> int:
        """Epochs until some run is clustered again."""
        steps = [(self._run(slot).recluster_every, epoch) for slot, epoch in epochs.items()]
        return min((every - epoch % every for every, epoch in steps if every), default=SYNC_EVERY)

    def _run(self, slot: int) -> UnifiedRun:
        run = self.runs[slot]
        assert run is not None
        return run

    @torch.no_grad()
    def pause(self, epochs: Mapping[int, int]) -> None:
        """Find new clusters of the runs that are due (Eq. 3, 4)."""
        if not self.semantic:
            return
        fresh = [slot for slot, epoch in epochs.items() if epoch == 0]
        every = {slot: self._run(slot).recluster_every for slot in epochs}
        due = [s for s, epoch in epochs.items() if epoch and every[s] and epoch % every[s] == 0]
        if not fresh and not due:
            return
        if fresh:
            self._refresh(0)
        net: UnifiedNetwork = self.net  # type: ignore[assignment]
        joint = net.activate(net.first_layer(self.inputs, self.stored), False)
        for layer in range(1, self.layers):
            buffer = net.get_buffer(f"clusters_{layer}")
            for slots, warm_start in ((fresh, False), (due, True)):
                if slots:
                    runs = [self._run(slot) for slot in slots]
                    rows = net.cluster_rows(joint[slots])
                    assert isinstance(rows, Tensor)
                    buffer[slots] = batched_kmeans(
                        rows,
                        [run.net.num_clusters for run in runs],
                        seeds=[run.cluster_seeds[layer] for run in runs],
                        start=buffer[slots] if warm_start else None,
                        starts=net.cluster_starts,
                    )
            self._refresh(layer)
            joint = net.activate(net.layer(layer, joint, self.inputs, self.stored), False)

    def on_shrink(self, slots: Sequence[int]) -> None:
        """Move the clusters along with the runs."""
        super().on_shrink(slots)
        if self.semantic:
            self.prepared = [self._prepare(layer) for layer in range(self.layers)]

    def finish(self, slot: int, run: UnifiedRun, history: History) -> None:
        """Use the clusters that belong to the best weights."""
        run.net.clear_cache()
        super().finish(slot, run, history)
