"""Child processes that are killed at random moments, and a count of those that were writing."""

import mmap
import os
import signal
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, sleep

from evengraph.core import files
from evengraph.methods.bases import saving as model_folder

WRITING = mmap.mmap(-1, 1)  # shared with the children
LATEST = 1.1  # kills fall within this part of the time that the work takes alone


@dataclass
class Tally:
    """What an attack did and what it found."""

    name: str
    kills: int = 0
    writing: int = 0  # kills that fell while something was being written
    late: int = 0  # children that had ended before
    checks: int = 0
    failures: list = field(default_factory=list)
    seconds: float = 0.0

    def check(self, good, what):
        self.checks += 1
        if not good:
            self.failures.append(what)

    def line(self):
        return (
            f"{self.name:14} {self.kills:5,} kills, {self.writing:5,} while writing, "
            f"{self.late:4,} too late; {self.checks:6,} checks, {len(self.failures):3,} failures; "
            f"{self.seconds:.0f} s"
        )


@contextmanager
def child(work):
    """A process that does some work; it is gone at the end."""
    WRITING[0] = 0
    process = os.fork()
    if not process:
        status = 1
        try:
            _watch_writes()
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    try:
        yield process
    finally:
        try:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def run_alone(work):
    """Do the work in a child to its end; returns seconds and whether it ended well."""
    started = perf_counter()
    with child(work) as process:
        status = os.waitpid(process, 0)[1]
    return perf_counter() - started, status == 0


def kill_during(work, stream, seconds, tally, *, aimed=False):
    """Start the work and kill it at a random moment; returns whether it had ended well before.

    With `aimed`, half of the kills wait for the next write: where writes are short, few would hit.
    """
    with child(work) as process:
        sleep(stream.random() * LATEST * seconds)
        if aimed and stream.random() < 0.5:
            _await_write(perf_counter() + seconds)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        tally.kills += 1
        tally.writing += WRITING[0]
        return False
    tally.late += 1
    tally.check(os.WEXITSTATUS(status) == 0, "a child failed by itself; its error is above")
    return True


def _await_write(end):
    while not WRITING[0] and perf_counter() < end:
        sleep(0.0001)


def _watch_writes():
    """Let the parent see when this process writes."""
    write, atomic = files.SqliteFile.write, files.write_atomic

    @contextmanager
    def writing_store(self):
        with write(self) as base, flagged():
            yield base

    def writing_file(content, path):
        with flagged():
            atomic(content, path)

    files.SqliteFile.write = writing_store
    files.write_atomic = model_folder.write_atomic = writing_file


@contextmanager
def flagged():
    """Tell the parent that something is being written."""
    WRITING[0] = 1
    try:
        yield
    finally:
        WRITING[0] = 0
