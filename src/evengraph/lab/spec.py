"""Experiment files: TOML that says what to run and how to draw it, checked line by line."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from evengraph.core.errors import one_line_errors, short, unknown
from evengraph.core.files import read_settings
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
MOST_WORK = 1_000_000  # characters to parse for the line of a mistake; otherwise it has none
MOST_TEXT = 1000
DRAWS = ("comparison", "ablation", "sensitivity")
_NO_KEY = re.compile(r"[^\w.\s\"'-]")
_AFTER_QUOTE = re.compile(r"""["'][ \t]*\.[ \t]*[\w"'-]""")  # a quoted part may hold any character

Fields = Mapping[str, Any]
T = TypeVar("T")


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
    """A method of an experiment, and where its parameters come from."""

    label: str  # in tables
    method: str
    shared: Fields = field(default_factory=dict)  # of all methods, unless replaced below
    fields: Fields = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # one is selected on validation
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # every value is shown
    like: str = ""  # start from what was selected for another entry, by its label
    presets: bool = False  # start from the preset of the setting
    more_seeds: Sequence[int] = ()  # beyond those of the selection
    note: str = ""  # what the literature says of it, for the report


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment: what to run and how to draw it."""

    name: str  # of the file
    title: str
    draws: Literal["comparison", "ablation", "sensitivity"]
    seeds: Sequence[int]  # parameters are selected on them
    setups: Sequence[Setup]
    entries: Sequence[Entry]

    def narrowed(
        self, *, seeds: Sequence[int] = (), methods: Sequence[str] = (), setups: Sequence[str] = ()
    ) -> Spec:
        """Select a part of the experiment; entries that others start from stay."""
        matching = [s for s in self.setups if not setups or any(part in s.name for part in setups)]
        if not matching:
            allowed = ", ".join(setup.name for setup in self.setups)
            raise ValueError(
                f"No setting of {self.name} matches {', '.join(setups)[:MOST_TEXT]}: {allowed}."
            )
        wanted = [e for e in self.entries if not methods or e.method in methods]
        bases = {entry.like for entry in wanted}
        entries = [e for e in self.entries if e in wanted or e.label in bases]
        if not entries:
            allowed = ", ".join(dict.fromkeys(entry.method for entry in self.entries))
            raise ValueError(
                f"{self.name} has none of {', '.join(methods)[:MOST_TEXT]}; it has {allowed}."
            )
        if seeds:
            entries = [replace(entry, more_seeds=()) for entry in entries]
        return replace(self, setups=matching, entries=entries, seeds=seeds or self.seeds)


@one_line_errors()
def read_spec(name: str, *, quick: bool = False) -> Spec:
    """Read an experiment by its name or the path of its file."""
    file = source(name)
    text = read_settings(file)
    try:
        with _at():
            check_keys(text)
            content = tomllib.loads(text)
            spec = _spec(content, Path(file.name).stem)
            runs = 0
            for entry in spec.entries:
                settings = math.prod(map(len, (entry.grid or entry.vary).values()))
                runs += settings * (len(spec.seeds) + len(entry.more_seeds)) * len(spec.setups)
            if runs > MOST_RUNS:
                allowed = f"an experiment may have at most {MOST_RUNS:,} runs"
                raise ValueError(f"{allowed}, this has {runs:,}")
            return _quick(spec, content.get("quick", {})) if quick else spec
    except tomllib.TOMLDecodeError as error:
        message, _, position = str(error).partition(" (at line ")
        known = position[:1].isdigit()
        line = int(position.partition(",")[0]) if known else len(text.splitlines())
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply.") from None
    except _Mistake as mistake:
        message, line = str(mistake), _line_of(text.splitlines(), mistake.path)
    raise ValueError(f"{file}, line {max(line, 1)}: {message.rstrip('.')}.")


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


def _line_of(lines: Sequence[str], path: Sequence[str | int]) -> int:
    """Where parsing first finds a key, or else the nearest one above it; 1 if it takes long."""
    work, most, line, start = 0, 0, 1, 1
    for count in range(1, len(lines) + 1):
        beginning = "\n".join(lines[:count])
        work += len(beginning)
        if work > MOST_WORK:
            return 1
        try:
            content: Any = tomllib.loads(beginning)
        except ValueError:  # in the middle of a value
            continue
        found = 0
        with suppress(KeyError, IndexError, TypeError):
            for key in path:
                content, found = content[key], found + 1
        if found > most:
            most, line = found, start
        start = count + 1
    return line


class _Mistake(ValueError):
    """A mistake in a file, and the path of the key that it is about."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


@contextmanager
def _at(*keys: str | int) -> Iterator[None]:
    """Turn errors into mistakes at a path; nested calls make up the whole path."""
    try:
        yield
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, TypeError) as error:
        raise _Mistake(str(error), *keys, *getattr(error, "path", ())) from None


def _spec(content: dict[str, Any], name: str) -> Spec:
    allowed = ("title", "draws", "seeds", "fields", "setup", "method", "quick")
    content.pop("map", None)  # version 0.2 drew the nodes of a run
    _check_keys(content, allowed, "key")
    draws, shared = content.get("draws", "comparison"), content.get("fields", {})
    if draws not in DRAWS:
        raise _Mistake(unknown("draws", str(draws)[:MOST_TEXT], DRAWS), "draws")
    spec = Spec(
        name=name,
        title=_text(content, "title", name),
        draws=draws,
        seeds=_seeds(content, "seeds", "5-7"),
        setups=_tables(content, "setup", _setup),
        entries=_tables(content, "method", partial(_entry, shared=shared)),
    )
    for entry in spec.entries:
        _check_table(METHODS[entry.method], shared, "fields")
    seen: dict[str, Entry] = {}
    for index, entry in enumerate(spec.entries):
        with _at("method", index):
            if entry.label in seen:
                raise _Mistake(f"two methods are called {entry.label!r}; give a label", "label")
            with _at("like"):
                if entry.like and entry.like not in seen:
                    known = unknown("label", entry.like, seen)
                    raise ValueError(f"{known} It must be defined above")
                base = seen.get(entry.like)
                while base is not None:  # the method must have the parameters it starts from
                    for name in {*base.fields, *base.grid}:
                        check_field(METHODS[entry.method], name)
                    base = seen.get(base.like)
            seen[entry.label] = entry
    return spec


def _tables(content: Mapping[str, Any], name: str, read: Callable[[Any], T]) -> list[T]:
    with _at(name):
        tables = content.get(name)
        if not isinstance(tables, list) or not tables:
            raise ValueError(f"at least one [[{name}]] is needed")
        results = []
        for index, table in enumerate(tables):
            if not isinstance(table, dict):
                raise ValueError(f"{name} must be written as [[{name}]]")
            with _at(index):
                results.append(read(table))
        return results


def _setup(part: Any) -> Setup:
    dataset, imbalance = _name(part, "dataset"), _name(part, "imbalance", "step")
    with _at("dataset"):
        lookup(dataset)
    if imbalance not in SPLITS:
        raise _Mistake(unknown("imbalance", imbalance, SPLITS), "imbalance")
    kind = SPLITS[imbalance]
    params = {name: part[name] for name in part if name not in ("dataset", "imbalance")}
    _check_keys(params, [item.name for item in fields(kind)], f"parameter of {imbalance}")
    for name, value in params.items():
        with _at(name):
            check_type(kind, name, value)
    try:
        protocol: Any = kind(**params)
    except (ValueError, TypeError):
        for name, value in params.items():  # find the line of the one that is wrong
            with _at(name):
                kind(**{name: value})
        raise
    return Setup(dataset=dataset, imbalance=imbalance, fields=asdict(protocol))


def _entry(part: Any, *, shared: Any) -> Entry:
    allowed = [item.name for item in fields(Entry) if item.name not in ("method", "shared")]
    _check_keys(part, ("name", *allowed), "key of [[method]]")
    name = _name(part, "name")
    with _at("name"):
        method = known_method(name)
    if part.get("grid") and part.get("vary"):
        raise _Mistake("grid and vary exclude each other", "vary")
    tables = {table: part.get(table, {}) for table in ("fields", "grid", "vary")}
    for table, content in tables.items():
        _check_table(METHODS[method], content, table)
    label = _text(part, "label", METHODS[method].title)
    if not label.strip():
        raise _Mistake("label must not be empty", "label")
    if not isinstance(part.get("presets", False), bool):
        raise _Mistake("presets must be true or false", "presets")
    return Entry(
        label=label,
        method=method,
        shared=shared,
        **tables,
        like=_text(part, "like"),
        presets=part.get("presets", False),
        more_seeds=_seeds(part, "more_seeds", []),
        note=_text(part, "note"),
    )


def _check_table(kind: type[Method], table: Any, name: str) -> None:
    with _at(name):
        if not isinstance(table, dict):
            raise ValueError(f"{name} must be a table such as {{ alpha = 2 }}")
        if name == "vary" and len(table) > 1:
            raise ValueError("vary takes one parameter; use a [[method]] for each")
        for key, value in table.items():
            with _at(key):
                _check_value(kind, name, key, value)


def _check_value(kind: type[Method], table: str, name: str, value: Any) -> None:
    check_field(kind, name)
    values = [value] if table == "fields" else value
    if not isinstance(values, list) or not values:
        raise ValueError(f"{name} must be a list of values")
    _check_count(name, len(values))
    for option in values:
        check_type(kind, name, option)
        kind(**renamed_params(kind, {name: option}))


def _check_count(name: str, count: int) -> None:
    if count > MOST_VALUES:
        raise ValueError(f"{name} must be at most {MOST_VALUES} values, got {count}")


def _quick(spec: Spec, part: Any) -> Spec:
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
    with _at("quick"):
        _check_keys(part, ("seeds", "setups", "methods"), "key of [quick]")
        seeds = _seeds(part, "seeds", [spec.seeds[0]])
        for key in ("setups", "methods"):
            with _at(key):
                names = part.get(key, [])
                if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                    raise ValueError(f"{key} must be a list of names")
                small = small.narrowed(**{key: names})
    return small.narrowed(seeds=seeds)


def _seeds(part: Mapping[str, Any], key: str, default: str | list[int]) -> list[int]:
    value = part.get(key, default)
    with _at(key):
        if isinstance(value, str):
            return parse_seeds(value)
        is_list = isinstance(value, list) and (bool(value) or not default)
        if is_list and all(type(seed) is int and 0 <= seed < 2**32 for seed in value):
            _check_count(key, len(value))
            return list(dict.fromkeys(value))
        raise ValueError('seeds must be "5-7" or [5, 6, 7], below 2^32')


def _name(part: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = part.get(key, default)
    if not isinstance(value, str):
        raise _Mistake(f"{key} is needed, a name in quotes", key)
    return value


def _text(part: Mapping[str, Any], key: str, default: str = "") -> str:
    value = part.get(key, default)
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        message = f"{key} must be text in quotes of at most {MOST_TEXT} characters"
        raise _Mistake(f"{message}, got {short(value)}", key)
    return value


def _check_keys(part: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    for name in part:
        if name not in allowed:
            raise _Mistake(unknown(what, name, allowed), name)
