"""Run k-means and count what clusters reach: `python results/clusters.py [DATA]`.

Writes clusterings.csv (k-means of CiteSeer's features, by number of starts and length of rows) and
reach.csv (percent of Cora's nodes that the labels of a rare class reach in two layers).
"""

from __future__ import annotations

import csv
import importlib.util
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch.nn.functional import normalize

import evengraph as eg
from evengraph.ops.semantic import cluster_means, kmeans
from evengraph.ops.sparse import sparsify
from evengraph.pipeline.executor import describe

HERE = Path(__file__).parent
CLUSTERS = 120  # 20 per class of CiteSeer


def clusterings(data: str | None) -> Iterator[dict[str, Any]]:
    """Size of the largest cluster, squared distances and time, one row per seed."""
    features = eg.load("citeseer", root=data).x.float()
    for unit, starts, seed in product((False, True), (1, 10), range(6)):
        x = normalize(features) if unit else features
        begin = process_time()
        found = kmeans(sparsify(x), CLUSTERS, seed, starts=starts)
        seconds = process_time() - begin
        distances = (x - cluster_means(x, found, CLUSTERS)[found]).square().sum()
        yield {
            "seed": seed,
            "starts": starts,
            "unit_rows": unit,
            "largest": int(found.bincount().max()),
            "inertia": round(float(distances), 1),
            "cpu_seconds": round(seconds, 2),
        }


def reach(data: str | None) -> Iterator[dict[str, Any]]:
    """Percent of the nodes in reach along edges, paths and clusters, one row per rare class."""
    count = _figures().reach
    for seed, readings in product((5, 6, 7), ("", "unit-rows")):
        task = eg.splits.Step(minority=3, ratio=0.1)(eg.load("cora", root=data), seed=seed)
        model = eg.UniGNN(max_epochs=300, unit_rows=bool(readings)).fit(
            task, seed=seed, progress=False
        )
        shares = count(task, model)
        largest = max(int(model.net_.get_buffer(f"clusters_{n}").bincount().max()) for n in (0, 1))
        rare = [n for n, size in enumerate(task.class_counts) if size < task.class_counts.max()]
        for number, label in enumerate(rare, 1):
            percent = zip(("edges", "paths", "clusters"), shares, strict=True)
            yield {
                "seed": seed,
                "readings": readings,
                "label": f"rare {number}",
                **{name: round(row[label]) for name, row in percent},
                "largest_cluster": largest,
            }


def _figures() -> Any:
    """docs/figures.py, which counts what labels reach."""
    path = HERE.parent / "docs" / "figures.py"
    spec = importlib.util.spec_from_file_location("docs_figures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(data: str | None = None) -> None:
    """Write both files."""
    commit = describe(torch.device("cpu"))["commit"]
    for name, rows in (("clusterings", clusterings(data)), ("reach", reach(data))):
        found = [row | {"commit": commit} for row in rows]
        with (HERE / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, found[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
