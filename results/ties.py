"""How often the cut of the most confident nodes falls inside a tie: `python results/ties.py`.

Uni-GNN with its presets in the four settings of the paper's ablation, seeds 8 and 9, 600 epochs on
a CPU. A cut is a class in an epoch that has more candidates than it takes; it is tied if nodes of
the same confidence, in single precision, are on both sides. Writes ties.csv.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evengraph.datasets import load
from evengraph.fast import unignn
from evengraph.lab.spec import read_spec
from evengraph.methods import UniGNN
from evengraph.pipeline.executor import describe
from evengraph.pipeline.parameters import preset_for
from evengraph.splits import SPLITS

OUT = Path(__file__).with_name("ties.csv")
HEADER = ("setting", "seed", "cuts", "tied", "nodes", "commit")
QUICK: Any = unignn
ORIGINAL = QUICK.select_pseudo_labels


class Counter:
    """Takes the place of `select_pseudo_labels`, and counts before it selects."""

    def __init__(self) -> None:
        self.cuts = self.tied = self.nodes = 0

    def __call__(
        self,
        selection: Any,
        probabilities: Tensor,
        class_counts: Tensor,
        unlabelled: Tensor,
        threshold: float,
        order: Tensor | None = None,
    ) -> Any:
        confidence, labels = probabilities.max(-1)
        candidates = unlabelled & (confidence > threshold)
        for label, wanted in enumerate((class_counts.max() - class_counts).tolist()):
            values = confidence[candidates & (labels == label)].float()
            if 0 < wanted < len(values):
                last = values.topk(wanted).values.min()
                equal, above = int((values == last).sum()), int((values > last).sum())
                tied = above + equal > wanted
                self.cuts, self.tied = self.cuts + 1, self.tied + tied
                self.nodes += equal * tied
        return ORIGINAL(selection, probabilities, class_counts, unlabelled, threshold, order)


def main() -> None:
    """Count in every setting."""
    commit = describe(torch.device("cpu"))["commit"]
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for setup in read_spec("ties").setups:
            preset = preset_for(setup.dataset, setup.imbalance, setup.fields, "unignn") or {}
            fields = preset | {"patience": 600, "max_epochs": 600}
            for seed in (8, 9):
                QUICK.select_pseudo_labels = counter = Counter()
                task = SPLITS[setup.imbalance](**setup.fields)(load(setup.dataset), seed=seed)
                UniGNN(**fields).fit(task, seed=seed, progress=False)
                found = counter.cuts, counter.tied, round(counter.nodes / counter.tied)
                writer.writerow((setup.name, seed, *found, commit))


if __name__ == "__main__":
    main()
