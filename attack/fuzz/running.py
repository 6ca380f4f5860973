"""Run the cases of a reader in a process of its own, within limits of time and memory.

A case that ends the process is a failure like any other: a new process takes the next case.
"""

import contextlib
import faulthandler
import gc
import json
import mmap
import os
import random
import resource
import shutil
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from evengraph.core.text import printable

SECONDS = 10
MEMORY = 2 * 2**30
"""Bytes that a case may take beyond what the process has before it."""


@dataclass
class Result:
    """How many cases were read or refused, and the first case of every kind of failure."""

    name: str
    counts: Counter = field(default_factory=Counter)
    failures: dict = field(default_factory=dict)
    seconds: float = 0.0  # of CPU

    @contextlib.contextmanager
    def timed(self):
        """Count the CPU time of the processes that end meanwhile."""
        start = os.times()
        yield
        end = os.times()
        self.seconds += end.children_user + end.children_system
        self.seconds -= start.children_user + start.children_system

    @property
    def total(self):
        return sum(self.counts.values())

    def note(self, outcome, case, text=""):
        self.counts[outcome] += 1
        if outcome == "failed":
            kind, _, message = text.partition(" | ")
            self.failures.setdefault(kind, []).append((case, message))


@contextlib.contextmanager
def prepared(reader):
    """A folder in memory, if there is one, with valid files of a reader, each of which is read."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(
        prefix="attack-", dir=memory if os.path.isdir(memory) else None
    ) as folder:
        samples = Path(folder, "samples")
        samples.mkdir()
        reader.prepare(samples)
        for sample in sorted(samples.iterdir()):
            reader.read(sample)  # a valid file must be read
        yield samples


def attack(reader, cases, seed=0, first=0, result=None):
    """Run cases of a reader; the same seed gives the same cases."""
    result = result or Result(reader.name)
    with prepared(reader) as samples, result.timed():
        case, end = first, first + cases
        while case < end:
            part = range(case, end)

            def work(run, part=part):
                for case in part:
                    run(case, random.Random(f"{seed} {reader.name} {case}"))

            failed = run_process(reader, samples, work, result)
            case = end if failed is None else failed + 1
    return result


def run_process(reader, samples, work, result):
    """Let `work` run cases in a new process; returns the case that ended it early, else None.

    `work` is given a function that runs one case: its name and its random stream.
    """
    with tempfile.TemporaryFile() as log, mmap.mmap(-1, 4096) as current:
        return _watch_process(reader, samples, work, result, current, log)


def _watch_process(reader, samples, work, result, current, log):
    """Fork; `current` is shared and holds the case that is being run."""
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(ours)
            _work(reader, samples, work, current, theirs, log)
        except BaseException:
            log.write(traceback.format_exc().encode())
            log.flush()
        finally:
            os._exit(3)
    os.close(theirs)
    with open(ours, encoding="utf-8") as lines:
        for line in lines:
            result.note(*json.loads(line))
    _, status = os.waitpid(process, 0)
    if status == 0:
        return None
    case = json.loads(current[:].rstrip(b"\0"))
    log.seek(0)
    stack = log.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        reason = f"killed by signal {os.WTERMSIG(status)}"
    else:
        last = (stack.strip().splitlines() or [f"status {os.WEXITSTATUS(status)}"])[-1][:150]
        late = "Timeout" in stack
        reason = f"took more than {SECONDS} seconds" if late else f"fuzzer: {last}"
    result.note("failed", case, f"{reason} {_own_frame(stack)}")
    return case


def _own_frame(stack):
    """The innermost line of the library in a stack that faulthandler wrote."""
    lines = [line.strip() for line in stack.splitlines() if "/evengraph/" in line]
    return lines[0].rpartition("/evengraph/")[2].replace('"', "") if lines else ""


def _work(reader, samples, work, current, pipe, log):
    _limit_memory()
    os.dup2(log.fileno(), 2)
    faulthandler.enable(log, all_threads=False)
    warnings.simplefilter("error")
    gc.freeze()  # what is imported is not searched again in every case
    folder = samples.parent / "case"
    with open(pipe, "w", encoding="utf-8", buffering=1) as out:

        def run(case, stream):
            current[:] = json.dumps(case).encode().ljust(len(current), b"\0")
            shutil.rmtree(folder, ignore_errors=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = reader.mutate(stream, samples, folder)
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=log)
            outcome = _outcome(reader, path)
            faulthandler.cancel_dump_traceback_later()
            out.write(json.dumps([outcome[0], case, outcome[1]]) + "\n")

        work(run)
    os._exit(0)


def _limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _outcome(reader, path):
    try:
        with (
            open(os.devnull, "w") as nothing,
            contextlib.redirect_stdout(nothing),
            contextlib.redirect_stderr(nothing),
        ):
            reader.read(path)
    except (ValueError, OSError) as error:
        flaw = reader.accepts_errors and _flaw(error, path)
        if not reader.accepts_errors:
            flaw = "an error where there should be none"
        return ("refused", "") if not flaw else ("failed", f"{flaw}: {_describe(error)}")
    except BaseException as error:
        return "failed", _describe(error)
    return "read", ""


def _flaw(error, path):
    """What is wrong with an error message; empty for one line that names the file."""
    text = str(error)
    if isinstance(error, UnicodeError):
        return "raw error"
    if "allocate" in text or "out of memory" in text:
        return f"more than {MEMORY >> 30} GiB"
    if not text.strip() or "\n" in text.strip():
        return "not one line"
    if len(text) > 3000:
        return "a long line"
    if not any(printable(name) in text for name in (path.name, path.stem)):
        return "no file named"
    return ""


def _describe(error):
    """The type and message of an error, and the line of the library that it came from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/evengraph/" in f.filename]
    place = ""
    if frames:
        file = frames[-1].filename.rpartition("/evengraph/")[2]
        place = f" in {file}:{frames[-1].lineno} {frames[-1].name}"
    text = " ".join(str(error).split())[:80]
    return f"{type(error).__name__}{place} | {text}".encode("ascii", "backslashreplace").decode()
