"""Run the cases of a reader in a process of its own, within limits of time and memory.

A case that ends the process is a failure like any other: a new process takes the next case.
"""

import contextlib
import faulthandler
import io
import json
import mmap
import os
import random
import resource
import shutil
import struct
import tempfile
import time
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
    seconds: float = 0.0

    def note(self, outcome, case, text=""):
        self.counts[outcome] += 1
        if outcome == "failed":
            kind, _, message = text.partition(" | ")
            self.failures.setdefault(kind, []).append((case, message))


def attack(reader, cases, seed=0, first=0):
    """Run cases of a reader; the same seed gives the same cases."""
    result = Result(reader.name)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        samples = Path(folder, "samples")
        samples.mkdir()
        reader.prepare(samples)
        for sample in sorted(samples.iterdir()):
            reader.read(sample)  # a valid file must be read
        case = first
        while case < first + cases:
            case = _run_process(reader, samples, (case, first + cases), seed, result)
    result.seconds = time.monotonic() - start
    return result


def _run_process(reader, samples, cases, seed, result):
    """Run cases in a new process until one ends it; returns the next case."""
    with tempfile.TemporaryFile() as log, mmap.mmap(-1, 8) as current:
        return _watch_process(reader, samples, cases, seed, result, current, log)


def _watch_process(reader, samples, cases, seed, result, current, log):
    """Fork; `current` is shared and holds the case that is being run."""
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(ours)
            _work(reader, samples, cases, seed, current, theirs, log)
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
        return cases[1]
    case = struct.unpack("q", current)[0]
    log.seek(0)
    stack = log.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        reason = f"killed by signal {os.WTERMSIG(status)}"
    else:
        reason = f"took more than {SECONDS} seconds" if "Timeout" in stack else "fuzzer: "
        reason += "" if "Timeout" in stack else stack.strip().splitlines()[-1][:150]
    result.note("failed", case, f"{reason} {_own_frame(stack)}")
    return case + 1


def _own_frame(stack):
    """The innermost line of the library in a stack that faulthandler wrote."""
    lines = [line.strip() for line in stack.splitlines() if "/evengraph/" in line]
    return lines[0].rpartition("/evengraph/")[2].replace('"', "") if lines else ""


def _work(reader, samples, cases, seed, current, pipe, log):
    _limit_memory()
    faulthandler.enable(log, all_threads=False)
    warnings.simplefilter("error")
    folder = samples.parent / "case"
    with open(pipe, "w", encoding="utf-8", buffering=1) as out:
        for case in range(*cases):
            current[:] = struct.pack("q", case)
            shutil.rmtree(folder, ignore_errors=True)
            stream = random.Random(f"{seed} {reader.name} {case}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = reader.mutate(stream, samples, folder)
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=log)
            outcome = _outcome(reader, path)
            faulthandler.cancel_dump_traceback_later()
            out.write(json.dumps([outcome[0], case, outcome[1]]) + "\n")
    os._exit(0)


def _limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _outcome(reader, path):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
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
