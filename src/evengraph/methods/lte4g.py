"""LTE4G: experts by class size and degree, distilled into a head and a tail student."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, normalize
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.network import NetworkMethod
from evengraph.methods.bases.saving import pack, unpack
from evengraph.metrics.multiclass import macro_f1_score, validation_score
from evengraph.nn.networks import EdgeDecoder, GraphClassifier, Inputs, Reconstruction
from evengraph.ops.losses import focal_cross_entropy, inverse_class_weights
from evengraph.ops.sparse import from_scipy, row_entries, undirected_adjacency

RECONSTRUCTION_WEIGHT = 1e-6
EXPERT_PATIENCE = 299  # stops at the same epoch as the public code's 300
SIDES = {True: "student_of_head", False: "student_of_tail"}  # names in a model folder
BLOCK_ENTRIES = 2**24  # similarities in memory at a time
SIMILAR = 10  # similar nodes per labelled node
OTHER_SIDE = -1e6  # logit of a class that a node is not routed to: its probability is 0

# the nodes of an expert's set, its log-probabilities for them, and whether their degree is high
Teacher = tuple[Tensor, Tensor, bool]


@final
@dataclass(kw_only=True)
class LTE4G(NetworkMethod):
    """Train experts for head and tail classes at high and low degree, and distil them.

    1. A GCN is trained on all classes with a focal loss; its encoder is then frozen.
    2. Each class gets a prototype: the mean embedding of its labelled nodes and, if they are few,
       of likely unlabelled ones. The nearest prototype routes a node to the head or the tail.
    3. Labelled nodes are split by class (head, tail) and degree (high, low). Each of the four sets
       trains an expert; low-degree experts start from the weights of the high-degree ones.
    4. A head student and a tail student are trained on labels and distilled from their two experts,
       with weight shifting from the high-degree to the low-degree expert.

    Args:
        reconstruct: Also train the encoder to reconstruct edges, first alone, then jointly.
        class_weights: Weight classes by one over their size in stage 1.
        focal_gamma: Exponent of the focal loss in stage 1; 0 is cross-entropy.
        focal_alpha: Factor of the loss without class weights.
        head_tenths: Share of head classes, in tenths; of two class sizes, the larger is the head.
        high_degree: Minimum degree that is high, counting the self-loop.
        pretrain_epochs: Epochs of reconstruction alone.
        expert_epochs: Maximum epochs of an expert, within `max_epochs`; its patience is 300.
        student_epochs: Epochs of a student, within `max_epochs`.

    Cost:
        O(E h + nnz(X) h) per epoch of stage 1, as GCN, a few times that with `reconstruct`;
        O(n h^2) per later epoch for n labelled nodes; once O(N F) per one of a small class.

    Departs:
        As in the public code, the focal factor uses the mean loss instead of each node's;
        prototypes are filled only while the list is shorter than the number missing, skip the
        most similar node, and may hold a node twice or one labelled with another class;
        distillation is averaged over classes as well as nodes; and the degree of a side's only
        labelled node is high or low at random.
        Unlike there, a set without nodes has no expert (its loss is left out, and the low-degree
        expert starts from new weights), reconstruction samples the N^2 pairs (at most 131,072 edges
        and as many pairs), Adam is reset after pretraining, and frozen embeddings are propagated
        once. No settings are published for five minority classes: of twelve tried, validation
        selects one with 61.5 on Cora at 5% (70.2 is published, 66.1 is the best of the twelve).

    Reference:
        Yun, Kim, Yoon and Park, "LTE4G: Long-Tail Experts for Graph Neural Networks", CIKM 2022.
    """

    search_space = {"class_weights": (False, True), "reconstruct": (False, True)}
    tuned_params = frozenset(
        {"reconstruct", "class_weights", "focal_gamma", "focal_alpha", "head_tenths"}
    )
    limits = {
        "focal_gamma": 0,
        "focal_alpha": 0,
        "head_tenths": (1, 9),
        **dict.fromkeys(("high_degree", "pretrain_epochs", "expert_epochs", "student_epochs"), 0),
    }

    reconstruct: bool = False
    class_weights: bool = True
    focal_gamma: float = 1.0
    focal_alpha: float = 0.9
    head_tenths: int = 7
    high_degree: int = 6
    pretrain_epochs: int = 50
    expert_epochs: int = 1000
    student_epochs: int = 500

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Without `sound` of version 0.2.0, which avoided errors of the public code."""
        return {name: value for name, value in params.items() if name != "sound"}

    def _fit(self, task: Task) -> None:
        graph, nodes = task.graph, task.train_nodes
        inputs = self._inputs(graph)
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        neighbours = from_scipy(matrix, graph.x.device, torch.float32)
        # Stage 1: the encoder, frozen from then on
        reconstruction = Reconstruction(matrix, graph.x.device) if self.reconstruct else None
        self._train_encoder(task, inputs, reconstruction)
        with torch.no_grad():
            first = self.net_.encoder(*inputs)
            embeddings = self.net_.embed(first)  # Z
            propagated = inputs.propagation @ embeddings  # P Z, what every later classifier takes
            predicted = self.net_.classify(first, inputs.propagation).softmax(1)
        # Stage 2: a prototype per class, the mean of Z over labelled and likely nodes
        self.head_ = head_classes(task.class_counts, self.head_tenths)
        known = nodes, graph.y[nodes], prototype_size(task.class_counts)
        self.prototypes_ = class_prototypes(
            embeddings, predicted, graph.x.float(), neighbours, *known
        )
        # Stages 3 and 4, for the head and for the tail
        high = neighbours.crow_indices().diff() + 1 >= self.high_degree
        students = {
            side: self._train_side(task, propagated, classes, high)
            for side, classes in self._sides().items()
        }
        # After Ctrl-C the students are undertrained: predict with the network of stage 1.
        interrupted = any(history.interrupted for history in self.history_)
        self.students_ = {} if interrupted else students

    def _logits(self, graph: Data) -> Tensor:
        if not self.students_:
            return super()._logits(graph)
        inputs = self._inputs(graph)
        embeddings = self.net_.embed(self.net_.encoder(*inputs))
        propagated = inputs.propagation @ embeddings
        # a node is routed to the side of the prototype with the largest cosine similarity
        similarity = normalize(embeddings, dim=1) @ normalize(self.prototypes_, dim=1).t()
        to_head = self.head_[similarity.argmax(1)]
        logits: Tensor = embeddings.new_full((len(embeddings), self.head_.numel()), OTHER_SIDE)
        for side, classes in self._sides().items():
            routed = (to_head == side).nonzero()  # to the student of this side
            rows, student = propagated[routed.squeeze(1)], self.students_[side]
            logits[routed, classes] = student.classify_propagated(rows, dropout=False)
        return logits

    def _state(self) -> dict[str, Tensor]:
        state = super()._state() | {"head": self.head_, "prototypes": self.prototypes_}
        for side, student in self.students_.items():
            state |= pack(SIDES[side], student)
        return state

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        super()._load_state(state)
        self.head_, self.prototypes_ = state["head"], state["prototypes"]
        self.students_ = {}
        for side, classes in self._sides().items():
            if any(name.startswith(f"{SIDES[side]}.") for name in state):
                self.students_[side] = self._classifier(classes.numel(), self.device_)
                unpack(SIDES[side], self.students_[side], state)

    def _sides(self) -> dict[bool, Tensor]:
        """The head classes (True) and the tail classes (False), without an empty side."""
        sides = {side: (self.head_ == side).nonzero().squeeze(1) for side in (True, False)}
        return {side: classes for side, classes in sides.items() if classes.numel()}

    def _train_encoder(
        self, task: Task, inputs: Inputs, reconstruction: Reconstruction | None
    ) -> None:
        """Stage 1."""
        self.net_ = net = self._new_network()
        labels = task.graph.y[task.train_nodes]
        weights = inverse_class_weights(task.class_counts) if self.class_weights else None
        factor = 1.0 if self.class_weights else self.focal_alpha
        decoder = EdgeDecoder(self.hidden).to(task.graph.x.device)
        if reconstruction:
            self._pretrain(inputs, decoder, reconstruction, self.pretrain_epochs)

        def epoch() -> tuple[Tensor, Tensor]:
            first = net.encoder(*inputs)  # no dropout before it: both passes share it
            with torch.no_grad():
                score = validation_score(net.classify(first, inputs.propagation), task)
            embeddings = net.embed(first, dropout=True)
            logits = net.classifier(embeddings, inputs.propagation, dropout=True)[task.train_nodes]
            focal = self.focal_gamma, weights  # (1 - p)^gamma CE, p = exp(-CE)
            loss = factor * focal_cross_entropy(logits, labels, *focal, on_mean=True)
            if reconstruction:
                loss = loss + RECONSTRUCTION_WEIGHT * reconstruction(decoder, embeddings)
            return loss, score

        module = nn.ModuleList([net, decoder]) if reconstruction else net
        self._train(module, epoch, recordable=True)

    def _train_side(
        self, task: Task, propagated: Tensor, classes: Tensor, high: Tensor
    ) -> GraphClassifier:
        """Stages 3 and 4 for the head or the tail: two experts, then their student."""
        index = torch.full((task.num_classes + 1,), -1, device=classes.device)
        index[classes] = torch.arange(classes.numel(), device=classes.device)
        labels = index[task.graph.y]  # an unknown label, -1, reads the last entry: -1 again
        train, val = (
            _Nodes(propagated[mask], labels[mask], high[mask])
            for mask in (task.train & (labels >= 0), task.val & (labels >= 0))
        )
        if train.labels.numel() == 1:
            train = train._replace(high=torch.rand(1, device=classes.device) < 0.5)
        expert: GraphClassifier | None = None
        teachers: list[Teacher] = []
        for part in (True, False):
            nodes = train.of_degree(part)
            if nodes.labels.numel():
                expert = self._train_expert(nodes, val.of_degree(part), classes.numel(), expert)
                with torch.no_grad():
                    logits = expert.classify_propagated(nodes.x, dropout=False)
                teachers.append((train.high == part, log_softmax(logits, dim=1), part))
        return self._train_student(train, val, classes.numel(), teachers)

    def _train_expert(
        self, train: _Nodes, val: _Nodes, num_classes: int, start: GraphClassifier | None
    ) -> GraphClassifier:
        """Stage 3: plain cross-entropy on the nodes of one set."""
        net = self._classifier(num_classes, train.x.device)
        if start is not None:
            net.load_state_dict(start.state_dict())

        def epoch() -> tuple[Tensor, Tensor]:
            loss = cross_entropy(net.classify_propagated(train.x, dropout=True), train.labels)
            return loss, val.score(net, num_classes)

        limits = {"max_epochs": self.expert_epochs, "patience": EXPERT_PATIENCE}
        self._train(net, epoch, **limits, main=False, recordable=True)
        return net

    def _train_student(
        self, train: _Nodes, val: _Nodes, num_classes: int, teachers: list[Teacher]
    ) -> GraphClassifier:
        """Stage 4: labels, and each expert's predictions for the nodes of its set."""
        net = self._classifier(num_classes, train.x.device)
        numbers = count()

        def epoch() -> tuple[Tensor, Tensor]:
            logits = net.classify_propagated(train.x, dropout=True)
            loss = cross_entropy(logits, train.labels)
            progress = next(numbers) / max(self.student_epochs, 1)
            high_weight = math.cos(math.pi / 2 * progress)  # from one to zero
            # CE + a KL(high-degree expert || student) + (1 - a) KL(low-degree expert || student)
            for mask, targets, high in teachers:
                predicted = log_softmax(logits[mask], dim=1)
                divergence = kl_div(predicted, targets, reduction="sum", log_target=True)
                weight = high_weight if high else 1 - high_weight
                loss = loss + weight * divergence / predicted.numel()
            return loss, val.score(net, num_classes)

        length = self.student_epochs
        self._train(net, epoch, max_epochs=length, patience=length, main=False)
        return net

    def _classifier(self, num_classes: int, device: torch.device) -> GraphClassifier:
        return GraphClassifier(self.hidden, self.hidden, num_classes, self.dropout).to(device)


class _Nodes(NamedTuple):
    """Some nodes of one side."""

    x: Tensor  # propagated embeddings, (n, h)
    labels: Tensor  # indices into the side's classes, (n,)
    high: Tensor  # whether the degree is high, bool, (n,)

    def of_degree(self, high: bool) -> _Nodes:
        return _Nodes(*(part[self.high == high] for part in self))

    def score(self, net: GraphClassifier, num_classes: int) -> Tensor:
        """Macro-F1 of a classifier; 0 without nodes, which selects the last epoch."""
        if not self.labels.numel():
            return self.x.new_zeros(())
        with torch.no_grad():
            predictions = net.classify_propagated(self.x, dropout=False).argmax(1)
        return macro_f1_score(self.labels, predictions, num_classes)


def head_classes(class_counts: Tensor, tenths: int) -> Tensor:
    """Which classes are head classes, bool, (C,).

    With two sizes, the larger ones. Otherwise about `tenths` of ten classes: of the cuts just above
    and below the count at that rank, the one whose ratio of head to tail classes is closer; ties
    are broken at random.
    """
    if class_counts.unique().numel() <= 2:
        return class_counts == class_counts.max()
    ordered = class_counts.sort(descending=True).values
    threshold = ordered[class_counts.numel() * tenths // 10]
    cuts = [class_counts >= threshold, class_counts > threshold]
    cuts = [cut for cut in cuts if cut.any() and not cut.all()]
    ratios = [int(cut.sum()) / int((~cut).sum()) for cut in cuts]
    gaps = [abs(ratio - tenths / (10 - tenths)) for ratio in ratios]
    best = [cut for cut, gap in zip(cuts, gaps, strict=True) if math.isclose(gap, min(gaps))]
    return best[int(torch.randint(len(best), ()))]


def prototype_size(class_counts: Tensor) -> int:
    """Nodes per prototype: the larger of two class sizes, or the mean of more than two."""
    if class_counts.unique().numel() <= 2:
        return int(class_counts.max())
    return int(class_counts.double().mean())


def class_prototypes(
    embeddings: Tensor,
    probabilities: Tensor,
    x: Tensor,
    adjacency: Tensor,
    nodes: Tensor,
    labels: Tensor,
    target: int,
) -> Tensor:
    """The mean embedding of each class, (C, h), with unlabelled nodes added to small classes.

    A class with fewer labelled nodes than the target is filled up with unlabelled neighbours of
    its labelled nodes, the most probable first; if those are too few, with nodes whose features
    resemble a labelled one's.
    As in LTE4G's public code, similar nodes are added only while the list, labelled nodes included,
    is shorter than what was missing, the most similar one of each node is left out, and those
    labelled for another class or already in the list are not.
    """
    means = []
    for label in range(probabilities.shape[1]):
        labelled = nodes[labels == label]
        members, missing = labelled, target - labelled.numel()
        if missing > 0:
            likely = probabilities[:, label]
            _, positions = row_entries(adjacency, labelled)
            near = adjacency.col_indices()[positions].long().unique()
            near = near[~torch.isin(near, labelled)]
            members = torch.cat([labelled, _likeliest(near, likely, missing)])
            wanted = missing - members.numel()
            if wanted > 0:
                alike = similar_nodes(x, adjacency, labelled)
                members = torch.cat([members, _likeliest(alike, likely, wanted)])
        means.append(embeddings[members].mean(0))
    return torch.stack(means)


def _likeliest(nodes: Tensor, likely: Tensor, count: int) -> Tensor:
    """The most probable of given nodes."""
    order = torch.argsort(likely[nodes], descending=True, stable=True)
    return nodes[order[:count]]


def similar_nodes(x: Tensor, adjacency: Tensor, nodes: Tensor) -> Tensor:
    """Nodes with features similar to those of given nodes, except themselves and neighbours."""
    # for each node the best ten by cosine similarity, after the very best; ascending
    length = x.norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    similar = []
    for block in nodes.split(max(BLOCK_ENTRIES // x.shape[0], 1)):
        likeness = (x[block] / length[block].unsqueeze(1)) @ x.t() / length  # (block, N)
        owner, positions = row_entries(adjacency, block)
        likeness[owner, adjacency.col_indices()[positions].long()] = -torch.inf
        likeness[torch.arange(block.numel(), device=x.device), block] = -torch.inf
        best, indices = likeness.topk(min(1 + SIMILAR, x.shape[0]), dim=1)
        similar.append(indices[:, 1:][best[:, 1:].isfinite()])
    return torch.cat(similar).unique() if similar else nodes
