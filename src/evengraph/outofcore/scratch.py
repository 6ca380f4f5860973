"""Temporary folders, which the next process removes if theirs was killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evengraph.core.processes import is_abandoned, process_mark
from evengraph.core.sizes import format_size

PREFIX = ".scratch-"  # then the mark of the process that works there


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
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{PREFIX}{process_mark()}"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove what processes of this machine were using when they were killed."""
    for path in parent.glob(f"{PREFIX}*"):
        if is_abandoned(path.name.removeprefix(PREFIX)):
            shutil.rmtree(path, ignore_errors=True)
