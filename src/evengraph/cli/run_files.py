"""Files of a run: a result and a page per method, and what compares several."""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from evengraph.cli.files import written
from evengraph.cli.invocation import typed_command
from evengraph.cli.next_commands import option_words, predict_words

if TYPE_CHECKING:
    from evengraph.experiment.comparison_result import Comparison
    from evengraph.experiment.run import RunPlan
    from evengraph.pipeline.graph_source import GraphSource
    from evengraph.report.origin import Link

PAGE = "report.html"
COMPARISON = "comparison.html"
SPLIT_OPTIONS = ("minority", "ratio", "train", "val")


class RunFiles:
    """Where a run writes to, and with which links and commands.

    Args:
        folder: Of the whole run; with several methods, each has a folder below it.
        plan: What is run.
        source: Where the graph came from.
        save: Folder of the model, if one is saved.
    """

    def __init__(
        self, folder: Path, plan: RunPlan, source: GraphSource, save: Path | None = None
    ) -> None:
        self.folder, self.plan, self.source, self.save = folder, plan, source, save
        self.several = len(plan.methods) > 1
        self.folders = {
            name: folder / re.sub(r"[^\w.+-]", "_", name) if self.several else folder
            for name in plan.methods
        }

    def write(self, name: str, result: dict[str, Any]) -> list[str]:
        """Write result.json and report.html of a method; returns the lines to print."""
        from evengraph.core.files import write_json
        from evengraph.report import write_page

        result |= {"command": typed_command(), "commands": self._next_commands("map" in result)}
        paths = [self.folders[name] / file for file in ("result.json", PAGE)]
        lines = [written(path) for path in paths]
        write_json(result, paths[0])
        write_page(result, paths[1], links=self._links(name))
        return lines

    def write_comparison(self, comparison: Comparison) -> str:
        """Write comparison.html, .csv and .json; returns the line to print."""
        from evengraph.core.files import write_json
        from evengraph.experiment.standing import write_comparison
        from evengraph.report.compare.page import write_comparison_page
        from evengraph.report.origin import Link

        page, table, content = (self.folder / f"comparison.{k}" for k in ("html", "csv", "json"))
        line = f"{written(page)}\n  .csv and .json beside it, and a page of each method"
        commands = self._commands_after(comparison)
        values = {**comparison.as_dict(), "dataset": self.plan.dataset}
        values |= {"command": typed_command(), "commands": commands}
        write_comparison(comparison.standings, comparison.pairs, table)
        write_json(values, content)
        names = [one.label for one in comparison.standings]
        pages = {name: relpath(self.folders[name] / PAGE, self.folder) for name in names}
        links = [
            Link(path.name, f"Results as {path.suffix[1:].upper()}") for path in (table, content)
        ]
        write_comparison_page(values, page, pages=pages, links=links)
        return line

    def _commands_after(self, comparison: Comparison) -> list[str]:
        """A run of the method to take on the same splits; none if `run` cannot make these."""
        from evengraph.splits import Folds

        folds = vars(self.plan.protocol).get("folds", Folds.folds)
        if self.source.is_dataset and folds != Folds.folds:  # `run` has no option for it
            return []
        take = type(self.plan.methods[comparison.verdict.take]).__name__.lower()
        words = [*self._data(), *self._split(), "--method", take, "--save", "model"]
        return [join(["evengraph", "run", *words])]

    def _links(self, name: str) -> list[Link]:
        """Other files that belong to the page of a method."""
        from evengraph.report.origin import Link

        links = [Link("result.json", "All results as JSON")]
        if (self.folders[name] / "predictions.csv").exists():
            links.append(Link("predictions.csv", "Predictions of unlabelled nodes"))
        if self.save is not None and (card := self.save / "README.md").exists():
            links.append(Link(Path(relpath(card, self.folders[name])).as_posix(), "Model card"))
        if self.several:
            links.insert(0, Link(f"../{COMPARISON}", "Comparison of all methods"))
            links += [
                Link(f"../{self.folders[other].name}/{PAGE}", method.full_title)
                for other, method in self.plan.methods.items()
                if other != name
            ]
        return links

    def _next_commands(self, has_map: bool) -> list[str]:
        """What to do after reading the page of a method."""
        commands = [join(["evengraph", "compare", *self._data()])]
        if self.several:
            return commands
        if not has_map and self.plan.disk is None:
            commands.append(typed_command("--map"))
        if self.save is None:
            return [typed_command("--save", "model"), *commands]
        model = str(self.save)
        if self.source.tables is not None:
            node = str(self.source.tables.ids[0])
            commands.insert(0, join(["evengraph", "explain", model, node, "--out", "why.svg"]))
            if graph := predict_words(self._data()[0], dict(self.source.columns)):
                words = ["predict", model, *graph, "--out", "predictions.csv"]
                commands.insert(0, join(["evengraph", *words]))
        return commands

    def _data(self) -> list[str]:
        """The words that name the graph and its columns."""
        return [shown_data(self.source), *option_words(self.source.columns)]

    def _split(self) -> list[str]:
        """The words for the split of a data set, for which `run` and `compare` differ."""
        if not self.source.is_dataset:
            return []
        options = {name: vars(self.plan.protocol).get(name) for name in SPLIT_OPTIONS}
        given = {name: str(value) for name, value in options.items() if value is not None}
        return ["--imbalance", self.plan.imbalance, *option_words(given)]


def shown_data(source: GraphSource) -> str:
    """The graph as a user names it: a path relative to the working folder, if it is below it."""
    data = source.data or source.name
    if source.is_dataset or not Path(data).exists():
        return data
    short = relpath(data)
    return data if short.startswith("..") else short
