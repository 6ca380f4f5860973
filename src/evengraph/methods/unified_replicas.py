"""Runs of Uni-GNN side by side: its epoch with a leading axis, for `Replicas` to train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from evengraph.metrics import replica_macro_f1
from evengraph.nn import Connectivity, UnifiedNetwork
from evengraph.ops import (
    Clusters,
    Sparse,
    inverse_class_weights,
    kmeans,
    prepare_clusters,
)
from evengraph.ops.kmeans_replicas import flatten_clusters, kmeans_replicas
from evengraph.ops.pseudo import balanced_pseudo_mask
from evengraph.replicas import LOOK_EVERY, Replicas, stacked
from evengraph.task import Task
from evengraph.training import History


@dataclass(kw_only=True)
class UnifiedRun:
    """One run: what it learns, and the settings in which runs side by side may differ."""

    task: Task
    net: UnifiedNetwork
    seeds: Sequence[int]  # of its clusters, one for each layer, and of its dropout
    threshold: float
    pseudo_weight: float
    class_weights: bool
    recluster_every: int
    tell: Callable[[History], None]
    done: Callable[[History], None]


class UnifiedReplicas(Replicas[UnifiedRun]):
    """Uni-GNN for several runs on one graph.

    Args:
        inputs: The graph.
        example: A run; the others have networks of the same shape.
        most_clusters: Of any run.
        most_val: Validation nodes of any run.
        slots: How many runs fit.
        pseudo_labels: As in UniGNN.
        training: Settings of `Replicas`.
    """

    def __init__(
        self,
        inputs: Connectivity,
        example: UnifiedRun,
        most_clusters: int,
        most_val: int,
        slots: int,
        pseudo_labels: Literal["balanced", "all", "none"],
        **training: Any,
    ) -> None:
        super().__init__(stacked([example.net] * slots), slots, **training)
        self.inputs, self.most, self.pseudo_labels = inputs, most_clusters, pseudo_labels
        task, device = example.task, self.alive.device
        nodes, classes = task.graph.num_nodes, task.num_classes
        self.num_classes = classes
        self.layers = len(example.net.weights)
        self.labels = torch.zeros(slots, nodes, dtype=torch.long, device=device)
        self.weight = torch.zeros(slots, nodes, device=device)
        self.unlabelled = torch.zeros(slots, nodes, dtype=torch.bool, device=device)
        self.wanted = torch.zeros(slots, classes, dtype=torch.long, device=device)
        self.threshold = torch.ones(slots, 1, device=device)
        self.pseudo_weight = torch.zeros(slots, 1, device=device)
        self.val = torch.zeros(slots, most_val, dtype=torch.long, device=device)
        self.counted = torch.zeros(slots, most_val, dtype=torch.bool, device=device)
        self.runs: list[UnifiedRun | None] = [None] * slots
        self.features: dict[tuple[int, int], Tensor] = {}  # clusters of the features
        self.semantic = hasattr(example.net, "clusters_0")
        if self.semantic:
            self.prepared = [self._prepare(layer) for layer in range(self.layers)]

    def network(self, run: UnifiedRun) -> UnifiedNetwork:
        """The run's own, as it was made."""
        return run.net

    def noise_seed(self, run: UnifiedRun) -> int:
        """The last of its seeds."""
        return run.seeds[-1]

    def load(self, slot: int, run: UnifiedRun) -> None:
        """Labels, weights, settings and the clusters of the features."""
        task = run.task
        graph, counts = task.graph, task.class_counts
        weights = inverse_class_weights(counts) if run.class_weights else torch.ones_like(counts)
        self.labels[slot] = torch.where(task.train, graph.y, 0)
        self.weight[slot] = torch.where(task.train, weights[self.labels[slot]].float(), 0.0)
        self.unlabelled[slot] = ~task.train
        self.wanted[slot] = counts.max() - counts
        self.threshold[slot], self.pseudo_weight[slot] = run.threshold, run.pseudo_weight
        val = task.val.nonzero().squeeze(1)
        self.val[slot, : val.numel()] = val
        self.labels[slot, val] = graph.y[val]  # weight 0: for the score alone
        self.counted[slot] = torch.arange(self.val.shape[1], device=val.device) < val.numel()
        self.runs[slot] = run
        if self.semantic:
            key = run.net.num_clusters, run.seeds[0]
            if key not in self.features:
                self.features[key] = kmeans(self.inputs.x, *key)
            self.net.get_buffer("clusters_0")[slot] = self.features[key]

    def epoch(self) -> tuple[Tensor, Tensor]:
        """As in `UniGNN`: a pass for pseudo-labels and score, a pass with dropout for the loss."""
        net: UnifiedNetwork = self.net  # type: ignore[assignment]
        first = net.first(self.inputs, self.stored)  # no dropout before it: both passes share it
        with torch.no_grad():
            clean = net.rest(first, self.inputs, self.stored)
            chosen, guessed = self._choose(clean.softmax(-1))
            share = self.pseudo_weight / chosen.sum(1, keepdim=True).clamp(min=1)
            weight = torch.where(chosen, share, self.weight)
            targets = torch.where(chosen, guessed, self.labels)
            score = self._score(clean.argmax(-1))
        logits = net.rest(first, self.inputs, self.stored, dropout=True)
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        return (weight * losses.view_as(weight)).sum(1), score  # Eq. 8, 13, 14

    def _choose(self, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        if self.pseudo_labels == "balanced":
            return balanced_pseudo_mask(probabilities, self.wanted, self.unlabelled, self.threshold)
        confidence, labels = probabilities.max(-1)
        if self.pseudo_labels == "all":
            return self.unlabelled & (confidence > self.threshold), labels
        return torch.zeros_like(self.unlabelled), labels

    def _score(self, predictions: Tensor) -> Tensor:
        truth, guess = (part.gather(1, self.val) for part in (self.labels, predictions))
        return replica_macro_f1(truth, guess, self.counted, self.num_classes)

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
        embeddings, joint = net._activate(net.first(self.inputs, self.stored), False)
        for layer in range(1, self.layers):
            buffer = net.get_buffer(f"clusters_{layer}")
            for slots, start in ((fresh, False), (due, True)):
                if slots:
                    runs = [self._run(slot) for slot in slots]
                    buffer[slots] = kmeans_replicas(
                        joint[slots],
                        [run.net.num_clusters for run in runs],
                        seeds=[run.seeds[layer] for run in runs],
                        start=buffer[slots] if start else None,
                    )
            self._renew(layer)
            raw = net._layer(layer, embeddings, joint, self.inputs, self.stored)
            embeddings, joint = net._activate(raw, False)

    def tell(self, run: UnifiedRun, history: History) -> None:
        """Pass it on."""
        run.tell(history)

    @torch.no_grad()
    def finish(self, slot: int, run: UnifiedRun, history: History) -> None:
        """Put the best weights and clusters into the run's own network."""
        for kept, one in zip(self.kept, [*run.net.parameters(), *run.net.buffers()], strict=True):
            one.copy_(kept[slot])
        self.runs[slot] = None
        run.net.finish(self.inputs)
        run.done(history)
