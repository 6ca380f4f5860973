"""Rows of tables on disk, in shards that fit in memory: training sees one after the other.

The rows that training needs are copied once, in one pass over the tables, to a file per shard.
Loading a shard then reads nothing but its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.core.task import Task
from evengraph.disk.propagation import FLOAT, VISIBLE, Progress, Workspace
from evengraph.disk.tables import Table, scratch_folder
from evengraph.training.ranks import Ranks, Shard

SPAN = 10  # epochs on a shard before the next one is loaded, at most
MOST = 2**22  # unlabelled rows to copy
READ = 2**14  # rows that are copied at a time
BLOCK = 2**21  # numbers of validation rows that are predicted at a time
STAGE = "rows"
Stack = Callable[[Mapping[str, Tensor]], Tensor]
"""Rows by the name of their table -> the input of a network, (..., n, width)."""


class RowPlan(NamedTuple):
    """Which nodes training sees.

    Args:
        labelled: Training nodes, in chunks of which one is in memory at a time.
        others: All other nodes, for pseudo-labels, likewise.
        validation: Validation nodes; they are read in blocks.
        span: Epochs on a shard before the next one is loaded.

    Shapes:
        each chunk: int64, (n,), ascending
    """

    labelled: tuple[Tensor, ...]
    others: tuple[Tensor, ...]
    validation: Tensor
    span: int = SPAN

    @classmethod
    def of(
        cls,
        task: Task,
        *,
        room: int,
        epochs: int,
        drawn: tuple[int, int],
        validated: int,
        seed: int,
    ) -> RowPlan:
        """Divide the nodes of a task at random.

        Args:
            task: The task.
            room: Rows that fit in memory.
            epochs: How many there are at most.
            drawn: Training nodes, and others, that an epoch draws. Those that all epochs draw
                together are enough; classes keep their shares, as if drawn from all.
            validated: Validation nodes whose predictions fit in memory.
            seed: Seed of the division.
        """
        random = generator(seed)
        others = (~task.train).nonzero().squeeze(1)
        kinds = task.train_nodes, others
        limits = (epochs * drawn[0], min(epochs * drawn[1], MOST))
        sizes = [min(len(nodes), limit) for nodes, limit in zip(kinds, limits, strict=True)]
        half = room // 2  # what one kind leaves free, the other one takes
        rooms = (max(half, room - sizes[1]), max(half, room - sizes[0]))
        labelled, unlabelled = (
            _chunks(_some(nodes, size, random), limit)
            for nodes, size, limit in zip(kinds, sizes, rooms, strict=True)
        )
        validation = _some(task.val_nodes, validated, random).sort().values
        shards = max(len(labelled), len(unlabelled))
        span = min(max(epochs // shards, 1), SPAN)  # every shard has its turn
        return cls(labelled, unlabelled, validation, span)

    @property
    def files(self) -> dict[str, Tensor]:
        """The nodes of each file, by its name."""
        kinds = (("labelled", self.labelled), ("others", self.others))
        chunks = {f"{kind}-{i}": nodes for kind, some in kinds for i, nodes in enumerate(some)}
        return chunks | {"validation": self.validation}

    @property
    def shards(self) -> int:
        """How many shards there are until each chunk has been in memory."""
        return max(len(self.labelled), len(self.others))


@contextmanager
def sharded_rows(
    task: Task, plan: RowPlan, tables: Mapping[str, Table], stack: Stack, space: Workspace
) -> Iterator[ShardedRows]:
    """Copy the rows of a plan to a folder that is removed at the end.

    The first process copies them, for all.

    Args:
        task: The whole task; labels of other than training and validation nodes are hidden.
        plan: Which of its nodes to see.
        tables: Rows of all nodes, by name.
        stack: Turns rows of the tables into the input of the network.
        space: Where to store the rows, the processes that share them and the device to train on.
    """
    widths = {name: table.shape[1] for name, table in tables.items()}
    rows, ranks = sum(map(len, plan.files.values())), space.ranks
    with _shared_folder(ranks, space.folder, FLOAT * rows * sum(widths.values())) as folder:
        ranks.once(lambda: copy_rows(plan.files, tables, folder, space.progress))
        yield ShardedRows(task, plan, folder, widths, stack, ranks, space.device)


class ShardedRows:
    """A `RowSupply` of rows in files, as `sharded_rows` makes them."""

    def __init__(
        self,
        task: Task,
        plan: RowPlan,
        folder: Path,
        widths: Mapping[str, int],
        stack: Stack,
        ranks: Ranks,
        device: torch.device,
    ) -> None:
        self.task, self.plan, self.ranks, self.device = task, plan, ranks, device
        self._folder, self._widths, self._stack = folder, widths, stack
        self._epochs, self._turn = 0, -1
        self._shard: Shard | None = None

    def advance(self) -> Shard:
        """The shard of the next epoch: the same one for some epochs, then the next."""
        turn, self._epochs = self._epochs // self.plan.span, self._epochs + 1
        if self._shard is None or turn != self._turn:
            self._shard = None  # its memory is free before the next one is loaded
            self._shard, self._turn = self._load(turn), turn
        return self._shard

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and labels of this process's validation nodes, in a pass over the file."""
        nodes, size = self.plan.validation, self.ranks.size
        labels = self.task.graph.y[nodes]
        array = self._array("validation", len(nodes))
        step = max(BLOCK // array.shape[1], 1) * size
        for start in range(0, len(nodes), step):
            own = slice(start + self.ranks.rank, start + step, size)
            yield self._stacked(np.array(array[own])), labels[own].to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """How many epochs there were."""
        return {"epochs": self._epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after so many epochs."""
        self._epochs, self._shard = state["epochs"], None

    def _load(self, turn: int) -> Shard:
        """Read the chunks whose turn it is."""
        rank, size, first = self.ranks.rank, self.ranks.size, 0
        parts, nodes = [], []
        for kind, chunks in (("labelled", self.plan.labelled), ("others", self.plan.others)):
            index = turn % len(chunks) if chunks else 0
            for chunk in chunks[index : index + 1]:
                array = self._array(f"{kind}-{index}", len(chunk))
                parts.append(np.array(array[(rank - first) % size :: size]))
                nodes.append(chunk)
                first += len(chunk)
        labels, known = self.task.graph.y[torch.cat(nodes)].to(self.device), len(nodes[0])
        order = torch.arange(len(labels), device=self.device)
        # a row of a validation node may get a pseudo-label; its label does not train
        return Shard(labels, order[:known], order[known:], self._stacked(np.concatenate(parts)))

    def _stacked(self, rows: NDArray[np.float32]) -> Tensor:
        """Rows of a file as the input of the network."""
        parts = torch.from_numpy(rows).split(list(self._widths.values()), dim=1)
        return self._stack(dict(zip(self._widths, parts, strict=True))).to(self.device)

    def _array(self, name: str, length: int) -> NDArray[np.float32]:
        shape = length, sum(self._widths.values())
        return np.memmap(self._folder / name, np.float32, mode="r", shape=shape)


def copy_rows(
    files: Mapping[str, Tensor], tables: Mapping[str, Table], folder: Path, progress: Progress
) -> None:
    """Write the rows of some nodes to each file, in one pass over the tables.

    Args:
        files: The nodes of each file, ascending, by its name.
    """
    owners = torch.cat(
        [torch.full((len(nodes),), i, dtype=torch.int32) for i, nodes in enumerate(files.values())]
    )
    nodes, order = torch.cat(list(files.values())).sort(stable=True)
    owners = owners[order]
    handles = [(folder / name).open("wb") for name in files]
    try:
        for start in range(0, len(nodes), READ):
            some, targets = nodes[start : start + READ], owners[start : start + READ]
            rows = torch.cat([table.read(some) for table in tables.values()], dim=1)
            for target in targets.unique().tolist():
                rows[targets == target].numpy().tofile(handles[target])
            progress(STAGE, min((start + READ) / len(nodes), 1.0))
    finally:
        for handle in handles:
            handle.close()


@contextmanager
def _shared_folder(ranks: Ranks, parent: Path, needed: int) -> Iterator[Path]:
    """A folder for a time that the first process creates and all of them see."""
    if ranks.rank:
        folder = ranks.once(Path)
        _wait_for(folder)
        yield folder
        ranks.wait()
        return
    with scratch_folder(parent, needed) as folder:
        yield ranks.once(lambda: folder)
        ranks.wait()  # another process may still read


def _chunks(nodes: Tensor, limit: int) -> tuple[Tensor, ...]:
    """Nodes in random order as chunks of about the same size, at most `limit` each, ascending."""
    if not len(nodes):
        return ()
    parts = torch.tensor_split(nodes, ceil(len(nodes) / max(limit, 1)))
    return tuple(part.sort().values for part in parts)


def _some(nodes: Tensor, count: int, random: torch.Generator) -> Tensor:
    """So many nodes, or all, in random order."""
    return nodes[torch.randperm(len(nodes), generator=random)[:count]]


def _wait_for(folder: Path) -> None:
    """Wait until a folder that another machine has written is seen from here."""
    started = monotonic()
    while not folder.exists():
        if monotonic() - started > VISIBLE:
            raise OSError(f"{folder} must be on a disk that all machines share.")
        sleep(0.05)
