"""Learn from and predict graphs on disk, within a limit of memory."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.files import atomic_file, write_atomic
from evengraph.core.lazy import PACKED, is_packed
from evengraph.core.machine import available_memory
from evengraph.core.rng import generator
from evengraph.core.task import HIDDEN_LABEL, Task
from evengraph.datasets import DATASETS, cache_folder
from evengraph.disk.graphs import check_encoder, memory_limit, memory_to_read
from evengraph.disk.learners import (
    LEARNERS,
    Chooser,
    Learner,
    NetworkLearner,
    TreeLearner,
    row_candidates,
)
from evengraph.disk.packed_graph import PackedGraph, Progress, no_progress
from evengraph.disk.propagation import FLOAT, Workspace
from evengraph.disk.shards import RowPlan, sharded_rows
from evengraph.disk.tables import (
    ArrayTable,
    Rows,
    Table,
    features,
    joined_hash,
    row_slices,
    tensor_hash,
    wait_until,
)
from evengraph.methods import METHODS, Method
from evengraph.methods.auto import weighted_mean
from evengraph.methods.bases.method import learn, reset
from evengraph.methods.bases.saving import Labelled
from evengraph.ops.features import feature_signatures
from evengraph.pipeline.sources import GraphSource
from evengraph.pipeline.table_model import TableModel
from evengraph.tables.columns import TableColumns
from evengraph.tables.feature_encoder import FeatureEncoder
from evengraph.training import Callback
from evengraph.training.loop import Checkpoint
from evengraph.training.ranks import ALONE, Ranks

LARGEST = 2**18  # nodes of a graph that is seen as a whole
SMALLEST = 2**10
SHARE = 0.35  # of the memory for these rows
COPIES = 2.5  # of a row: as it was read, and in the shape to learn from
PREDICTED = 2**14  # rows that are read at a time to predict them
PART = 2**20  # nodes of a file of many
STEP = 2**10  # of these are predicted at a time: larger arrays would be new memory each time
CACHE = "propagated"
SCORES = 0.1  # of the memory for predictions of validation nodes
SCORED = 3  # copies of these: as probabilities, joined, and while they are ranked
VERSION = "2"  # of checkpoints; incremented when training changes
Blocks = Iterator[dict[str, NDArray[Any]]]
"""Columns of predictions of some nodes at a time."""
SUFFIXES = (".csv", ".parquet")
MADE_FROM = ".made-from"  # what predictions in a folder were made from


def sample_nodes(task: Task, seed: int, *, train: int, val: int) -> Tensor:
    """Up to so many labelled nodes of each kind, ascending.

    Of the training nodes, rare classes keep all; the others share what is left.
    """
    random = generator(seed)

    def sample(nodes: Tensor, count: int) -> Tensor:
        if len(nodes) <= count:
            return nodes
        return nodes[torch.randperm(len(nodes), generator=random)[:count]]

    labels = task.graph.y[task.train_nodes]
    sizes = enumerate(fair_sizes(task.class_counts.tolist(), train))
    parts = [sample(task.train_nodes[labels == label], size) for label, size in sizes]
    parts.append(sample(task.val_nodes, val))
    return torch.cat(parts).sort().values


def fair_sizes(counts: list[int], room: int) -> list[int]:
    """How many of each class to take: the same limit for all, as large as `room` allows."""
    sizes, left, waiting = [0] * len(counts), room, len(counts)
    for index in sorted(range(len(counts)), key=counts.__getitem__):
        sizes[index] = min(counts[index], left // waiting)
        left, waiting = left - sizes[index], waiting - 1
    return sizes


def select_nodes(task: Task, nodes: Tensor) -> Task:
    """The task on some of its nodes; its graph has labels, and neither features nor edges."""
    graph = without_features(task.graph.y[nodes], task.graph.num_features)
    train, val, test = (mask[nodes] for mask in (task.train, task.val, task.test))
    return Task(graph, train, val, test, task.num_classes, task.class_names)


def hide_others(task: Task) -> Task:
    """The task without labels outside of training and validation."""
    labels = torch.where(task.train | task.val, task.graph.y, HIDDEN_LABEL)
    return replace(task, graph=without_features(labels, task.graph.num_features), past=None)


def plan_note(task: Task, plan: RowPlan) -> str:
    """A sentence about the rows that training reads from disk."""
    kinds = (
        ("training nodes", sum(map(len, plan.labelled)), int(task.train.sum())),
        ("validation nodes", len(plan.validation), int(task.val.sum())),
        ("others", sum(map(len, plan.others)), int((~task.train).sum())),
    )
    counts = [
        f"all {total:,} {kind}" if count == total else f"{count:,} of {total:,} {kind}"
        for kind, count, total in kinds
        if count
    ]
    shards = max(len(plan.labelled), len(plan.others))
    where = f"{shards} shards" if shards > 1 else "one shard"
    drawn = any(count < total for _, count, total in (kinds[0], kinds[2]) if count)
    limit = " Epochs draw no more than these." if drawn else ""
    return f"Rows from disk, in {where}: {', '.join(counts)}.{limit}"


def sampling_notes(task: Task, part: Task) -> list[str]:
    """A sentence about the rows that trees are grown on, if these are not all."""
    if part.graph.num_nodes in (task.graph.num_nodes, int((task.train | task.val).sum())):
        return []
    masks = (("training", part.train, task.train), ("validation", part.val, task.val))
    counts = [f"{int(a.sum()):,} of {int(b.sum()):,} {kind} nodes" for kind, a, b in masks]
    return [f"Rows to learn from: {' and '.join(counts)}; more memory allows for more."]


def without_features(labels: Tensor, num_features: int) -> Data:
    """A graph of labelled nodes without edges; one zero stands for all features."""
    x = torch.zeros(1, 1).expand(len(labels), num_features)
    return Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=labels)


@dataclass(frozen=True, eq=False)
class DiskGraph:
    """A packed graph, and what is computed from it within a limit of memory."""

    packed: PackedGraph
    space: Workspace
    x: ArrayTable

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
    ) -> DiskGraph:
        """Work on a packed graph; propagated features go to `folder`, by default one of its own.

        All `ranks` must have the same folder; the smallest limit of memory is that of all.
        """
        packed = replace(packed, path=packed.path.absolute())
        folder = (folder or ranks.once(lambda: cache_of(packed))).absolute()
        memory = -int(ranks.max(torch.tensor(-memory)))
        mark = ranks.once(lambda: mark_of(packed))
        space = Workspace(packed, folder, memory, torch.device(device), progress, ranks, mark)
        return cls(packed, space, features(packed))

    def encoding(self) -> tuple[FeatureEncoder, TableColumns]:
        return self.packed.encoding()

    def labels(self) -> Data:
        """A graph with the labels and masks of this one, for split protocols.

        It has as many features, all of them zero, and no edges.
        """
        packed = self.packed
        graph = without_features(torch.from_numpy(packed.y.astype("int64")), self.x.shape[1])
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

        Features are propagated in blocks. A graph of few nodes is then seen as a whole, and the
        result is that of `Method.fit`. Of a larger one, networks see all labelled rows in shards,
        LightGBM sees them in passes. Several processes have a share of the rows each, and the
        result of one.

        Training is saved every few seconds. After a kill, the same call resumes.
        """
        if isinstance(method, Chooser):
            self._race(method, task, seed=seed, on_epoch=on_epoch, progress=progress)
            return method
        learner = learner_of(method, self.space)
        torch.empty(0, device=self.space.device)  # a GPU that is not in use yet would not be seeded
        room = self._room(learner)
        fits = task.graph.num_nodes <= min(room, LARGEST)
        options = {"seed": seed, "on_epoch": on_epoch, "progress": progress}
        if isinstance(learner, NetworkLearner) and not fits:
            self._fit_shards(learner, hide_others(task), room, options)
        elif isinstance(learner, TreeLearner) and not fits:
            train, val = learner.streamed_rows(self.x.shape[1], task.num_classes)
            nodes = sample_nodes(task, seed, train=train, val=val)
            self._fit_part(learner, task, nodes, options, learner.fit_streamed)
        else:
            self._fit_part(learner, task, torch.arange(task.graph.num_nodes), options)
        return method

    def _room(self, learner: Learner[Any]) -> int:
        """Rows of each kind that fit in memory."""
        row = int(FLOAT * COPIES * max(learner.row_width(self.x.shape[1]), 1))
        return max(int(SHARE * self._limit) // (3 * row), SMALLEST)

    def _race(self, method: Chooser, task: Task, **options: Any) -> None:
        """Race the candidates that learn from rows, as in memory."""
        if method.time_limit and not self.space.ranks.is_alone:
            raise ValueError("time_limit must be 0 for several processes: their clocks differ.")

        count = len(task.train)
        candidates = row_candidates(
            method, task.graph, self.space, lambda one: count <= min(self._room(one), LARGEST)
        )
        if not candidates:
            names = ", ".join(name for name, kind in METHODS.items() if kind in LEARNERS)
            raise ValueError(f"candidates must be among {names} for a graph on disk.")
        hidden, sets = hide_others(task), task.train | task.val | task.test
        reset(method, hidden)
        learn(method, partial(method.choose, hidden, candidates, self), **options)
        nodes = sets.nonzero().squeeze(1)
        if method.held_out_ is not None:  # among the nodes of `predict_task`
            held_out, rows, labelled = method.held_out_
            method.held_out_ = torch.searchsorted(nodes, held_out), rows, labelled[nodes]
            learnt = labelled.nonzero().squeeze(1)
        else:
            learnt = task.train_nodes
        method.labelled_ = self._labelled(learnt, task.graph.y[learnt])

    def _labelled(self, nodes: Tensor, labels: Tensor) -> Labelled:
        """Nodes that are learnt from."""
        signatures = [feature_signatures(self.x.read(some)) for some in nodes.split(PREDICTED)]
        return Labelled(nodes, labels, torch.cat(signatures))

    @property
    def has_edges(self) -> bool:
        return self.packed.num_edges > 0

    def _fit_part(
        self,
        learner: Learner[Any],
        task: Task,
        nodes: Tensor,
        options: dict[str, Any],
        stream: Callable[[Task, Tensor, Mapping[str, Table]], None] | None = None,
    ) -> None:
        """Train on the rows of some nodes, in memory or in passes."""
        part, method = hide_others(select_nodes(task, nodes)), learner.method
        ranks = self.space.ranks

        def fit(tables: Mapping[str, Table]) -> None:
            own = nodes[ranks.own(len(nodes))] if isinstance(learner, NetworkLearner) else nodes
            learner.fit_rows(part, {name: table.read(own) for name, table in tables.items()})

        def grow(tables: Mapping[str, Table]) -> None:
            """Grow trees in the first process, for all."""

            def grown() -> dict[str, Any]:
                (fit if stream is None else partial(stream, part, nodes))(tables)
                return {name: value for name, value in vars(method).items() if name[-1] == "_"}

            vars(method).update(ranks.once(grown))

        labelled = nodes[part.train], part.graph.y[part.train]
        body = fit if isinstance(learner, NetworkLearner) else grow
        self._learn(learner, part, labelled, [nodes], body, options)
        method.notes_ = [*method.notes_, *sampling_notes(task, part)]

    def _fit_shards(
        self, learner: NetworkLearner[Any], task: Task, room: int, options: dict[str, Any]
    ) -> None:
        """Train on all labelled rows, of which `room` at a time are in memory."""
        method = learner.method
        scored = FLOAT * SCORED * learner.networks * task.num_classes  # bytes of a validation node
        plan = RowPlan.of(
            task,
            room=3 * room,
            epochs=max(method.max_epochs, 1),
            drawn=learner.drawn_per_epoch(),
            validated=max(int(SCORES * self._limit) // scored, SMALLEST),
            seed=options["seed"],
        )

        def fit(tables: Mapping[str, Table]) -> None:
            with sharded_rows(task, plan, tables, learner.stacked, self.space) as supply:
                learner.fit_supply(supply)

        train = torch.cat(plan.labelled).sort().values
        labelled = train, task.graph.y[train]
        self._learn(learner, task, labelled, plan.files.values(), fit, options)
        method.notes_ = [*method.notes_, plan_note(task, plan)]

    def _learn(
        self,
        learner: Learner[Any],
        task: Task,
        labelled: tuple[Tensor, Tensor],
        nodes: Iterable[Tensor],
        fit: Callable[[Mapping[str, Table]], None],
        options: dict[str, Any],
    ) -> None:
        """Fit to the tables, with a checkpoint named by everything that has an influence."""
        method, folder, ranks = learner.method, self.space.folder, self.space.ranks
        checkpoint = Checkpoint(folder / "training.pt", ranks=ranks)  # until it is named
        reset(method, task)
        method.labelled_ = self._labelled(*labelled)

        def body() -> None:
            tables = learner.fit_tables(self.x)
            contents = (table.content_hash for table in tables.values())
            tensors = map(tensor_hash, (*nodes, task.graph.y, task.train, task.val))
            made_from = self.space.mark, *contents, repr(method), str(options["seed"])
            key = joined_hash(VERSION, *made_from, *tensors)
            checkpoint.path = folder / f"training-{key[:24]}.pt"
            fit(tables)

        learn(method, body, ranks=ranks, checkpoint=checkpoint, **options)

    def predict(
        self, method: Method, blocks: Sequence[Rows] | None = None
    ) -> Iterator[tuple[Rows, Tensor]]:
        """Class probabilities of nodes, a block at a time, (n, C); by default of all in order.

        Several processes must call it together; each may have blocks of its own.
        """
        if blocks is None:
            blocks = list(row_slices(self.x.shape[0], PREDICTED))
        if isinstance(method, Chooser):
            members = [self.predict(member, blocks) for member in method.members_]
            every = zip(*members, strict=True)
            means = (weighted_mean(method.weights_, [p for _, p in some]) for some in every)
            return zip(blocks, means, strict=True)
        learner = learner_of(method, self.space)
        if method.num_features_ != self.x.shape[1]:
            raise ValueError(
                f"The graph must have {method.num_features_} features as in training, "
                f"got {self.x.shape[1]}."
            )
        parts = self._probabilities(learner, learner.tables(self.x), blocks)
        return zip(blocks, parts, strict=True)

    def _probabilities(
        self, learner: Learner[Any], tables: Mapping[str, Table], blocks: Sequence[Rows]
    ) -> Iterator[Tensor]:
        # tables stay where they are; methods that are not networks of rows predict on the CPU
        net = learner.method.net_ if isinstance(learner, NetworkLearner) else nn.Module()
        device = self.space.device if isinstance(learner, NetworkLearner) else torch.device("cpu")
        step = STEP if device.type == "cpu" else PREDICTED
        try:
            net.to(device)
            for number, rows in enumerate(blocks, start=1):
                read = {name: table.read(rows).to(device) for name, table in tables.items()}
                steps = zip(*(table.split(step) for table in read.values()), strict=True)
                with torch.no_grad():
                    parts = (dict(zip(read, some, strict=True)) for some in steps)
                    logits = torch.cat([learner.row_logits(part) for part in parts])
                self.space.progress("predict", number / len(blocks))
                yield logits.softmax(dim=1).cpu()
        finally:
            net.to("cpu")

    def predict_task(self, method: Method, task: Task) -> tuple[Task, Tensor]:
        """The task on the nodes of its three sets alone, and their class probabilities, (n, C)."""
        nodes = (task.train | task.val | task.test).nonzero().squeeze(1)
        part, probabilities = select_nodes(task, nodes), self.predict_nodes(method, nodes)
        if isinstance(method, Chooser):
            probabilities = method.with_held_out(part, probabilities)
        return part, probabilities

    def predict_nodes(self, method: Method, nodes: Tensor) -> Tensor:
        ranks = self.space.ranks
        own = nodes[ranks.own(len(nodes))]
        blocks = self.predict(method, own.split(PREDICTED))
        return ranks.interleave(torch.cat([part for _, part in blocks]), len(nodes))

    @property
    def _limit(self) -> int:
        """Bytes for rows: the least of all processes, whose GPUs may differ in free memory."""
        return -int(self.space.ranks.max(torch.tensor(-self.space.limit)))


def cache_of(packed: PackedGraph) -> Path:
    """Where to store what is computed from a graph."""
    if os.access(packed.path, os.W_OK):
        return packed.path / CACHE
    return cache_folder() / CACHE / packed.content_hash[:24]


def mark_of(packed: PackedGraph) -> str:
    """Names this copy of a graph: what came here with a copy from elsewhere is not used.

    Whoever sends a folder cannot know the number and the time that its files get here.
    """
    file = (packed.path / PACKED).stat()
    return f"{file.st_ino} {file.st_ctime_ns}"


def learner_of(method: Method, space: Workspace) -> Learner[Any]:
    """The adapter of a method; raises ValueError if it needs the whole graph in memory."""
    check_method(method)
    return LEARNERS[type(method)](method, space)


def check_method(method: Method) -> None:
    """Raise ValueError for a method that needs the whole graph in memory."""
    kinds = (Chooser, *LEARNERS)
    if type(method) not in kinds:
        names = ", ".join(name for name, kind in METHODS.items() if kind in kinds)
        raise ValueError(
            f"{method.title} needs the whole graph in memory; for a graph on disk use one of "
            f"{names}."
        )


def open_on_disk(
    path: str | Path,
    memory: str | int | None = None,
    *,
    device: torch.device | str = "cpu",
    progress: Progress = no_progress,
    ranks: Ranks = ALONE,
) -> GraphSource:
    """Open a packed graph to work from disk; by default with half of the memory that is free."""
    if not is_packed(path):
        if not ranks.is_alone:
            raise ValueError(f"Several processes train packed graphs alone: pack {path} first.")
        if not Path(path).expanduser().exists() and str(path) not in DATASETS:
            raise ValueError(f"{path} does not exist.")
        hint = f"evengraph pack {path} --out graph makes one"
        raise ValueError(f"memory is for packed graphs: {hint}.")
    limit = memory_limit(memory, ranks.here)
    packed = PackedGraph.open(path)
    packed.verify()
    packed.check()
    disk = DiskGraph.open(packed, limit, device=device, progress=progress, ranks=ranks)
    name, data = packed.path.resolve().name, str(packed.path.absolute())
    return GraphSource(name=name, graph=disk.labels(), data=data, disk=disk)


def exceeds_memory(path: str | Path) -> bool:
    return memory_to_read(PackedGraph.open(path)) > available_memory()


def check_suffix(path: Path) -> None:
    """Raise ValueError for a name that `write_predictions` does not take."""
    if path.suffix.lower() not in (*SUFFIXES, ""):
        allowed = f"a folder, or a name that ends in {', '.join(SUFFIXES)}"
        raise ValueError(f"--out takes {allowed}, got {path}.")


def write_predictions(
    model: TableModel,
    disk: DiskGraph,
    path: str | Path,
    *,
    calibrated: bool | None = None,
    only_unlabelled: bool = False,
    made_from: str = "",
) -> tuple[dict[str, int], int | None]:
    """Predict nodes of a graph on disk into a file, which is written completely or not at all.

    The columns are those of `TableModel.predict`, without those of committees. A name without an
    ending is that of a folder of Parquet files: several processes share them, and after a kill
    those that are missing are written. `made_from` is a hash of the model, without which none are
    kept.

    Returns:
        How many nodes are predicted in each class, and how many are flagged, if any can be.
    """
    path, ranks, suffix = Path(path), disk.space.ranks, Path(path).suffix.lower()
    check_suffix(path)
    if suffix and not ranks.is_alone:
        folder = path.with_suffix("")
        raise ValueError(f"Several processes write a folder of Parquet files: --out {folder}.")
    check_encoder(disk.packed, model.info.encoder)
    names, calibrator = model.classes_, model.info.calibrator
    if calibrated and calibrator is None:
        raise ValueError("This model has no calibrator: it was not saved by TableModel.")
    calibrates = model.info.calibrates if calibrated is None else calibrated
    joined = disk.packed.mask("new")
    chosen = np.ones(disk.x.shape[0], bool) if joined is None else np.array(joined)
    if only_unlabelled:
        chosen &= np.asarray(disk.packed.y) < 0
    nodes, counts = np.flatnonzero(chosen), np.zeros(len(names) + 1, np.int64)

    def tables(parts: Sequence[slice]) -> Blocks:
        """Predictions of some of these nodes, block by block."""
        blocks = [_rows(nodes[part][some]) for part in parts for some in _steps(part)]
        for rows, raw in disk.predict(model.method_, blocks):
            shown = calibrator(raw) if calibrates and calibrator is not None else raw
            flags = model.info.flags(raw)
            best = model.info.classes(raw, flags)
            ids = np.asarray(disk.packed.ids[rows])
            counts[:-1] += np.bincount(best, minlength=len(names))
            counts[-1] += 0 if flags is None else int(flags.sum())
            yield _table(model, ids, shown, best, flags, calibrates)

    if suffix:
        with atomic_file(path) as file:
            write = _write_parquet if suffix == ".parquet" else _write_csv
            write(file, tables([slice(0, len(nodes))]))
        *numbers, flagged = counts.tolist()
        result = dict(zip(names, numbers, strict=True))
    else:
        about = disk.packed.content_hash, str(calibrates), str(only_unlabelled), made_from
        stamp = joined_hash(VERSION, *about) if made_from else ""
        found, flagged = _write_parts(
            path, stamp, list(row_slices(len(nodes), PART)) or [slice(0, 0)], tables, ranks
        )
        result = {name: found.get(name, 0) for name in names}
    return result, None if model.info.decision is None else flagged


def _steps(part: slice) -> list[slice]:
    """The blocks of a part, at least one, which has the columns."""
    return list(row_slices(part.stop - part.start, PREDICTED)) or [slice(0, 0)]


def _rows(nodes: NDArray[np.int64]) -> Rows:
    """A slice, which is read faster, where nodes follow one another."""
    if len(nodes) and nodes[-1] - nodes[0] + 1 == len(nodes):
        return slice(int(nodes[0]), int(nodes[-1]) + 1)
    return torch.from_numpy(nodes)


def _table(
    model: TableModel,
    ids: NDArray[Any],
    shown: Tensor,
    best: Tensor,
    flags: Tensor | None,
    calibrated: bool,
) -> dict[str, NDArray[Any]]:
    top = shown.gather(1, best.unsqueeze(1)).squeeze(1)
    kinds = [int(name) for name in model.classes_] if model.info.integer_labels else model.classes_
    table = {model.info.columns.id or "id": ids, "class": np.array(kinds)[best.numpy()]}
    name, columns = model.info.headings(model.classes_, calibrated)
    table |= {name: top.numpy(), **dict(zip(columns, shown.T.numpy(), strict=True))}
    if flags is not None:
        table["flagged"] = flags.numpy()
    return table


def _write_csv(file: Any, blocks: Blocks) -> None:
    options: Any = {"index": False, "lineterminator": "\n", "float_format": "%.6f", "mode": "wb"}
    for number, table in enumerate(blocks):
        pd.DataFrame(table).to_csv(file, header=number == 0, **options)


def _write_parquet(file: Any, blocks: Blocks) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    contents = (pa.table(table) for table in blocks)
    content = next(contents)
    with ParquetWriter(file, content.schema) as writer:
        for each in chain([content], contents):
            writer.write_table(each)


def _write_parts(
    path: Path,
    stamp: str,
    parts: Sequence[slice],
    tables: Callable[[Sequence[slice]], Blocks],
    ranks: Ranks,
) -> tuple[dict[str, int], int]:
    """Write a folder of Parquet files; returns how often each class is in them, and flagged nodes.

    They are written to a hidden folder that is renamed at the end. What a run with the same
    `stamp` left there is kept, and so is a complete folder of one.
    """
    from pyarrow.parquet import ParquetFile

    path = path.absolute()
    hidden = path.parent / f".{path.name}.partial"
    files = {f"part-{number:05d}.parquet": rows for number, rows in enumerate(parts)}

    def is_ours(folder: Path) -> bool:
        about = folder / MADE_FROM
        return bool(stamp) and about.is_file() and about.read_text() == stamp

    def missing() -> list[str]:
        if path.exists():
            if is_ours(path) and all((path / name).exists() for name in files):
                return []  # a worker was lost after the last file
            raise FileExistsError(f"{path} exists; remove it or name another folder.")
        if not is_ours(hidden):
            shutil.rmtree(hidden, ignore_errors=True)
            hidden.mkdir()
            write_atomic(stamp.encode(), hidden / MADE_FROM)
        return [name for name in files if not (hidden / name).exists()]

    left = ranks.once(missing)
    own = left[ranks.rank :: ranks.size]
    blocks = tables([files[name] for name in own])
    for name in own:
        with atomic_file(hidden / name) as file:
            _write_parquet(file, islice(blocks, len(_steps(files[name]))))
    next(blocks, None)  # a process without a part takes part in what all compute, as well
    ranks.wait()

    def publish() -> tuple[dict[str, int], int]:
        if not path.exists():
            wait_until(lambda: all((hidden / name).exists() for name in files), str(hidden))
            os.rename(hidden, path)
        counts, flagged = Counter[str](), 0
        for name in files:
            table = ParquetFile(path / name).read(["class", "flagged"])
            for entry in table["class"].value_counts().to_pylist():
                counts[str(entry["values"])] += entry["counts"]
            if "flagged" in table.column_names:
                flagged += int(np.asarray(table["flagged"]).sum())
        return counts, flagged

    return ranks.once(publish)
