"""`auto` on raw tables, beside what a user of scikit-learn would write instead.

`python results/tables.py DATA`, where DATA holds folders with `target.csv`, `edges.csv` and
`features.json`, such as the public Twitch graphs. The lists of `features.json` give the label
`partner` away, so they are left out for it. In every draw 15% of the nodes keep their label, and
all others are predicted, and all nodes of the other folders. Rows are appended to tables.csv;
what is there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evengraph.pipeline.executor import describe
from evengraph.pipeline.table_model import TableModel

OUT = Path(__file__).with_name("tables.csv")
HEADER = ("trained_on", "label", "draw", "predicted", "model", "bacc", "ap", "seconds", "commit")
LABELS = ("partner", "mature")
LEAKED = ("partner",)  # by items of the lists
SHARE = 0.15
COUNTS = ("days", "views")  # columns that the transformed models take the logarithm of
ITEMS = 3170
Features = dict[str, np.ndarray[Any, Any]]


def read(folder: Path) -> pd.DataFrame:
    """The nodes, ordered by the ids that the edges use."""
    return pd.read_csv(folder / "target.csv").sort_values("new_id").reset_index(drop=True)


def features(folder: Path, label: str) -> Features:
    """What the alternatives see: columns as they are, with logarithms, lists, and two hops."""
    nodes = read(folder)
    columns = [name for name in ("days", "views", "mature", "partner") if name != label]
    raw = nodes[columns].to_numpy(dtype=float)
    log = np.where(np.isin(columns, COUNTS), np.log1p(raw), raw)
    items = np.zeros((len(nodes), ITEMS))
    if label not in LEAKED:
        for node, values in json.loads((folder / "features.json").read_text()).items():
            items[int(node), values] = 1
    edges = pd.read_csv(folder / "edges.csv").to_numpy()
    graph = sp.coo_matrix((np.ones(len(edges)), edges.T), (len(nodes),) * 2).tocsr()
    graph = ((graph + graph.T) > 0).astype(float)
    degree = np.asarray(graph.sum(1)).ravel()
    mean = sp.diags(1 / np.maximum(degree, 1)) @ graph
    hops = np.hstack([log, mean @ log, mean @ (mean @ log), np.log1p(degree)[:, None]])
    return {
        "raw": raw,
        "log": log,
        "log, lists": np.hstack([log, items]),
        "two hops": hops,
        "two hops, lists": np.hstack([hops, items]),
    }


def alternatives() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Name of each alternative, the features it sees, and the model."""

    def linear() -> Any:
        model = LogisticRegression(max_iter=1000, class_weight="balanced")
        return make_pipeline(StandardScaler(), model)

    def trees() -> Any:
        return HistGradientBoostingClassifier(class_weight="balanced", random_state=0)

    seen = {linear: ("raw", "log", "log, lists", "two hops"), trees: ("raw", "two hops")}
    seen[trees] = (*seen[trees], "two hops, lists")
    names = {linear: "logistic regression", trees: "boosted trees"}
    return {f"{names[m]}, {kind}": (kind, m) for m, kinds in seen.items() for kind in kinds}


def labelled(number: int, draw: int) -> np.ndarray[Any, Any]:
    """Which nodes keep their label."""
    order = np.random.default_rng(draw).permutation(number)
    return np.isin(np.arange(number), order[: round(SHARE * number)])


def predict_with_auto(
    folder: Path, label: str, known: Any, others: Sequence[Path], draw: int
) -> Iterator[tuple[Any, Any]]:
    """Class and probability of the nodes of each folder by one `TableModel`, fitted to files."""
    with tempfile.TemporaryDirectory() as name:
        here = _copy(folder, label, known, Path(name) / "here")
        model = TableModel().fit(here, label=label, seed=draw, progress=False)
        for other in (folder, *others):
            nobody = np.zeros(len(read(other)), dtype=bool)
            away = here if other == folder else _copy(other, label, nobody, Path(name) / other.name)
            found = model.predict(away)
            found = found.set_index(found.iloc[:, 0].astype(int)).sort_index()
            yield found["class"].astype(str) == "True", found["p_True"]


def _copy(folder: Path, label: str, known: Any, copy: Path) -> Path:
    """The tables with the labels of some nodes only."""
    copy.mkdir()
    (copy / "edges.csv").write_bytes((folder / "edges.csv").read_bytes())
    nodes = read(folder)
    if label not in LEAKED:
        lists = json.loads((folder / "features.json").read_text())
        nodes["features.json"] = [json.dumps(lists.get(str(id), [])) for id in nodes["new_id"]]
    nodes[label] = nodes[label].astype(object).where(known, None)
    nodes.to_csv(copy / "target.csv", index=False)
    return copy


def run(
    folder: Path, label: str, draw: int, others: Sequence[Path]
) -> Iterator[tuple[str, str, float, float, float]]:
    """Every model of one draw: predicted folder, name, two scores, and seconds of the fit."""
    y = {path.name: read(path)[label].to_numpy() for path in (folder, *others)}
    seen = {path.name: features(path, label) for path in (folder, *others)}
    known = labelled(len(y[folder.name]), draw)

    def scores(name: str, classes: Any, probabilities: Any) -> tuple[float, float]:
        rows = ~known if name == folder.name else np.ones(len(y[name]), dtype=bool)
        truth = y[name][rows]
        bacc = balanced_accuracy_score(truth, np.asarray(classes)[rows])
        ap = average_precision_score(truth, np.asarray(probabilities)[rows])
        return round(100 * bacc, 2), round(100 * ap, 2)

    for model_name, (kind, make) in alternatives().items():
        if label in LEAKED and "lists" in kind:
            continue
        start = perf_counter()
        model = make().fit(seen[folder.name][kind][known], y[folder.name][known])
        seconds = round(perf_counter() - start, 2)
        for name, table in seen.items():
            found = model.predict_proba(table[kind])[:, 1]
            yield name, model_name, *scores(name, found > 0.5, found), seconds
    start = perf_counter()
    for name, found in zip(y, predict_with_auto(folder, label, known, others, draw), strict=True):
        yield name, "evengraph", *scores(name, *found), round(perf_counter() - start, 2)


def main() -> None:
    """Run what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folders", default="twitch-ru,twitch-es")
    parser.add_argument("--train", help="only these of the folders to train on")
    parser.add_argument("--labels", default=",".join(LABELS))
    parser.add_argument("--draws", default=",".join(map(str, range(300, 310))))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    import torch

    commit = describe(torch.device("cpu"))["commit"]
    if not options.out.exists():
        options.out.write_text(",".join(HEADER) + "\n")
    with options.out.open(newline="") as file:
        done = {tuple(row[name] for name in HEADER[:3]) for row in csv.DictReader(file)}
    folders = {name: options.data / name for name in options.folders.split(",")}
    trained = (options.train or options.folders).split(",")
    for job in product(trained, options.labels.split(","), options.draws.split(",")):
        if job in done:
            continue
        name, label, draw = job
        others = [path for other, path in folders.items() if other != name]
        rows = list(run(folders[name], label, int(draw), others))
        with options.out.open("a", newline="") as file:
            csv.writer(file).writerows([*job, *row, commit] for row in rows)
        for row in rows:
            print(*job, *row, sep="; ", flush=True)


if __name__ == "__main__":
    main()
