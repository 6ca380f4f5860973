"""Task: a graph and its training, validation and test nodes. Record: the result of one run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any
from warnings import warn

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data


HELD_OUT = 0.2
"""Share of the training nodes to validate on, where a graph has no validation nodes."""


def split_masks(
    graph: Data, labels: Tensor, seed: int, split: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Training, validation and test nodes of a graph, as `Task.from_graph` describes them."""
    labelled = labels >= 0
    if not labelled.any():
        raise ValueError("graph.y must hold labels; every node is unlabelled (-1).")
    train, val, test = (node_mask(graph, part, split) for part in ("train", "val", "test"))
    rest = labelled.clone()
    for mask in (train, val, test):
        rest &= True if mask is None else ~mask
    if train is None:
        if labelled.all():
            raise ValueError(
                "graph.train_mask must say which nodes to train on: every node has a label. Or "
                "split the graph: evengraph.splits.Natural()(graph, seed=0)."
            )
        train, rest = rest, torch.zeros_like(rest)
    train = train & labelled
    if val is None:
        warn(
            f"The graph has no val_mask: {HELD_OUT:.0%} of the training nodes are held out to "
            "validate on.",
            stacklevel=4,  # the line that calls fit
        )
        val = hold_out(labels, train, HELD_OUT, seed)
        train = train & ~val
    return train, val & labelled, rest if test is None else test & labelled


def scored_nodes(graph: Data) -> Tensor:
    """The test nodes of a graph; without `test_mask`, labelled nodes in no other mask."""
    train, val, test = (node_mask(graph, part) for part in ("train", "val", "test"))
    labelled = class_labels(graph) >= 0
    if test is not None:
        return test & labelled
    if train is None:  # all labelled nodes were for training
        return torch.zeros_like(labelled)
    return labelled & ~train if val is None else labelled & ~train & ~val


def class_labels(graph: Data) -> Tensor:
    """Labels as integers, (N,); -1 is unlabelled. A column of them, (N, 1), is flattened."""
    labels = graph.y
    if not isinstance(labels, Tensor):
        raise ValueError("graph.y must hold the labels; this graph has none.")
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels.squeeze(1)
    if labels.shape != (graph.num_nodes,):
        raise ValueError(
            f"graph.y must hold one label for each of the {graph.num_nodes} nodes, got shape "
            f"{tuple(labels.shape)}."
        )
    if labels.is_floating_point():
        raise ValueError(f"graph.y must hold classes as integers, got {labels.dtype}.")
    return labels.long()


def node_mask(graph: Data, part: str, split: int | None = None) -> Tensor | None:
    """The mask of train, val or test; None without one. `split` is a column of several splits."""
    name = f"{part}_mask"
    if (value := graph.get(name)) is None:
        return None
    mask = torch.as_tensor(value)
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError(f"graph.{name} must be a mask of {graph.num_nodes} nodes, not indices.")
    mask = mask.bool()
    if mask.dim() == 2 and mask.shape[1] != 1:
        count = mask.shape[1]
        if split is None:
            raise ValueError(
                f"graph.{name} holds {count} splits, one per column; choose one with "
                "Task.from_graph(graph, split=0)."
            )
        if not 0 <= split < count:
            raise ValueError(f"split must lie between 0 and {count - 1}, got {split}.")
        mask = mask[:, split]
    elif mask.dim() == 2:
        mask = mask.squeeze(1)
    if mask.shape != (graph.num_nodes,):
        raise ValueError(
            f"graph.{name} must be a mask of {graph.num_nodes} nodes, got shape "
            f"{tuple(mask.shape)}."
        )
    return mask


def hold_out(labels: Tensor, train: Tensor, share: float, seed: int) -> Tensor:
    """A mask of the same share of each class's training nodes; every class keeps one."""
    stream, drawn = random.Random(seed), torch.zeros_like(train)
    for label in range(int(labels.max()) + 1):
        nodes: list[int] = ((labels == label) & train).nonzero().flatten().tolist()
        stream.shuffle(nodes)
        drawn[nodes[: min(max(1, round(share * len(nodes))), len(nodes) - 1)]] = True
    return drawn


EDGE_PARTS = (
    *("relation_index", "relation_weight", "num_relations", "relation_names"),
    *("link_index", "num_links", "links_only", "of_rows"),
)
"""What a graph may hold about its edges and links, beside `edge_index` and weights; and which
features depend on their node alone."""


def bare_graph(graph: Data, **values: Any) -> Data:
    """Features and edges with weights and relations, without all else; and given values."""
    from torch_geometric.data import Data  # slow to import; not every command needs it

    parts = {"x": graph.x, "edge_index": graph.edge_index, "edge_weight": edge_weight(graph)}
    parts |= {name: graph[name] for name in EDGE_PARTS if name in graph}
    for name in ("x", "edge_weight"):  # the same tensor unless a gradient would flow to it
        if parts[name] is not None and parts[name].requires_grad:
            parts[name] = parts[name].detach()
    return Data(**{name: value for name, value in parts.items() if value is not None} | values)


def edge_weight(graph: Data) -> Tensor | None:
    """Weights of the edges, (E,): `edge_weight`, or `edge_attr` if it is one number per edge."""
    weight: Tensor | None = graph.get("edge_weight")
    other = graph.get("edge_attr")
    if weight is None and isinstance(other, Tensor) and other.is_floating_point():
        is_column = other.dim() == 1 or (other.dim() == 2 and other.shape[1] == 1)
        weight = other if is_column else None
    if isinstance(weight, Tensor) and weight.dim() == 2 and weight.shape[1] == 1:
        weight = weight.squeeze(1)
    return weight


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """Raise ValueError for an edge of a node that the graph does not have."""
    if edge_index.numel() and (edge_index.min() < 0 or edge_index.max() >= num_nodes):
        raise ValueError(f"edge_index must hold node ids from 0 to {num_nodes - 1}.")


def check_edge_weight(graph: Data) -> None:
    """Raise ValueError for weights that are no finite numbers from 0 on, one per edge."""
    weight, size = edge_weight(graph), graph.edge_index.shape[1]
    if weight is None:
        return
    name = "edge_weight" if graph.get("edge_weight") is not None else "edge_attr"
    rule = f"graph.{name} must hold a number from 0 on for each of the {size} edges"
    if not isinstance(weight, Tensor) or weight.shape != (size,):
        raise ValueError(f"{rule}, got shape {tuple(getattr(weight, 'shape', ()))}.")
    wrong = ~(torch.isfinite(weight) & (weight >= 0))
    if wrong.any():
        edge = int(wrong.nonzero()[0])
        hint = "" if name == "edge_weight" else " Delete it if it is no weight."
        raise ValueError(f"{rule}, got {float(weight[edge])} for edge {edge}.{hint}")


def keep_edges(graph: Data, keep: Tensor, relations: Tensor | None = None) -> Data:
    """A copy of the graph with some of its edges, (E,), and of its relations, (R,).

    By default relations between nodes that lose no edge are kept: nothing says which of several
    edges a relation belongs to.
    """
    result = copy(graph)
    result.edge_index = graph.edge_index[:, keep]
    for name in ("edge_weight", "edge_attr", "edge_time"):
        if isinstance(graph.get(name), Tensor):
            result[name] = graph[name][keep]
    if "relation_index" in graph:
        if relations is None:
            size, (_, node, other) = graph.num_nodes, graph.relation_index
            kept, dropped = (
                torch.cat([start * size + end, end * size + start])
                for start, end in (graph.edge_index[:, keep], graph.edge_index[:, ~keep])
            )
            keys = node * size + other
            relations = torch.isin(keys, kept) & ~torch.isin(keys, dropped)
        for name in ("relation_index", "relation_weight", "relation_time"):
            if isinstance(graph.get(name), Tensor):
                result[name] = graph[name][..., relations]
    return result


def count_relations(graph: Data) -> int:
    """Number of relations whose neighbours are averaged apart."""
    return int(graph.num_relations) if "relation_index" in graph else 0


def check_relations(graph: Data) -> None:
    """Raise ValueError for relations that are not given as `relation_index` and their number."""
    if "relation_index" not in graph:
        return
    index = graph.relation_index
    if index.dim() != 2 or index.shape[0] != 3 or index.is_floating_point():
        raise ValueError(
            "graph.relation_index must hold relation, node and neighbour as integers, shape (3, R)."
        )
    largest = int(index[0].max()) if index.numel() else -1
    if "num_relations" not in graph or graph.num_relations <= largest:
        raise ValueError(f"graph.num_relations must be above {largest}, the last relation.")


HIDDEN_LABEL = -1
"""Replaces labels that a method must not see."""


@dataclass(frozen=True, eq=False)
class Task:
    """A graph with labels and the nodes to train on, validate on and test on.

    Args:
        graph: Features `x`, edges `edge_index` and labels `y`; -1 is unlabelled.
        train: Nodes whose labels a method learns from.
        val: Nodes whose labels a method may use for selection, such as early stopping.
        test: Nodes whose labels are used by `evaluate` alone.
        num_classes: Number of classes, including those without nodes in a set.
        class_names: A display name for each class.
        past: The graph as methods may see it in training, if it has edges that came later; its
            nodes are those of `graph`.
        published: Whether the split is that of a published protocol, where validation labels
            select and are never learnt from.

    Shapes:
        graph.x: (N, F), graph.edge_index: (2, E), graph.y: (N,)
        train, val, test: bool, (N,)
    """

    graph: Data
    train: Tensor
    val: Tensor
    test: Tensor
    num_classes: int
    class_names: tuple[str, ...] = ()
    past: Data | None = None
    published: bool = False

    def __post_init__(self) -> None:
        num_nodes = self.graph.num_nodes
        if not num_nodes:
            raise ValueError("The graph has no nodes.")
        if self.graph.y is None or self.graph.y.shape != (num_nodes,):
            raise ValueError(f"graph.y must hold one label for each of the {num_nodes} nodes.")
        for name in ("train", "val", "test"):
            mask = getattr(self, name)
            if mask.device != self.graph.y.device:
                raise ValueError(f"{name} is on {mask.device}, the graph on {self.graph.y.device}.")
            if mask.dtype != torch.bool or mask.shape != (num_nodes,):
                raise ValueError(
                    f"{name} must be a bool mask of shape ({num_nodes},), "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}."
                )
        if (self.train & self.val | self.train & self.test | self.val & self.test).any():
            raise ValueError("train, val and test must not share nodes.")
        smallest, largest = int(self.graph.y.min()), int(self.graph.y.max())
        if smallest < HIDDEN_LABEL:
            raise ValueError(f"labels must be -1 for unlabelled or a class, got {smallest}.")
        if largest >= self.num_classes:
            raise ValueError(f"labels must be below num_classes={self.num_classes}, got {largest}.")
        if self.class_names and len(self.class_names) != self.num_classes:
            raise ValueError(
                f"class_names must hold {self.num_classes} names, got {len(self.class_names)}."
            )

    @classmethod
    def from_graph(cls, graph: Data, *, seed: int = 0, split: int | None = None) -> Task:
        """The task of a PyG graph with `train_mask`, `val_mask` and `test_mask`.

        Without `train_mask`, all labelled nodes are for training, provided that others have the
        label -1. Without `val_mask`, a fifth of each class's training nodes is held out to validate
        on, with a warning. Without `test_mask`, all other labelled nodes are for testing. Nodes
        without a label are in no set.

        Args:
            graph: Features, edges, labels and masks.
            seed: Decides which nodes are held out.
            split: Column of masks that hold several splits.
        """
        labels = class_labels(graph)
        train, val, test = split_masks(graph, labels, seed, split)
        if labels is not graph.y:
            graph = copy(graph)
            graph.y = labels
        names = tuple(map(str, graph.class_names)) if "class_names" in graph else ()
        return cls(graph, train, val, test, int(labels.max()) + 1, names)

    @cached_property
    def train_nodes(self) -> Tensor:
        """Training nodes, ascending, (n,); unlike a mask, indexing by them needs no GPU sync."""
        return self.train.nonzero().squeeze(1)

    @cached_property
    def val_nodes(self) -> Tensor:
        """Validation nodes, ascending."""
        return self.val.nonzero().squeeze(1)

    @cached_property
    def val_counts(self) -> tuple[int, ...]:
        """Validation nodes of each class, as numbers that need no GPU sync."""
        labels = self.graph.y[self.val]
        counts: list[int] = torch.bincount(labels[labels >= 0], minlength=self.num_classes).tolist()
        return tuple(counts)

    @cached_property
    def class_counts(self) -> Tensor:
        """Training nodes of each class, (C,)."""
        labels = self.graph.y[self.train]
        return torch.bincount(labels[labels >= 0], minlength=self.num_classes)

    def hide_test_labels(self) -> Task:
        """A task without labels outside train and validation, and without later edges."""
        labels = torch.where(self.train | self.val, self.graph.y, HIDDEN_LABEL)
        graph = bare_graph(self.graph if self.past is None else self.past, y=labels)
        hidden = replace(self, graph=graph, past=None)
        for name in ("train_nodes", "val_nodes", "class_counts", "val_counts"):
            getattr(hidden, name)  # each waits for a GPU: found before training, not in its epochs
        return hidden

    def to(self, device: torch.device | str) -> Task:
        device = torch.device(device)
        masks = {name: getattr(self, name).to(device) for name in ("train", "val", "test")}
        graph, past = (  # only one that stays where it is has to be cloned
            part and (part.clone() if part.y.device.type == device.type else copy(part)).to(device)
            for part in (self.graph, self.past)
        )
        return replace(self, graph=graph, past=past, **masks)


def folds(task: Task, number: int, generator: torch.Generator) -> list[Task]:
    """Tasks that each hold out another part of all labels of a task, and learn from the others.

    Every class is divided evenly; the only label of a class is always learnt from.
    """
    known = task.train | task.val
    labels = torch.where(known, task.graph.y, HIDDEN_LABEL).cpu()
    part = torch.full_like(labels, -1)
    for label in range(task.num_classes):
        nodes = (labels == label).nonzero().squeeze(1)
        if nodes.numel() > 1:
            order = nodes[torch.randperm(nodes.numel(), generator=generator)]
            part[order] = (torch.arange(order.numel()) + label) % number
    parts = [(part == index).to(known.device) for index in range(number)]
    return [replace(task, train=known & ~held, val=held) for held in parts if held.any()]


@dataclass(frozen=True, kw_only=True)
class Record:
    """The result of fitting one method to one task with one seed. Metrics are in percent."""

    seed: int  # of the split and of the fit
    metrics: dict[str, float]  # on the test nodes
    per_class: dict[str, list[float]]  # recall, F1 and support
    confusion_matrix: list[list[int]]  # on the test nodes; rows are true classes
    history: dict[str, list[float]]  # loss and validation score per epoch of the main stage
    validation: float  # score on the validation nodes, by which one of several fits is selected
    best_epoch: int  # whose weights were restored, in the main stage
    epochs: int  # of the main stage
    seconds: float  # duration of the fit
    interrupted: bool = False  # whether Ctrl-C ended the fit with its best weights so far
    stages: int = 1
    total_epochs: int = 0  # of all stages
    class_counts: list[int] | None = None  # training nodes
    together: int = 1  # about how many runs shared the device meanwhile
    settings: dict[str, Any] | None = None  # parameters, where several settings were tried
    calibration: dict[str, Any] | None = None  # the calibrator and its metrics
    criterion: str = "Macro-F1"  # what `validation` and the scores of `history` are
    summary: list[str] | None = None  # what the method says about what it did
    notes: list[str] | None = None  # what went otherwise than expected in the fit
    period: str | None = None  # first and last time of the test nodes, in a split by time
    decision: dict[str, Any] | None = None  # of two classes: threshold, and confusion there
    # of two classes: ends of the 95% interval of average precision, and the curve on the test nodes
    # as pairs of recall and precision
    interval: list[float] | None = None
    precision_recall: list[list[float]] | None = None
    resolved: dict[str, Any] | None = None  # values of parameters that were left to fitting

    @property
    def decided(self) -> list[list[int]]:
        """The confusion matrix, of two classes at the threshold."""
        matrix: list[list[int]] = (self.decision or {}).get("confusion", self.confusion_matrix)
        return matrix

    @property
    def all_metrics(self) -> dict[str, float]:
        return {**self.metrics, **(self.calibration or {}).get("metrics", {})}

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON can hold it, without the optional parts it lacks."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def mean_and_deviation(records: Sequence[Record]) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and sample standard deviation of every metric over runs; 0 for a single run."""
    names = records[0].metrics
    columns = {name: [record.metrics[name] for record in records] for name in names}
    mean = {name: fmean(values) for name, values in columns.items()}
    if len(records) < 2:
        return mean, dict.fromkeys(mean, 0.0)
    # stdev fails on NaN, which stands for a metric that is undefined on the test nodes
    std = {n: stdev(v) if math.isfinite(mean[n]) else math.nan for n, v in columns.items()}
    return mean, std
