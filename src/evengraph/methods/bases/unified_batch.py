"""Runs of Uni-GNN side by side: its epoch with a leading axis, for `Replicas` to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.nn import Connectivity, UnifiedNetwork
from evengraph.ops import (
    Clusters,
    Sparse,
    batched_kmeans,
    flatten_clusters,
    inverse_class_weights,
    kmeans,
    prepare_clusters,
)
from evengraph.ops.pseudo import balanced_pseudo_mask
from evengraph.ops.subset_products import Subset, make_subset, neighbour_mask
from evengraph.training import History
from evengraph.training.batch.replicas import LOOK_EVERY
from evengraph.training.batch.tasks import TaskReplicas, TaskRun


@dataclass(kw_only=True)
class UnifiedRun(TaskRun):
    """One run of Uni-GNN, with the settings in which runs side by side may differ."""

    net: UnifiedNetwork
    cluster_seeds: Sequence[int]  # one for each layer
    threshold: float
    pseudo_weight: float
    class_weights: bool
    recluster_every: int


class UnifiedReplicas(TaskReplicas[UnifiedRun]):
    """Uni-GNN for several runs on one graph.

    Args:
        inputs: The graph.
        runs: All that are to be trained.
        slots: How many fit at a time.
        pseudo_labels: As in UniGNN.
        training: Settings of `Replicas`.
    """

    def __init__(
        self,
        inputs: Connectivity,
        runs: Sequence[UnifiedRun],
        slots: int,
        pseudo_labels: Literal["balanced", "all", "none"],
        **training: Any,
    ) -> None:
        net = runs[0].net
        super().__init__(runs, slots, net.width, **training)
        self.inputs, self.pseudo_labels, device = inputs, pseudo_labels, self.alive.device
        self.most = max(run.net.num_clusters for run in runs)
        self.layers = len(net.weights)
        self.unlabelled = torch.zeros_like(self.labels, dtype=torch.bool)
        self.wanted = torch.zeros(self.slots, self.num_classes, dtype=torch.long, device=device)
        self.threshold = torch.ones(self.slots, 1, device=device)
        self.pseudo_weight = torch.zeros(self.slots, 1, device=device)
        self.features: dict[tuple[int, int], Tensor] = {}  # clusters of the features
        self.semantic = "semantic" in net.encoders
        self.limits = self._limits(runs)
        able = net.share and self.layers > 1 and len(net.encoders) == 2
        self.few = able and 2 * self.limits[1] <= self.labels.shape[1]
        if self.semantic:
            self.prepared = [self._prepare(layer) for layer in range(self.layers)]

    def _limits(self, runs: Sequence[UnifiedRun]) -> tuple[int, int]:
        """How many examples a run may have, and how many nodes they with their neighbours."""
        nodes = self.labels.shape[1]
        examples = 0
        for run in runs:
            counts: list[int] = run.task.class_counts.tolist()
            most = {"balanced": len(counts) * max(counts), "all": nodes, "none": sum(counts)}
            examples = max(examples, min(most[self.pseudo_labels], nodes))
        degrees = self.inputs.adjacency.matrix.crow_indices().diff()
        return examples, int(degrees.topk(examples).values.sum())

    def weights_of(self, run: UnifiedRun) -> Tensor:
        """Equal say for every class (Eq. 8), or for every node."""
        counts = run.task.class_counts
        return inverse_class_weights(counts) if run.class_weights else torch.ones_like(counts)

    def load(self, slot: int, run: UnifiedRun) -> None:
        """Settings and the clusters of the features."""
        super().load(slot, run)
        counts = run.task.class_counts
        self.unlabelled[slot] = ~run.task.train
        self.wanted[slot] = counts.max() - counts
        self.threshold[slot], self.pseudo_weight[slot] = run.threshold, run.pseudo_weight
        if self.semantic:
            key = run.net.num_clusters, run.cluster_seeds[0]
            if key not in self.features:
                self.features[key] = kmeans(self.inputs.x, *key)
            self.net.get_buffer("clusters_0")[slot] = self.features[key]

    def epoch(self) -> tuple[Tensor, Tensor]:
        """As in `UniGNN`: a pass for pseudo-labels and score, a pass with dropout for the loss."""
        net: UnifiedNetwork = self.net  # type: ignore[assignment]
        first = net.first_layer(self.inputs, self.stored)
        with torch.no_grad():
            clean = net.logits(first, self.inputs, self.stored)
            chosen, guessed = self._choose(clean.softmax(-1))
            share = self.pseudo_weight / chosen.sum(1, keepdim=True).clamp(min=1)
            weight = torch.where(chosen, share, self.weight)
            targets = torch.where(chosen, guessed, self.labels)
            score = self.score(clean)
            if self.few:
                nodes, near = self._examples(chosen)
                index = nodes.padded
                weight = torch.where(nodes.nodes < 0, 0.0, weight.gather(1, index))
                targets = targets.gather(1, index)
        if self.few:
            logits = net.subset_logits(first, self.inputs, self.stored, nodes, near)
        else:
            logits = net.logits(first, self.inputs, self.stored, dropout=True)
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return (weight * losses.view_as(weight)).sum(1), score  # Eq. 8, 13, 14

    def _examples(self, chosen: Tensor) -> tuple[Subset, Subset]:
        """The nodes that the loss is of, and those with their neighbours."""
        examples = chosen | ~self.unlabelled
        near = neighbour_mask(examples, self.inputs.adjacency)
        return make_subset(examples, self.limits[0]), make_subset(near, self.limits[1])

    def _choose(self, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        if self.pseudo_labels == "balanced":
            return balanced_pseudo_mask(probabilities, self.wanted, self.unlabelled, self.threshold)
        confidence, labels = probabilities.max(-1)
        if self.pseudo_labels == "all":
            return self.unlabelled & (confidence > self.threshold), labels
        return torch.zeros_like(self.unlabelled), labels

    # Clusters: in memory that stays where it is, as the recorded epoch reads it there.

    def stored(self, layer: int, embeddings: Tensor | Sparse) -> Clusters:
        """Those found last, of all runs."""
        return self.prepared[layer]

    def _prepare(self, layer: int) -> Clusters:
        flat = flatten_clusters(self.net.get_buffer(f"clusters_{layer}"), self.most)
        return prepare_clusters(flat, self.slots * self.most, torch.float32)

    def _renew(self, layer: int) -> None:
        """Bring what is prepared up to the buffers."""
        new, old = self._prepare(layer), self.prepared[layer]
        old.assignment.copy_(new.assignment)
        old.members.crow_indices().copy_(new.members.crow_indices())
        old.members.col_indices().copy_(new.members.col_indices())
        old.share.copy_(new.share)
        if old.chunks is not None and new.chunks is not None:
            for kept, found in zip(old.chunks[:-1], new.chunks[:-1], strict=True):
                kept.copy_(found)

    def until_pause(self, epochs: Mapping[int, int]) -> int:
        """Epochs until some run is clustered anew."""
        steps = [(self._run(slot).recluster_every, epoch) for slot, epoch in epochs.items()]
        return min((every - epoch % every for every, epoch in steps if every), default=LOOK_EVERY)

    def _run(self, slot: int) -> UnifiedRun:
        run = self.runs[slot]
        assert run is not None
        return run

    @torch.no_grad()
    def pause(self, epochs: Mapping[int, int]) -> None:
        """Find clusters anew where it is time (Eq. 3, 4)."""
        if not self.semantic:
            return
        fresh = [slot for slot, epoch in epochs.items() if epoch == 0]
        every = {slot: self._run(slot).recluster_every for slot in epochs}
        due = [s for s, epoch in epochs.items() if epoch and every[s] and epoch % every[s] == 0]
        if not fresh and not due:
            return
        if fresh:
            self._renew(0)
        net: UnifiedNetwork = self.net  # type: ignore[assignment]
        joint = net.activate(net.first_layer(self.inputs, self.stored), False)
        for layer in range(1, self.layers):
            buffer = net.get_buffer(f"clusters_{layer}")
            for slots, start in ((fresh, False), (due, True)):
                if slots:
                    runs = [self._run(slot) for slot in slots]
                    buffer[slots] = batched_kmeans(
                        joint[slots],
                        [run.net.num_clusters for run in runs],
                        seeds=[run.cluster_seeds[layer] for run in runs],
                        start=buffer[slots] if start else None,
                    )
            self._renew(layer)
            joint = net.activate(net.layer(layer, joint, self.inputs, self.stored), False)

    def moved(self, slots: Sequence[int]) -> None:
        """The clusters move along with the runs."""
        super().moved(slots)
        if self.semantic:
            self.prepared = [self._prepare(layer) for layer in range(self.layers)]

    def finish(self, slot: int, run: UnifiedRun, history: History) -> None:
        """The clusters that belong to the best weights are the run's."""
        run.net.clear_cache()
        super().finish(slot, run, history)
