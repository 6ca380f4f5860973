"""Commands in processes of their own, forked from one that has imported torch already."""

import multiprocessing
import os
import signal
import sys
from contextlib import contextmanager

from evengraph.cli import main

CONTEXT = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
if os.name != "nt":
    CONTEXT.set_forkserver_preload(["evengraph.cli.run", "evengraph.pipeline.run", "sklearn"])


class Command:
    """A running command: what `subprocess.Popen` gives, as far as tests need it."""

    def __init__(self, words, stdout, stderr):
        self.process = CONTEXT.Process(target=_run, args=(list(map(str, words)), stdout, stderr))
        self.process.start()

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        self.process.join()
        return self.returncode

    def kill(self):
        self.process.kill()
        self.process.join()


def _run(words, stdout, stderr):
    """Call the command line, with its output written to two files."""
    for number, path in ((1, stdout), (2, stderr)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY, 0o600)
        os.dup2(file, number)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(words)


@contextmanager
def command(*words, stdout=os.devnull, stderr=os.devnull):
    """The command in a process of its own, which is gone at the end."""
    child = Command(words, stdout, stderr)
    try:
        yield child
    finally:
        child.kill()
