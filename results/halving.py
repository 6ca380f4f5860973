"""Halve the learning rate of balanced softmax on PubMed: `python results/halving.py [DATA]`.

UNREAL's authors halve it whenever validation has stalled for 100 epochs. Until then a run is the
same as one with a constant rate, so that one run per split answers the question: is any later epoch
better on validation? Writes halving.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import torch

import evengraph as eg
from evengraph.experiment.environment import describe
from evengraph.training import History

STALLED, PATIENCE = 100, 600
HEADER = ("seed", "first_halved", "best_before", "best_epoch", "epochs", "balanced_accuracy")


def run(graph: Any, seed: int) -> list[Any]:
    """One split: when the rate was first halved, and the best epoch before and at all."""
    task = eg.splits.PublicStep(minority=1, ratio=0.1)(graph, seed=seed)
    optimizers: list[torch.optim.Adam] = []
    halved: list[int] = []

    class Adam(torch.optim.Adam):
        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(*args, **fields)
            optimizers.append(self)

    def halve(history: History) -> None:
        now = len(history.loss) - 1
        if now - max([history.first_best_epoch, *halved]) > STALLED:
            halved.append(now)
            for group in optimizers[-1].param_groups:
                group["lr"] /= 2

    network = {"hidden": 256, "network": "plain", "normalisation": "symmetric"}
    method = eg.BalancedSoftmax(**network, patience=PATIENCE, max_epochs=2000)
    plain, torch.optim.Adam = torch.optim.Adam, Adam  # type: ignore[misc]
    try:
        method.fit(task, seed=seed, on_epoch=halve, progress=False)
    finally:
        torch.optim.Adam = plain  # type: ignore[misc]
    history = method.history_[-1]
    early = history.score[: halved[0]]
    score = eg.evaluate(task, method.predict_proba(task.graph))["balanced_accuracy"]
    before = max(range(len(early)), key=lambda epoch: (early[epoch], epoch))
    return [seed, halved[0], before, history.best_epoch, history.epochs, round(score, 2)]


def main(data: str | None = None) -> None:
    """Write the file, one row per split."""
    graph = eg.load("pubmed", root=data)
    commit = describe(torch.device("cpu"))["commit"]
    with Path(__file__).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*HEADER, "commit"])
        for seed in range(5):
            writer.writerow([*run(graph, seed), commit])
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
