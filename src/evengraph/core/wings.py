"""Doors to the wings: the main house imports none of them, and finds what it needs by name."""

from importlib import import_module
from pathlib import Path
from typing import Any

PACKED = "graph.json"
"""The file that makes a folder a packed graph."""


def wing(name: str) -> Any:
    """A wing such as `disk`, imported when it is needed."""
    return import_module(f"evengraph.{name}")


def is_packed(path: Any) -> bool:
    """Whether it is the path of a packed graph, which the wing `disk` opens."""
    return isinstance(path, str | Path) and (Path(path).expanduser() / PACKED).is_file()


def stays_on_disk(path: Any) -> bool:
    """Whether it is a packed graph that does not fit in memory."""
    return is_packed(path) and bool(wing("disk").exceeds_memory(path))
