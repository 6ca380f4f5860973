"""GraphENS: new rare nodes with mixed features and mixed neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, log_softmax
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.margin import WARMUP, MarginMethod
from evengraph.metrics import validation_score
from evengraph.nn import PYG_CONVS, Backbone
from evengraph.ops import (
    AttachedGraph,
    Sparse,
    propagation_matrix,
    sample_neighbours,
    sparsify,
    undirected_adjacency,
)
from evengraph.ops.pairs import Pairs, draw_pairs
from evengraph.ops.sparse import from_scipy
from evengraph.ops.virtual import VirtualNodes


@final
@dataclass(kw_only=True)
class GraphENS(MarginMethod):
    """Fill rare classes up with whole ego networks: mixed features, mixed neighbourhoods.

    In every epoch each class gets new nodes until it is as large as the largest. A new node mixes
    the features of a labelled node of its class, the source, with those of any labelled node, the
    target; what the loss is most sensitive to in the target is taken from the source, so that
    the target's class does not leak in. Its neighbours are drawn from those of both, the more
    from the source the more differently the two neighbourhoods are predicted. New nodes listen to
    known ones and are never heard by them. `margin="tam"` is TAM upon it, for new nodes, too;
    `links="BAT1"` is BAT with it.

    Args:
        layers: Graph convolutions.
        hidden: Width of each.
        dropout: Share of activations dropped before the linear layer.
        warmup: Last of the epochs, counted from 0, in which new nodes copy the neighbours of their
            source.
        temperature: Of the predictions that neighbourhoods are compared by.
        masked: Share of the features that are drawn by the target's saliency; of those, a part
            that grows with the divergence is taken from the source.
        backbone: Kind of the convolutions: `gcn` (with means), `sage` (GraphSAGE with means: a
            node's own features have weights of their own) or `gat` (attention, in eight heads).
        links: `BAT0` or `BAT1`: the graph itself gets labelled virtual nodes of classes, linked in
            every epoch to nodes at risk, as that variant of BAT does. New nodes are neither mixed
            of virtual ones nor linked to them. `none`: no virtual nodes.

    Cost:
        O(E h + nnz(X) h) per epoch, and O(M (F + degree)) for the M new nodes; the original's N x N
        law of neighbours is never built.

    Departs:
        Neighbours are drawn from the two neighbourhoods alone; the original gives every other node
        a chance of 1e-12. The paper's own settings are those of another protocol, where the linear
        layer does not decay; here training and selection are those of the comparison. Its row
        in that comparison, mostly below GCN, was published without a configuration; the defaults
        here score above it in every setting, by 2 to 25 points (docs/results/table1.md). If every
        class has one labelled node, nothing is added, where the original divides by zero.

    Reference:
        Park, Song and Yang, "GraphENS: Neighbor-Aware Ego Network Synthesis for Class-Imbalanced
        Node Classification", ICLR 2022.
    """

    title = "GraphENS"
    search_space = {"masked": (0.01, 0.05), "temperature": (1.0, 2.0), "links": ("none", "BAT1")}
    tuned_params = frozenset({"layers", "hidden", "temperature", "masked"})
    limits = {
        "layers": 1,
        "hidden": 1,
        "warmup": 0,
        "dropout": "fraction",
        "masked": "fraction",
        "temperature": "positive",
    }

    layers: int = 2
    hidden: int = 256
    dropout: float = 0.5
    warmup: int = 1
    temperature: float = 1.0
    masked: float = 0.01
    backbone: Backbone = "gcn"
    links: Literal["none", "BAT0", "BAT1"] = "none"

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        labels, x = graph.y[nodes], graph.x.float()[nodes]
        inputs, propagation = self._inputs(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        neighbours = from_scipy(matrix, x.device, torch.float32)
        around = propagation.rows(nodes)  # means over the neighbourhoods of labelled nodes
        virtual = None
        if self.links != "none":
            sizes = task.class_counts
            virtual = VirtualNodes(matrix, inputs, nodes, labels, sizes, self.links)
        self.net_ = net = self._new_network()
        last = _Last(nodes)

        def epoch() -> tuple[Tensor, Tensor]:
            pairs = draw_pairs(labels, task.class_counts)
            divergence = self._divergence(last, around, pairs)
            new = self._mix(x, pairs, divergence, last.saliency)
            ends, starts = self._neighbours(neighbours, nodes, pairs, divergence)
            linked: Sparse | AttachedGraph = propagation
            means, clean = new[:0], None
            if virtual is not None:
                with torch.no_grad():
                    clean = net(inputs, propagation)
                linked, means = virtual.link(clean)
            ones, weights = x.new_ones(linked.shape[0]), x.new_ones(starts.numel())
            count = pairs.labels.numel()
            attached = AttachedGraph(
                linked, ones, starts, ends, weights, count, both_ways=False, loop=1.0
            )
            first = torch.cat([net.project(part) for part in (inputs, means, new)])
            embeddings = net.embed(first, attached)
            with torch.no_grad():
                if clean is None:  # new nodes are not heard: this is the plain graph's answer
                    clean = net.linear(embeddings[: graph.num_nodes])
                score = validation_score(clean, task)
            logits = net.linear(dropout(embeddings, self.dropout))
            known, added = logits.tensor_split([graph.num_nodes])
            last.keep(known, first, net.first.weight)
            classes = torch.arange(means.shape[0], device=x.device)  # of virtual nodes, if any
            all_labels = torch.cat([labels, classes, pairs.labels])
            rows = torch.cat([known[nodes], added])
            if self.margin == "tam" and last.epochs > WARMUP:
                new_places = torch.arange(added.shape[0], device=x.device)
                places = torch.cat([nodes, graph.num_nodes + new_places])
                soft = self._soft_labels(logits, places, all_labels, task.class_counts)
                rows = rows + self._adjusted((attached @ soft)[places], all_labels)
            return cross_entropy(rows, all_labels), score

        self._train(net, epoch)

    def _logits(self, graph: Data) -> Tensor:
        logits: Tensor = self.net_(*self._inputs(graph))
        return logits

    def _build_network(self) -> nn.Module:
        widths = self.num_features_, self.hidden, self.num_classes_
        return _Network(*widths, self.layers, self.backbone)

    def _inputs(self, graph: Data) -> tuple[Tensor | Sparse, Sparse]:
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        return sparsify(graph.x.float()), propagation_matrix(matrix, graph.x.device, how="row")

    def _divergence(self, last: _Last, around: Sparse, pairs: Pairs) -> Tensor | None:
        """How differently the last epoch saw the two neighbourhoods, (M,); None in warm-up.

        The Kullback-Leibler divergence of the mean prediction around the target from that around
        the source.
        """
        if last.logits is None or last.epochs <= self.warmup:
            return None
        predicted = log_softmax((around @ last.logits) / self.temperature, dim=1)
        source, target = predicted[pairs.sources], predicted[pairs.targets]
        return (source.exp() * (source - target)).sum(1).clamp(min=0)

    def _mix(
        self, x: Tensor, pairs: Pairs, divergence: Tensor | None, saliency: Tensor | None
    ) -> Tensor:
        """Features of the new nodes, (M, F)."""
        source, target = x[pairs.sources], x[pairs.targets]
        share = pairs.shares.unsqueeze(1)  # of the source, (M, 1)
        drawn = int(self.masked * x.shape[1])
        if divergence is not None and saliency is not None and divergence.numel() and drawn:
            coordinates = torch.multinomial(saliency[pairs.targets], drawn)  # (M, drawn)
            taken = (drawn * (divergence / 3).sigmoid()).long().clamp(min=1).unsqueeze(1)
            whole_share = torch.arange(drawn, device=x.device) < taken
            chosen = torch.where(whole_share, 1.0, share)
            share = share.expand_as(source).scatter(1, coordinates, chosen)
        return share * source + (1 - share) * target

    def _neighbours(
        self, adjacency: Tensor, nodes: Tensor, pairs: Pairs, divergence: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The new node and the known one of each new edge."""
        sources, targets = nodes[pairs.sources], nodes[pairs.targets]
        degrees = adjacency.crow_indices().diff().long()
        if divergence is None:  # the source's neighbours, all of them
            alone = torch.ones_like(pairs.shares)
            return sample_neighbours(adjacency, sources, targets, alone, degrees[sources])
        somebody = torch.randint(degrees.numel(), sources.shape, device=nodes.device)
        wanted = torch.minimum(degrees[somebody], degrees[sources])
        return sample_neighbours(adjacency, sources, targets, divergence.sigmoid(), wanted)


class _Last:
    """What the last epoch leaves to the next: its logits, and what its loss was sensitive to."""

    def __init__(self, nodes: Tensor) -> None:
        self.nodes = nodes
        self.epochs = 0
        self.logits: Tensor | None = None
        self.saliency: Tensor | None = None

    def keep(self, logits: Tensor, projected: Tensor, weight: Tensor) -> None:
        """Remember the logits, and the saliency as soon as gradients flow.

        The loss depends on a node's features through their projection x W alone, so the gradient
        with regard to them is that of the projection times W^T; only labelled rows are needed.
        """
        self.epochs += 1
        self.logits = logits.detach()

        def on_gradient(gradient: Tensor) -> None:
            sensitive = (gradient[self.nodes] @ weight.detach().t()).abs() + 1e-10
            self.saliency = sensitive / sensitive.sum(1, keepdim=True)

        projected.register_hook(on_gradient)


class _Network(nn.Module):
    """Convolutions with ReLU after each, and a linear layer."""

    def __init__(
        self, num_features: int, hidden: int, num_classes: int, layers: int, backbone: Backbone
    ) -> None:
        super().__init__()
        conv = PYG_CONVS[backbone]
        self.first: Any = conv(num_features, hidden)
        self.others = nn.ModuleList(conv(hidden, hidden) for _ in range(layers - 1))
        self.linear = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor | Sparse, propagation: Sparse) -> Tensor:
        """Logits of all nodes, without dropout."""
        logits: Tensor = self.linear(self.embed(self.project(x), propagation))
        return logits

    def project(self, x: Tensor | Sparse) -> Tensor:
        """The first layer's product with the features."""
        projected: Tensor = self.first.project(x)
        return projected

    def embed(self, projected: Tensor, propagation: Sparse | AttachedGraph) -> Tensor:
        """The rest of the first layer, and all that follow."""
        hidden: Tensor = self.first.propagate(projected, propagation).relu()
        for conv in self.others:
            hidden = conv(hidden, propagation).relu()
        return hidden
