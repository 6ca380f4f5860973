"""Run the mirrored tests of a module against a mutant of it, in a process forked for it.

The slow imports are done once, in the parent.
"""

import contextlib
import importlib.machinery
import os
import resource
import signal
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "evengraph"


def prepare():
    """Import what all tests need, and nothing of the library."""
    import hypothesis  # noqa: F401
    import networkx  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.sparse  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # as in tests; the next import reads it
    import torch_geometric.data  # noqa: F401

    torch.set_num_threads(1)


def mirrors(path):
    """The tests of a module: files of its name, also with words that follow."""
    module = Path(path)
    folder = ROOT / "tests" / module.parent
    return [*folder.glob(f"test_{module.name}"), *sorted(folder.glob(f"test_{module.stem}_*.py"))]


def passes(path, tree, seconds):
    """Whether the tests of a module pass with this tree in its place; None past the limit."""
    process = os.fork()
    if not process:
        status = 3
        try:
            status = _test(path, tree, seconds)
        finally:
            os._exit(status)
    end = time.monotonic() + 20 * seconds  # of the clock, on a busy machine
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        time.sleep(0.05)
    if os.WIFSIGNALED(status):
        return None if os.WTERMSIG(status) == signal.SIGXCPU else False
    return os.WEXITSTATUS(status) == 0


def _test(path, tree, seconds):
    import pytest

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup
    limit = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target, plain = str(SOURCES / path), importlib.machinery.SourceFileLoader.get_code

    def get_code(self, name):
        if self.path == target:
            return compile(tree, target, "exec")
        return plain(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
            options += [
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
            ]  # of what prepare imports
            return int(pytest.main([*options, *map(str, mirrors(path))], plugins=[_Quick()]))


class _Quick:
    """Examples that fail are not made smaller."""

    def pytest_collection_finish(self):
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("quick", settings.get_profile("repeatable"), phases=phases)
        settings.load_profile("quick")
