"""Experiments that take seconds, rows made by hand, and processes to write at the same time."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from time import monotonic, sleep

from evengraph.lab.reproduce import job_spec
from evengraph.lab.spec import Entry, Setup, Spec
from evengraph.lab.store import JobSpec, Row
from evengraph.splits import SPLITS

PATIENCE = 120  # seconds until a test gives up on another process; none is meant to last that long


def make_job(**changes):
    """A job with a few fields; `method_fields` and the like may be given."""
    plain = {
        "dataset": "toy",
        "imbalance": "step",
        "imbalance_fields": {"minority": 3, "ratio": 0.1},
        "method": "gcn",
        "method_fields": {"max_epochs": 3, "patience": 10},
        "seed": 5,
    }
    return JobSpec(**plain | changes)


def toy_setup(imbalance="step", dataset="toy", **fields):
    protocol = SPLITS[imbalance](**fields)
    return Setup(dataset=dataset, imbalance=imbalance, fields=asdict(protocol))


def entry(label="GCN", method="gcn", **parts):
    return Entry(label=label, name=method, **parts)


def spec_of(*entries, seeds=(5, 6), setups=None, name="tiny", draws="comparison"):
    setups = setups or [toy_setup()]
    return Spec(
        name=name, title=name, draws=draws, seeds=list(seeds), setups=setups, entries=entries
    )


def toy_job(method="gcn", seed=5, setup=None, **settings):
    """A job that can be run."""
    return job_spec(setup or toy_setup(), method, settings, seed)


def ended(one, validation=50.0, test=50.0, **changes):
    """A row as a run leaves it."""
    metrics = dict.fromkeys(("balanced_accuracy", "macro_f1", "g_mean"), test)
    outcome = {"metrics": metrics, "validation": validation, "seconds": 0.5, "epochs": 3}
    return Row(job=one, outcome=outcome, **changes)


def failed(one, reason="ValueError: no"):
    return Row(job=one, status="failed", reason=reason)


def figures(rows):
    """What runs gave, by key, without what differs from one time to the next."""
    passing = ("seconds", "memory")
    return {
        row.job.key: (
            row.status,
            row.reason,
            {name: value for name, value in row.outcome.items() if name not in passing},
        )
        for row in rows
    }


def python(code, *arguments, **options):
    """Another Python at work."""
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code, *arguments], **options)


def wait_for(what, alive=None):
    """What a function gives once it gives something, as long as a process may still bring it."""
    give_up = monotonic() + PATIENCE
    while monotonic() < give_up:
        gone = alive is not None and alive.poll() is not None
        if found := what():
            return found
        assert not gone, f"the process ended with {alive.returncode} before its time"
        sleep(0.01)
    raise AssertionError("nothing came")


def damage(store, column, value, seed=5):
    """Put something else into a cell of the run with this seed."""
    with closing(sqlite3.connect(store.path)) as base:
        base.execute(f"UPDATE runs SET {column} = ? WHERE seed = ?", (value, seed))
        base.commit()


def running(store):
    """Jobs that living processes have claimed."""
    return sum(holder.jobs for holder in store.holders())
