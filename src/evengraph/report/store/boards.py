"""Boards: the tables and curves of experiments, read from a store alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from evengraph.core.store import Row, Store


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place of a table or curve, and the runs it stands on.

    Args:
        setup: Name of graph and protocol.
        dataset: Name of the graph.
        label: What the method is called.
        varies: The field that varies along a curve, if one does.
        value: Its value here.
        note: What others say of it.
        chosen: Settings that validation chose.
        paper: Published means and deviations by metric, if there are any.
        rows: Runs, one for each seed.
    """

    setup: str
    dataset: str
    label: str
    varies: str | None
    value: Any
    chosen: Mapping[str, Any]
    paper: Mapping[str, Mapping[str, float | None]] | None
    rows: Sequence[Row]
    note: str = ""

    def values(self, metric: str) -> list[float]:
        """The metric of every run, by seed."""
        return [row.outcome["metrics"][metric] for row in self.rows]

    def by_seed(self, metric: str) -> dict[int, float]:
        """The metric of each seed."""
        return {row.job.seed: row.outcome["metrics"][metric] for row in self.rows}

    def mean(self, metric: str) -> float:
        """Over seeds."""
        return fmean(self.values(metric))

    def deviation(self, metric: str) -> float:
        """The population deviation, as the paper has it."""
        return pstdev(self.values(metric))

    def published(self, metric: str) -> float | None:
        """The paper's mean."""
        return None if self.paper is None else self.paper[metric]["mean"]

    def of_seeds(self, seeds: Iterable[int]) -> Cell:
        """The same place with some of the runs."""
        wanted = set(seeds)
        kept = [row for row in self.rows if row.job.seed in wanted]
        return Cell(**{**vars(self), "rows": kept})


@dataclass(frozen=True, kw_only=True)
class Board:
    """What an experiment shows.

    Args:
        name: Of the experiment.
        title: For people.
        draws: What kind of tables and figures.
        seeds: That settings were chosen on.
        cells: Places of its tables and curves.
        map: Where the nodes of one run lie in a plane, with their classes and clusters.
    """

    name: str
    title: str
    draws: str
    seeds: Sequence[int]
    cells: Sequence[Cell]
    map: Mapping[str, Any] | None = None

    @property
    def setups(self) -> list[str]:
        """Names of the set-ups, in their order."""
        return list(dict.fromkeys(cell.setup for cell in self.cells))

    @property
    def labels(self) -> list[str]:
        """Names of the methods, in their order."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def whole(self) -> str:
        """The method that others are held against: the one searched over, or the first."""
        chosen = [cell.label for cell in self.cells if cell.chosen]
        return next(iter(chosen or self.labels), "")

    def complete(self) -> list[str]:
        """Set-ups that every method has a place in."""
        labels = [cell.label for cell in self.cells if cell.varies is None]
        return [s for s in self.setups if all(self.find(s, label) for label in labels)]

    def find(self, setup: str, label: str) -> Cell | None:
        """A place of a table; none if nothing was run there."""
        found = (c for c in self.cells if (c.setup, c.label, c.varies) == (setup, label, None))
        return next(found, None)

    def curves(self) -> dict[str, list[Cell]]:
        """Places along each curve, by its name, and that of its set-up where there are several."""
        found: dict[str, list[Cell]] = {}
        several = len({cell.setup for cell in self.cells if cell.varies is not None}) > 1
        for cell in self.cells:
            if cell.varies is not None:
                name = f"{cell.label}, {cell.setup}" if several else cell.label
                found.setdefault(name, []).append(cell)
        return found

    def of_first_seeds(self) -> Board:
        """The board with the seeds that settings were chosen on alone."""
        cells = [cell.of_seeds(self.seeds) for cell in self.cells]
        return Board(**{**vars(self), "cells": [cell for cell in cells if cell.rows]})

    def even(self) -> Board:
        """The board with equally many seeds everywhere, so that its means may be compared."""
        counts = {len(cell.rows) for cell in self.cells}
        return self if len(counts) < 2 else self.of_first_seeds()


def boards_of(store: Store) -> list[Board]:
    """Every experiment that a store holds."""
    rows = {row.job.key: row for row in store.rows(status="done")}
    found = []
    for name, content in store.boards().items():
        cells = [_cell(part, rows) for part in content["cells"]]
        board = Board(
            name=name,
            title=content["title"],
            draws=content["draws"],
            seeds=content["seeds"],
            cells=[cell for cell in cells if cell.rows],
            map=store.map_of(content["map"]) if content.get("map") else None,
        )
        found.append(board)
    return found


def _cell(part: Mapping[str, Any], rows: Mapping[str, Row]) -> Cell:
    names = ("setup", "dataset", "label", "varies", "value", "chosen", "paper")
    own = [rows[key] for key in part["keys"] if key in rows]
    return Cell(**{name: part[name] for name in names}, rows=own, note=part.get("note", ""))
