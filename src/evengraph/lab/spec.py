"""Experiment files: TOML that says what to run and how to draw it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from evengraph.core.errors import listed, one_line_errors, unknown
from evengraph.core.files import read_settings
from evengraph.core.schema import SchemaError, read
from evengraph.datasets.loading import lookup
from evengraph.lab.sources import source
from evengraph.methods import METHODS, Method
from evengraph.pipeline.parameters import (
    check_field,
    check_type,
    known_method,
    parse_seeds,
    renamed_params,
)
from evengraph.splits import SPLITS

MOST_VALUES = 10_000  # of one parameter
MOST_RUNS = 1_000_000  # of an experiment: a line of its file can stand for billions
MOST_PARTS = 100  # of a dotted key: to parse one takes memory that grows with their square
MOST_QUOTED_PARTS = 10  # between which the others are counted
_NO_KEY = re.compile(r"[^\w.\s\"'-]")
_AFTER_QUOTE = re.compile(r"""["'][ \t]*\.[ \t]*[\w"'-]""")  # a quoted part may hold any character

Fields = Mapping[str, Any]
Draws = Literal["comparison", "ablation", "sensitivity"]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A setting: a data set with its split protocol and all parameters of the protocol."""

    dataset: str
    imbalance: str
    fields: Fields

    @property
    def name(self) -> str:
        """Such as cora-step-3-0.1."""
        varied = (self.fields.get(name) for name in ("minority", "ratio", "train"))
        words = [self.dataset, self.imbalance, *(str(v) for v in varied if v is not None)]
        return "-".join(words)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A [[method]] of an experiment, and where its parameters come from."""

    name: str
    label: str = ""  # in tables; by default the title of the method
    fields: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)  # one is selected on validation
    vary: dict[str, list[Any]] = field(default_factory=dict)  # every value is shown
    like: str = ""  # start from what was selected for another entry, by its label
    presets: bool = False  # start from the preset of the setting
    more_seeds: Any = ()  # beyond those of the selection
    note: str = ""  # what the literature says of it, for the report


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: what to run and how to draw it."""

    name: str  # of the file
    title: str
    draws: Draws
    seeds: Sequence[int]  # parameters are selected on them
    setups: Sequence[Setup]
    entries: Sequence[Entry]
    shared: Fields = field(default_factory=dict)  # parameters of all methods, unless they set them

    def narrowed(
        self, *, seeds: Sequence[int] = (), methods: Sequence[str] = (), setups: Sequence[str] = ()
    ) -> Spec:
        """Select a part of the experiment; entries that others start from stay."""
        matching = [s for s in self.setups if not setups or any(part in s.name for part in setups)]
        if not matching:
            allowed = ", ".join(setup.name for setup in self.setups)
            raise ValueError(f"No setting of {self.name} matches {listed(setups)}: {allowed}.")
        wanted = [e for e in self.entries if not methods or e.name in methods]
        bases = {entry.like for entry in wanted}
        entries = [e for e in self.entries if e in wanted or e.label in bases]
        if not entries:
            allowed = ", ".join(dict.fromkeys(entry.name for entry in self.entries))
            raise ValueError(f"{self.name} has none of {listed(methods)}; it has {allowed}.")
        if seeds:
            entries = [replace(entry, more_seeds=()) for entry in entries]
        return replace(self, setups=matching, entries=entries, seeds=seeds or self.seeds)


@one_line_errors()
def read_spec(name: str, *, quick: bool = False) -> Spec:
    """Read an experiment by its name or the path of its file."""
    file = source(name)
    text = read_settings(file)
    try:
        check_keys(text)
        content = tomllib.loads(text)
        content.pop("map", None)  # version 0.2 drew the nodes of a run
        parts = read(_File, content)
        spec = _spec(parts, Path(file.name).stem)
        runs = 0
        for entry in spec.entries:
            settings = math.prod(map(len, (entry.grid or entry.vary).values()))
            runs += settings * (len(spec.seeds) + len(entry.more_seeds)) * len(spec.setups)
        if runs > MOST_RUNS:
            allowed = f"an experiment may have at most {MOST_RUNS:,} runs"
            raise ValueError(f"{allowed}, this has {runs:,}")
        return _quick(spec, parts.quick) if quick else spec
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply.") from None
    except TypeError:  # JSON has none
        raise ValueError(f"{file}: a date is no value of an experiment.") from None
    except ValueError as error:
        raise ValueError(f"{file}: {str(error).rstrip('.')}.") from None


def check_keys(text: str) -> None:
    """Raise ValueError for a line with a key of too many parts, `a.b.c...`."""
    for number, line in enumerate(text.split("\n"), 1):  # as TOML, which knows no other line ends
        if line.lstrip().startswith("#"):
            continue
        most = max(part.count(".") for part in _NO_KEY.split(line))
        allowed = f"line {number}: a key may have at most"
        if most > MOST_PARTS:
            raise ValueError(f"{allowed} {MOST_PARTS} parts")
        if len(_AFTER_QUOTE.findall(line)) > MOST_QUOTED_PARTS:
            raise ValueError(f"{allowed} {MOST_QUOTED_PARTS} parts in quotes")


@dataclass(frozen=True, kw_only=True)
class _Small:
    """The [quick] part of a file."""

    seeds: Any = None
    setups: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _File:
    """The content of an experiment file."""

    setup: list[dict[str, Any]]
    method: list[Entry]
    title: str | None = None
    draws: Draws = "comparison"
    seeds: Any = "5-7"
    fields: dict[str, Any] = field(default_factory=dict)
    quick: _Small = field(default_factory=_Small)


@contextmanager
def _at(*path: str | int) -> Iterator[None]:
    """Name where in a file a value is wrong."""
    try:
        yield
    except (ValueError, TypeError) as error:
        where = str(SchemaError("", *path)).strip()
        raise ValueError(f"{where}: {error}" if where else str(error)) from None


def _spec(parts: _File, name: str) -> Spec:
    for table in ("setup", "method"):
        if not getattr(parts, table):
            raise SchemaError("must not be empty", table)
    spec = Spec(
        name=name,
        title=parts.title or name,
        draws=parts.draws,
        seeds=_seeds(parts.seeds, "seeds"),
        setups=[_setup(part, index) for index, part in enumerate(parts.setup)],
        entries=[_entry(part, index) for index, part in enumerate(parts.method)],
        shared=parts.fields,
    )
    for entry in spec.entries:
        _check_values(METHODS[entry.name], {k: [v] for k, v in parts.fields.items()}, "fields")
    seen: dict[str, Entry] = {}
    for index, entry in enumerate(spec.entries):
        if entry.label in seen:
            text = f"two methods are called {entry.label!r}; give a label"
            raise SchemaError(text, "method", index, "label")
        with _at("method", index, "like"):
            if entry.like and entry.like not in seen:
                known = unknown("label", entry.like, seen)
                raise ValueError(f"{known} It must be defined above")
            base = seen.get(entry.like)
            while base is not None:  # the method must have the parameters it starts from
                for param in {*base.fields, *base.grid}:
                    check_field(METHODS[entry.name], param)
                base = seen.get(base.like)
        seen[entry.label] = entry
    return spec


def _setup(part: dict[str, Any], index: int) -> Setup:
    path, params = ("setup", index), dict(part)
    dataset, imbalance = params.pop("dataset", None), params.pop("imbalance", "step")
    for key, value in (("dataset", dataset), ("imbalance", imbalance)):
        if not isinstance(value, str):
            raise SchemaError("must be a name in quotes", *path, key)
    with _at(*path, "dataset"):
        lookup(dataset)
    if imbalance not in SPLITS:
        raise SchemaError(unknown("imbalance", imbalance, SPLITS), *path, "imbalance")
    kind = SPLITS[imbalance]
    for name, value in params.items():
        with _at(*path):
            if name not in (allowed := [item.name for item in fields(kind)]):
                raise ValueError(unknown(f"parameter of {imbalance}", name, allowed))
            check_type(kind, name, value)
    with _at(*path):
        protocol: Any = kind(**params)
    return Setup(dataset=dataset, imbalance=imbalance, fields=asdict(protocol))


def _entry(part: Entry, index: int) -> Entry:
    path = "method", index
    with _at(*path, "name"):
        kind = METHODS[known_method(part.name)]
    if part.grid and part.vary:
        raise SchemaError("excludes grid", *path, "vary")
    if len(part.vary) > 1:
        raise SchemaError("takes one parameter; use a [[method]] for each", *path, "vary")
    _check_values(kind, {name: [value] for name, value in part.fields.items()}, *path, "fields")
    for name in ("grid", "vary"):
        _check_values(kind, getattr(part, name), *path, name)
    seeds = _seeds(part.more_seeds, *path, "more_seeds")
    name, label = known_method(part.name), part.label.strip() or kind.title
    return replace(part, name=name, label=label, more_seeds=seeds)


def _check_values(kind: type[Method], table: Mapping[str, Sequence[Any]], *path: str | int) -> None:
    for name, values in table.items():
        with _at(*path):
            check_field(kind, name)
            if not values:
                raise ValueError(f"{name} must be a list of values")
            if len(values) > MOST_VALUES:  # before each of them makes a method
                raise ValueError(f"{name} must be at most {MOST_VALUES} values, got {len(values)}")
            for option in values:
                check_type(kind, name, option)
                kind(**renamed_params(kind, {name: option}))


def _quick(spec: Spec, part: _Small) -> Spec:
    """The small part: presets instead of a grid, three values of a curve."""
    entries = []
    for entry in spec.entries:
        presets = entry.presets or bool(entry.grid)
        vary = {
            name: list(dict.fromkeys(values[n * len(values) // 3] for n in range(3)))
            for name, values in entry.vary.items()
        }
        entries.append(replace(entry, grid={}, presets=presets, vary=vary, more_seeds=()))
    small = replace(spec, entries=entries)
    seeds = [spec.seeds[0]] if part.seeds is None else _seeds(part.seeds, "quick", "seeds")
    with _at("quick"):
        return small.narrowed(setups=part.setups, methods=part.methods).narrowed(seeds=seeds)


def _seeds(value: Any, *path: str | int) -> list[int]:
    with _at(*path[:-1]):
        if isinstance(value, str):
            return parse_seeds(value)
        is_list = isinstance(value, list) and (bool(value) or path[-1] == "more_seeds")
        if value != () and not (is_list and all(type(s) is int and 0 <= s < 2**32 for s in value)):
            raise ValueError('seeds must be "5-7" or [5, 6, 7], below 2^32')
        return list(dict.fromkeys(value))
