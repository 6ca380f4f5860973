"""Files of experiments, by name or path; without torch, which takes seconds to import."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from evengraph.core.errors import unknown
from evengraph.core.files import packaged

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
