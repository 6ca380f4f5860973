"""Files of experiments, by name or path; without torch, which takes seconds to import."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import evengraph
from evengraph.core.errors import unknown
from evengraph.core.files import packaged, read_settings
from evengraph.lab.store import Row

EXPERIMENTS = ("table1", "table2", "table3", "figure2")
BEYOND = (  # the paper; `all` leaves them out
    *("newer", "publicstep", "publicraw", "unreal", "natural", "readings", "budget", "control"),
    *("machines", "starts", "successor", "parts", "portfolio", "ties", "heavyraw", "heavyscaled"),
)


def expand(names: Sequence[str]) -> list[str]:
    """Each experiment once; `all` is every experiment of the paper."""
    expanded = [one for name in names for one in (EXPERIMENTS if name == "all" else (name,))]
    return list(dict.fromkeys(expanded))


def source(name: str) -> Traversable:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"There is no file {name}.")
        return path
    if name not in (*EXPERIMENTS, *BEYOND):
        raise ValueError(unknown("experiment", name, [*EXPERIMENTS, *BEYOND, "all", "FILE.toml"]))
    return packaged(f"{name}.toml")


def inputs_of(name: str, part: Mapping[str, Any]) -> str:
    """Hash of all that determines the runs of a part of an experiment, but for their results."""
    text = read_settings(source(name))
    state = repr((text, sorted(part.items()), _library()))
    return hashlib.sha256(state.encode(errors="surrogatepass")).hexdigest()


def finished_mark(inputs: str, rows: Iterable[Row], cells: Sequence[Any]) -> dict[str, Any]:
    """What a store keeps of a finished experiment, whose cells hold the keys of most rows."""
    shown = {key for cell in cells for key in cell["keys"]}
    others = {row.job.key: row.status for row in rows if row.job.key not in shown}
    return {"inputs": inputs, "others": others}


def is_finished(
    content: Mapping[str, Any], inputs: str, stored: Mapping[str, Sequence[Any]]
) -> bool:
    """Whether an experiment was finished from the same inputs, and all its rows are stored."""
    mark = content.get("finished")
    if not isinstance(mark, dict) or mark.get("inputs") != inputs:
        return False
    shown = {key: "done" for cell in content["cells"] for key in cell["keys"]}
    wanted = mark["others"] | shown
    return all(key in stored and stored[key][0] == status for key, status in wanted.items())


def _library() -> list[Any]:
    root = Path(evengraph.__file__).parent
    paths = sorted(path for path in root.rglob("*") if path.suffix in (".py", ".toml", ".csv"))
    states = [path.stat() for path in paths]
    files = [
        (str(path.relative_to(root)), state.st_size, state.st_mtime_ns)
        for path, state in zip(paths, states, strict=True)
    ]
    plugins = [entry_points(group=f"evengraph.{table}") for table in ("methods", "datasets")]
    added = sorted((one.value, one.dist and one.dist.version) for group in plugins for one in group)
    return [files, added]
