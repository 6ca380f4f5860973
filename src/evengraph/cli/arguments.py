"""Parse what the user typed: methods, their parameters, split protocols, durations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from evengraph.core.errors import unknown
from evengraph.experiment.parsing import known_method, parse_fields
from evengraph.methods import METHODS
from evengraph.splits import SPLITS, SplitProtocol

PROTOCOL_OPTIONS = ("minority", "ratio", "train", "val")
"""Parameters of split protocols that have an option."""


def parse_methods(text: str) -> list[str]:
    """Read `gcn`, `gcn,lte4g` or `all`."""
    parts = [part.strip() for part in text.split(",")]
    if "all" in parts:
        return list(METHODS)
    return list(dict.fromkeys(known_method(part) for part in parts))


def parse_settings(
    methods: Sequence[str], settings: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read `--set` options into parameters per method, and describe those that apply to some only.

    `METHOD.NAME=VALUE` applies to that method, `NAME=VALUE` to all methods that have the parameter.
    """
    names = {method: [item.name for item in fields(METHODS[method])] for method in methods}
    texts: dict[str, list[str]] = {method: [] for method in methods}
    sentences = []
    # those of one method last, so that they replace what is set for all
    for setting in sorted(settings, key=lambda setting: "." in setting.partition("=")[0]):
        text, lacking = setting.strip(), list[str]()
        name, equals, _ = text.partition("=")
        owner, dot, _ = name.strip().partition(".")
        if dot and equals:
            if known_method(owner) not in names:
                raise ValueError(_not_run(known_method(owner), methods, text))
            having, text = [known_method(owner)], text.removeprefix(f"{owner}.")
        else:
            lacking = [m for m in methods if len(methods) > 1 and name.strip() not in names[m]]
            having = [method for method in methods if method not in lacking]
        if not having:
            allowed = dict.fromkeys(known for method in methods for known in names[method])
            raise ValueError(unknown("parameter", name.strip(), allowed))
        for method in having:
            texts[method].append(text)
        if len(having) < len(methods):
            sentences.append(_applied_to(text, having, lacking))
    for method, settings in texts.items():
        _check_known(method, names[method], settings)
    return {method: parse_fields(METHODS[method], texts[method]) for method in methods}, sentences


def _check_known(method: str, names: Sequence[str], settings: Sequence[str]) -> None:
    """Raise for a parameter that other methods have, and name some of them."""
    for name in (setting.partition("=")[0].strip() for setting in settings):
        others = [m for m in METHODS if name in {item.name for item in fields(METHODS[m])}]
        if name not in names and others:
            known = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
            verb = "has" if len(others) == 1 else "have"
            raise ValueError(f"{METHODS[method].title} has no parameter {name}; {known} {verb} it.")


def _not_run(owner: str, methods: Sequence[str], text: str) -> str:
    """Why a parameter of a method cannot be set, and where it can."""
    message = f"{owner} is not among the methods to run: {', '.join(methods)}."
    if any(METHODS[method].selects_itself for method in methods):
        setting = text.partition(".")[2]
        message += (
            f" Its candidates have their own defaults: run --method {owner} --set {setting}, or "
            f"compare --set {text}."
        )
    return message


def _applied_to(setting: str, having: Sequence[str], lacking: Sequence[str]) -> str:
    """Such as `alpha=2 applied to Uni-GNN only (GCN has no such parameter)`."""
    titles, others = (", ".join(METHODS[m].title for m in part) for part in (having, lacking))
    reason = f" ({others} {'has' if len(lacking) == 1 else 'have'} no such parameter)"
    return f"{setting} applied to {titles} only{reason if lacking else ''}."


def make_protocol(name: str, options: Mapping[str, Any]) -> SplitProtocol:
    """A split protocol by its name and the options given for it."""
    if name not in SPLITS:
        raise ValueError(unknown("imbalance", name, SPLITS))
    allowed = [item.name for item in fields(SPLITS[name]) if item.name in PROTOCOL_OPTIONS]
    for option in options:
        if option not in allowed:
            flags = ", ".join(f"--{known}" for known in allowed) or "none"
            raise ValueError(f"{name} has no --{option}; its options: {flags}.")
    protocol: SplitProtocol = SPLITS[name](**options)
    return protocol


def parse_seconds(text: str) -> float:
    """Read `90`, `90s`, `10m` or `2h`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"a duration must be written such as 90, 10m or 2h, got {text!r}.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
