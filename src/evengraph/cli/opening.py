"""DATA on the command line: a graph by its name, or somebody's own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from torch_geometric.data import Data

from evengraph.cli.console import err, out
from evengraph.datasets import load
from evengraph.datasets.registry import lookup
from evengraph.tables import NoLabelError, TableGraph, open_graph
from evengraph.tables.open import nodes_table

TRAIN, VAL = 0.6, 0.2
"""Shares of the labels of one's own graph; they are few, so most are learnt from."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What DATA stands for.

    Args:
        name: What to call it.
        graph: The graph.
        own: How it came about, if it is somebody's own.
        data: What was typed.
        columns: Which columns were named.
    """

    name: str
    graph: Data
    own: TableGraph | None
    data: str
    columns: Mapping[str, str]

    @property
    def protocol(self) -> str:
        """The protocol that suits it, if nobody says another."""
        if self.own is None:
            return "step"
        if self.own.times is not None and "split" not in self.columns:
            return "bytime"  # what is named goes before a split column that was guessed
        return "given" if self.own.masks else "natural"

    def shares(self, protocol: str) -> dict[str, float]:
        """Fields of a protocol that suit few labels."""
        known = self.own is None or protocol not in ("natural", "bytime")
        return {} if known else {"train": TRAIN, "val": VAL}

    def table(self) -> dict[str, Any]:
        """What an inspection takes of one's own graph: the nodes table and its columns, if any."""
        if self.own is None:
            return {}
        hashed = {"hashed": self.own.encoder.hashed}
        table = nodes_table(self.data)
        if table is None or self.own.columns.get("label") is None:
            return hashed
        columns = {name: self.own.columns.get(name) for name in ("label", "id")}
        return {"table": table, **columns, **hashed}


def is_known(data: str) -> bool:
    """Whether it is the name of a graph that evengraph knows, and no path."""
    try:
        lookup(data)
    except ValueError:
        return False
    return True


def open_data(
    data: str, root: Path | None = None, columns: Mapping[str, str | None] | None = None
) -> Opened:
    """Open what DATA names, and say what was done to it."""
    given = {name: value for name, value in (columns or {}).items() if value is not None}
    if is_known(data):
        if given:
            raise ValueError(
                f"--{next(iter(given))} is for files of your own, and {data} is a graph that "
                f"evengraph knows; write ./{data} for a folder of that name."
            )
        with err.status(f"loading {escape(data)}"):
            graph = load(data, root=root)
        return Opened(name=data, graph=graph, own=None, data=data, columns={})
    path = Path(data).expanduser()
    if not path.exists() and not path.suffix and path.name == data:
        try:
            lookup(data)
        except ValueError as error:
            message = f"There is no folder {data} here, and no graph of that name: {error}"
            raise ValueError(message) from None
    with err.status(f"reading {escape(data)}"):
        own = open_graph(data, **with_drop(given))
    if own.label_candidates:  # no command that opens data works without labels
        raise NoLabelError(own.label_candidates)
    for note in own.notes:
        err.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
    name = path.resolve().name if path.is_dir() else path.stem
    return Opened(name=name, graph=own.graph, own=own, data=data, columns=given)


def with_drop(columns: Mapping[str, str]) -> dict[str, Any]:
    """The columns as `open_graph` takes them: those to leave out as a list."""
    found: dict[str, Any] = dict(columns)
    if "drop" in found:
        found["drop"] = [name.strip() for name in columns["drop"].split(",") if name.strip()]
    return found


def show_classes(opened: Opened) -> None:
    """How many nodes each class has, before anything is trained."""
    labels = opened.graph.y
    counts = labels[labels >= 0].bincount().tolist()
    names = opened.own.class_names if opened.own is not None else ()
    words = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=False))
    if words:
        unlabelled = int((labels < 0).sum())
        out.print(f"[dim]{escape(words)}; {unlabelled:,} unlabelled[/]", soft_wrap=True)
