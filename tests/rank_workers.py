"""Processes that train together: how tests start them, and what they call in each.

They are forked from a process that imports everything once. A fork of the test process would not
do: torch has used threads there.
"""

import multiprocessing
import os
import signal
import traceback
from datetime import timedelta
from pathlib import Path

START = multiprocessing.get_context("forkserver")
LIMIT = 120  # seconds


def run_ranks(folder, function, *arguments, size=2):
    """What a function of this module returns in each process, None where it died.

    It is called with the ranks, and with the arguments.
    """
    import torch

    START.set_forkserver_preload(["rank_workers", "torch_geometric", "evengraph.disk.models"])
    folder.mkdir()
    common = folder, size, function, arguments
    processes = [START.Process(target=_run, args=(rank, *common)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(LIMIT)
        process.kill()  # in case it hangs
    paths = [folder / f"{rank}.pt" for rank in range(size)]
    results = [torch.load(path, weights_only=False) if path.exists() else None for path in paths]
    for result in results:
        assert not isinstance(result, str), result  # a traceback
    return results


def _run(rank: int, folder: Path, size: int, function, arguments):
    import torch
    import torch.distributed as dist

    from evengraph.training.ranks import joined_ranks

    store = dist.FileStore(str(folder / "store"), size)
    wait = timedelta(seconds=LIMIT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=wait)
    try:
        with joined_ranks() as ranks:
            result = function(ranks, *arguments)
    except Exception as error:
        result = error if type(error).__name__ == "LostRankError" else traceback.format_exc()
    torch.save(result, folder / f"{rank}.pt")


def collectives(ranks):
    """One result of every operation, on values that tell the ranks apart."""
    import torch

    own = torch.arange(10)[ranks.own(10)]
    part = ranks.part(torch.tensor([5, 2, 2, 9, 0]))
    items = []
    ranks.each(items.append, list("abcde"))
    return {
        "own": own,
        "part": (part.nodes, part.rows, part.index, part.total, part.before(3)),
        "sum": ranks.sum(torch.tensor([1.0, ranks.rank])),
        "max": ranks.max(torch.tensor(ranks.rank)),
        "mean": ranks.sum(ranks.share_of_mean(own.float(), 10)),
        "gather": ranks.gather(torch.full((2, 1 + ranks.rank), 1 + ranks.rank), 1),
        "interleave": ranks.interleave(own[:, None], 10),
        "once": ranks.once(lambda: f"computed by {ranks.rank}"),
        "each": items,
    }


def gradients(ranks):
    """Loss, score and gradient of a share of a quadratic loss."""
    import torch

    from evengraph.training.ranks import shared_epoch

    module = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(module.weight)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])[ranks.own(3)]

    def epoch():
        return module(rows).square().sum() / 3, torch.tensor(1.0 + ranks.rank)

    whole = shared_epoch(module, epoch, ranks)  # has to live until the gradients are there
    loss, score = whole()
    loss.backward()
    return float(loss.detach()), float(score), module.weight.grad


def fit(ranks, graph, methods, limits):
    """History and predictions of methods that two processes fit to a graph on disk."""
    import torch

    from evengraph.disk import PackedGraph
    from evengraph.disk.models import DiskGraph
    from evengraph.splits import Natural

    set_limits(limits)
    disk = DiskGraph.open(PackedGraph.open(graph), 10**7 + ranks.rank, ranks=ranks)
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    results = []
    for method in methods:
        disk.fit(method, task, seed=3, progress=False)
        history = method.history_[0]
        predicted = disk.predict_nodes(method, torch.arange(disk.packed.num_nodes))
        results.append((history.loss, history.score, predicted))
    return results


def set_limits(limits):
    """Replace constants, wherever they are."""
    from evengraph.disk import learners, shards
    from evengraph.disk import models as on_disk

    for name, value in limits.items():
        module = {"SPAN": shards, "FULL": learners, "BATCH": learners}.get(name, on_disk)
        setattr(module, name, value)


def fit_and_die(ranks, graph, method, every, limits):
    """The second process kills itself in the sixth epoch; checkpoints are written at once."""
    from evengraph.disk import PackedGraph
    from evengraph.disk.models import DiskGraph
    from evengraph.splits import Natural
    from evengraph.training import loop as checkpoint

    set_limits(limits)
    checkpoint.Checkpoint.__init__.__defaults__ = (every, ranks)

    def on_epoch(history):
        if ranks.rank == 1 and history.epochs == 6:
            os.kill(os.getpid(), signal.SIGKILL)

    disk = DiskGraph.open(PackedGraph.open(graph), 10**7, ranks=ranks)
    task = Natural(train=0.3, val=0.2)(disk.labels(), seed=0)
    disk.fit(method, task, seed=3, progress=False, on_epoch=on_epoch)


def command(ranks, arguments):
    """Exit status and output of a command that two processes run."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    from evengraph.cli import main

    os.environ["WORLD_SIZE"] = str(ranks.size)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            main(arguments)
        except SystemExit as end:
            return end.code, out.getvalue(), err.getvalue()
