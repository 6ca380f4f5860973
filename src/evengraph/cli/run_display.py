"""What `evengraph run` prints while methods are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from evengraph.cli.console import err, out, print_notes

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data as Graph

    from evengraph.core.records import Record
    from evengraph.experiment.jobs import Job
    from evengraph.experiment.run import RunPlan
    from evengraph.training import Callback


class RunDisplay(ExitStack):
    """Announces each method, and shows a bar per fit on a terminal, elsewhere lines."""

    def __init__(
        self, plan: RunPlan, presets: Mapping[str, Mapping[str, Any]], device: torch.device
    ) -> None:
        super().__init__()
        self.plan, self.presets, self.device = plan, presets, device
        self.announced = ""

    def start(self, job: Job) -> Callback | None:
        """Announce the method before its first fit; returns what shows the epochs of this fit."""
        from evengraph.training.progress import epoch_bar, epoch_lines

        self.close()
        if job.label != self.announced:
            self.announced = job.label
            self._announce(job)
        if err.quiet:
            return None
        if err.is_terminal:
            return self.enter_context(epoch_bar(f"seed {job.seed}", visible=True))
        return epoch_lines(f"seed {job.seed}", lambda line: err.print(escape(line), soft_wrap=True))

    def show(self, record: Record) -> None:
        """Print what a fit gave."""
        self.close()
        value = record.metrics["balanced_accuracy"]
        stage = f" (of the main one of {record.stages} stages)" if record.stages > 1 else ""
        epochs = f"best epoch {record.best_epoch} of {record.epochs}{stage}, "
        if record.summary:  # a choice among several methods, whose epochs say little
            epochs = ""
        err.print(f"seed {record.seed}: bAcc {value:.1f}, {epochs}{record.seconds:.0f} s")
        for note in record.notes or []:
            err.print(f"[dim]{escape(note)}[/]")

    def _announce(self, job: Job) -> None:
        names = ("minority", "ratio", "train", "val", "positives", "negatives")
        values = {name: getattr(job.protocol, name, None) for name in names}
        text = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        split = f"{self.plan.imbalance} imbalance ({text})"
        if self.plan.imbalance == "given":
            split = given_split(self.plan.graph, values["val"])
        out.print(
            f"[bold]{job.method.full_title}[/] on [bold]{escape(self.plan.dataset)}[/], "
            f"{split}, on {self.device.type}"
        )
        preset = self.presets.get(job.label, {}).items()
        used = [f"{name}={value}" for name, value in preset if getattr(job.method, name) == value]
        if used:  # --set replaces others
            print_notes([f"preset: {', '.join(used)} (--no-preset for the defaults)"])
        graph = self.plan.graph
        sentences = job.method.describe_defaults(graph), job.method.describe_edges(graph)
        print_notes([sentence for sentence in sentences if sentence])


def given_split(graph: Graph, val: float | None) -> str:
    """The split that comes with a graph, in words; `val` is drawn if it has no validation set."""
    from evengraph.core.masks import node_mask

    masks = {name: node_mask(graph, name) for name in ("train", "val", "test")}
    sizes = [
        f"{int((mask & (graph.y >= 0)).sum()):,} {name}"
        for name, mask in masks.items()
        if mask is not None
    ]
    drawn = f", {val:.0%} of train drawn for val" if masks["val"] is None and val else ""
    return f"the split of the graph ({', '.join(sizes)}{drawn})"


def show_results(results: Sequence[Mapping[str, Any]]) -> None:
    """Print the tables of a run and what a reader of them should know."""
    from evengraph.report.terminal import run as tables

    out.print()
    if len(results) > 1:
        out.print(tables.comparison_table(results))
    else:
        out.print(tables.result_table(results[0]))
    if (table := tables.two_class_table(results)) is not None:
        out.print()
        out.print(table)
    if len(results) == 1:
        if (table := tables.base_rate_table(results[0])) is not None:
            out.print()
            out.print(table)
        if (table := tables.summary_table(results[0])) is not None:
            out.print()
            out.print(table)
    out.print()
    print_notes(tables.notes(results))
    out.print()
