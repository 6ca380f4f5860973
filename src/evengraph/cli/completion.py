"""What the shell completes: data sets, methods, experiments and paths.

A shell waits for the answer, and torch takes seconds to import: names are read from the files of
the package. Methods and data sets of other packages are entry points, whose names need no import.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from glob import escape, glob
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path


def complete_data(incomplete: str) -> list[str]:
    """Names of data sets, and paths."""
    return _starting(data_sets(), incomplete) + _paths(incomplete)


def complete_data_set(incomplete: str) -> list[str]:
    """Names of data sets."""
    return _starting(data_sets(), incomplete)


def complete_method(incomplete: str) -> list[str]:
    """Names of methods."""
    return _starting(methods(), incomplete)


def complete_methods(incomplete: str) -> list[str]:
    """The last name of a list such as `gcn,unignn`; no name twice."""
    before, comma, last = incomplete.rpartition(",")
    listed = before.split(",")
    names = [*methods(), *([] if comma else ["all"])]
    return [f"{before}{comma}{name}" for name in _starting(names, last) if name not in listed]


def complete_experiment(incomplete: str) -> list[str]:
    """Names of experiments, and paths of others."""
    return _starting(["all", *experiments()], incomplete) + _paths(incomplete, ".toml")


def data_sets() -> list[str]:
    """Names of all data sets."""
    text = files("evengraph").joinpath("datasets", "datasets.toml").read_text(encoding="utf-8")
    return [*tomllib.loads(text), "toy", *_plugins("evengraph.datasets")]


def methods() -> list[str]:
    """Names of all methods, in the order of `METHODS`."""
    text = files("evengraph").joinpath("methods", "__init__.py").read_text(encoding="utf-8")
    return [*re.findall(r'^ +"(\w+)": \w+,$', text, flags=re.M), *_plugins("evengraph.methods")]


def experiments() -> list[str]:
    """Names of all experiments, those of the paper first."""
    text = files("evengraph").joinpath("experiment", "sources.py").read_text(encoding="utf-8")
    tables = re.findall(r"^(?:EXPERIMENTS|BEYOND) = \((.*?)\)", text, flags=re.M | re.S)
    return re.findall(r'"(\w+)"', " ".join(tables))


def _plugins(group: str) -> list[str]:
    return [entry.name for entry in entry_points(group=group)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _paths(incomplete: str, suffix: str = "") -> list[str]:
    """Folders, and files with a suffix, that start so; hidden ones only if a dot is typed."""
    found = sorted(glob(f"{escape(incomplete)}*"))
    return [path for path in found if path.endswith(suffix) or Path(path).is_dir()]
