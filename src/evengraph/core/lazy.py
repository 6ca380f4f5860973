"""What is imported on first use: names of a package, since torch takes seconds; wings; extras.

The main house imports no wing, and finds what it needs of one by name.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from evengraph.core.errors import MissingPackageError


def lazy(
    package: str, names: Mapping[str, Sequence[str]], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from the public names of each module.

    `modules` are modules by the name under which the package shows them.
    """
    homes = {name: module for module, found in names.items() for name in found}
    shown = dict(modules or {})

    def get(name: str) -> Any:
        if name in shown:
            return import_module(f"{package}.{shown[name]}")
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*homes, *shown})


def import_optional(module: str, source: str) -> Any:
    """Import a module of an extra; MissingPackageError says what pip installs it from."""
    try:
        return import_module(module)
    except ImportError:
        where = ", in a copy of the repository" if source.startswith("'.[") else ""
        message = f"{module} is not installed; try{where}: pip install {source}."
        raise MissingPackageError(message) from None


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
