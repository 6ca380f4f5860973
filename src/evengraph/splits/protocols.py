"""Split protocols: those of the paper and of others, and those that keep the class sizes.

First what they share: the interface, drawing nodes of a class, checks, making the task.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError
from evengraph.core.task import Task, hold_out, keep_edges, node_mask
from evengraph.metrics.binary import positive_class

Nodes = list[int]
ALL = "train, validation and test"


class SplitProtocol(Protocol):
    """Turns a graph and a seed into a task; the same seed gives the same task."""

    def __call__(self, graph: Data, *, seed: int) -> Task: ...


def count_classes(graph: Data) -> int:
    if graph.y is None:
        raise ValueError("graph.y must hold the labels; this graph has none.")
    if not (graph.y >= 0).any():
        raise ArgumentError("No node has a label.", argument="label")
    return int(graph.y.max()) + 1


def class_nodes(graph: Data, label: int, among: Tensor | None = None) -> Nodes:
    """Nodes of a class, ascending, within a mask if there is one."""
    mask = graph.y == label
    nodes: Nodes = (mask if among is None else mask & among).nonzero().flatten().tolist()
    return nodes


def shuffled_nodes(
    graph: Data,
    label: int,
    stream: random.Random,
    among: Tensor | None = None,
    *,
    required: int = 0,
    purpose: str = "",
) -> Nodes:
    """Nodes of a class in random order, within a mask if there is one; an error for too few."""
    nodes = class_nodes(graph, label, among)
    stream.shuffle(nodes)
    check_class_size(graph, label, nodes, required, purpose)
    return nodes


def make_task(
    graph: Data, train: Tensor | Nodes, val: Tensor | Nodes, test: Tensor | Nodes
) -> Task:
    """A task from masks or lists of nodes."""
    masks = (p if isinstance(p, Tensor) else mask_of(p, graph) for p in (train, val, test))
    train, val, test = masks
    return Task(graph, train, val, test, count_classes(graph), _class_names(graph))


def join_classes(graph: Data, parts: Iterable[tuple[Nodes, Nodes, Nodes]]) -> Task:
    """A task from the training, validation and test nodes of each class."""
    train, val, test = (list(chain.from_iterable(nodes)) for nodes in zip(*parts, strict=True))
    return make_task(graph, train, val, test)


def mask_of(nodes: Sequence[int], graph: Data) -> Tensor:
    """A bool mask that is true at these nodes, (N,)."""
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.y.device)
    mask[torch.as_tensor(nodes, dtype=torch.long, device=mask.device)] = True
    return mask


def relabel(graph: Data, order: Sequence[int]) -> Data:
    """A copy of the graph in which class `order[i]` has label i, with class names in that order."""
    new_label = torch.full((len(order) + 1,), -1, device=graph.y.device)
    new_label[list(order)] = torch.arange(len(order), device=graph.y.device)
    copy = graph.clone("y")
    copy.y = new_label[graph.y]  # -1, unlabelled, reads the last entry and stays -1
    if names := _class_names(graph):
        copy.class_names = [names[old] for old in order]
    return copy


def _class_names(graph: Data) -> tuple[str, ...]:
    return tuple(graph.class_names) if "class_names" in graph else ()


def display_name(graph: Data, label: int) -> str:
    """A class in messages: its name if it has one, else its label."""
    names = _class_names(graph)
    return repr(str(names[label])) if label < len(names) else str(label)


def check_class_size(
    graph: Data, label: int, nodes: Sequence[int], required: int, purpose: str
) -> None:
    """Raise an error if a class has too few nodes for a protocol."""
    if len(nodes) < required:
        count = "1 labelled node" if len(nodes) == 1 else f"{len(nodes)} labelled nodes"
        raise ValueError(
            f"Class {display_name(graph, label)} has {count} for {purpose}, {required} are needed; "
            "label more, leave the class out (empty its label cells), or choose another split "
            "protocol."
        )


def check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")


def check_shares(**shares: float) -> None:
    """Shares must lie between 0 and 1 and leave some nodes for the test."""
    for name, share in shares.items():
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}.")
    if (total := sum(shares.values())) >= 1:
        names = " + ".join(shares)
        raise ValueError(f"{names} must be below 1 to leave test nodes, got {total:g}.")


@dataclass(frozen=True, kw_only=True)
class Step:
    """The paper's main protocol.

    Classes are relabelled by size, largest first. Each of the last `minority` classes gets
    `ratio` times the labels of the others; validation and test are balanced.

    Args:
        minority: Number of minority classes.
        ratio: Labelled nodes of a minority class over those of a majority class.
        train_per_class: Labelled nodes of a majority class.
        val_per_class: Validation nodes of each class.
        test_per_class: Test nodes of each class.

    Reference:
        Zhao, Zhang and Wang, "GraphSMOTE", WSDM 2021; Yun et al., "LTE4G", CIKM 2022.
    """

    minority: int = 3
    ratio: float = 0.1
    train_per_class: int = 20
    val_per_class: int = 25
    test_per_class: int = 55

    def __post_init__(self) -> None:
        _check_ratio(self.ratio)
        names = ("train_per_class", "val_per_class", "test_per_class")
        check_sizes(**{name: getattr(self, name) for name in names})
        minority_size(self.train_per_class, self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        num_classes = count_classes(graph)
        _check_minority(self.minority, num_classes)
        sizes = torch.bincount(graph.y[graph.y >= 0], minlength=num_classes)
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        stream, parts = random.Random(seed), []
        for rank, label in enumerate(order):
            first = self.train_per_class
            if rank >= num_classes - self.minority:
                first = minority_size(first, self.ratio)
            second = first + self.val_per_class
            end = second + self.test_per_class
            nodes = shuffled_nodes(graph, label, stream, required=end, purpose=ALL)
            parts.append((nodes[:first], nodes[first:second], nodes[second:end]))
        return replace(join_classes(relabel(graph, order), parts), published=True)


@dataclass(frozen=True, kw_only=True)
class PublicStep:
    """Reduce the public training set of the last classes; keep public validation and test sets.

    Classes keep their labels. Test sets are not balanced here, so accuracy and balanced accuracy
    differ.

    Args:
        minority: Number of minority classes, counted from the last label.
        ratio: Labelled nodes of a minority class over those of a majority class.
        normalise_features: Scale the features of each node to sum to one, as those papers do.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Song, Park and Yang, "TAM", ICML 2022.
    """

    minority: int = 3
    ratio: float = 0.1
    normalise_features: bool = True

    def __post_init__(self) -> None:
        _check_ratio(self.ratio)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        if "train_mask" not in graph:
            masks = "train_mask, val_mask, test_mask"
            raise ValueError(f"The split protocol publicstep needs a public split ({masks}).")
        num_classes = count_classes(graph)
        _check_minority(self.minority, num_classes)
        stream = random.Random(seed)
        pools = [class_nodes(graph, c, among=graph.train_mask) for c in range(num_classes)]
        size, train = minority_size(max(map(len, pools)), self.ratio), list[int]()
        for label, pool in enumerate(pools):
            check_class_size(graph, label, pool, 1, "training")
            if label >= num_classes - self.minority:
                stream.shuffle(pool)
                pool = pool[:size]
            train += pool
        if self.normalise_features:
            graph = graph.clone("x")
            graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
        return replace(make_task(graph, train, graph.val_mask, graph.test_mask), published=True)


def _check_ratio(ratio: float) -> None:
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio must lie in (0, 1], got {ratio}.")


def _check_minority(minority: int, num_classes: int) -> None:
    """At least one class must stay a majority class."""
    if not 0 <= minority < num_classes:
        raise ArgumentError(
            f"minority must lie between 0 and {num_classes - 1} on a graph with {num_classes} "
            f"classes, got {minority}; the split protocol natural keeps the class sizes.",
            argument="imbalance",
            value="natural",
        )


def minority_size(per_class: int, ratio: float) -> int:
    """Labelled nodes of a minority class: per_class x ratio, rounded down."""
    size = int(per_class * ratio + 1e-9)  # 20 x 0.15 is 2.9999... in floating point
    if size < 1:
        text = f"ratio={ratio} would leave a minority class without a labelled node; "
        raise ValueError(f"{text}the smallest that works is {1 / per_class:g}.")
    return size


HELD_OUT = "validation or test"


@dataclass(frozen=True, kw_only=True)
class LongTail:
    """The paper's second protocol.

    Every node outside the public validation and test sets may train. The class of rank i keeps
    n_max x ratio^(i / (C - 1)) of its nodes; of the others, those of lowest degree, label and
    edges are removed, in ten rounds, with degrees counted anew in each. Nodes of equal degree are
    removed in the order of their ids. A graph without public sets gets random ones.

    Args:
        ratio: Training nodes of the smallest class over those of the largest.
        val_per_class: Validation nodes of each class.
        test_per_class: Test nodes of each class.

    Departs:
        The paper does not state the order of equal degrees; ours is by id.

    Reference:
        Park, Song and Yang, "GraphENS", ICLR 2022; Yun et al., "LTE4G", CIKM 2022.
    """

    ratio: float = 0.01
    val_per_class: int = 25
    test_per_class: int = 55

    def __post_init__(self) -> None:
        _check_ratio(self.ratio)
        check_sizes(val_per_class=self.val_per_class, test_per_class=self.test_per_class)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        num_classes = count_classes(graph)
        stream = random.Random(seed)
        if "val_mask" in graph:
            val_pool, test_pool = graph.val_mask, graph.test_mask
        else:
            val, test = list[int](), list[int]()
            count = self.val_per_class + self.test_per_class
            for label in range(num_classes):
                nodes = shuffled_nodes(graph, label, stream, required=count, purpose=HELD_OUT)
                val += nodes[: self.val_per_class]
                test += nodes[self.val_per_class : count]
            val_pool, test_pool = mask_of(val, graph), mask_of(test, graph)
        train_pool = (graph.y >= 0) & ~val_pool & ~test_pool
        sizes = torch.bincount(graph.y[train_pool], minlength=num_classes)
        if sizes.min() < 1:
            name = display_name(graph, int(sizes.argmin()))
            raise ValueError(f"Class {name} has no node that may train.")
        order = torch.argsort(sizes, descending=True, stable=True).tolist()
        val, test = [], []
        held_out = (val, val_pool, self.val_per_class), (test, test_pool, self.test_per_class)
        for label in order:
            for part, pool, count in held_out:
                nodes = shuffled_nodes(graph, label, stream, pool, required=count, purpose=HELD_OUT)
                part += nodes[:count]
        graph = relabel(graph, order)
        removed = _cut_tail(graph, train_pool, _target_sizes(sizes[order].tolist(), self.ratio))
        graph = keep_edges(graph, ~removed[graph.edge_index].any(dim=0))
        return replace(make_task(graph, train_pool & ~removed, val, test), published=True)


def _target_sizes(sizes: list[int], ratio: float) -> list[int]:
    """Training nodes that each class keeps, classes in descending order of size."""
    decay = ratio ** (1 / max(len(sizes) - 1, 1))
    return [int(min(sizes[0] * decay**rank, size)) for rank, size in enumerate(sizes)]


def _cut_tail(graph: Data, pool: Tensor, sizes: list[int]) -> Tensor:
    """Mark the training nodes to remove, (N,)."""
    source, target = graph.edge_index.cpu().numpy()
    between = source != target
    source, target = source[between], target[between]
    removed = np.zeros(graph.num_nodes, dtype=bool)
    for label, size in enumerate(sizes):
        if size < 1:
            raise ValueError("ratio is too small: the last class would keep no training node.")
        nodes = np.array(class_nodes(graph, label, among=pool))
        surplus = len(nodes) - size
        for step in range(1, 11):
            alive = ~removed[source] & ~removed[target]
            degree = np.bincount(source[alive], minlength=len(removed))[nodes]
            lowest = nodes[np.argsort(degree, kind="stable")]
            removed[nodes] = False
            removed[lowest[: step * surplus // 10]] = True
    return torch.from_numpy(removed).to(graph.y.device)


@dataclass(frozen=True, kw_only=True)
class Natural:
    """A stratified split: the same share of every class, and at least one node in each set.

    All other labelled nodes are test nodes.

    Args:
        train: Share of the labelled nodes to train on.
        val: Share of the labelled nodes to validate on.
    """

    train: float = 0.1
    val: float = 0.1

    def __post_init__(self) -> None:
        check_shares(train=self.train, val=self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        stream, parts = random.Random(seed), []
        for label in range(count_classes(graph)):
            nodes = shuffled_nodes(graph, label, stream, required=3, purpose=ALL)
            first = min(max(1, round(self.train * len(nodes))), len(nodes) - 2)
            second = min(first + max(1, round(self.val * len(nodes))), len(nodes) - 1)
            parts.append((nodes[:first], nodes[first:second], nodes[second:]))
        return join_classes(graph, parts)


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Stratified cross-validation: test on one fold, validate on part of the others.

    Seed s is fold s % folds of partition s // folds: seeds 0 to folds - 1 are the folds of one
    partition, the next seeds those of another.

    Args:
        folds: Number of folds; each class needs as many nodes.
        val: Share of the labelled nodes to validate on, taken from the nodes that are not tested.
    """

    folds: int = 5
    val: float = 0.1

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}.")
        if not 0 < self.val < 1 - 1 / self.folds:
            bounds = f"between 0 and {1 - 1 / self.folds:.3g} with {self.folds} folds"
            raise ValueError(f"val must lie {bounds}, got {self.val}.")

    def __call__(self, graph: Data, *, seed: int) -> Task:
        partition, fold = divmod(seed, self.folds)
        stream, parts = random.Random(partition), []
        start = 0  # fold of the first node of a class; it moves on, so that folds have equal sizes
        for label in range(count_classes(graph)):
            nodes = shuffled_nodes(graph, label, stream)
            least = max(self.folds, 3 if self.folds > 2 else 4)  # one to test and two others
            if len(nodes) < least:
                raise ValueError(
                    f"Class {display_name(graph, label)} has {len(nodes)} nodes, {least} are "
                    f"needed for {self.folds} folds; use fewer folds, or repeated splits."
                )
            test = nodes[(fold - start) % self.folds :: self.folds]
            others = [node for i, node in enumerate(nodes) if (start + i) % self.folds != fold]
            start += len(nodes)
            # otherwise the first nodes would validate in every fold
            random.Random(f"{seed} {label}").shuffle(others)
            count = min(max(1, round(self.val * len(nodes))), len(others) - 1)
            parts.append((others[count:], others[:count], test))
        return join_classes(graph, parts)


@dataclass(frozen=True, kw_only=True)
class Given:
    """The split of the graph: a split column of a table, or a public split.

    Without a validation set, a share of each class's training nodes is drawn for it by the seed;
    a class keeps at least one training node. Nodes without a label are in no set.

    Args:
        val: Share of the training nodes to validate on, if the graph has no validation set.
    """

    val: float = 0.2

    def __post_init__(self) -> None:
        check_shares(val=self.val)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        masks = {name: node_mask(graph, name) for name in ("train", "val", "test")}
        for name in ("train", "test"):
            if masks[name] is None:
                raise ArgumentError(
                    f"The split protocol given needs a graph with a split, and no node is marked "
                    f"{name}; name a column that holds train, val or test.",
                    argument="split",
                )
        labelled = graph.y >= 0
        train, test = masks["train"] & labelled, masks["test"] & labelled
        for label in range(count_classes(graph)):
            check_class_size(graph, label, class_nodes(graph, label, train), 1, "training")
        if masks["val"] is not None:
            val = masks["val"] & labelled
        else:
            val = hold_out(graph.y, train, self.val, seed)
            train = train & ~val
        for name, mask in (("validation", val), ("test", test)):
            if not mask.any():
                raise ValueError(f"The split has no labelled node for {name}; mark some.")
        return make_task(graph, train, val, test)


@dataclass(frozen=True, kw_only=True)
class SemiSupervised:
    """A few labels of two classes to train on, as many to validate on, all others to test on.

    The rarer class is positive. Averages over ten draws are usual.

    Args:
        positives: Nodes of the positive class to train on.
        negatives: Nodes of the other class to train on.

    Reference:
        Tang, Hua, Gao, Zhao and Li, "GADBench: Revisiting and Benchmarking Supervised Graph Anomaly
        Detection", NeurIPS 2023.
    """

    positives: int = 20
    negatives: int = 80

    def __post_init__(self) -> None:
        check_sizes(positives=self.positives, negatives=self.negatives)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        num_classes = count_classes(graph)
        if num_classes != 2:
            raise ValueError(f"semisupervised is for two classes, this graph has {num_classes}.")
        positive = positive_class(torch.bincount(graph.y[graph.y >= 0], minlength=2))
        stream, parts = random.Random(seed), []
        for label in range(2):
            size = self.positives if label == positive else self.negatives
            nodes = shuffled_nodes(graph, label, stream, required=2 * size + 1, purpose=ALL)
            parts.append((nodes[:size], nodes[size : 2 * size], nodes[2 * size :]))
        return replace(join_classes(graph, parts), published=True)


def _shown(time: float) -> str:
    """A time, as a date if it can be seconds since 1970."""
    is_date = 6e8 < time < 4.2e9
    return datetime.fromtimestamp(time, UTC).date().isoformat() if is_date else f"{time:g}"


def period_of_test(task: Task) -> str | None:
    """The first and the last time of the test nodes, if all others are older."""
    if "time" not in task.graph or not task.test.any():
        return None
    tested, seen = (task.graph.time[part] for part in (task.test, task.train | task.val))
    if not seen.max() < tested.min():
        return None
    return f"{_shown(float(tested.min()))} to {_shown(float(tested.max()))}"


@dataclass(frozen=True, kw_only=True)
class ByTime:
    """Train on the oldest labelled nodes, validate on the next, test on the newest.

    Nodes of the same time are never separated: they join the older set. The seed makes no
    difference without windows. Nodes without a label or a time are in no set.

    If edges have times (`graph.edge_time`, or a column of a table), training sees only edges up to
    the time of the last validation node, the time at which a model would be trained. Edges without
    a time count as later. Test nodes and nodes in no set are predicted with all edges. Without
    times of edges all of them stay, also those of newer nodes. Relations of a graph of your own may
    have times as well (`graph.relation_time`, (R,)); otherwise training sees none between nodes
    that a later edge joins.

    Args:
        train: Share of the labelled nodes to train on.
        val: Share of the labelled nodes to validate on.
        windows: Periods that the test nodes are divided into. Seed s tests on period s % windows,
            counted from 0, and learns from all nodes before it.
    """

    train: float = 0.6
    val: float = 0.2
    windows: int = 1

    def __post_init__(self) -> None:
        check_shares(train=self.train, val=self.val)
        check_sizes(windows=self.windows)

    def __call__(self, graph: Data, *, seed: int) -> Task:
        if "time" not in graph:
            raise ArgumentError(
                "The split protocol bytime needs the time of every node (graph.time); name a time "
                "column.",
                argument="time",
            )
        usable = (graph.y >= 0) & ~torch.isnan(graph.time)
        times = graph.time[usable].sort().values
        if len(times) < 3:
            raise ValueError(f"{len(times)} labelled nodes have a time, at least 3 are needed.")
        # what is learnt from ends where the tested period begins
        learnt, part = self.train + self.val, seed % self.windows
        begin, end = (learnt + (1 - learnt) * (part + i) / self.windows for i in (0, 1))
        last = times[max(3, round(end * len(times))) - 1]
        first = max(1, round(self.train * (begin / learnt) * len(times)))
        second = max(first + 1, round(begin * len(times)))
        last_train = times[first - 1]
        later = times[times > last_train]
        if not len(later):
            raise ValueError("No labelled node is newer than the training nodes; lower train.")
        last_val = torch.maximum(times[min(second, len(times)) - 1], later[0])
        train = usable & (graph.time <= last_train)
        val = usable & (graph.time > last_train) & (graph.time <= last_val)
        test = usable & (graph.time > last_val) & (graph.time <= last)
        if not test.any():
            none = "No labelled node is newer than the validation nodes: too many share a time"
            raise ValueError(f"{none}; lower train or val.")
        for label in range(count_classes(graph)):
            oldest = class_nodes(graph, label, among=train)
            check_class_size(graph, label, oldest, 1, "training, among the oldest")
        task, time = make_task(graph, train, val, test), float(last_val)
        tables = graph.get("timed_tables")
        times = graph.get("edge_time") if tables is None else tables.edge_times
        if times is None:
            return task
        if times.numel() and not (times <= time).any():
            raise ValueError(
                f"No edge has a time up to that of the last validation node, {_shown(time)}; are "
                "the times of nodes and edges in the same unit? The time of a node is that of its "
                "label, not of the opening of an account."
            )
        if tables is None:
            relations = graph.relation_time <= time if "relation_time" in graph else None
            return replace(task, past=keep_edges(graph, times <= time, relations))
        from evengraph.tables.build import graphs_at

        past, graph = graphs_at(tables, time)
        return replace(task, graph=graph, past=past)
