"""`python -m benchmarks.default`: scores, probabilities and CPU seconds of `auto` and alternatives.

A task has few labels, divided 80/20 into training and validation; all other nodes are for testing.
The score is the average precision of the rarer of two classes, otherwise balanced accuracy, in
percent. Two classes have measures of the positive probability as well: calibration error, Brier
score, cost per 1,000 nodes if those above the threshold of right probabilities are flagged (half50:
above one half), recall of the 1% of nodes flagged first, and coverage of prediction sets. Those of
`auto` are calibrated on its held-out predictions, as saved models are; those of `before` are as
version 0.2.0 gives them. Alternatives have fixed settings and learn from all labels, validation
included; the GCN selects its epoch on validation. Every fit runs on one thread, and its seconds
include features over hops and predictions, not imports. Rows are appended to the CSV file; those
that it has are not run again.
`--example` measures the example of the README instead.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Queue
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.timing import table

ROOT = Path(__file__).resolve().parents[1]
TWITCH = ("twitch-ru-mature", "twitch-ru-partner", "twitch-es-mature", "twitch-es-partner")
TWO = ("pay", "minesweeper", "reddit-user", *TWITCH, "reviews")
MANY = ("cora", "citeseer", "pubmed", "computers", "dblp", "cora_ml", "blogcatalog", "physics")
FEW = ("few-10", "few-18", "few-40")  # positives, with 49 times as many negatives
NATURAL = ("natural-15", "natural-30", "natural-100")  # positives, negatives as frequent as in all
REGIMES = ("20+80", "10%", "50%")
SIMPLE = ("logistic", "lightgbm", "logistic-2hop", "lightgbm-2hop", "mean-2hop", "gcn")
CALIBRATED = ("platt-2hop", "isotonic-2hop")  # logistic regression and LightGBM
METHODS = ("auto", "before", *SIMPLE, *CALIBRATED, "graphspot")
KEY = ("set", "regime", "draw", "method")
MEASURES = ("share", "mean_p", "ece", "brier", "cost50", "cost10", "recall1", "covered", "rare")
COLUMNS = (*KEY, "metric", "score", "cpu", "wall", *MEASURES, "half50", "version")
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
BEHIND = 0.5
COVERAGE = 0.9


def payments(seed: int = 2) -> Any:
    """6,000 accounts and 30,000 transfers, 2% fraud: shared mules and larger amounts."""
    import pandas as pd

    rng, accounts = np.random.default_rng(seed), 6_000
    fraud = rng.random(accounts).argsort() < accounts // 50
    nodes = pd.DataFrame(
        {
            "account": [f"account-{number}" for number in range(accounts)],
            "age": rng.gamma(3, 400, accounts) * np.where(fraud, 0.8, 1),
            "balance": rng.lognormal(7 + 0.2 * fraud, 1),
            "logins": rng.poisson(20 + 2 * fraud),
            "country": rng.choice(["de", "fr", "it", "es"], accounts),
            "fraud": np.where(fraud, "yes", "no"),
        }
    )
    popularity = rng.lognormal(0, 1, accounts)
    popularity /= popularity.sum()
    ends = [rng.choice(accounts, 29_400, p=popularity) for _ in range(2)]
    amount = rng.lognormal(4 + 0.4 * fraud[ends[0]], 1)
    mules = rng.choice(np.flatnonzero(~fraud), 40, replace=False)
    senders = rng.choice(np.flatnonzero(fraud), 600)
    source = np.concatenate([ends[0], senders])
    target = np.concatenate([ends[1], rng.choice(mules, len(senders))])
    amount = np.concatenate([amount, rng.lognormal(4.4, 1, len(senders))])
    names = nodes["account"].to_numpy()
    return nodes, pd.DataFrame({"from": names[source], "to": names[target], "amount": amount})


def reviews() -> Any:
    """Reviews; each is linked with ten others of its user and with ten of its product at most."""
    import pandas as pd

    table = pd.read_csv(Path(os.environ["EVENGRAPH_DATA"]) / "reviews/reviews.csv.gz")
    links = []
    for column in ("user", "product"):
        for gap in range(1, 6):
            after = table.groupby(column)["review"].shift(-gap)
            links.append(pd.DataFrame({"from": table["review"], "to": after}).dropna())
    counts = {f"{c} count": table[c].map(table[c].value_counts()) for c in ("user", "product")}
    return table.assign(**counts).drop(columns=["user", "product"]), pd.concat(links)


def twitch(folder: Path, label: str) -> tuple[Any, Any]:
    """Streamers with the items of features.json, without those that only one class has by far."""
    import pandas as pd

    nodes, edges = (pd.read_csv(folder / name) for name in ("target.csv", "edges.csv"))
    lists = pd.Series(json.loads((folder / "features.json").read_text()))
    lists.index = lists.index.astype(int)
    items = lists.explode().dropna()
    if label == "partner":
        partner = nodes.set_index("new_id")["partner"]
        pairs = items.reset_index().drop_duplicates()
        groups = partner.loc[pairs["index"]].groupby(pairs[0].to_numpy())
        shares, counts = groups.mean(), groups.size()
        chance = np.where(shares == 1, partner.mean(), 1 - partner.mean()) ** counts
        items = items[~items.isin(counts[shares.isin([0, 1]) & (chance < 1e-6)].index)]
    lists = items.groupby(level=0).agg(list)
    return nodes.assign(**{"features.json": nodes["new_id"].map(lists)}), edges


def read(name: str) -> Any:
    """A graph by its name, as a user would read it; of two classes, the rarer is 1."""
    import evengraph as eg

    if name.startswith("pay"):
        graph = eg.from_frames(*payments(int(name[3:] or 2)), label="fraud").graph
    elif name == "reviews":
        graph = eg.from_frames(*reviews(), label="spam").graph
    elif name in TWITCH:
        place, label = name.rsplit("-", 1)
        tables = twitch(Path(os.environ["EVENGRAPH_DATA"]) / place, label)
        graph = eg.from_frames(*tables, label=label).graph
    else:
        graph = eg.load(name)
    sizes = graph.y.bincount()
    if len(sizes) == 2 and sizes[1] > sizes[0]:
        graph.y = 1 - graph.y
    return graph


def write_set(name: str, folder: Path) -> Path:
    """Arrays of a graph for workers, which may have another evengraph or none."""
    import torch

    path, parts = folder / f"{name}.npz", read(name).to_dict()
    kept = {k: np.asarray(v) for k, v in parts.items() if isinstance(v, torch.Tensor | int)}
    np.savez_compressed(path, **kept)  # type: ignore[arg-type]
    return path


def split(labels: np.ndarray, regime: str, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Masks of training and validation."""
    counts, (kind, _, number) = np.bincount(labels), regime.partition("-")
    if regime.endswith("%"):
        wanted = np.maximum(np.round(counts * float(regime[:-1]) / 100), 2).astype(int)
    elif len(counts) > 2:
        wanted = np.full(len(counts), 10)
    elif regime == "20+80":
        wanted = np.array([80, 20])
    elif kind == "few":
        wanted = int(number) * np.array([49, 1])
    else:
        wanted = np.round(int(number) * counts / counts[1]).astype(int)
    rng, train, val = np.random.default_rng(draw), labels < 0, labels < 0
    for label, count in enumerate(wanted):
        nodes = np.flatnonzero(labels == label)
        nodes = nodes[rng.random(len(nodes)).argsort()][:count]
        held_out = max(1, round(count / 5))
        val[nodes[:held_out]], train[nodes[held_out:]] = True, True
    return train, val


def two_hops(x: Any, edges: np.ndarray) -> Any:
    """Own features, log degree, means over one and two hops; CSR if features are sparse."""
    from scipy import sparse

    size = x.shape[0]
    links = sparse.csr_matrix((np.ones(edges.shape[1], "f4"), edges), shape=(size, size))
    links = links.maximum(links.T).sign()
    degree = np.asarray(links.sum(1), "f4")
    means = sparse.diags(1 / np.maximum(degree.ravel(), 1)) @ links
    once = means @ x
    parts = [x, np.log1p(degree), once, means @ once]
    return sparse.hstack(parts, "csr", "f4") if sparse.issparse(x) else np.hstack(parts)


def simple(data: dict, method: str, seed: int) -> np.ndarray:
    """Probabilities of logistic regression or LightGBM, on features or over two hops."""
    from scipy import sparse
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    kind, _, hops = method.partition("-")
    x, known = data["x"], data["train"] | data["val"]
    if np.count_nonzero(x) < x.size / 10:
        x = sparse.csr_matrix(x)
    if hops:
        x = two_hops(x, data["edge_index"])
    model: Any
    if kind in ("logistic", "platt"):
        scaler = MaxAbsScaler() if sparse.issparse(x) else StandardScaler()
        model = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    elif find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(
            num_leaves=15, n_estimators=100, n_jobs=1, verbose=-1, random_state=seed
        )
    else:
        x = x.toarray() if sparse.issparse(x) else x
        model = HistGradientBoostingClassifier(
            max_leaf_nodes=15, max_iter=100, early_stopping=False, random_state=seed
        )
    if kind in ("platt", "isotonic"):
        model = CalibratedClassifierCV(model, method={"platt": "sigmoid"}.get(kind, kind), cv=5)
    return model.fit(x[known], data["y"][known]).predict_proba(x)


def gcn(data: dict, seed: int) -> np.ndarray:
    """Probabilities of a two-layer GCN of PyG, at the epoch with the lowest validation loss."""
    import torch
    from torch.nn.functional import cross_entropy, dropout
    from torch_geometric.nn import GCNConv

    torch.manual_seed(seed)
    names = ("x", "edge_index", "y", "train", "val")
    x, edges, y, train, val = (torch.as_tensor(data[name]) for name in names)
    sizes = [(x.shape[1], 64), (64, int(y.max()) + 1)]
    layers = torch.nn.ModuleList(GCNConv(*size, cached=True) for size in sizes)
    adam = torch.optim.Adam(layers.parameters(), lr=0.01, weight_decay=5e-4)

    def logits(training: bool) -> torch.Tensor:
        hidden = layers[0](dropout(x, 0.5, training), edges).relu()
        return layers[1](dropout(hidden, 0.5, training), edges)

    best, chosen = np.inf, None
    for _ in range(200):
        adam.zero_grad()
        cross_entropy(logits(True)[train], y[train]).backward()
        adam.step()
        with torch.no_grad():
            output = logits(False)
        if (loss := float(cross_entropy(output[val], y[val]))) < best:
            best, chosen = loss, output
    assert chosen is not None
    return chosen.softmax(1).numpy()


def auto(data: dict, seed: int, **options: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Probabilities of evengraph's default, and the lowest of each class in a prediction set."""
    import torch
    from torch_geometric.data import Data

    import evengraph as eg

    names = ("x", "edge_index", "y", "relation_index")
    parts = {name: torch.as_tensor(data[name]) for name in names if name in data}
    if "num_relations" in data:
        parts["num_relations"] = int(data["num_relations"])
    train, val = (torch.as_tensor(data[name]) for name in ("train", "val"))
    graph = Data(**parts)
    task = eg.Task(graph, train, val, (graph.y >= 0) & ~train & ~val, int(graph.y.max()) + 1)
    model = eg.Auto(**options).fit(task, seed=seed)
    found = model.predict_proba(task.graph)
    if task.num_classes > 2:  # judged by its classes alone
        return found.numpy(), None
    try:
        from evengraph.metrics.calibration import Calibrator
        from evengraph.metrics.decisions import covering, share_sets
    except ImportError:  # version 0.2.0
        return found.numpy(), None
    held = model.held_out(task)
    labels, rows = graph.y[held], model.predict_task(task)[held]
    calibrator = Calibrator.fit(rows, labels)
    sets = share_sets(labels, calibrator(rows))
    lowest = covering(sets, calibrator.counts, COVERAGE)
    return calibrator(found).numpy(), lowest.numpy()


def graphspot(data: dict, seed: int) -> np.ndarray:
    """Scores of graphspot's XGBoost over two hops, its default, as probabilities."""
    from graphspot import Graph  # type: ignore[import-not-found]
    from graphspot.detectors import XGBGraph  # type: ignore[import-not-found]
    from scipy import sparse

    size, edges = len(data["y"]), data["edge_index"]
    links = sparse.csr_matrix((np.ones(edges.shape[1]), edges), shape=(size, size))
    graph = Graph.from_scipy(links, x=data["x"])
    model = XGBGraph(random_state=seed, params={"n_jobs": 1})
    scores = model.fit(
        graph, y=np.where(data["train"] | data["val"], data["y"], -1)
    ).decision_function(graph)
    return np.stack([1 - scores, scores], 1)


def measures(y: np.ndarray, found: np.ndarray, lowest: np.ndarray | None) -> dict[str, Any]:
    """Metric, score and, of two classes, what the positive probability is worth, on test nodes."""
    from sklearn.metrics import average_precision_score, balanced_accuracy_score

    if found.shape[1] > 2:
        score = balanced_accuracy_score(y, found.argmax(1))
        return {"metric": "balanced_accuracy", "score": 100 * score}
    p = found[:, 1].astype(float)
    result = {"metric": "positive_average_precision", "score": 100 * average_precision_score(y, p)}
    bins = np.minimum((15 * p).astype(int), 14)
    result |= {"share": y.mean(), "mean_p": p.mean(), "brier": np.square(p - y).mean()}
    result["ece"] = np.abs(np.bincount(bins, p - y, 15)).sum() / len(y)
    for miss in (50, 10):
        flagged = p >= 1 / (1 + miss)
        result[f"cost{miss}"] = 1000 * np.where(flagged, 1 - y, miss * y).mean()
    result["half50"] = 1000 * np.where(p >= 0.5, 1 - y, 50 * y).mean()
    result["recall1"] = y[np.argsort(-p, kind="stable")[: len(y) // 100]].sum() / y.sum()
    if lowest is not None:
        inside = found[np.arange(len(y)), y] >= lowest[y]
        result |= {"covered": inside.mean(), "rare": inside[y == 1].mean()}
    return result


def fit(data: dict, method: str, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    if method in ("auto", "before"):
        return auto(data, seed, **({"folds": 5} if method == "before" else {}))
    if method in ("gcn", "graphspot"):
        return (gcn if method == "gcn" else graphspot)(data, seed), None
    return simple(data, method, seed), None


def work() -> None:
    """Read jobs, fit methods to a task in this process, and print a line for each method."""
    for line in sys.stdin:
        job = json.loads(line)
        with np.load(job["file"]) as file:
            data = dict(file)
        data["train"], data["val"] = split(data["y"], job["regime"], job["draw"])
        test = (data["y"] >= 0) & ~data["train"] & ~data["val"]
        seen: dict[str, tuple[np.ndarray, float, float]] = {}
        for method in job["methods"]:
            warm_up(method)
            lowest, started = None, (process_time(), perf_counter())
            if method == "mean-2hop":  # of two that were just fitted
                both = [seen[name] for name in ("logistic-2hop", "lightgbm-2hop")]
                found, cpu, wall = (sum(parts) for parts in zip(*both, strict=True))
                found = found / 2
            else:
                found, lowest = fit(data, method, job["draw"])
                cpu, wall = process_time() - started[0], perf_counter() - started[1]
            seen[method] = found, cpu, wall
            row = {"cpu": cpu, "wall": wall, **measures(data["y"][test], found[test], lowest)}
            row |= {"method": method, "version": release(method)}
            print(json.dumps({**job, **row}, default=float), flush=True)
        print("done", flush=True)


@cache
def warm_up(method: str) -> None:
    """Import what a fit imports, by a fit to twenty nodes where that is quick."""
    data = {"x": np.eye(20, dtype="f4"), "y": np.arange(20) % 2}
    data["edge_index"] = np.array([np.arange(20), np.arange(20)[::-1]])
    data["train"] = np.arange(20) < 14
    data["val"] = ~data["train"]
    if method in ("auto", "before"):
        import evengraph.methods  # noqa: F401
    names = ["logistic", "gcn"] if method in ("auto", "before") else [method]
    for name in names if method != "mean-2hop" else []:
        fit(data, name, 0)


def release(method: str) -> str:
    """The package and version that a method is of."""
    kinds = {"logistic": "scikit-learn", "platt": "scikit-learn", "gcn": "torch_geometric"}
    package = kinds.get(method.split("-")[0], "lightgbm")
    if method in ("auto", "before"):
        import evengraph

        return f"evengraph {evengraph.__version__}"
    if method == "graphspot":
        package = method
    if package == "lightgbm" and not find_spec(package):
        return f"HistGradientBoosting of scikit-learn {version('scikit-learn')}"
    return f"{package} {version(package)}"


def commit(folder: Path) -> str:
    """The commit of a checkout; + if tracked files differ."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


class Workers(threading.Thread):
    """Takes jobs and gives each to a process with the right Python and the right evengraph."""

    def __init__(self, jobs: Queue[dict], options: argparse.Namespace, lock: Any) -> None:
        super().__init__(daemon=True)
        import evengraph

        here = Path(evengraph.__file__).resolve().parents[1]
        self.jobs, self.options, self.lock = jobs, options, lock
        self.sources = {"before": (options.before or here).resolve(), "auto": here}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.commits = {name: commit(path) for name, path in self.sources.items()}

    def run(self) -> None:
        while not self.late():
            try:
                job = self.jobs.get_nowait()
            except Empty:
                break
            name = first if (first := job["methods"][0]) in ("before", "graphspot") else "auto"
            process = self.processes.get(name) or self.start_process(name)
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                print(json.dumps(job), file=process.stdin, flush=True)
            for line in process.stdout:
                if line.startswith("done"):
                    break
                if line.startswith("{"):
                    self.keep(json.loads(line))
            else:
                print(f"A process ended at {job}.", flush=True)
                del self.processes[name]
        self.stop()

    def late(self) -> bool:
        return bool(self.options.seconds) and perf_counter() > self.options.seconds

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()

    def start_process(self, name: str) -> subprocess.Popen[str]:
        python = self.options.graphspot if name == "graphspot" else sys.executable
        environ = os.environ | {f"{each}_NUM_THREADS": "1" for each in THREADS}
        path = f"{self.sources.get(name, ROOT)}:{os.environ.get('PYTHONPATH', '')}"
        environ |= {"LOKY_MAX_CPU_COUNT": "1", "PYTHONPATH": path}
        words = [python, "-W", "ignore", "-m", "benchmarks.default", "--worker"]
        process = subprocess.Popen(words, stdin=-1, stdout=-1, env=environ, cwd=ROOT, text=True)
        self.processes[name] = process
        return process

    def keep(self, row: dict[str, Any]) -> None:
        row["version"] = f"{row['version']} {self.commits.get(row['method'], '')}".strip()
        shown = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
        with self.lock:
            append(self.options.out, shown)
            print(*(shown.get(name, "") for name in COLUMNS[:8]), flush=True)


def append(path: Path, row: dict[str, Any]) -> None:
    """Add a row; a file that has fewer columns keeps these."""
    names: Any = COLUMNS
    if path.exists():
        with path.open(newline="") as file:
            names = csv.DictReader(file).fieldnames or COLUMNS
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerow(row)


def done(path: Path) -> set[tuple[str, ...]]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}


def plan(options: argparse.Namespace, folder: Path) -> Queue[dict]:
    """Jobs that the file does not have, all sets and regimes of a draw before the next draw."""
    from evengraph.pipeline.parameters import parse_seeds

    methods = sorted(options.methods.split(","), key=METHODS.index)
    for name in ("before", "graphspot"):
        if name in methods and not getattr(options, name):
            methods.remove(name)
    wide = {"few": FEW, "natural": NATURAL}
    regimes = [one for each in options.regimes.split(",") for one in wide.get(each, (each,))]
    there, jobs = done(options.out), Queue[dict]()
    for draw in parse_seeds(options.draws):
        for name in options.sets.split(","):
            for regime in regimes:
                if name in MANY and regime not in REGIMES:
                    continue
                left = [one for one in methods if (name, regime, str(draw), one) not in there]
                if name in MANY:
                    left = [one for one in left if one not in (*CALIBRATED, "graphspot")]
                groups = [[one] for one in left if one not in (*SIMPLE, *CALIBRATED)]
                groups += [[one for one in left if [one] not in groups]]
                for group in filter(None, groups):
                    file = folder / f"{name}.npz"
                    if not file.exists():
                        write_set(name, folder)
                    jobs.put(
                        {"set": name, "regime": regime, "draw": draw, "methods": group}
                        | {"file": str(file)}
                    )
    return jobs


def run_all(options: argparse.Namespace) -> None:
    """Run the jobs in several processes, each with one thread, until all are done or it is time."""
    with tempfile.TemporaryDirectory() as folder:
        place = options.data or Path(folder)
        place.mkdir(exist_ok=True)
        jobs, lock = plan(options, place.resolve()), threading.Lock()
        options.seconds = options.seconds and perf_counter() + options.seconds
        workers = [Workers(jobs, options, lock) for _ in range(options.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(max(options.seconds + 30 - perf_counter(), 0) if options.seconds else None)
        for worker in workers:
            worker.stop()


def show(path: Path) -> None:
    """Print means over draws, and how `auto` compares."""
    import pandas as pd

    rows = pd.read_csv(path)
    names = [name for name in METHODS if name in set(rows["method"])]
    for name in names:
        found = rows.loc[rows["method"] == name, "version"].unique()
        print(f"{name}: {', '.join(found)}")
    setting = ["set", "regime"]

    def lines(frame: Any, shape: str = ".1f") -> list[list[object]]:
        return [
            [*key, *(format(value, shape) for value in row)] for key, *row in frame.itertuples()
        ]

    def wide(some: Any, value: str, how: Any = "mean") -> Any:
        found = some.pivot_table(
            index=setting, columns="method", values=value, sort=False, aggfunc=how
        )
        return found[[name for name in names if name in found]]

    draws = rows.groupby(setting)["draw"].nunique()
    scores = wide(rows, "score")
    title = f"Mean score, percent ({draws.min()} to {draws.max()} draws)"
    table(title, [*setting, *scores], lines(scores))
    for value in ("cpu", "wall"):
        shown = wide(rows, value)
        for other in ("lightgbm-2hop", "before"):
            if value == "cpu" and {"auto", other} <= set(shown):
                shown[f"auto / {other}"] = shown["auto"] / shown[other]
        table(f"Mean {value} seconds", [*setting, *shown], lines(shown, ".3g"))
    single = rows.pivot_table(index=[*setting, "draw"], columns="method", values="score")
    metrics = rows.drop_duplicates(setting).set_index(setting)["metric"]
    compared = []
    for other in (name for name in names if name != "auto" and "auto" in names):
        gaps = (single["auto"] - single[other]).dropna().groupby(setting).mean()
        for metric, some in gaps.groupby(metrics):
            behind = some[some < -BEHIND]
            worst = " ".join(some.idxmin()) if len(behind) else ""
            found = [f"{some.mean():+.2f}", len(some), len(behind), f"{some.min():+.2f}", worst]
            compared.append([other, metric, *found])
    heads = ["against", "metric", "mean", "settings", f"{BEHIND} behind", "worst", "where"]
    table("auto minus the other, on the draws that both have", heads, compared)
    few = rows[rows["regime"].isin(FEW)]
    if len(few):
        quarter = wide(few, "score", lambda all_: all_.nsmallest(max(1, len(all_) // 4)).mean())
        table("Worst quarter of draws, mean", [*setting, *quarter], lines(quarter))
    show_probabilities(rows[rows["regime"].isin([*NATURAL, "10%", "50%"]) & rows["ece"].notna()])


def show_probabilities(rows: Any) -> None:
    """Print how far probabilities hold, on labels drawn as the classes are frequent."""
    ratio = rows["mean_p"] / rows["share"]
    rows = rows.assign(near=100 * ratio.between(1 / 1.5, 1.5))
    values = ["near", "ece", "brier", "cost50", "cost10", "recall1", "covered", "rare", "half50"]
    values = [name for name in values if name in rows]
    means = rows.groupby(["regime", "set", "method"], sort=False)[values].mean()
    for cost in ("cost50", "cost10"):  # of the best alternative on the mean of all draws
        simple = means[~means.index.isin(["auto", "before"], level="method")][cost]
        means[f"{cost} / best"] = means[cost] / simple.groupby(["regime", "set"]).min()
    for regime, some in means.groupby("regime", sort=False):
        found = some.groupby("method", sort=False).mean()
        heads = ["method", "% of draws with mean p near", *found.columns[1:]]
        lines = [[name, *(f"{value:.3g}" for value in row)] for name, *row in found.itertuples()]
        sets = some.index.unique("set").size
        table(f"Probabilities, {regime}, mean over {sets} sets", heads, lines)


def example() -> None:
    """Measure the first command of the README: seconds in all, and until the first result."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", str(ROOT / "examples/accounts"), "--label", "kind"]
        words += ["--drop", "status", "--cost-miss", "10", "--save", "model"]
        before, started, first = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter(), None
        command = [sys.executable, "-m", "evengraph", *words]
        pipe = subprocess.Popen(command, cwd=folder, stdout=-1, stderr=subprocess.STDOUT, text=True)
        assert pipe.stdout is not None
        for line in pipe.stdout:
            if first is None and re.search(r"\b(bAcc|AP) \d", line):
                first = round(perf_counter() - started, 1)
        if pipe.wait():
            raise SystemExit(f"evengraph run ended with {pipe.returncode}.")
        wall, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"CPU {cpu:.1f} s, wall {wall:.1f} s, first result after {first} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", default=",".join((*TWO, *MANY)))
    parser.add_argument("--regimes", default=",".join((*REGIMES, "few", "natural")))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--draws", default="0-9")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="take no job after so many")
    parser.add_argument("--data", type=Path, help="folder to keep the arrays of graphs in")
    parser.add_argument("--before", type=Path, help="src of another checkout, for its auto")
    parser.add_argument("--graphspot", help="a Python that can import graphspot")
    parser.add_argument("--out", type=Path, default=Path("results/default.csv"))
    parser.add_argument("--example", action="store_true", help="measure the README's example")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
    elif options.example:
        example()
    else:
        run_all(options)
        show(options.out)


if __name__ == "__main__":
    main()
