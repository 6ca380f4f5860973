"""Reviews with 10% of the labels: `link=user,product` against LightGBM with counts and means.

`python -m benchmarks.links` writes ten draws to results/links.csv, or those that it lacks, with
seconds from the table to the scores on one thread, and how long it takes to open the links and to
make their edges.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score

from benchmarks.default import split
from benchmarks.processes import gibibytes, in_own_process
from evengraph.core.task import Task
from evengraph.methods import METHODS
from evengraph.tables import from_frames
from evengraph.tables.cells import distinct_names
from evengraph.tables.edges import undirected_edges
from evengraph.tables.notes import Notes

SHARE, DRAWS, LINKS = "10%", 10, ("user", "product")
OUT, HEADER = Path("results/links.csv"), "draw,what,AP,cpu,wall,GiB\n"


def read() -> Any:
    """The reviews."""
    return pd.read_csv(Path(os.environ["EVENGRAPH_DATA"]) / "reviews/reviews.csv.gz")


def by_hand(table: Any, train: Any, labels: Any, *, grouped: bool) -> Any:
    """Scores of LightGBM on the score, if `grouped` with counts and means by user and product."""
    import lightgbm

    columns = {"score": table["score"]}
    for name in LINKS if grouped else ():
        groups = table.groupby(name)["score"]
        columns |= {
            f"{name} count": groups.transform("size"),
            f"{name} mean": groups.transform("mean"),
        }
    x = pd.DataFrame(columns)
    model = lightgbm.LGBMClassifier(num_leaves=15, n_estimators=100, verbosity=-1, n_jobs=1)
    return model.fit(x[train], labels[train]).predict_proba(x)[:, 1]


def pairs(table: Any) -> Any:
    """All edges between reviews of the same user or product, made without text."""
    ends = list[Any]()
    for name in LINKS:
        codes, rows = distinct_names(table[name])[0], np.arange(len(table))
        order = np.argsort(codes, kind="stable")
        for group in np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1):
            first, second = np.triu_indices(len(group), 1)
            ends.append(np.stack([group[first], group[second]]))
    source, target = np.concatenate(ends, axis=1)
    return undirected_edges(source, target, len(table), Notes())


def opening(what: str) -> dict[str, float]:
    """CPU and wall seconds and peak memory of links or of all their edges."""
    table, cpu, wall = read(), process_time(), perf_counter()
    if what == "links":
        from_frames(table, None, label="spam", link=LINKS)
    else:
        pairs(table)
    spent = {"cpu": process_time() - cpu, "wall": perf_counter() - wall}
    return spent | {"GiB": gibibytes("VmHWM")}


def write(draw: object, what: str, score: object, *measures: float) -> None:
    """Append a row."""
    with OUT.open("a") as file:
        file.write(f"{draw},{what},{score},{','.join(f'{value:.2f}' for value in measures)}\n")


def main() -> None:
    torch.set_num_threads(1)
    if not OUT.exists():
        OUT.write_text(HEADER)
        for what in ("links", "edges"):
            found = in_own_process("benchmarks.links", "--open", what)
            write("", f"open {what}", "", *found.values())
    table, cpu, wall = read(), process_time(), perf_counter()
    graph = from_frames(table, None, label="spam", link=LINKS).graph
    opened = process_time() - cpu, perf_counter() - wall
    labels = graph.y.numpy()
    rows = pd.read_csv(OUT)
    for draw in set(range(DRAWS)) - set(rows["draw"]):
        train, val = split(labels, SHARE, draw)
        rest = ~(train | val)
        masks = (torch.from_numpy(mask) for mask in (train, val, rest))
        task = Task(graph, *masks, num_classes=2)

        def auto(task: Task = task, draw: int = draw) -> Any:
            return METHODS["auto"]().fit(task, seed=draw).predict_proba(graph)[:, 1].numpy()

        for what, grouped in (("auto", None), ("LightGBM", True), ("LightGBM, score alone", False)):
            cpu, wall = process_time(), perf_counter()
            if grouped is None:
                scores, known = auto(), opened
            else:
                scores, known = by_hand(table, train | val, labels, grouped=grouped), (0.0, 0.0)
            spent = process_time() - cpu + known[0], perf_counter() - wall + known[1]
            score = 100 * average_precision_score(labels[rest], scores[rest])
            write(draw, f'"{what}"', f"{score:.2f}", *spent, gibibytes("VmHWM"))


if __name__ == "__main__":
    if "--open" in sys.argv:
        print(json.dumps(opening(sys.argv[-1])))
    else:
        main()
