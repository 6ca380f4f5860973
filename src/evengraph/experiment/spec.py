"""Spec: an experiment as its TOML file says it, and one line for every mistake in it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from evengraph.datasets.registry import lookup
from evengraph.experiment.fields import check_field, unknown
from evengraph.experiment.parsing import known_method, parse_seeds
from evengraph.experiment.presets import packaged
from evengraph.experiment.toml_lines import line_of
from evengraph.methods import METHODS
from evengraph.splits import SPLITS

EXPERIMENTS = ("table1", "table2", "table3", "figure2")
BEYOND = ("newer", "publicstep", "publicraw", "unreal", "natural")
"""Experiments that the paper does not have; `all` leaves them out."""

DRAWS = ("comparison", "ablation", "sensitivity")

Fields = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A graph and a protocol, with all fields of the protocol."""

    dataset: str
    imbalance: str
    fields: Fields

    @property
    def name(self) -> str:
        """Such as cora-step-3-0.1: what --setups looks for."""
        varied = (self.fields.get(name) for name in ("minority", "ratio", "train"))
        words = [self.dataset, self.imbalance, *(str(v) for v in varied if v is not None)]
        return "-".join(words)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method of an experiment, and how its settings come about.

    Args:
        label: What it is called in tables.
        method: Name of the method.
        shared: Settings of all methods of the experiment, where nothing else is said.
        fields: Settings that stay as they are.
        grid: Values to try, every combination; validation chooses.
        search: A range for each field to search in, and `trials`; validation chooses.
        vary: A field and its values, each of which is run and shown.
        like: Start from what was chosen for another entry, by its label.
        presets: Start from the settings kept for a set-up.
        more_seeds: Seeds beyond those of the choice.
        note: What others say of it, for the report.
    """

    label: str
    method: str
    shared: Fields = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    search: Fields = field(default_factory=dict)
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    like: str = ""
    presets: bool = False
    more_seeds: Sequence[int] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What to run and how to draw it.

    Args:
        name: Of the file.
        title: Of the tables.
        draws: What kind of tables and figures.
        seeds: Of every run; settings are chosen on them.
        setups: Graphs and protocols.
        entries: Methods.
        map: Label of the method whose embeddings are drawn, in the first set-up.
    """

    name: str
    title: str
    draws: Literal["comparison", "ablation", "sensitivity"]
    seeds: Sequence[int]
    setups: Sequence[Setup]
    entries: Sequence[Entry]
    map: str = ""

    def narrowed(
        self,
        *,
        seeds: Sequence[int] = (),
        methods: Sequence[str] = (),
        setups: Sequence[str] = (),
    ) -> Spec:
        """A part of the experiment; an entry that others start from stays."""
        kept = [s for s in self.setups if not setups or any(word in s.name for word in setups)]
        if not kept:
            allowed = ", ".join(setup.name for setup in self.setups)
            raise ValueError(f"No set-up of {self.name} is like {', '.join(setups)}: {allowed}.")
        wanted = [e for e in self.entries if not methods or e.method in methods]
        bases = {entry.like for entry in wanted}
        entries = [e for e in self.entries if e in wanted or e.label in bases]
        if not entries:
            allowed = ", ".join(dict.fromkeys(entry.method for entry in self.entries))
            raise ValueError(f"{self.name} has none of {', '.join(methods)}; it has {allowed}.")
        if seeds:
            entries = [replace(entry, more_seeds=()) for entry in entries]
        return replace(self, setups=kept, entries=entries, seeds=seeds or self.seeds)


def read_spec(what: str, *, quick: bool = False) -> Spec:
    """An experiment by its name or by the path of its file."""
    source = _source(what)
    text = source.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words, _, place = str(error).partition(" (at line ")
        line = int(place.partition(",")[0]) if place[:1].isdigit() else len(text.splitlines())
        raise ValueError(f"{source}, line {max(line, 1)}: {words}.") from None
    return _Reader(str(source), text, content).spec(Path(source.name).stem, quick)


def _source(what: str) -> Traversable:
    if what.endswith(".toml"):
        path = Path(what)
        if not path.is_file():
            raise ValueError(f"There is no file {what}.")
        return path
    if what not in (*EXPERIMENTS, *BEYOND):
        raise ValueError(unknown("experiment", what, [*EXPERIMENTS, *BEYOND, "all", "FILE.toml"]))
    return packaged(f"{what}.toml")


def _three(values: Sequence[Any]) -> list[Any]:
    """Some values from the first two thirds of a curve, where they cost least."""
    places = (0, len(values) // 3, 2 * len(values) // 3)
    return list(dict.fromkeys(values[place] for place in places))


class _Reader:
    """Checks everything in a file, and knows where in it a mistake is."""

    def __init__(self, path: str, text: str, content: dict[str, Any]) -> None:
        self.path, self.content = path, content
        self.lines = text.splitlines()

    def spec(self, name: str, quick: bool) -> Spec:
        content = self.content
        allowed = ("title", "draws", "seeds", "map", "fields", "setup", "method", "quick")
        self._known(content, allowed, "key", ())
        draws = content.get("draws", "comparison")
        if draws not in DRAWS:
            self._refuse(unknown("draws", str(draws), DRAWS), ("draws",))
        for table in ("setup", "method"):
            parts = content.get(table)
            if not isinstance(parts, list) or not parts:
                self._refuse(f"at least one [[{table}]] is needed", (table,))
            elif not all(isinstance(part, dict) for part in parts):
                self._refuse(f"{table} must be written as [[{table}]]", (table,))
        seeds = self._seeds(content.get("seeds", "5-7"), ("seeds",))
        setups = [self._setup(part, place) for place, part in enumerate(content["setup"])]
        entries = [self._entry(part, place) for place, part in enumerate(content["method"])]
        self._check_labels(entries)
        drawn = str(content.get("map", ""))
        labels = [entry.label for entry in entries]
        if drawn and drawn not in labels:
            self._refuse(unknown("label", drawn, labels), ("map",))
        found = Spec(
            name=name,
            title=str(content.get("title", name)),
            draws=draws,
            seeds=seeds,
            setups=setups,
            entries=entries,
            map=drawn,
        )
        return self._quick(found) if quick else found

    def _setup(self, part: Any, place: int) -> Setup:
        where = ("setup", place)
        dataset, imbalance = (
            self._word(part, name, where, given)
            for name, given in (("dataset", None), ("imbalance", "step"))
        )
        self._try(lambda: lookup(dataset), (*where, "dataset"))
        if imbalance not in SPLITS:
            self._refuse(unknown("imbalance", imbalance, SPLITS), (*where, "imbalance"))
        kind = SPLITS[imbalance]
        given = {
            name: value for name, value in part.items() if name not in ("dataset", "imbalance")
        }
        self._known(given, [item.name for item in fields(kind)], f"field of {imbalance}", where)
        try:
            protocol: Any = kind(**given)
        except (ValueError, TypeError) as problem:
            for name, value in given.items():  # which of them is it?
                self._try(lambda name=name, value=value: kind(**{name: value}), (*where, name))
            self._refuse(str(problem), where)
        return Setup(dataset=dataset, imbalance=imbalance, fields=asdict(protocol))

    def _entry(self, part: Any, place: int) -> Entry:
        where = ("method", place)
        hidden = ("method", "shared")
        allowed = ("name", *(item.name for item in fields(Entry) if item.name not in hidden))
        self._known(part, allowed, "key of [[method]]", where)
        method = self._try(
            lambda: known_method(self._word(part, "name", where, None)), (*where, "name")
        )
        chosen = [name for name in ("grid", "search", "vary") if part.get(name)]
        if len(chosen) > 1:
            self._refuse(f"{chosen[0]} and {chosen[1]} exclude each other", (*where, chosen[1]))
        for table in ("fields", "grid", "search", "vary"):
            self._check_table(method, part.get(table, {}), table, where)
        shared = self.content.get("fields", {})
        self._check_table(method, shared, "fields", ())
        return Entry(
            label=str(part.get("label", METHODS[method].title)),
            method=method,
            shared=shared,
            fields=part.get("fields", {}),
            grid=part.get("grid", {}),
            search=part.get("search", {}),
            vary=part.get("vary", {}),
            like=str(part.get("like", "")),
            presets=self._flag(part, "presets", where),
            more_seeds=self._seeds(part.get("more_seeds", []), (*where, "more_seeds"), none=True),
            note=str(part.get("note", "")),
        )

    def _check_table(self, method: str, table: Any, name: str, where: tuple[Any, ...]) -> None:
        """Every field exists, and takes every value."""
        if not isinstance(table, dict):
            self._refuse(f"{name} must be a table such as {{ alpha = 2 }}", (*where, name))
        if name == "vary" and len(table) > 1:
            self._refuse("vary takes one field; give each its own [[method]]", (*where, name))
        if name == "search" and table and "trials" not in table:
            self._refuse("search needs trials, a whole number", (*where, name))
        for key, value in table.items():
            place = (*where, name, key)
            if name == "search" and key == "trials":
                if type(value) is not int or value < 1:
                    self._refuse("trials must be a whole number of at least 1", place)
                continue
            self._try(lambda key=key: check_field(METHODS[method], key), place)
            if name != "fields" and (not isinstance(value, list) or not value):
                self._refuse(f"{key} must be a list of values", place)
            values = value if name != "fields" else [value]
            if name == "search" and value[-1] == "log":
                values = value[:-1]
                if len(values) != 2:
                    self._refuse(f"{key} must be two ends and log", place)
            for one in values:
                self._try(lambda key=key, one=one: METHODS[method](**{key: one}), place)
            if name == "search" and is_range(values) and values[0] >= values[1]:
                self._refuse(f"{key} must run upwards, got {values[0]} to {values[1]}", place)

    def _check_labels(self, entries: Sequence[Entry]) -> None:
        seen: dict[str, Entry] = {}
        for place, entry in enumerate(entries):
            where = ("method", place)
            if entry.label in seen:
                message = f"two methods are called {entry.label!r}; give a label"
                self._refuse(message, (*where, "label"))
            if entry.like and entry.like not in seen:
                message = unknown("label", entry.like, seen) + " It must stand above"
                self._refuse(message, (*where, "like"))
            base = seen.get(entry.like)
            while base is not None:  # what it starts from must fit
                for name in {*base.fields, *base.grid, *base.search} - {"trials"}:
                    kind = METHODS[entry.method]
                    self._try(
                        lambda name=name, kind=kind: check_field(kind, name), (*where, "like")
                    )
                base = seen.get(base.like)
            seen[entry.label] = entry

    def _quick(self, spec: Spec) -> Spec:
        """The small part: settings that are kept instead of a search, three values of a curve."""
        part = self.content.get("quick", {})
        self._known(part, ("seeds", "setups", "methods"), "key of [quick]", ("quick",))
        entries = [
            replace(
                entry,
                grid={},
                search={},
                presets=entry.presets or bool(entry.grid or entry.search),
                vary={name: _three(values) for name, values in entry.vary.items()},
                more_seeds=(),
            )
            for entry in spec.entries
        ]
        small = replace(spec, entries=entries)
        seeds = self._seeds(part.get("seeds", [spec.seeds[0]]), ("quick", "seeds"))
        for name in ("setups", "methods"):
            given = part.get(name, [])
            if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
                self._refuse(f"{name} must be a list of names", ("quick", name))
            small = self._try(
                lambda name=name, given=given, small=small: small.narrowed(**{name: given}),
                ("quick", name),
            )
        return small.narrowed(seeds=seeds)

    # Small checks.

    def _seeds(self, value: Any, where: tuple[Any, ...], *, none: bool = False) -> list[int]:
        able = isinstance(value, list) and (bool(value) or none)
        if able and all(type(one) is int and 0 <= one < 2**32 for one in value):
            return list(dict.fromkeys(value))
        if not isinstance(value, str):
            self._refuse('seeds must be "5-7" or [5, 6, 7], below 2^32', where)
        found: list[int] = self._try(lambda: parse_seeds(value), where)
        return found

    def _flag(self, part: Any, name: str, where: tuple[Any, ...]) -> bool:
        value = part.get(name, False)
        if not isinstance(value, bool):
            self._refuse(f"{name} must be true or false", (*where, name))
        return bool(value)

    def _word(self, part: Any, name: str, where: tuple[Any, ...], default: str | None) -> str:
        value = part.get(name, default)
        if not isinstance(value, str):
            self._refuse(f"{name} is needed, a name in quotes", (*where, name))
        return str(value)

    def _known(
        self, part: Mapping[str, Any], allowed: Iterable[str], what: str, where: tuple[Any, ...]
    ) -> None:
        allowed = list(allowed)
        for name in part:
            if name not in allowed:
                self._refuse(unknown(what, name, allowed), (*where, name))

    def _try(self, task: Any, where: tuple[Any, ...]) -> Any:
        try:
            return task()
        except (ValueError, TypeError) as error:
            self._refuse(str(error), where)

    def _refuse(self, message: str, where: tuple[Any, ...]) -> None:
        line = line_of(self.lines, where)
        raise ValueError(f"{self.path}, line {line}: {message.rstrip('.')}.")


def is_range(values: Sequence[Any]) -> bool:
    """Whether a field is searched between two numbers, and not among several values."""
    return len(values) == 2 and not any(isinstance(one, bool | str) for one in values)
