"""From words on a command line to something that can run; refuses with one line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch_geometric.data import Data

from evengraph.datasets.registry import lookup
from evengraph.experiment.fields import parse_fields, unknown
from evengraph.experiment.presets import preset_for
from evengraph.experiment.runner import Run
from evengraph.methods import METHODS
from evengraph.splits import SPLITS

MOST_SEEDS = 1000
OPTIONS = ("minority", "ratio", "train", "val")
"""Fields of protocols that the command line offers."""


def plan_run(
    dataset: str,
    *,
    method: str,
    method_settings: Sequence[str],
    imbalance: str,
    imbalance_fields: Mapping[str, Any],
    seeds: Sequence[int],
    preset: bool,
    own: Data | None = None,
) -> tuple[Run, dict[str, Any] | None]:
    """A checked plan, and the preset that it uses if it uses one; `own` is somebody's graph."""
    if own is None:
        lookup(dataset)
    known_method(method)
    if imbalance not in SPLITS:
        raise ValueError(unknown("imbalance", imbalance, SPLITS))
    allowed = [item.name for item in fields(SPLITS[imbalance]) if item.name in OPTIONS]
    for name in imbalance_fields:
        if name not in allowed:
            options = ", ".join(f"--{option}" for option in allowed) or "none"
            raise ValueError(f"{imbalance} has no --{name}; its options: {options}.")
    protocol = SPLITS[imbalance](**imbalance_fields)
    values = {item.name: getattr(protocol, item.name) for item in fields(protocol)}
    picked = None
    if preset:
        known = own is None
        picked = (
            preset_for(dataset, imbalance, values, method)
            if known
            else METHODS[method].graph_defaults(own)
        )
    plan = Run(
        dataset=dataset,
        imbalance=imbalance,
        imbalance_fields=dict(imbalance_fields),
        method=method,
        method_fields={**(picked or {}), **parse_fields(METHODS[method], method_settings)},
        seeds=seeds,
    )
    plan.make_method()  # refuses a bad field before any work is done
    return plan, picked


def parse_methods(text: str) -> list[str]:
    """Read `gcn`, `gcn,lte4g` or `all`."""
    parts = [part.strip() for part in text.split(",")]
    if "all" in parts:
        return list(METHODS)
    return list(dict.fromkeys(known_method(part) for part in parts))


def settings_of_each(methods: Sequence[str], settings: Sequence[str]) -> dict[str, list[str]]:
    """Which settings go to which method.

    `METHOD.FIELD=VALUE` goes to that method, `FIELD=VALUE` to all that have the field, and to one
    at least.
    """
    names = {name: [item.name for item in fields(METHODS[name])] for name in methods}
    each: dict[str, list[str]] = {name: [] for name in methods}
    # those of one method last: they hold, whatever is said of all
    for setting in sorted(settings, key=lambda setting: "." in setting.partition("=")[0]):
        field, equals, _ = setting.partition("=")
        field = field.strip()
        owner, dot, _ = field.partition(".")
        if dot and equals:
            name = known_method(owner)
            if name not in names:
                text = f"{name} is not among the methods to run: {', '.join(methods)}."
                raise ValueError(text)
            each[name].append(setting.strip().removeprefix(f"{owner}."))
            continue
        having = [name for name in methods if len(methods) == 1 or field in names[name]]
        if not having:
            allowed = dict.fromkeys(known for name in methods for known in names[name])
            raise ValueError(unknown("field", field, allowed))
        for name in having:
            each[name].append(setting)
    return each


def known_method(name: str) -> str:
    """The name of a method in the table, also for its title: `graphens` for GraphENS."""
    plain = name.lower().replace("-", "").replace(" ", "")
    if plain not in METHODS:
        raise ValueError(unknown("method", name, [*METHODS, "all"]))
    return plain


def parse_seeds(text: str) -> list[int]:
    """Read `5,6,7` or `5-24`."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise ValueError(f"seeds must be whole numbers such as 5,6,7 or 5-24, got {text!r}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"seeds must run upwards, got {part.strip()!r}.")
        if last >= 2**32 or last - first >= MOST_SEEDS:
            limits = f"below 2^32 and at most {MOST_SEEDS} at a time"
            raise ValueError(f"seeds must be {limits}, got {part.strip()!r}.")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def parse_seconds(text: str) -> float:
    """Read `90`, `90s`, `10m` or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"a time must be written such as 90, 10m or 2h, got {text!r}.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def pick_device(name: str) -> torch.device:
    """A device by name; `auto` is the first graphics card if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"There is no {name} here: torch sees {torch.cuda.device_count()} card(s)."
        )
    return device
