"""Reviews with 10% of the labels: `link=user,product` against LightGBM with counts and means.

`python -m benchmarks.links` appends ten draws to results/links.csv.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd
import torch
from sklearn.metrics import average_precision_score

from benchmarks.default import split
from evengraph.core.task import Task
from evengraph.methods import METHODS
from evengraph.tables import from_frames

SHARE, DRAWS = "10%", 10


def by_hand(table: Any, train: Any, labels: Any) -> Any:
    """Scores of LightGBM on the score, and counts and means of it by user and product."""
    import lightgbm

    columns = {"score": table["score"]}
    for name in ("user", "product"):
        groups = table.groupby(name)["score"]
        columns |= {
            f"{name} count": groups.transform("size"),
            f"{name} mean": groups.transform("mean"),
        }
    x = pd.DataFrame(columns)
    model = lightgbm.LGBMClassifier(num_leaves=15, n_estimators=100, verbosity=-1, n_jobs=1)
    return model.fit(x[train], labels[train]).predict_proba(x)[:, 1]


def main() -> None:
    torch.set_num_threads(1)
    table = pd.read_csv(Path(os.environ["EVENGRAPH_DATA"]) / "reviews/reviews.csv.gz")
    start = process_time()
    graph = from_frames(table, None, label="spam", link="user,product").graph
    opened = process_time() - start
    labels = graph.y.numpy()
    out = Path("results/links.csv")
    if not out.exists():
        out.write_text("draw,method,AP,cpu\n")
    for draw in range(*map(int, sys.argv[1:] or (0, DRAWS))):
        train, val = split(labels, SHARE, draw)
        rest = ~(train | val)
        masks = (torch.from_numpy(mask) for mask in (train, val, rest))
        task, start = Task(graph, *masks, num_classes=2), process_time()
        found = METHODS["auto"]().fit(task, seed=draw).predict_proba(graph)[:, 1].numpy()
        spent = process_time() - start
        start = process_time()
        hand = by_hand(table, train | val, labels)
        for name, scores, cpu in (
            ("auto", found, spent + opened),
            ("LightGBM", hand, process_time() - start),
        ):
            score = 100 * average_precision_score(labels[rest], scores[rest])
            with out.open("a") as file:
                file.write(f"{draw},{name},{score:.2f},{cpu:.1f}\n")


if __name__ == "__main__":
    main()
