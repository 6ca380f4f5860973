"""Spec: an experiment read from a TOML file; every mistake in it gets one line."""

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
"""Experiments beyond the paper; `all` leaves them out."""

DRAWS = ("comparison", "ablation", "sensitivity")

Fields = Mapping[str, Any]


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
    """A method of an experiment, and where its parameters come from.

    Args:
        label: Name in tables.
        method: Name of the method.
        shared: Parameters of all methods of the experiment, unless replaced below.
        fields: Fixed parameters.
        grid: Values per parameter; every combination is run, and one selected on validation.
        search: A range per parameter, and `trials`; one trial is selected on validation.
        vary: A parameter and its values; every value is run and shown.
        like: Start from what was selected for another entry, by its label.
        presets: Start from the preset of the setting.
        more_seeds: Seeds beyond those of the selection.
        note: What the literature says of it, for the report.
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
    """An experiment: what to run and how to draw it.

    Args:
        name: Name of the file.
        title: Title of the tables.
        draws: Kind of tables and figures.
        seeds: Seeds of every run; parameters are selected on them.
        setups: The settings.
        entries: The methods.
        map: Label of the method whose embeddings are drawn, in the first setting.
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
        """Select a part of the experiment; entries that others start from stay."""
        matching = [s for s in self.setups if not setups or any(part in s.name for part in setups)]
        if not matching:
            allowed = ", ".join(setup.name for setup in self.setups)
            raise ValueError(f"No setting of {self.name} matches {', '.join(setups)}: {allowed}.")
        wanted = [e for e in self.entries if not methods or e.method in methods]
        bases = {entry.like for entry in wanted}
        entries = [e for e in self.entries if e in wanted or e.label in bases]
        if not entries:
            allowed = ", ".join(dict.fromkeys(entry.method for entry in self.entries))
            raise ValueError(f"{self.name} has none of {', '.join(methods)}; it has {allowed}.")
        if seeds:
            entries = [replace(entry, more_seeds=()) for entry in entries]
        return replace(self, setups=matching, entries=entries, seeds=seeds or self.seeds)


def read_specs(names: Sequence[str], *, quick: bool = False, **part: Any) -> list[Spec]:
    """Read experiments and select the same part of each; `all` is every experiment of the paper."""
    expanded = [one for name in names for one in (EXPERIMENTS if name == "all" else (name,))]
    specs = [read_spec(name, quick=quick) for name in dict.fromkeys(expanded)]
    return [spec.narrowed(**part) for spec in specs]


def read_spec(name: str, *, quick: bool = False) -> Spec:
    """Read an experiment by its name or the path of its file."""
    source = _source(name)
    text = source.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, position = str(error).partition(" (at line ")
        known = position[:1].isdigit()
        line = int(position.partition(",")[0]) if known else len(text.splitlines())
        raise ValueError(f"{source}, line {max(line, 1)}: {message}.") from None
    return _Reader(str(source), text, content).spec(Path(source.name).stem, quick)


def _source(name: str) -> Traversable:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"There is no file {name}.")
        return path
    if name not in (*EXPERIMENTS, *BEYOND):
        raise ValueError(unknown("experiment", name, [*EXPERIMENTS, *BEYOND, "all", "FILE.toml"]))
    return packaged(f"{name}.toml")


def _three(values: Sequence[Any]) -> list[Any]:
    """Three values from the first two thirds of a curve, which are the cheapest."""
    indices = (0, len(values) // 3, 2 * len(values) // 3)
    return list(dict.fromkeys(values[index] for index in indices))


class _Reader:
    """Reads and validates a file; error messages name the line."""

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
        setups = [self._setup(part, index) for index, part in enumerate(content["setup"])]
        entries = [self._entry(part, index) for index, part in enumerate(content["method"])]
        self._check_labels(entries)
        drawn = str(content.get("map", ""))
        labels = [entry.label for entry in entries]
        if drawn and drawn not in labels:
            self._refuse(unknown("label", drawn, labels), ("map",))
        spec = Spec(
            name=name,
            title=str(content.get("title", name)),
            draws=draws,
            seeds=seeds,
            setups=setups,
            entries=entries,
            map=drawn,
        )
        return self._quick(spec) if quick else spec

    def _setup(self, part: Any, index: int) -> Setup:
        where = ("setup", index)
        dataset, imbalance = (
            self._name(part, name, where, default)
            for name, default in (("dataset", None), ("imbalance", "step"))
        )
        self._try(lambda: lookup(dataset), (*where, "dataset"))
        if imbalance not in SPLITS:
            self._refuse(unknown("imbalance", imbalance, SPLITS), (*where, "imbalance"))
        kind = SPLITS[imbalance]
        params = {name: part[name] for name in part if name not in ("dataset", "imbalance")}
        names = [item.name for item in fields(kind)]
        self._known(params, names, f"parameter of {imbalance}", where)
        try:
            protocol: Any = kind(**params)
        except (ValueError, TypeError) as problem:
            for name, value in params.items():  # find the line of the one that is wrong
                self._try(lambda name=name, value=value: kind(**{name: value}), (*where, name))
            self._refuse(str(problem), where)
        return Setup(dataset=dataset, imbalance=imbalance, fields=asdict(protocol))

    def _entry(self, part: Any, index: int) -> Entry:
        where = ("method", index)
        hidden = ("method", "shared")
        allowed = ("name", *(item.name for item in fields(Entry) if item.name not in hidden))
        self._known(part, allowed, "key of [[method]]", where)
        method = self._try(
            lambda: known_method(self._name(part, "name", where, None)), (*where, "name")
        )
        used = [name for name in ("grid", "search", "vary") if part.get(name)]
        if len(used) > 1:
            self._refuse(f"{used[0]} and {used[1]} exclude each other", (*where, used[1]))
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
        """Check that every parameter exists and takes every value."""
        if not isinstance(table, dict):
            self._refuse(f"{name} must be a table such as {{ alpha = 2 }}", (*where, name))
        if name == "vary" and len(table) > 1:
            self._refuse("vary takes one parameter; use a [[method]] for each", (*where, name))
        if name == "search" and table and "trials" not in table:
            self._refuse("search needs trials, a whole number", (*where, name))
        for key, value in table.items():
            path = (*where, name, key)
            if name == "search" and key == "trials":
                if type(value) is not int or value < 1:
                    self._refuse("trials must be a whole number of at least 1", path)
                continue
            self._try(lambda key=key: check_field(METHODS[method], key), path)
            if name != "fields" and (not isinstance(value, list) or not value):
                self._refuse(f"{key} must be a list of values", path)
            values = value if name != "fields" else [value]
            if name == "search" and value[-1] == "log":
                values = value[:-1]
                if len(values) != 2:
                    self._refuse(f"{key} must be two numbers and log", path)
            for option in values:
                self._try(lambda key=key, option=option: METHODS[method](**{key: option}), path)
            if name == "search" and is_range(values) and values[0] >= values[1]:
                self._refuse(f"{key} must run upwards, got {values[0]} to {values[1]}", path)

    def _check_labels(self, entries: Sequence[Entry]) -> None:
        seen: dict[str, Entry] = {}
        for index, entry in enumerate(entries):
            where = ("method", index)
            if entry.label in seen:
                message = f"two methods are called {entry.label!r}; give a label"
                self._refuse(message, (*where, "label"))
            if entry.like and entry.like not in seen:
                message = unknown("label", entry.like, seen) + " It must be defined above"
                self._refuse(message, (*where, "like"))
            base = seen.get(entry.like)
            while base is not None:  # the method must have the parameters it starts from
                for name in {*base.fields, *base.grid, *base.search} - {"trials"}:
                    kind = METHODS[entry.method]
                    self._try(
                        lambda name=name, kind=kind: check_field(kind, name), (*where, "like")
                    )
                base = seen.get(base.like)
            seen[entry.label] = entry

    def _quick(self, spec: Spec) -> Spec:
        """The small part: presets instead of a search, three values of a curve."""
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
            names = part.get(name, [])
            if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
                self._refuse(f"{name} must be a list of names", ("quick", name))
            small = self._try(
                lambda name=name, names=names, small=small: small.narrowed(**{name: names}),
                ("quick", name),
            )
        return small.narrowed(seeds=seeds)

    # Small checks.

    def _seeds(self, value: Any, where: tuple[Any, ...], *, none: bool = False) -> list[int]:
        is_list = isinstance(value, list) and (bool(value) or none)
        if is_list and all(type(seed) is int and 0 <= seed < 2**32 for seed in value):
            return list(dict.fromkeys(value))
        if not isinstance(value, str):
            self._refuse('seeds must be "5-7" or [5, 6, 7], below 2^32', where)
        seeds: list[int] = self._try(lambda: parse_seeds(value), where)
        return seeds

    def _flag(self, part: Any, name: str, where: tuple[Any, ...]) -> bool:
        value = part.get(name, False)
        if not isinstance(value, bool):
            self._refuse(f"{name} must be true or false", (*where, name))
        return bool(value)

    def _name(self, part: Any, name: str, where: tuple[Any, ...], default: str | None) -> str:
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
    """Whether a parameter is searched between two numbers, not among several values."""
    return len(values) == 2 and not any(isinstance(value, bool | str) for value in values)
