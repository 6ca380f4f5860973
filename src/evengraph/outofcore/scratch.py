"""Folders for files that are needed only while a process works."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evengraph.core.processes import process_exists
from evengraph.core.sizes import format_size

PREFIX = ".scratch-"  # then the machine and the process that works there


@contextmanager
def scratch_folder(parent: Path, needed: int) -> Iterator[Path]:
    """A new folder that is removed at the end; after a kill, the next one removes it.

    Args:
        parent: The folder to create it in.
        needed: Bytes that will be written to it.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(parent)
    free = shutil.disk_usage(parent).free
    if needed > free:
        raise OSError(
            f"{parent} needs {format_size(needed)} for rows to learn from, and "
            f"{format_size(free)} are free."
        )
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{_mine()}{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove what processes of this machine were using when they were killed."""
    for path in parent.glob(f"{_mine()}*"):
        pid = path.name.removeprefix(_mine()).partition("-")[0]
        if pid.isdigit() and not process_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _mine() -> str:
    return f"{PREFIX}{socket.gethostname()}-"
