"""Processes that train together: what they add up and agree on, and the rows that each has.

All processes draw the same random numbers and keep the same weights; each has every size-th row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.parallel import DistributedDataParallel

from evengraph.core.machine import pick_device
from evengraph.core.task import Task
from evengraph.fast.dropout import Share
from evengraph.metrics.multiclass import batched_validation_scores

if TYPE_CHECKING:
    from evengraph.training.loop import Epoch

T = TypeVar("T")
PATIENCE = timedelta(days=1)  # a process may wait for the propagation of another
LOST = ("connection closed", "connection reset", "read error", "write error", "timed out")
"""What messages of torch say when a process is lost."""


class LostRankError(ValueError):
    """Another process of the same run has ended."""

    exit_status = 75  # of a command that ends so: the same one can go on


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a batch that this process has, (n,) each."""

    nodes: Tensor  # in the order of the batch
    rows: Tensor  # where these are among the rows of this process
    index: Tensor | None  # where they are in the batch; None if this process has all of it
    total: int  # rows of the batch

    @property
    def share(self) -> Share | None:
        """Which rows of the batch these are; None for all of them."""
        return None if self.index is None else (self.index, self.total)

    def before(self, end: int) -> int:
        """How many of them are among the first rows of the batch."""
        return end if self.index is None else int((self.index < end).sum())


@dataclass(frozen=True)
class Ranks:
    """The processes that train together: which this is, how many, how many on this machine."""

    rank: int = 0
    size: int = 1
    here: int = 1
    store: Any = field(default=None, compare=False, repr=False)  # what their launcher knows them by

    @property
    def is_alone(self) -> bool:
        return self.size == 1

    def device(self, name: str) -> torch.device:
        """A device for each process, a GPU of its own; if there are too few, `auto` is the CPU."""
        device, count = pick_device(name), torch.cuda.device_count()
        if device.type == "cpu" or self.here <= count:
            return device
        if name == "auto":
            return torch.device("cpu")
        raise ValueError(
            f"device must be cpu for {self.here} processes on a machine with {count} GPU(s): each "
            "needs a GPU of its own."
        )

    # Rows

    def own(self, total: int) -> slice:
        return slice(self.rank, total, self.size)

    def part(self, nodes: Tensor) -> Part:
        if self.is_alone:
            return Part(nodes, nodes, None, len(nodes))
        index = (nodes % self.size == self.rank).nonzero().squeeze(1)
        own = nodes[index]
        return Part(own, own // self.size, index, len(nodes))

    # Tensors

    def sum(self, values: Tensor) -> Tensor:
        """The sum of the values of all processes; has no gradient."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def max(self, values: Tensor) -> Tensor:
        """The largest of the values of all processes; has no gradient."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def share_of_mean(self, values: Tensor, total: int) -> Tensor:
        """What the last axis adds to the mean over all processes, of `total` values."""
        return values.mean(-1) if self.is_alone else values.sum(-1) / total

    def gather(self, values: Tensor, dim: int) -> Tensor:
        """The values of all processes, one after the other, padded with zeros to the longest."""
        return torch.cat(self._gathered(values, dim), dim)

    def interleave(self, values: Tensor, total: int) -> Tensor:
        """All rows in their order, from the `own` ones of each process."""
        if self.is_alone:
            return values
        whole = values.new_empty(total, *values.shape[1:])
        for rank, part in enumerate(self._gathered(values, 0)):
            rows = whole[rank :: self.size]
            rows.copy_(part[: len(rows)])
        return whole

    # Objects

    def once(self, compute: Callable[[], T]) -> T:
        """What the first process computes, in all of them: machines may round differently."""
        if self.is_alone:
            return compute()
        box = [compute() if self.rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]  # type: ignore[return-value]

    def each(self, compute: Callable[[T], None], items: Sequence[T]) -> None:
        """Compute every item in one of the processes, and wait for all."""
        for item in items[self.rank :: self.size]:
            compute(item)
        self.wait()

    def wait(self) -> None:
        if not self.is_alone:
            dist.barrier()

    def _reduced(self, values: Tensor, how: dist.ReduceOp.RedOpType) -> Tensor:
        if self.is_alone:
            return values
        total = values.detach().clone()
        dist.all_reduce(total, op=how)
        return total

    def _gathered(self, values: Tensor, dim: int) -> list[Tensor]:
        if self.is_alone:
            return [values]
        length = int(self.max(torch.tensor(values.shape[dim], device=values.device)))
        missing = [0, 0] * (values.dim() - 1 - dim) + [0, length - values.shape[dim]]
        padded = pad(values.detach(), missing).contiguous()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        return parts


ALONE = Ranks()


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """The processes that Ray, torchrun or a launcher of your own has started.

    A process group that exists is used. Otherwise one is made from the variables that torchrun
    sets; without them a process is alone. If another process ends, LostRankError is raised.
    """
    outer = dist.is_available() and dist.is_initialized()
    if not outer and int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        yield ALONE
        return
    ranks = _ranks(None) if outer else _join()
    try:
        yield ranks
    except RuntimeError as error:
        if not is_lost(error):
            raise
        raise LostRankError(
            f"Another of this run's {ranks.size} processes stopped. Restart all of them to resume."
        ) from None
    finally:
        if not outer:
            with suppress(RuntimeError):  # others may be gone
                dist.destroy_process_group()


def _join() -> Ranks:
    """Make the process group from the variables of torchrun."""
    from torch.distributed.distributed_c10d import PrefixStore  # not part of every build
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
    # after a restart by torchrun, addresses of the processes before must not be found
    store = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    backend = "gloo"
    if torch.cuda.is_available():  # each process of a machine has a GPU of its own
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    return _ranks(store)


def _ranks(store: Any) -> Ranks:
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return Ranks(dist.get_rank(), dist.get_world_size(), here, store)


def is_lost(error: RuntimeError) -> bool:
    """Whether torch raised an error because another process is gone."""
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in text for word in LOST)


def shared_epoch(module: nn.Module, epoch: Epoch, ranks: Ranks) -> Epoch:
    """The epoch of all processes, from one that gives each its share of the loss."""
    model = DistributedDataParallel(_Forward(module, epoch))

    def whole() -> tuple[Tensor, Tensor]:
        share, score = model()
        first = score.to(share) if ranks.rank == 0 else torch.zeros_like(share)
        loss, score = ranks.sum(torch.stack([share.detach(), first])).unbind()
        scaled = ranks.size * share  # torch takes the mean of the gradients
        return scaled + (loss - scaled.detach()), score

    return whole


class _Forward(nn.Module):
    """A module whose forward pass is an epoch of another one."""

    def __init__(self, module: nn.Module, epoch: Epoch) -> None:
        super().__init__()
        self.module, self.epoch = module, epoch

    def forward(self) -> tuple[Tensor, Tensor]:
        return self.epoch()


class Shard(NamedTuple):
    """Nodes whose rows are in memory; of several processes each has every size-th row."""

    labels: Tensor  # (n,), -1 where hidden
    labelled: Tensor  # indices of the training nodes
    others: Tensor
    rows: Tensor  # (..., rows of this process, width)


@runtime_checkable
class Stateful(Protocol):
    """Something whose state a checkpoint stores."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors, numbers and lists of them, by name."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take what `state_dict` returned."""


class RowSupply(Stateful, Protocol):
    """Where an epoch gets its rows from; a checkpoint stores how far it has advanced."""

    @property
    def task(self) -> Task:
        """The whole task: its labels give class counts."""

    @property
    def ranks(self) -> Ranks:
        """The processes that share the rows."""

    @property
    def device(self) -> torch.device:
        """Where the rows are."""

    def advance(self) -> Shard:
        """The shard of the next epoch."""

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and labels of this process's validation nodes, block by block."""


def draw(nodes: Tensor, count: int) -> Tensor:
    """All nodes, or so many at random with replacement if there are more."""
    if nodes.numel() <= count:
        return nodes
    return nodes[torch.randint(nodes.numel(), (count,)).to(nodes.device)]


def validation_scores(logits: Tensor, labels: Tensor, rare: int | None, ranks: Ranks) -> Tensor:
    """Validation scores of M networks, (M,), from logits, (M, V, C); the same in all processes."""
    labels = labels.expand(len(logits), -1)
    which = labels.new_full((len(logits),), -1 if rare is None else rare)
    mask = ranks.gather(torch.ones_like(labels, dtype=torch.bool), 1)
    labels, logits = ranks.gather(labels, 1), ranks.gather(logits, 1)
    scores = batched_validation_scores(labels, logits, mask, which)
    return ranks.sum(scores if ranks.rank == 0 else torch.zeros_like(scores))


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """All rows in memory: one shard, one block of validation rows."""

    task: Task
    rows: Tensor
    ranks: Ranks = ALONE

    @property
    def device(self) -> torch.device:
        return self.rows.device

    @cached_property
    def _shard(self) -> Shard:
        others = (~self.task.train).nonzero().squeeze(1)
        return Shard(self.task.graph.y, self.task.train_nodes, others, self.rows)

    @cached_property
    def _validation(self) -> tuple[Tensor, Tensor]:
        part = self.ranks.part(self.task.val_nodes)
        return self.rows[..., part.rows, :], self.task.graph.y[part.nodes]

    def advance(self) -> Shard:
        return self._shard

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield self._validation

    def state_dict(self) -> dict[str, Any]:
        """Nothing: all epochs see the same rows."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to continue."""
