"""PackWriter: write a packed graph in stages that survive a kill."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import DTypeLike, NDArray

from evengraph import __version__
from evengraph.core.files import write_atomic
from evengraph.disk.packed_graph import FORMAT, HEADER, PackedGraph, PackError, file_hash

JOURNAL = "journal.json"


class PackWriter:
    """Writes the arrays of a graph into a hidden folder, which is renamed when it is complete.

    A stage whose facts are in the journal was finished and need not run again; a writer with
    another `source` starts afresh. The hidden folder is locked as long as the writer is open.

    Args:
        path: The folder to write; it must not exist.
        source: What the graph is made of and how: files with sizes and times, options.
    """

    def __init__(self, path: str | Path, source: Mapping[str, Any]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.source = json.loads(json.dumps(source))
        if self.path.exists() or self.path.is_symlink():
            raise FileExistsError(f"{path} exists; remove it or name another folder.")
        self.folder = self.path.parent / f".{self.path.name}.partial"
        self.resumed = False

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self.folder)
        journal = _read_journal(self.folder / JOURNAL)
        if journal.get("source") == self.source:
            self.facts: dict[str, dict[str, Any]] = journal["stages"]
            self.resumed = bool(self.facts)
        else:
            self.facts = {}
            for item in self.folder.iterdir():
                if item.name != "lock":
                    _remove(item)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._lock)
        if kind is not None and issubclass(kind, ValueError):  # bad input: nothing to resume
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_done(self, stage: str) -> bool:
        """Whether a stage was finished, now or before a kill."""
        return stage in self.facts

    def finish(self, stage: str, **facts: Any) -> None:
        """Note that a stage is finished, and what later stages or graph.json need of it."""
        self.facts[stage] = facts
        _write_json({"source": self.source, "stages": self.facts}, self.folder / JOURNAL)

    def create(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """A new array on disk to write into; flush it before the stage is finished."""
        path = self.folder / f"{name}.npy"
        if 0 in shape:  # a file of no bytes cannot be mapped
            empty = np.empty(shape, dtype=dtype)
            np.save(path, empty)
            return empty
        array: NDArray[Any] = open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        return array

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write a whole array."""
        np.save(self.folder / f"{name}.npy", values)

    def read(self, name: str) -> NDArray[Any]:
        """Map an array of an earlier stage."""
        array: NDArray[Any] = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        return array

    def publish(self, **header: Any) -> PackedGraph:
        """Write graph.json with counts and checksums, and rename the folder."""
        arrays = {}
        for path in sorted(self.folder.glob("*.npy")):
            array = self.read(path.stem)
            sums = {"sha256": file_hash(path)}
            arrays[path.stem] = {"dtype": str(array.dtype), "shape": list(array.shape)} | sums
        content = {
            "format": FORMAT,
            "evengraph": __version__,
            "num_nodes": arrays["y"]["shape"][0],
            "num_edges": arrays["indices"]["shape"][0],
            "num_features": arrays["x"]["shape"][1],
            **header,
            "arrays": arrays,
            "source": self.source,
        }
        for item in self.folder.iterdir():
            if item.suffix != ".npy" and item.name not in (JOURNAL, "lock"):
                _remove(item)
        _write_json(content, self.folder / HEADER)
        for name in (JOURNAL, "lock"):
            with suppress(OSError):
                (self.folder / name).unlink()
        os.rename(self.folder, self.path)
        return PackedGraph.open(self.path)


def _write_json(content: Any, path: Path) -> None:
    """Write JSON with all digits: encoders must give the same features again."""
    write_atomic((json.dumps(content, indent=1) + "\n").encode(), path)


def _read_journal(path: Path) -> dict[str, Any]:
    try:
        journal = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return journal if isinstance(journal, dict) else {}


def _lock(folder: Path) -> int:
    """Open and lock the folder; the system frees the lock when the process ends, however."""
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
    try:
        import fcntl
    except ImportError:  # not on Windows
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise PackError(f"{folder} is being written by another process.") from None
    return handle


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
