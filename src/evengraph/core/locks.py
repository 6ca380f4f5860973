"""Locks on folders, which end with the process that holds them, however it ends."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process holds the folder, then hold it."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """A folder in the same place under a temporary name, removed at the end if still there.

    Folders that killed processes left are removed first: nobody holds them.
    """
    for name in glob.glob(f"{glob.escape(str(beside.parent / f'.{beside.name}.'))}*.tmp"):
        _remove_if_free(Path(name))
    with ExitStack() as stack:
        name = _hold_new(beside, stack)
        try:
            yield Path(name)
        finally:
            shutil.rmtree(name, ignore_errors=True)


def _hold_new(beside: Path, stack: ExitStack) -> str:
    """Make a folder and hold it; another process may remove it before it is held."""
    while True:
        name = tempfile.mkdtemp(dir=beside.parent, prefix=f".{beside.name}.", suffix=".tmp")
        with suppress(FileNotFoundError):
            stack.enter_context(locked(Path(name)))
            if os.path.isdir(name):
                return name


def _remove_if_free(folder: Path) -> None:
    """Remove a folder that no process holds."""
    if fcntl is None:
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)
