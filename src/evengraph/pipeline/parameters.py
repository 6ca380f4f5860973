"""Parameters: from text, from presets of a setting, and published values to compare with."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from evengraph.core.errors import short, unknown
from evengraph.core.files import packaged
from evengraph.core.untrusted import MAX_INTEGER
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.method import split_words
from evengraph.metrics.registry import HEADLINE

MOST_SEEDS = 1000
MOST_LISTED = 10_000
MAX_FLOAT = 1e300
NUMBER = r"\d{1,10}"


_type_hints = cache(get_type_hints)


def known_method(name: str) -> str:
    """The key of a method in `METHODS`, also for its title: `graphens` for GraphENS."""
    key = name.lower().replace("-", "").replace(" ", "")
    if key not in METHODS:
        raise ValueError(unknown("method", name, [*METHODS, "all"]))
    return key


def parse_seeds(text: str) -> list[int]:
    """Read `5,6,7` or `5-24`."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(rf"\s*({NUMBER})\s*(?:-\s*({NUMBER})\s*)?", part)
        if match is None:
            example = "whole numbers below 2^32, such as 5,6,7 or 5-24"
            raise ValueError(f"seeds must be {example}, got {short(text)}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"seeds must run upwards, got {part.strip()!r}.")
        if last >= 2**32 or last - first >= MOST_SEEDS:
            limits = f"below 2^32 and at most {MOST_SEEDS} at a time"
            raise ValueError(f"seeds must be {limits}, got {part.strip()!r}.")
        seeds += range(first, last + 1)
        if len(seeds) > MOST_LISTED:
            raise ValueError(f"seeds must be at most {MOST_LISTED}, got {short(text)}.")
    return list(dict.fromkeys(seeds))


def parse_splits(text: str, first: int) -> list[int]:
    """Read `3`, that many seeds from a first one on, or seeds as `parse_seeds` does."""
    if not text.strip().isdigit():
        return parse_seeds(text)
    if not re.fullmatch(NUMBER, text.strip()) or not 1 <= int(text) <= MOST_SEEDS:
        raise ValueError(f"--splits must lie between 1 and {MOST_SEEDS}, got {short(text)}.")
    return list(range(first, first + int(text)))


def parse_fields(cls: type, assignments: Iterable[str]) -> dict[str, Any]:
    """Read assignments such as `alpha=2` into values of the types that a dataclass declares."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"a parameter must be set as name=value, got {assignment!r}.")
        if name.strip() in _former_params(cls):
            values |= cls.current_params({name.strip(): text.strip()})  # type: ignore[attr-defined]
        else:
            values[name.strip()] = parse_field(cls, name.strip(), text.strip())
    return values


def _former_params(cls: type) -> Iterable[str]:
    """Names of earlier versions that are still accepted."""
    return cast(Iterable[str], getattr(cls, "former_params", ()))


def renamed_params(cls: type[Method], params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as users write them, with former ones replaced by what they stand for."""
    former = {name: value for name, value in params.items() if name in cls.former_params}
    others = {name: value for name, value in params.items() if name not in former}
    return others | cls.current_params(former) if former else others


def parse_field(cls: type, name: str, text: str) -> Any:
    """Read one value."""
    check_field(cls, name)
    fixed, kind = split_words(_type_hints(cls)[name])
    if text in fixed:
        return text
    if get_origin(kind) is Literal:
        if text in get_args(kind):
            return text
    elif kind is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() in words:
            return words[text.lower()]
    else:
        try:
            return kind(text)
        except ValueError:
            pass
    allowed = " or ".join((describe_type(kind), *fixed))
    raise ValueError(f"{name} must be {allowed}, got {text!r}.")


def check_field(cls: type, name: str) -> None:
    """Raise ValueError for a name that a dataclass does not have."""
    names = [item.name for item in fields(cls)]
    if name not in names and name not in _former_params(cls):
        raise ValueError(unknown(f"parameter of {cls.__name__}", name, names))


def check_type(cls: type, name: str, value: Any) -> None:
    """Raise ValueError for a value of a file that is not of the type that a dataclass declares."""
    if name in _former_params(cls):
        return
    words, kind = split_words(_type_hints(cls)[name])
    if kind not in (int, float, bool) or (isinstance(value, str) and value in words):
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = is_number and abs(value) <= (MAX_INTEGER if kind is int else MAX_FLOAT)
    if not (type(value) is bool if kind is bool else fits and isinstance(value, int | kind)):
        allowed = " or ".join((describe_type(kind), *words))
        limit = f", at most {MAX_INTEGER}" if kind is int and type(value) is int else ""
        raise ValueError(f"{name} must be {allowed}{limit}, got {short(value)}.")


def describe_type(kind: Any) -> str:
    """The values that a type allows."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(word) for word in get_args(kind))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, str(kind))


SETTING = ("dataset", "imbalance", "minority", "ratio", "method")

PAPER = {"patience": 1_000}
"""Parameters of every method in the paper that are not the defaults."""

VALUES = {*HEADLINE, *(f"{name}_std" for name in HEADLINE)}  # columns of the tables

Published = dict[str, dict[str, float | None]]
"""Mean and standard deviation per metric, in percent."""


def paper_cell(
    dataset: str,
    imbalance: str,
    fields: Mapping[str, Any],
    name: str,
    *,
    table: Literal["paper", "ablation", "published"] = "paper",
) -> Published | None:
    """Published values for a method in a setting: the paper's, its ablation, or of other papers.

    `fields` are parameters of the protocol; only those that the paper varies count. `name` is that
    of the method; in the other two tables its label.
    """
    column = "method" if table == "paper" else "label"
    wanted = {"dataset": dataset, "imbalance": imbalance, column: name}
    for row in _rows(f"{table}.csv"):
        if (
            all(row[key] == value for key, value in wanted.items())
            and float(row["ratio"]) == fields.get("ratio")
            and (not row["minority"] or int(row["minority"]) == fields.get("minority"))
        ):
            found = {name: float(text) for name, text in row.items() if name in VALUES and text}
            return {
                metric: {"mean": found.get(metric), "std": found.get(f"{metric}_std")}
                for metric in HEADLINE
            }
    return None


@cache
def _rows(file: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def preset_for(
    dataset: str, imbalance: str, fields: Mapping[str, Any], method: str
) -> dict[str, Any] | None:
    """The parameters of a method in a setting, if there is a preset for these `fields`."""
    setting = {"dataset": dataset, "imbalance": imbalance, "method": method, **fields}
    for preset in _presets():
        if all(setting.get(name) == preset[name] for name in SETTING if name in preset):
            params: dict[str, Any] = preset["fields"]
            return params
    return None


def _presets() -> list[dict[str, Any]]:
    text = packaged("presets.toml").read_text(encoding="utf-8")
    presets: list[dict[str, Any]] = tomllib.loads(text)["preset"]
    return presets
