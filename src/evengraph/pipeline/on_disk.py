"""Fit methods to packed graphs larger than memory, and predict them in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from weakref import ref

import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.rng import generator
from evengraph.core.task import HIDDEN_LABEL, Task
from evengraph.disk import PackedGraph
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.disk_model import DiskModel, DiskPredictor, StreamedModel
from evengraph.methods.bases.model_folder import Labelled
from evengraph.ops.signature import feature_signatures
from evengraph.outofcore.packed import PackedLinks, features
from evengraph.outofcore.propagation import Progress, Tasks, Workspace, no_progress
from evengraph.outofcore.tables import ArrayTable, Rows, joined_hash, row_slices, tensor_hash
from evengraph.training import Callback, History
from evengraph.training.checkpoint import Checkpoint

LARGEST = 2**18  # rows in memory of each kind: labelled, validation, others
SMALLEST = 2**10
SHARE = 0.35  # of the memory for these rows
COPIES = 2.5  # of a row: as it was read, and in the shape to learn from
PREDICTED = 2**14  # rows that are read at a time to predict them
STEP = 2**10  # of these are predicted at a time: larger arrays would be new memory each time
CACHE = "propagated"
VERSION = "1"  # of checkpoints; incremented when training changes


class _Predicted(NamedTuple):
    """Nodes that were predicted, so that scores and thresholds do not predict them twice."""

    method: ref[Method]
    history: list[History]  # another list after every fit and restore
    nodes: Tensor
    probabilities: Tensor


@dataclass(frozen=True, eq=False)
class DiskGraph:
    """A packed graph, and what is computed from it within a limit of memory.

    Args:
        packed: The graph.
        space: Where propagated features are stored.
        x: Its features.
    """

    packed: PackedGraph
    space: Workspace
    x: ArrayTable
    _latest: list[_Predicted] = field(default_factory=list, init=False)

    @classmethod
    def open(
        cls,
        packed: PackedGraph,
        memory: int,
        *,
        folder: Path | None = None,
        device: torch.device | str = "cpu",
        progress: Progress = no_progress,
        ranks: Ranks = ALONE,
        tasks: Tasks | None = None,
    ) -> DiskGraph:
        """Work on a packed graph.

        Args:
            packed: The graph.
            memory: Bytes to use.
            folder: Where to store propagated features; by default in the folder of the graph.
            device: Where to propagate.
            progress: Called with the name of a stage and the share of it that is done.
            ranks: The processes that work on it together (`joined_ranks`). The folder must be the
                same for all of them, and the smallest limit of memory is that of all.
            tasks: Workers that propagate instead of this process, such as `RayTasks`.
        """
        packed = replace(packed, path=packed.path.absolute())
        folder = (folder or packed.path / CACHE).absolute()
        memory = -int(ranks.max(torch.tensor(-memory)))
        links, target = PackedLinks(packed), torch.device(device)
        space = Workspace(links, folder, memory, target, progress, ranks, tasks)
        return cls(packed, space, features(packed))

    def labels(self) -> Data:
        """A graph with the labels and masks of this one, for split protocols.

        It has as many features, all of them zero, and no edges.
        """
        packed = self.packed
        graph = _without_features(torch.from_numpy(packed.y.astype("int64")), self.x.shape[1])
        graph.class_names = list(packed.class_names)
        for part in ("train", "val", "test"):
            mask = packed.mask(part)
            if mask is not None:
                graph[f"{part}_mask"] = torch.from_numpy(mask.copy())
        return graph

    def fit(
        self,
        method: Method,
        task: Task,
        *,
        seed: int = 0,
        on_epoch: Callback | None = None,
        progress: bool | None = None,
    ) -> Method:
        """Train a method on a split of `labels()`.

        Features are propagated in blocks. Training has at most `LARGEST` rows of each kind in
        memory: labelled ones, of which rare classes keep all theirs, validation nodes, and others.
        A graph of no more nodes is seen as a whole, and the result is that of `Method.fit`.
        A `StreamedModel` reads rows in passes and learns from all labelled nodes.
        Several processes have a share of these rows each, and the result of one.

        Training is saved every few seconds. After a kill, the same call resumes.
        """
        self._latest.clear()
        ranks = self.space.ranks
        check_method(method, ranks)
        assert isinstance(method, DiskModel)
        nodes = sample_nodes(task, self._room(method.row_width(self.x.shape[1])), seed)
        stream: StreamedModel | None = None
        if isinstance(method, StreamedModel) and len(nodes) < task.graph.num_nodes:
            stream, size = method, (self.x.shape[1], task.num_classes)
            nodes = sample_labelled(task, stream.streamed_rows(*size, self.space.memory), seed)
        part = hide_others(select_nodes(task, nodes))
        method.reset(part)
        train = nodes[part.train]
        signatures = torch.cat(
            [feature_signatures(self.x.read(some)) for some in train.split(PREDICTED)]
        )
        method.labelled_ = Labelled(train, part.graph.y[part.train], signatures)

        def learn() -> None:
            assert isinstance(method, DiskModel)
            tables = method.fit_tables(self.x, self.space)
            if stream is not None:
                stream.fit_streamed(part, nodes, tables, self.space)
                return
            own = nodes[ranks.own(len(nodes))]
            method.fit_rows(part, {name: table.read(own) for name, table in tables.items()})

        method.learn(
            learn,
            seed=seed,
            on_epoch=on_epoch,
            progress=progress,
            ranks=ranks,
            checkpoint=self._checkpoint(method, part, nodes, seed),
        )
        method.notes_ = [*method.notes_, *_sampling_notes(task, part)]
        return method

    def predict(self, method: Method) -> Iterator[tuple[slice, Tensor]]:
        """Class probabilities of all nodes, a block of rows at a time, (rows, C)."""
        blocks = list(row_slices(self.x.shape[0], PREDICTED))
        return zip(blocks, self._probabilities(method, blocks), strict=True)

    def _probabilities(self, method: Method, blocks: Sequence[Rows]) -> Iterator[Tensor]:
        """Class probabilities of each block of rows."""
        if not isinstance(method, DiskPredictor):
            raise ValueError(f"{method.title} needs the whole graph in memory to predict it.")
        if method.num_features_ != self.x.shape[1]:
            raise ValueError(
                f"The graph must have {method.num_features_} features as in training, "
                f"got {self.x.shape[1]}."
            )
        tables = method.tables(self.x, self.space)
        for number, rows in enumerate(blocks, start=1):
            read = {name: table.read(rows) for name, table in tables.items()}
            steps = zip(*(table.split(STEP) for table in read.values()), strict=True)
            with torch.no_grad():
                logits = [method.row_logits(dict(zip(read, some, strict=True))) for some in steps]
                probabilities = torch.cat(logits).softmax(dim=1)
            self.space.progress("predict", number / len(blocks))
            yield probabilities

    def predict_task(self, method: Method, task: Task) -> tuple[Task, Tensor]:
        """The task on the nodes of its three sets alone, and their class probabilities, (n, C)."""
        nodes = (task.train | task.val | task.test).nonzero().squeeze(1)
        return select_nodes(task, nodes), self.predict_nodes(method, nodes)

    def predict_nodes(self, method: Method, nodes: Tensor) -> Tensor:
        """Class probabilities of some nodes, (n, C)."""
        ranks = self.space.ranks
        for latest in self._latest:
            same = latest.method() is method and latest.history is method.history_
            if same and torch.equal(latest.nodes, nodes):
                return latest.probabilities.clone()
        own = nodes[ranks.own(len(nodes))]
        blocks = self._probabilities(method, list(own.split(PREDICTED)))
        probabilities = ranks.interleave(torch.cat(list(blocks)), len(nodes))
        if probabilities.nbytes < self.space.memory / 16:
            fit = ref(method), method.history_
            self._latest[:] = [_Predicted(*fit, nodes.clone(), probabilities)]
            return probabilities.clone()
        return probabilities

    def _checkpoint(self, method: Method, part: Task, nodes: Tensor, seed: int) -> Checkpoint:
        """Where the fit of a method is saved: a file named by everything that has an influence."""
        tensors = nodes, part.graph.y, part.train, part.val
        key = joined_hash(
            VERSION,
            self.packed.content_hash,
            repr(method),
            str(seed),
            *map(tensor_hash, tensors),
        )
        path = self.space.folder / f"training-{key[:24]}.pt"
        return Checkpoint(path, ranks=self.space.ranks)

    def _room(self, width: int) -> int:
        """How many rows of each kind, of so many numbers, fit in memory."""
        row = int(4 * COPIES * max(width, 1))
        rows = int(SHARE * self.space.memory) // (3 * row)
        return min(max(rows, SMALLEST), LARGEST)


def disk_methods() -> list[str]:
    """Names of the methods that graphs on disk can be used with."""
    return [name for name, kind in METHODS.items() if issubclass(kind, DiskModel)]


def check_method(method: Method, ranks: Ranks = ALONE) -> None:
    """Raise ValueError for a method that needs the whole graph, or all rows, in one process."""
    if not isinstance(method, DiskModel):
        raise ValueError(
            f"{method.title} needs the whole graph in memory; for a graph on disk use one of "
            f"{', '.join(disk_methods())}."
        )
    if not ranks.is_alone and not method.shares_rows:
        names = [name for name in disk_methods() if METHODS[name].shares_rows]
        raise ValueError(
            f"{method.title} is trained by one process; for {ranks.size} use one of "
            f"{', '.join(names)}."
        )


def sample_nodes(task: Task, room: int, seed: int) -> Tensor:
    """The nodes to have in memory, ascending: all, or up to `room` of each kind.

    Of the training nodes, rare classes keep all; the others share what is left.
    """
    if task.graph.num_nodes <= room:
        return torch.arange(task.graph.num_nodes)
    random = generator(seed)
    others = (~task.train & ~task.val).nonzero().squeeze(1)
    parts = [*_labelled_parts(task, (room, room), random), _some(others, room, random)]
    return torch.cat(parts).sort().values


def sample_labelled(task: Task, room: tuple[int, int], seed: int) -> Tensor:
    """As `sample_nodes`, of training and validation nodes alone, with a limit for each."""
    return torch.cat(_labelled_parts(task, room, generator(seed))).sort().values


def _labelled_parts(task: Task, room: tuple[int, int], random: torch.Generator) -> list[Tensor]:
    """Training nodes, class by class, and validation nodes, up to a limit each."""
    labels = task.graph.y[task.train_nodes]
    counts = torch.bincount(labels, minlength=task.num_classes)
    parts = []
    for label, size in enumerate(fair_sizes(counts.tolist(), room[0])):
        parts.append(_some(task.train_nodes[labels == label], size, random))
    return [*parts, _some(task.val_nodes, room[1], random)]


def fair_sizes(counts: list[int], room: int) -> list[int]:
    """How many of each class to take: the same limit for all, as large as `room` allows."""
    sizes, left, waiting = [0] * len(counts), room, len(counts)
    for index in sorted(range(len(counts)), key=counts.__getitem__):
        sizes[index] = min(counts[index], left // waiting)
        left, waiting = left - sizes[index], waiting - 1
    return sizes


def select_nodes(task: Task, nodes: Tensor) -> Task:
    """The task on some of its nodes; its graph has labels, and neither features nor edges."""
    graph = _without_features(task.graph.y[nodes], task.graph.num_features)
    train, val, test = (mask[nodes] for mask in (task.train, task.val, task.test))
    return Task(graph, train, val, test, task.num_classes, task.class_names)


def hide_others(task: Task) -> Task:
    """The task without labels outside of training and validation."""
    labels = torch.where(task.train | task.val, task.graph.y, HIDDEN_LABEL)
    graph = _without_features(labels, task.graph.num_features)
    return Task(graph, task.train, task.val, task.test, task.num_classes, task.class_names)


def _sampling_notes(task: Task, part: Task) -> list[str]:
    """A sentence about the rows that training had in memory, if these are not all."""
    others = int((~part.train & ~part.val).sum())
    labelled = int((task.train | task.val).sum())
    if part.graph.num_nodes == (task.graph.num_nodes if others else labelled):
        return []
    kinds = (("training", "train"), ("validation", "val"))
    counts = [
        f"{int(getattr(part, mask).sum()):,} of {int(getattr(task, mask).sum()):,} {kind} nodes"
        for kind, mask in kinds
    ]
    if not others:  # rows are read in passes
        return [f"Rows to learn from: {' and '.join(counts)}; more memory allows for more."]
    return [f"Rows in memory: {', '.join(counts)}, and {others:,} others."]


def _some(nodes: Tensor, count: int, random: torch.Generator) -> Tensor:
    """So many nodes at random, or all."""
    if len(nodes) <= count:
        return nodes
    return nodes[torch.randperm(len(nodes), generator=random)[:count]]


def _without_features(labels: Tensor, num_features: int) -> Data:
    """A graph of labelled nodes without edges; one zero stands for all features."""
    x = torch.zeros(1, 1).expand(len(labels), num_features)
    return Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=labels)
