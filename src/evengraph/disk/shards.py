"""Rows of tables on disk, in shards that fit in memory: training sees one after the other.

The rows that training needs are copied once, in one pass over the tables, to a file per shard.
Loading a shard then reads nothing but its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.core.task import Task
from evengraph.disk.packed_graph import Progress
from evengraph.disk.propagation import FLOAT, Workspace
from evengraph.disk.tables import Table, scratch_folder
from evengraph.training.ranks import Ranks, Shard

SPAN = 10  # epochs on a shard before the next one is loaded, at most
MOST = 2**22  # unlabelled rows to copy
READ = 2**14  # rows that are copied at a time
BLOCK = 2**21  # numbers of validation rows that are predicted at a time
Stack = Callable[[Mapping[str, Tensor]], Tensor]
"""Rows by the name of their table -> the input of a network, (..., n, width)."""


class RowPlan(NamedTuple):
    """Which nodes training sees; each chunk ascends."""

    labelled: tuple[Tensor, ...]  # training nodes, in chunks of which one is in memory at a time
    others: tuple[Tensor, ...]  # all other nodes, for pseudo-labels, likewise
    validation: Tensor  # is read in blocks
    span: int = SPAN  # epochs on a shard before the next one is loaded

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
        """Divide the nodes of a task at random, `room` rows in memory at a time.

        `drawn` are the training nodes, and others, that an epoch draws. Those that all epochs draw
        together are enough; classes keep their shares, as if drawn from all.
        """
        random = generator(seed)
        others = (~task.train).nonzero().squeeze(1)
        kinds = task.train_nodes, others
        limits = (epochs * drawn[0], min(epochs * drawn[1], MOST))
        sizes = [min(len(nodes), limit) for nodes, limit in zip(kinds, limits, strict=True)]
        half = room // 2  # what one kind leaves free, the other one takes
        rooms = (max(half, room - sizes[1]), max(half, room - sizes[0]))

        def some(nodes: Tensor, count: int) -> Tensor:
            """So many nodes, or all, in random order."""
            return nodes[torch.randperm(len(nodes), generator=random)[:count]]

        labelled, unlabelled = (
            tuple(
                part.sort().values
                for part in some(nodes, size).tensor_split(max(ceil(size / max(limit, 1)), 1))
                if len(part)
            )
            for nodes, size, limit in zip(kinds, sizes, rooms, strict=True)
        )
        validation = some(task.val_nodes, validated).sort().values
        shards = max(len(labelled), len(unlabelled))
        span = min(max(epochs // shards, 1), SPAN)  # every shard has its turn
        return cls(labelled, unlabelled, validation, span)

    @property
    def files(self) -> dict[str, Tensor]:
        """The nodes of each file, by its name."""
        kinds = (("labelled", self.labelled), ("others", self.others))
        chunks = {f"{kind}-{i}": nodes for kind, some in kinds for i, nodes in enumerate(some)}
        return chunks | {"validation": self.validation}


@contextmanager
def sharded_rows(
    task: Task, plan: RowPlan, tables: Mapping[str, Table], stack: Stack, space: Workspace
) -> Iterator[ShardedRows]:
    """Copy the rows of a plan to a folder that is removed at the end.

    The first process copies them, for all. `task` is the whole one, `tables` have rows of all
    nodes, and `stack` turns some into the input of the network.
    """
    widths = {name: table.shape[1] for name, table in tables.items()}
    needed, ranks = FLOAT * sum(map(len, plan.files.values())) * sum(widths.values()), space.ranks
    with scratch_folder(space.folder, needed, ranks) as folder:
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
        return {"epochs": self._epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._epochs, self._shard = state["epochs"], None

    def _load(self, turn: int) -> Shard:
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
        parts = torch.from_numpy(rows).split(list(self._widths.values()), dim=1)
        return self._stack(dict(zip(self._widths, parts, strict=True))).to(self.device)

    def _array(self, name: str, length: int) -> NDArray[np.float32]:
        shape = length, sum(self._widths.values())
        return np.memmap(self._folder / name, np.float32, mode="r", shape=shape)


def copy_rows(
    files: Mapping[str, Tensor], tables: Mapping[str, Table], folder: Path, progress: Progress
) -> None:
    """Write the rows of some nodes to each file, ascending, in one pass over the tables."""
    sizes = torch.tensor([len(nodes) for nodes in files.values()])
    owners = torch.arange(len(files), dtype=torch.int32).repeat_interleave(sizes)
    nodes, order = torch.cat(list(files.values())).sort(stable=True)
    owners = owners[order]
    with ExitStack() as opened:
        handles = [opened.enter_context((folder / name).open("wb")) for name in files]
        for start in range(0, len(nodes), READ):
            some, targets = nodes[start : start + READ], owners[start : start + READ]
            rows = torch.cat([table.read(some) for table in tables.values()], dim=1)
            for target in targets.unique().tolist():
                rows[targets == target].numpy().tofile(handles[target])
            progress("rows", min((start + READ) / len(nodes), 1.0))
