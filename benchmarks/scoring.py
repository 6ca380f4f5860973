"""Scoring one new node with 20 edges beside a known graph of 100,000 nodes and 500,000 edges.

On one thread; milliseconds are those of the processor, so that a busy machine counts less.
"""

from __future__ import annotations

from time import process_time

import numpy as np
import pandas as pd

import evengraph as eg
from benchmarks.timing import table
from evengraph.methods import Method

NODES, EDGES, LABELS, NUMBERS, REQUESTS = 100_000, 500_000, 2_000, 18, 60
METHODS: dict[str, Method] = {
    "logistic, 2 hops": eg.Logistic(hops=2, degree=True),
    "boosting, 2 hops and context": eg.Boosting(hops=2, degree=True, context=True),
    "label propagation": eg.LabelPropagation(),
    "unison": eg.Unison(),
    "gcn": eg.GCN(max_epochs=20),
    "auto": eg.Auto(),
}


def make_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accounts with numbers and a country, of which 10% are fraud; edges favour one's class."""
    random = np.random.default_rng(0)
    fraud = random.random(NODES) < 0.1
    columns: dict[str, object] = {"id": [f"a{index}" for index in range(NODES)]}
    for index in range(NUMBERS):
        columns[f"number{index}"] = random.normal(size=NODES) + 0.5 * fraud * (index < 3)
    columns["country"] = random.choice(["DE", "FR", "IT"], NODES)
    kinds = np.where(fraud, "fraud", "honest").astype(object)
    kinds[random.permutation(NODES)[LABELS:]] = None
    columns["kind"] = kinds
    source, target = random.integers(0, NODES, (2, EDGES))
    same = np.flatnonzero(fraud)
    target = np.where(
        fraud[source] & (random.random(EDGES) < 0.3), random.choice(same, EDGES), target
    )
    ends = np.char.add("a", np.stack([source, target], axis=1).astype(str))
    return pd.DataFrame(columns), pd.DataFrame(ends, columns=["source", "target"])


def request(number: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """One new row and 20 edges to known nodes."""
    random = np.random.default_rng(number)
    row: dict[str, object] = {f"number{index}": random.normal() for index in range(NUMBERS)}
    ends = random.integers(0, NODES, 20)
    edges: list[dict[str, object]] = [{"source": "new", "target": f"a{end}"} for end in ends]
    return [{"id": "new", "country": "DE", **row}], edges


def main() -> None:
    known, rows = make_tables(), list[list[object]]()
    for name, method in METHODS.items():
        model = eg.TableModel(method, refit=False)
        model.fit(*known, label="kind", id="id", progress=False)
        start = process_time()
        scorer = eg.Scorer(model, known)
        opened = process_time() - start
        new, edges = request(0)
        start = process_time()
        whole = model.predict_proba(pd.DataFrame(new), pd.DataFrame(edges), known=known)[0]
        predicted = process_time() - start
        found = list(scorer.score(new, edges)[0]["probabilities"].values())
        times = []
        for number in range(REQUESTS):
            start = process_time()
            scorer.score(*request(number))
            times.append(1000 * (process_time() - start))
        gap = np.abs(np.array(found) - whole).max()
        middle, high = np.quantile(times, (0.5, 0.95))
        rows.append([name, middle, high, predicted, opened, f"{gap:.1e}"])
    heads = ["method", "ms, median", "ms, 95%", "s, predict", "s to open", "largest gap"]
    table("one new node with 20 edges, 100,000 known nodes", heads, rows)


if __name__ == "__main__":
    main()
