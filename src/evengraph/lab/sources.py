"""Files of experiments, by name or path; without torch, which takes seconds to import."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import evengraph
from evengraph.core.errors import unknown
from evengraph.core.files import packaged, read_settings
from evengraph.lab.store import Row

EXPERIMENTS = ("table1", "table2", "table3", "figure2")
BEYOND = (
    "newer",
    "publicstep",
    "publicraw",
    "unreal",
    "natural",
    "readings",
    "budget",
    "control",
    "machines",
    "starts",
    "successor",
    "parts",
    "portfolio",
)
"""Experiments beyond the paper; `all` leaves them out."""


def expand(names: Sequence[str]) -> list[str]:
    """Each experiment once; `all` is every experiment of the paper."""
    expanded = [one for name in names for one in (EXPERIMENTS if name == "all" else (name,))]
    return list(dict.fromkeys(expanded))


def source(name: str) -> Traversable:
    """The file of an experiment."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"There is no file {name}.")
        return path
    if name not in (*EXPERIMENTS, *BEYOND):
        raise ValueError(unknown("experiment", name, [*EXPERIMENTS, *BEYOND, "all", "FILE.toml"]))
    return packaged(f"{name}.toml")


SUFFIXES = (".py", ".toml", ".csv")


def inputs_of(name: str, part: Mapping[str, Any]) -> str:
    """Hash of all that determines the runs of an experiment, but for the results of its runs.

    Args:
        name: Name of the experiment or path of its file.
        part: The options that select a part of it.
    """
    text = read_settings(source(name))
    state = repr((text, sorted(part.items()), _library()))
    return hashlib.sha256(state.encode(errors="surrogatepass")).hexdigest()


def finished_mark(inputs: str, rows: Iterable[Row], cells: Sequence[Any]) -> dict[str, Any]:
    """What a store keeps of a finished experiment.

    Args:
        inputs: Hash of what determines its runs.
        rows: All its rows.
        cells: Its cells, which hold the keys of most rows.
    """
    shown = {key for cell in cells for key in cell["keys"]}
    others = {row.job.key: row.status for row in rows if row.job.key not in shown}
    return {"inputs": inputs, "others": others}


def is_finished(
    content: Mapping[str, Any], inputs: str, stored: Mapping[str, Sequence[Any]]
) -> bool:
    """Whether an experiment was finished from the same inputs, and all its rows are there.

    Args:
        content: The experiment as the store has it.
        inputs: Hash of what determines its runs.
        stored: Status and values of all rows, by key.
    """
    mark = content.get("finished")
    if not isinstance(mark, dict) or mark.get("inputs") != inputs:
        return False
    shown = {key: "done" for cell in content["cells"] for key in cell["keys"]}
    return all(
        key in stored and stored[key][0] == status
        for key, status in (mark["others"] | shown).items()
    )


def _library() -> list[Any]:
    """The files of the library, and the packages that add methods or search parameters."""
    root = Path(evengraph.__file__).parent
    paths = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES)
    files = [(str(path.relative_to(root)), *_state(path)) for path in paths]
    plugins = [entry_points(group=f"evengraph.{table}") for table in ("methods", "datasets")]
    added = sorted((one.value, one.dist and one.dist.version) for group in plugins for one in group)
    try:
        return [files, added, version("optuna")]
    except PackageNotFoundError:
        return [files, added]


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
