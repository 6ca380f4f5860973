"""What is killed, and what must hold afterwards."""

import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from functools import partial
from time import monotonic

import torch

from attack.kill.running import child, kill_during, run_alone
from attack.kill.transfers import downloads, packing
from evengraph.core.files import write_json
from evengraph.lab.reproduce import reproduce, run_stored
from evengraph.lab.spec import read_spec
from evengraph.lab.store import JobSpec, Row, Store
from evengraph.methods.bases.saving import read_model, write_model
from evengraph.pipeline.executor import Executor
from evengraph.report.model_card import MARK

STORES = 6  # that are made in a row, so that some are made while the kill comes
SWEEP = """
seeds = [5, 6]

[[setup]]
dataset = "toy"

[[method]]
name = "gcn"
fields = { max_epochs = 3 }
grid.hidden = [4, 8]
more_seeds = [7]

[[method]]
name = "reweight"
like = "GCN"
"""


def sweeps(folder, stream, tally, kills):
    """A sweep that is killed again and again ends with the rows of one that was left alone."""
    (folder / "sweep.toml").write_text(SWEEP)
    spec = read_spec(str(folder / "sweep.toml"))

    def sweep(path):
        run = partial(run_stored, store=path, executor=Executor())
        reproduce([spec], Store(path), run)

    seconds, ended = run_alone(partial(sweep, folder / "alone.sqlite"))
    tally.check(ended, "the sweep fails when left alone")
    wanted = _outcomes(folder / "alone.sqlite")
    number = 0
    while tally.kills < kills and not tally.failures:
        path = folder / f"killed{number}.sqlite"
        number += 1
        while not kill_during(partial(sweep, path), stream, seconds, tally):
            rows = _outcomes(path)
            tally.check(rows.items() <= wanted.items(), f"{path}: a run changed")
            _check_database(path, tally)
        tally.check(_outcomes(path) == wanted, f"{path}: a run is lost or doubled")
        tally.check(not Store(path).holders(), f"{path}: claims are left")


def creation(folder, stream, tally, kills):
    """A store whose making was cut short can be used, also by several at once."""

    def create(path):
        for index in range(STORES):
            Store(path.with_name(f"{path.name}-{index}")).add(_row(0))

    seconds, _ = run_alone(partial(create, folder / "alone"))
    for number in range(kills):
        path = folder / f"new{number}"
        kill_during(partial(create, path), stream, seconds, tally)
        for index in range(STORES):
            one = path.with_name(f"{path.name}-{index}")
            if one.exists():
                Store(one).add(_row(1))
                seeds = {row.job.seed for row in Store(one).rows()}
                tally.check(seeds in ({1}, {0, 1}), f"{one}: rows {seeds}")
                _check_database(one, tally)
        for left in folder.glob("new*"):
            left.unlink()


def rows(folder, stream, tally, kills):
    """Rows that were told to be stored are there, and none is half-written."""
    path = folder / "rows.sqlite"
    told = folder / "told"

    def write(first):
        store = Store(path)
        with told.open("a") as file:
            for seed in range(first, first + 150):
                store.claim([_row(seed).job])
                store.add(_row(seed))
                print(seed, file=file, flush=True)

    for number in range(kills):
        first = number * 1000
        kill_during(partial(write, first), stream, 0.3, tally)
        there = {row.job.seed: row for row in Store(path).rows()}
        seeds = [int(line) for line in told.read_text().split()] if told.exists() else []
        tally.check(set(seeds) <= set(there), "a stored row is lost")
        tally.check(len(there) - len(seeds) <= number + 1, "rows that nobody wrote")
        good = all(dict(row.outcome) == dict(_row(seed).outcome) for seed, row in there.items())
        tally.check(good, "a row changed")
    _check_database(path, tally)
    tally.check(not Store(path).holders(), "claims of the dead are alive")


def saves(folder, stream, tally, kills):
    """A folder holds the old model or the new one, and takes another save."""

    def save(path):
        for number in range(6):
            _save(path, number)

    for number in range(kills):
        path = folder / f"model{number}"
        if number % 3 == 1:
            path.mkdir()
        elif number % 3 == 2:
            _save(path, 9)
        kill_during(partial(save, path), stream, 0.05, tally)
        if path.exists() and (path / "model.json").exists():
            tally.check(_is_whole(path), f"{path} is half a model")
        else:
            tally.check(number % 3 != 2, f"{path} lost its model")
        try:
            _save(path, 3)
        except ValueError as error:
            tally.check(False, f"it cannot be saved to: {error}")
            shutil.rmtree(path)
            continue
        tally.check(_is_whole(path), f"{path} was not saved")
        tally.check(len(list(path.iterdir())) == 3, f"{path}: files are left")
        shutil.rmtree(path)
        _save(path, 3)  # a new folder, which also clears what is left beside it
        left = [one.name for one in folder.iterdir() if one != path]
        tally.check(not left, f"{path}: {left} are left beside it")
        shutil.rmtree(path)


def readers(folder, stream, tally, kills):
    """Readers beside a writer get whole rows and whole models."""
    path, model = folder / "store.sqlite", folder / "model"
    Store(path)
    _save(model, 0)

    def write():
        store, number = Store(path), 0
        while True:
            number += 1
            store.add(_row(number))
            _save(model, number % 10)

    with child(write):
        until = monotonic() + kills / 50
        while monotonic() < until:
            seeds = [row.job.seed for row in Store(path).rows()]
            tally.check(seeds == list(range(1, len(seeds) + 1)), "a reader missed a row")
            tally.check(_is_whole(model), "a reader got half a model")


def full_disks(folder, stream, tally, kills):
    """A full disk is told in one line with the path; what was there stays, and more fits later."""
    for _ in range(max(kills // 10, 3)):
        with _small_disk(folder, stream.randrange(300_000, 900_000)) as disk:
            _, ended = run_alone(partial(_fill, disk))
            tally.check(ended, "a full disk ended in another error; it is above")
        seeds = [row.job.seed for row in Store(disk / "store.sqlite").rows()]
        tally.check(seeds == list(range(len(seeds))), "a row is lost on a full disk")
        tally.check(_is_whole(disk / "model"), "a full disk left half a model")
        json.loads((disk / "result.json").read_text())
        tally.checks += 1
        shutil.rmtree(disk)


def _fill(disk):
    """Write until the disk is full, each kind of file."""
    writers = (
        lambda n: Store(disk / "store.sqlite").add(_row(n)),
        lambda n: _save(disk / "model", n, size=3000 * n),
        lambda n: write_json(list(range(1000 * n)), disk / "result.json"),
    )
    for write in writers:
        write(0)
    for write in writers:
        _check_error(disk, _first_error(write))


def _first_error(write):
    for number in range(1, 3000):
        try:
            write(number)
        except (OSError, ValueError) as error:
            return error
    raise AssertionError("the disk did not fill up")


def _check_error(disk, error):
    assert len(str(error).splitlines()) == 1, error
    assert str(disk) in str(error), error
    assert getattr(error, "errno", errno.ENOSPC) in (errno.ENOSPC, errno.EFBIG), error


@contextmanager
def _small_disk(folder, size):
    """A small file system where mounting is allowed, else a limit on the size of files."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if shutil.which("mount") and not subprocess.run(mount, capture_output=True).returncode:
        try:
            yield disk
            copy = folder / "copy"
            shutil.copytree(disk, copy)
        finally:
            subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()
        copy.rename(disk)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield disk
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _row(seed):
    job = JobSpec(
        dataset="toy",
        imbalance="step",
        imbalance_fields={"ratio": 0.1},
        method="gcn",
        method_fields={"hidden": 8},
        seed=seed,
    )
    outcome = {"metrics": {"accuracy": seed}, "validation": seed, "parts": [[seed] * 20] * 20}
    return Row(job=job, outcome=outcome)


def _save(folder, number, size=2000):
    tensors = {"a": torch.full((size + 1,), float(number))}
    write_model(folder, {"method": "gcn", "number": number}, tensors, card=f"{MARK}\n{number}")


def _is_whole(folder):
    try:
        about, tensors = read_model(folder)
    except ValueError:
        return False
    return bool((tensors["a"] == about["number"]).all())


def _outcomes(path):
    """What runs gave, without what differs from one time to the next."""
    if not path.exists():
        return {}
    passing = ("seconds", "memory")
    return {
        row.job.key: str({n: v for n, v in row.outcome.items() if n not in passing})
        for row in Store(path).rows()
    }


def _check_database(path, tally):
    if path.exists() and os.path.getsize(path):
        with closing(sqlite3.connect(path)) as base:
            found = base.execute("PRAGMA integrity_check").fetchone()
        tally.check(found == ("ok",), f"{path}: {found[0]}")


SCENARIOS = {
    "sweeps": sweeps,
    "creation": creation,
    "rows": rows,
    "saves": saves,
    "readers": readers,
    "full disks": full_disks,
    "downloads": downloads,
    "packing": packing,
}
