"""Triage: the most likely nodes of a class by a trained model, to confirm or dismiss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evengraph.desk.desk import Desk, DeskOptions, Queued, Ranking
from evengraph.desk.label_file import DISMISSED, LABEL, LabelFile
from evengraph.desk.nodes import DeskNodes
from evengraph.methods import Method


class Triage(Desk):
    """A desk for a trained model: the most likely nodes of one class, to confirm or dismiss.

    Args:
        nodes: As in `Desk`, and so are `file` and `options`, whose folder holds the model.
        method: The fitted method.
        find: The class.
        rows: The nodes to go through.
    """

    def __init__(
        self,
        nodes: DeskNodes,
        file: LabelFile,
        options: DeskOptions,
        method: Method,
        find: str,
        rows: Sequence[int],
    ) -> None:
        self.find, self._rows = find, rows
        super().__init__(nodes, file, replace(options, retrain_every=0))
        self.method, self.model = method, str(options.folder)

    def start(self) -> None:
        """Rank; the model stays as it is."""
        self.rank()

    def rank(self) -> None:
        """All nodes without a label by their probability of the class."""
        probabilities, classes = self.ranking.probabilities, self.nodes.classes
        if probabilities is None:
            assert self.method is not None
            probabilities = self.method.predict_proba(self.nodes.graph).cpu()
        values = probabilities[:, classes.index(self.find or "")]
        rows = sorted(self._rows, key=lambda row: -float(values[row]))
        queue = tuple(Queued(row, f"{self.find} {values[row]:.0%}") for row in rows)
        self.ranking = Ranking(queue, probabilities, classes)
        self.version += 1

    def learn(self) -> None:
        """Nothing: the model is given."""

    def precision(self) -> tuple[int, int, float]:
        """Confirmed nodes, decided nodes, and how many of these the model expected to confirm.

        Answers that were given to other models do not count.
        """
        mine = (event for event in self.answers.all() if event.model == self.model)
        decided = [event for event in mine if event.kind in (LABEL, DISMISSED)]
        confirmed = sum(e.kind == LABEL and e.label == self.find for e in decided)
        expected = sum(event.thought.get(self.find or "", 0.0) for event in decided)
        return confirmed, len(decided), expected
