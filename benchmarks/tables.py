"""Reading and encoding tables: many rows of all kinds, and thousands of columns of 0 and 1."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.timing import table
from evengraph.tables import open_graph

ROWS, EDGES = 200_000, 1_000_000
WORDS = np.array([f"word{index}" for index in range(2000)])


def write_mixed(folder: Path) -> None:
    """50 columns: numbers with gaps, categories, booleans, dates and prose."""
    random = np.random.default_rng(0)
    columns: dict[str, object] = {"id": [f"n{index}" for index in range(ROWS)]}
    for index in range(25):
        numbers = pd.Series(random.normal(size=ROWS).round(4))
        columns[f"number{index}"] = numbers.mask(random.random(ROWS) < 0.02 * (index % 5 == 0))
    for index in range(13):
        columns[f"category{index}"] = random.choice([f"v{i}" for i in range(4 + 6 * index)], ROWS)
    for index in range(5):
        columns[f"flag{index}"] = random.choice(["true", "false"], ROWS)
        days = pd.to_timedelta(random.integers(0, 3000, ROWS), unit="D")
        columns[f"day{index}"] = (pd.Timestamp("2015-01-01") + days).strftime("%Y-%m-%d")
    for index in range(2):
        words = WORDS[random.zipf(1.3, (ROWS, 8)).clip(max=len(WORDS)) - 1]
        columns[f"text{index}"] = [" ".join(row) for row in words]
    columns["kind"] = random.choice(["common", "rare"], ROWS, p=[0.95, 0.05])
    pd.DataFrame(columns).to_csv(folder / "nodes.csv", index=False)
    ends = np.char.add("n", random.integers(0, ROWS, (EDGES, 2)).astype(str))
    pd.DataFrame(ends, columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)


def write_wide(folder: Path, rows: int = 9_000, columns: int = 3_170) -> None:
    """Thousands of columns of 0 and 1."""
    random = np.random.default_rng(0)
    bits = (random.random((rows, columns)) < 0.006).astype(np.int8)
    nodes = pd.DataFrame(bits, columns=[f"f{index}" for index in range(columns)])
    nodes.insert(0, "id", range(rows))
    nodes["kind"] = random.choice(["common", "rare"], rows, p=[0.9, 0.1])
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends = random.integers(0, rows, (50_000, 2))
    pd.DataFrame(ends, columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)


def main() -> None:
    rows: list[list[object]] = []
    for title, write, target in (
        ("200,000 rows x 50 columns, 1 million edges", write_mixed, 10),
        ("9,000 rows x 3,170 columns of 0 and 1", write_wide, 3),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder)
            start = perf_counter()
            opened = open_graph(folder, label="kind")
            rows.append(
                [
                    title,
                    perf_counter() - start,
                    target,
                    opened.graph.num_features,
                    len(opened.notes),
                ]
            )
    table("Tables, read and encoded", ["table", "seconds", "target", "features", "notes"], rows)


if __name__ == "__main__":
    main()
