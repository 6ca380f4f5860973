"""The model that `evengraph run` saves: the best of its seeds, and what it predicts."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, simplefilter

from rich.markup import escape

from evengraph.cli.console import err, out, print_sentence
from evengraph.cli.files import written

if TYPE_CHECKING:
    from evengraph.core.records import Record
    from evengraph.core.task import Task
    from evengraph.methods import Method
    from evengraph.metrics.costs import Costs
    from evengraph.pipeline.graph_source import GraphSource
    from evengraph.pipeline.seed_selection import SeedScore
    from evengraph.pipeline.table_model import TableModel


class Fit(NamedTuple):
    """A fitted method, its task and record, and its score if there are several seeds."""

    method: Method
    task: Task
    record: Record
    score: SeedScore | None


class BestFit:
    """The fit with the best score on validation among the seeds of one method.

    Args:
        source: Where the graph came from.
        several: Whether there is a choice.
    """

    def __init__(self, source: GraphSource, several: bool) -> None:
        self.source, self.several = source, several
        self.fit: Fit | None = None
        self.scores: dict[int, SeedScore] = {}

    def add(self, method: Method, task: Task, record: Record) -> None:
        """Keep a fit if it is better than those before."""
        from evengraph.pipeline.seed_selection import seed_score

        score = seed_score(method, task, self.source) if self.several else None
        if score is not None:
            self.scores[record.seed] = score
        best = None if self.fit is None else self.fit.score
        if best is None or (score is not None and score.value > best.value):
            self.fit = Fit(method, task, record, score)

    def reason(self) -> str:
        """Why this seed, in a few words; empty if there is one seed."""
        if self.fit is None or self.fit.score is None or len(self.scores) < 2:
            return ""
        seed, best = self.fit.record.seed, self.fit.score
        others = ", ".join(f"{s.value:.1f}" for n, s in self.scores.items() if n != seed)
        return f"the best validation {best.title} ({best.value:.1f}; others {others})"


def final_model(
    fit: Fit,
    *,
    source: GraphSource,
    refit: bool,
    costs: Costs | None,
) -> TableModel:
    """The best model of a run, fitted again to all labels if asked for."""
    from evengraph.pipeline.table_model import TableModel

    text = "training again with the test labels added, for the model that is saved"
    if refit and not err.is_terminal:  # where a status does not show
        print_sentence(text, err)
    status = err.status(text) if refit else nullcontext()
    with status, catch_warnings(record=True) as caught:
        simplefilter("once", UserWarning)
        model = TableModel.from_fitted(
            fit.method, fit.task, source, seed=fit.record.seed, refit=refit, costs=costs
        )
    for warning in caught:
        print_sentence(f"Warning: {escape(str(warning.message))}", err)
    return model


def predict_unlabelled(model: TableModel, task: Task, source: GraphSource, path: Path) -> None:
    """Write predictions for all nodes without a label, with the features that it learnt from."""
    from evengraph.cli.predict import write_predictions
    from evengraph.pipeline.graph_source import tables_of
    from evengraph.pipeline.new_nodes import NewNodes

    tables = tables_of(task, source)
    assert tables is not None
    nodes = NewNodes(tables=tables, rows=slice(None))
    line = written(path)
    frame = model.predict(nodes.without((source.graph.y >= 0).numpy()))
    write_predictions(frame, path)
    out.print(f"{line}: {len(frame):,} unlabelled nodes", soft_wrap=True)


def save_model(model: TableModel, best: BestFit, folder: Path) -> None:
    """Save the best model of a run for predict and explain."""
    from evengraph.methods.bases.model_folder import MAIN

    assert best.fit is not None
    verb = "replaced the model in" if (folder / MAIN).exists() else "wrote"
    model.save(folder)
    record, reason = best.fit.record, best.reason()
    chosen = f"seed {record.seed}, {reason}" if reason else f"seed {record.seed}"
    text = f"{verb} {escape(str(folder))}: the model of {chosen}; {_test_scores(best.fit)}"
    if refit := model.info.refit:
        text += (
            f", then retrained on {refit.train:,} labels instead of {refit.train_before:,} "
            "(--no-refit saves the tested model)"
        )
    print_sentence(f"{text}; use it with evengraph predict")


def _test_scores(fit: Fit) -> str:
    """Balanced accuracy on the test nodes, and the metric that the seed was chosen by."""
    from evengraph.metrics import METRICS

    names = ["balanced_accuracy"]
    if fit.score is not None and fit.score.metric in fit.record.metrics:
        names = list(dict.fromkeys([fit.score.metric, *names]))
    scores = (f"{METRICS[name].title} {fit.record.metrics[name]:.1f}" for name in names)
    return f"{' and '.join(scores)} on its test nodes"
