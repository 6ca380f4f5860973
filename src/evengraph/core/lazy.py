"""Names of a package that are imported on first use, because torch takes seconds to import."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
