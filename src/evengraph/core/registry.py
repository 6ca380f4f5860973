"""Registry: a table of named objects that other packages extend through entry points."""

import logging
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import redirect_stdout
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from evengraph.core.errors import UnknownNameError, short, unknown

logger = logging.getLogger(__name__)
Item = TypeVar("Item")


class Registry(MutableMapping[str, Item]):
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
        self._items = dict(builtin)
        self._complete = False

    def __getitem__(self, name: str) -> Item:
        items = self._load()
        if name not in items:
            raise UnknownNameError(unknown(self.what, str(name), items, self.other_names))
        return items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    @property
    def what(self) -> str:
        return self.group.rpartition(".")[2].removesuffix("s")

    @property
    def other_names(self) -> dict[str, str]:
        """Names of entries under which users look for others, such as `xgboost`."""
        named = [(name, getattr(item, "other_names", ())) for name, item in self._load().items()]
        return {other: name for name, others in named for other in others}

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __setitem__(self, name: str, item: Item) -> None:
        self._load()[name] = item

    def __delitem__(self, name: str) -> None:
        del self._load()[name]

    def _load(self) -> dict[str, Item]:
        if not self._complete:
            self._complete = True  # set first: importing a plugin may use this table
            for entry in entry_points(group=self.group):
                package = entry.dist.name if entry.dist else "an unknown package"
                try:
                    self._items[entry.name] = self._plugin(entry)
                    self.packages[entry.name] = package
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # whatever a plugin's import raises
                    reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
                    text = "Ignored %r from package %s (entry point %s): %s."
                    logger.warning(text, entry.name, package, self.group, reason)
        return self._items

    def _plugin(self, entry: EntryPoint) -> Item:
        if entry.name in self._items:
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
        others = getattr(item, "other_names", ())
        if not isinstance(others, list | tuple) or not all(isinstance(n, str) for n in others):
            raise TypeError(f"other_names must be a list of names, got {short(others)}")
        return item
