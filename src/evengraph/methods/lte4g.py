"""LTE4G: experts for head and tail classes of high and low degree, distilled into two students."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, normalize
from torch_geometric.data import Data

from evengraph.core.task import Task
from evengraph.methods.bases.model_folder import pack, unpack
from evengraph.methods.bases.network import NetworkMethod
from evengraph.metrics import macro_f1_score, validation_score
from evengraph.nn import EdgeDecoder, GraphClassifier, Inputs, Reconstruction
from evengraph.ops import (
    class_prototypes,
    focal_cross_entropy,
    inverse_class_weights,
    undirected_adjacency,
)
from evengraph.ops.sparse import from_scipy

RECONSTRUCTION_WEIGHT = 1e-6
EXPERT_PATIENCE = 299  # the public code stops when 300 epochs have passed, we when they are over
SIDES = {True: "student_of_head", False: "student_of_tail"}  # in the file of a saved model
OTHER_SIDE = -1e6  # logit of a class that a node is not routed to: no probability is left for it


@final
@dataclass(kw_only=True)
class LTE4G(NetworkMethod):
    """Train experts for frequent and rare classes, well and badly connected nodes; then join them.

    1. A GCN learns all classes with a focal loss; its encoder is then frozen.
    2. Each class gets a prototype, the mean embedding of its labelled nodes and, where those are
       few, of likely unlabelled ones. The nearest prototype tells whether a node is one for the
       head classes or for the tail.
    3. Labelled nodes are split by class (head, tail) and by degree (high, low). Each of the four
       sets trains an expert, low degree starting from what high degree learnt.
    4. A student for the head classes and one for the tail learn from the labels and from their two
       experts, at first more from that of high degree, later more from that of low degree.

    Args:
        reconstruct: Let the encoder also learn the graph's edges, first alone and then along with
            the classes.
        class_weights: Weigh classes by one over their size in stage 1.
        focal_gamma: How much less well-learnt nodes count in stage 1; 0 is cross-entropy.
        focal_alpha: Factor of the loss without class weights.
        head_tenths: Share of the classes that are head classes, in tenths, where class sizes are
            graded; where there are two sizes, the larger is the head.
        high_degree: Least degree that is high, the node itself counted.
        pretrain_epochs: Epochs of reconstruction alone.
        expert_epochs: Most epochs of an expert, `max_epochs` permitting; its patience is 300.
        student_epochs: Epochs of a student, `max_epochs` permitting.
        sound: Do without errors of the public code, listed below.

    Cost:
        O(E h + nnz(X) h) per epoch of stage 1, as GCN, a few times that with `reconstruct`; later
        epochs O(n h^2) for n labelled nodes, as embeddings no longer change; once O(N F) for each
        labelled node of a small class.

    Departs:
        As in the public code: the focal factor is taken from the mean loss instead of each node's;
        prototypes are filled only while the list is shorter than what was missing, leave out the
        most similar node of each and may hold nodes labelled for another class, or one twice;
        distillation is averaged over classes as well as nodes;
        a side with one labelled node calls its degree high or low by a coin. `sound` fixes these.
        Unlike there, a set without nodes has no expert (its loss is left out, and a low-degree
        expert then starts afresh), the loss on all N^2 pairs takes random ones, of which and of the
        edges at most 131,072, Adam starts afresh after the first epochs of reconstruction, and in
        stages 3 and 4 the propagation of the frozen embeddings is done once. With five minority
        classes no settings are published; of twelve, validation picks some that give 61.5 on Cora
        at 5%, where 70.2 is published and the best of the twelve gives 66.1.

    Reference:
        Yun, Kim, Yoon and Park, "LTE4G: Long-Tail Experts for Graph Neural Networks", CIKM 2022.
    """

    title = "LTE4G"
    search_space = {"class_weights": (False, True), "reconstruct": (False, True)}
    tuned_params = frozenset(
        {"reconstruct", "class_weights", "focal_gamma", "focal_alpha", "head_tenths"}
    )
    limits = {
        "focal_gamma": 0,
        "focal_alpha": 0,
        "head_tenths": 1,
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
    sound: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_tenths > 9:
            raise ValueError(f"head_tenths must be at most 9, got {self.head_tenths}.")

    def _fit(self, task: Task) -> None:
        graph = task.graph
        matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
        inputs = self._inputs(graph)
        reconstruction = Reconstruction(matrix, graph.x.device) if self.reconstruct else None
        self._train_encoder(task, inputs, reconstruction)
        neighbours = from_scipy(matrix, graph.x.device, torch.float32)
        self.head_ = head_classes(task.class_counts, self.head_tenths)
        with torch.no_grad():
            first = self.net_.encoder(*inputs)
            embeddings = self.net_.embed(first)
            propagated = inputs.propagation @ embeddings
            predicted = self.net_.classify(first, inputs.propagation).softmax(1)
        nodes = task.train_nodes
        self.prototypes_ = class_prototypes(
            embeddings,
            predicted,
            graph.x.float(),
            neighbours,
            nodes,
            graph.y[nodes],
            prototype_size(task.class_counts),
            sound=self.sound,
        )
        high = neighbours.crow_indices().diff() + 1 >= self.high_degree
        students = {
            side: self._train_side(task, propagated, classes, high)
            for side, classes in self._sides().items()
        }
        # Cut short, the students have not learnt enough: what stage 1 learnt is the best there is.
        cut_short = any(history.interrupted for history in self.history_)
        self.students_ = {} if cut_short else students

    def _logits(self, graph: Data) -> Tensor:
        if not self.students_:
            return super()._logits(graph)
        inputs = self._inputs(graph)
        embeddings = self.net_.embed(self.net_.encoder(*inputs))
        propagated = inputs.propagation @ embeddings
        likeness = normalize(embeddings, dim=1) @ normalize(self.prototypes_, dim=1).t()
        to_head = self.head_[likeness.argmax(1)]
        logits: Tensor = embeddings.new_full((graph.num_nodes, self.head_.numel()), OTHER_SIDE)
        for side, classes in self._sides().items():
            routed = (to_head == side).nonzero()
            student = self.students_[side]
            answers = student.classify_propagated(propagated[routed.squeeze(1)], dropout=False)
            logits[routed, classes] = answers
        return logits

    def _state(self) -> dict[str, Tensor]:
        kept = super()._state() | {"head": self.head_, "prototypes": self.prototypes_}
        for side, student in self.students_.items():
            kept |= pack(SIDES[side], student)
        return kept

    def _load_state(self, kept: Mapping[str, Tensor]) -> None:
        super()._load_state(kept)
        self.head_, self.prototypes_ = kept["head"], kept["prototypes"]
        self.students_ = {}
        for side, classes in self._sides().items():
            if any(name.startswith(f"{SIDES[side]}.") for name in kept):
                student = self._classifier(classes.numel(), self.device_)
                unpack(SIDES[side], student, kept)
                self.students_[side] = student

    def _sides(self) -> dict[bool, Tensor]:
        """The classes of the head and of the tail, where there are any."""
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
            loss = factor * focal_cross_entropy(
                logits, labels, self.focal_gamma, weights, on_mean=not self.sound
            )
            if reconstruction:
                loss = loss + RECONSTRUCTION_WEIGHT * reconstruction(decoder, embeddings)
            return loss, score

        module = nn.ModuleList([net, decoder]) if reconstruction else net
        self._train(module, epoch, recordable=True)

    def _train_side(
        self, task: Task, propagated: Tensor, classes: Tensor, high: Tensor
    ) -> GraphClassifier:
        """Stages 3 and 4 for the head or the tail: two experts, then their student."""
        place = torch.full((task.num_classes + 1,), -1, device=classes.device)
        place[classes] = torch.arange(classes.numel(), device=classes.device)
        labels = place[task.graph.y]  # -1, an unknown label, reads the last entry: -1 again
        learn, choose = (
            _Nodes(propagated[mask], labels[mask], high[mask])
            for mask in (task.train & (labels >= 0), task.val & (labels >= 0))
        )
        if learn.labels.numel() == 1 and not self.sound:
            learn = learn._replace(high=torch.rand(1, device=classes.device) < 0.5)
        expert: GraphClassifier | None = None
        lessons: list[Lesson] = []
        for part in (True, False):
            pupils = learn.of_degree(part)
            if pupils.labels.numel():
                expert = self._train_expert(pupils, choose.of_degree(part), classes.numel(), expert)
                with torch.no_grad():
                    answers = expert.classify_propagated(pupils.x, dropout=False)
                lessons.append(Lesson(learn.high == part, log_softmax(answers, dim=1), part))
        return self._train_student(learn, choose, classes.numel(), lessons)

    def _train_expert(
        self, learn: _Nodes, choose: _Nodes, num_classes: int, start: GraphClassifier | None
    ) -> GraphClassifier:
        """Stage 3: plain cross-entropy on a set's own nodes."""
        net = self._classifier(num_classes, learn.x.device)
        if start is not None:
            net.load_state_dict(start.state_dict())

        def epoch() -> tuple[Tensor, Tensor]:
            loss = cross_entropy(net.classify_propagated(learn.x, dropout=True), learn.labels)
            return loss, choose.score(net, num_classes)

        limits = {"max_epochs": self.expert_epochs, "patience": EXPERT_PATIENCE}
        self._train(net, epoch, **limits, main=False, recordable=True)
        return net

    def _train_student(
        self, learn: _Nodes, choose: _Nodes, num_classes: int, lessons: list[Lesson]
    ) -> GraphClassifier:
        """Stage 4: labels, and the experts' answers for their own nodes."""
        net = self._classifier(num_classes, learn.x.device)
        numbers = count()

        def epoch() -> tuple[Tensor, Tensor]:
            logits = net.classify_propagated(learn.x, dropout=True)
            loss = cross_entropy(logits, learn.labels)
            progress = next(numbers) / max(self.student_epochs, 1)
            of_high = math.cos(math.pi / 2 * progress)  # from one to zero
            for lesson in lessons:
                heard = log_softmax(logits[lesson.pupils], dim=1)
                missed = kl_div(heard, lesson.answers, reduction="sum", log_target=True)
                shared_by = heard.shape[0] if self.sound else heard.numel()
                loss = loss + (of_high if lesson.high else 1 - of_high) * missed / shared_by
            return loss, choose.score(net, num_classes)

        length = self.student_epochs
        self._train(net, epoch, max_epochs=length, patience=length, main=False)
        return net

    def _classifier(self, num_classes: int, device: torch.device) -> GraphClassifier:
        return GraphClassifier(self.hidden, self.hidden, num_classes, self.dropout).to(device)


class Lesson(NamedTuple):
    """What an expert has to say.

    Shapes:
        pupils: bool, (n,), which of the side's labelled nodes are its own
        answers: (of those, classes of the side), log-probabilities
    """

    pupils: Tensor
    answers: Tensor
    high: bool


class _Nodes(NamedTuple):
    """Some nodes of one side.

    Shapes:
        x: (n, h), propagated embeddings
        labels: (n,), places in the list of the side's classes
        high: bool, (n,), whether the degree is high
    """

    x: Tensor
    labels: Tensor
    high: Tensor

    def of_degree(self, high: bool) -> _Nodes:
        """Those of high or of low degree."""
        return _Nodes(*(part[self.high == high] for part in self))

    def score(self, net: GraphClassifier, num_classes: int) -> Tensor:
        """Macro-F1 of a classifier; without nodes 0, so that of all epochs the last is kept."""
        if not self.labels.numel():
            return self.x.new_zeros(())
        with torch.no_grad():
            predictions = net.classify_propagated(self.x, dropout=False).argmax(1)
        return macro_f1_score(self.labels, predictions, num_classes)


def head_classes(class_counts: Tensor, tenths: int) -> Tensor:
    """Which classes are head classes, bool, (C,).

    Of two sizes, the larger. Of graded sizes, about `tenths` of ten classes: the count at that
    place in descending order is the threshold, and of the cuts above and below it the one is
    taken whose ratio of head to tail classes is nearer; a coin decides when both are as near.
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
    """Nodes wanted for a prototype: the larger of two class sizes, or the mean of graded ones."""
    if class_counts.unique().numel() <= 2:
        return int(class_counts.max())
    return int(class_counts.double().mean())
