"""Generated payments: cards, devices and merchants with columns of their own, links and times.

`python -m benchmarks.payments 250000,500000,1000000 boosting` prints seconds and peak memory.
"""

from __future__ import annotations

import json
import sys
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.processes import gibibytes, in_own_process
from benchmarks.timing import table
from evengraph.methods import METHODS
from evengraph.pipeline.sources import open_tables
from evengraph.pipeline.table_model import TableModel


def payments(rows: int, seed: int = 0) -> dict[str, Any]:
    """Tables of payments, cards, devices and merchants; 2% of the payments are fraud.

    Fraud comes in rings that share devices, at risky merchants, and soon after another payment of
    the card. No single column tells it.
    """
    draw = np.random.default_rng(seed)
    sizes = {"card": rows // 8, "device": rows // 10, "merchant": max(rows // 400, 20)}
    ids = {name: draw.integers(0, size, rows) for name, size in sizes.items()}
    risk = {name: draw.gamma(0.3, 1.0, size) for name, size in sizes.items()}
    ring = draw.random(sizes["device"]) < 0.03
    amount = draw.lognormal(3, 1, rows)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.random(rows) * 180, unit="D")
    logit = 3 * ring[ids["device"]] + sum(risk[name][ids[name]] for name in risk)
    logit = logit + 0.3 * np.log(amount) + draw.gumbel(0, 0.5, rows)
    label = np.where(logit > np.quantile(logit, 0.98), "fraud", "ok")
    tables: dict[str, Any] = {
        "payments": pd.DataFrame(
            {
                "payment": [f"p{i}" for i in range(rows)],
                **{name: np.char.add(name[0], part.astype(str)) for name, part in ids.items()},
                "amount": amount.round(2),
                "at": at.floor("s"),
                "label": label,
            }
        )
    }
    for name, size in sizes.items():
        key = np.char.add(name[0], np.arange(size).astype(str))
        noisy = risk[name] + draw.gamma(0.3, 0.5, size)
        kind = draw.choice(["a", "b", "c", "d"], size)
        if name == "device":
            kind = np.where(ring & (draw.random(size) < 0.5), "a", kind)
        tables[f"{name}s"] = pd.DataFrame({name: key, "score": noisy.round(3), "kind": kind})
    return tables


def measured(folder: str, method: str) -> dict[str, Any]:
    """Seconds to open and to train, average precision on the newest payments, and peak memory."""
    start, names = perf_counter(), ["cards", "devices", "merchants"]
    tables = [f"{folder}/{name}.csv" for name in names]
    data = open_tables(f"{folder}/payments.csv", tables=tables, label="label", time="at")
    opened = perf_counter()
    chosen = METHODS[method](**METHODS[method].portfolio[0])  # as auto tries it
    model = TableModel(chosen, protocol=data.make_split(), refit=False)
    scores = model.fit(data.graph, seed=5, progress=False).evaluate()
    return {
        "open": opened - start,
        "train": perf_counter() - opened,
        "AP": scores["positive_average_precision"],
        "GiB": gibibytes("VmHWM"),
        "features": data.graph.num_features,
    }


def main() -> None:
    sizes, method = sys.argv[1:] or ("250000,500000,1000000", "boosting")
    rows = list[list[object]]()
    for size in map(int, sizes.split(",")):
        with TemporaryDirectory() as folder:
            for name, frame in payments(size).items():
                frame.to_csv(f"{folder}/{name}.csv", index=False)
            found = in_own_process("benchmarks.payments", "--one", folder, method)
            rows.append([f"{size:,}", *found.values()])
    table(f"Payments with three other tables, {method}", ["rows", *found], rows)


if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(measured(*sys.argv[2:])))
    else:
        main()
