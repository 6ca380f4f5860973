"""Registry: a table of named objects that other packages extend through entry points."""

import logging
import sys
from collections import UserDict
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from evengraph.core.errors import UnknownNameError, unknown

logger = logging.getLogger(__name__)
Item = TypeVar("Item")


class Registry(UserDict[str, Item]):
    """A table of named objects: our own, then those of installed packages, by entry points.

    These are read on first use, not on import: a plugin's module can then import evengraph before
    its own class is defined. A plugin that cannot be used, or has the name of one of ours, is
    skipped with a warning. Entries are instances of `base`, or `subclasses` of it, each named by
    its class name in lower case.
    """

    def __init__(
        self, group: str, base: type, builtin: Mapping[str, Item], *, subclasses: bool = False
    ) -> None:
        self.group, self.base, self.subclasses = group, base, subclasses
        self.packages: dict[str, str] = {}
        """The package that each plugin comes from, by the plugin's name."""
        self._builtin = builtin

    def __missing__(self, name: str) -> Item:
        raise UnknownNameError(unknown(self.what, str(name), self))

    @property
    def what(self) -> str:
        return self.group.rpartition(".")[2].removesuffix("s")

    @cached_property
    def data(self) -> dict[str, Item]:  # type: ignore[override]
        """All entries, once they are needed."""
        # known first: importing a plugin may use this table
        self.__dict__["data"] = items = dict(self._builtin)
        for entry in entry_points(group=self.group):
            package = entry.dist.name if entry.dist else "an unknown package"
            try:
                items[entry.name] = self._plugin(entry)
                self.packages[entry.name] = package
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a plugin's import raises
                reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
                text = "Ignored %r from package %s (entry point %s): %s."
                logger.warning(text, entry.name, package, self.group, reason)
        return items

    def _plugin(self, entry: EntryPoint) -> Item:
        if entry.name in self.data:
            raise ValueError(f"the name {entry.name!r} is taken")
        with redirect_stdout(sys.stderr):  # what it prints is no part of a result
            item: Item = entry.load()
        if not self.subclasses:
            valid, kind = isinstance(item, self.base), "an instance"
        else:
            valid, kind = isinstance(item, type) and issubclass(item, self.base), "a subclass"
        if not valid:
            raise TypeError(f"{entry.value} must be {kind} of {self.base.__name__}, got {item!r}")
        if isinstance(item, type) and item.__name__.lower() != entry.name:
            raise ValueError(f"the entry point must be named {item.__name__.lower()!r}")
        return item
