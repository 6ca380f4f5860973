"""`python -m benchmarks.default`: scores and CPU seconds of `auto` and of simple alternatives.

A task has few labels, divided 80/20 into training and validation; all other nodes are for testing.
The score is the average precision of the rarer of two classes, otherwise balanced accuracy, in
percent. Alternatives have fixed settings and learn from all labels, validation included; the GCN
selects its epoch on validation. Every fit runs on one thread, and its seconds include features over
hops and predictions, not imports. Rows are appended to the CSV file; those that it has are not run
again. `--example` measures the example of the README instead.
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
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.timing import table

ROOT = Path(__file__).resolve().parents[1]
NAMED = ("minesweeper", "reddit-user")  # two classes
TWITCH = ("twitch-ru-mature", "twitch-ru-partner", "twitch-es-mature", "twitch-es-partner")
MANY = ("cora", "citeseer", "pubmed", "computers", "dblp", "cora_ml", "blogcatalog", "physics")
SETS = ("pay", *NAMED, *TWITCH, *MANY)
FEW = ("few-10", "few-18", "few-40")  # positives, with 49 times as many negatives
REGIMES = ("20+80", "10%", "50%", *FEW)
SIMPLE = ("logistic", "lightgbm", "lightgbm-2hop", "mean-2hop", "gcn")
METHODS = ("auto", "before", *SIMPLE, "graphspot")
COLUMNS = ("set", "regime", "draw", "method", "metric", "score", "cpu", "wall", "version")
KEY = list(COLUMNS[:4])
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "LOKY")
BEHIND = 0.5


def payments() -> Any:
    """6,000 accounts and 30,000 transfers, 2% fraud: shared mules and larger amounts."""
    import pandas as pd

    rng, accounts = np.random.default_rng(2), 6_000
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


def one_sided(folder: Path) -> list[str]:
    """Items of features.json that only partners have, or only others, beyond chance."""
    import pandas as pd

    partner = pd.read_csv(folder / "target.csv").set_index("new_id")["partner"]
    lists = pd.Series(json.loads((folder / "features.json").read_text())).explode().dropna()
    pairs = lists.reset_index().drop_duplicates()
    groups = partner.loc[pairs["index"].astype(int)].groupby(pairs[0].to_numpy())
    shares, counts = groups.mean(), groups.size()
    chance = np.where(shares == 1, partner.mean(), 1 - partner.mean()) ** counts
    return [f"features.json={item}" for item in counts[shares.isin([0, 1]) & (chance < 1e-6)].index]


def read(name: str) -> Any:
    """A graph by its name, as a user would read it; of two classes, the rarer is 1."""
    import evengraph as eg

    if name == "pay":
        graph = eg.from_frames(*payments(), label="fraud").graph
    elif name in TWITCH:
        place, label = name.rsplit("-", 1)
        folder = Path(os.environ["EVENGRAPH_DATA"]) / place
        edges, drop = folder / "edges.csv", one_sided(folder) if label == "partner" else []
        graph = eg.open_graph(folder / "target.csv", edges=edges, label=label, drop=drop).graph
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
    counts = np.bincount(labels)
    if regime.endswith("%"):
        wanted = np.maximum(np.round(counts * float(regime[:-1]) / 100), 2).astype(int)
    elif len(counts) > 2:
        wanted = np.full(len(counts), 10)
    elif regime == "20+80":
        wanted = np.array([80, 20])
    else:
        wanted = int(regime.removeprefix("few-")) * np.array([49, 1])
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


def simple(method: str, data: dict, train: np.ndarray, val: np.ndarray, seed: int) -> np.ndarray:
    """Probabilities of logistic regression, LightGBM or their mean."""
    from scipy import sparse
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    x, known = data["x"], train | val
    if np.count_nonzero(x) < x.size / 10:
        x = sparse.csr_matrix(x)
    if method.endswith("2hop"):
        x = two_hops(x, data["edge_index"])
    scaler = MaxAbsScaler() if sparse.issparse(x) else StandardScaler()
    models: list[Any] = []
    if method in ("logistic", "mean-2hop"):
        models.append(make_pipeline(scaler, LogisticRegression(max_iter=1000)))
    if method != "logistic" and find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        options = {"n_jobs": 1, "verbose": -1, "random_state": seed}
        models.append(LGBMClassifier(num_leaves=15, n_estimators=100, **options))
    elif method != "logistic":
        x = x.toarray() if sparse.issparse(x) else x
        options = {"early_stopping": False, "random_state": seed}
        models.append(HistGradientBoostingClassifier(max_leaf_nodes=15, max_iter=100, **options))
    labels = data["y"][known]
    return np.mean([model.fit(x[known], labels).predict_proba(x) for model in models], axis=0)


def gcn(data: dict, train: np.ndarray, val: np.ndarray, seed: int) -> np.ndarray:
    """Probabilities of a two-layer GCN of PyG, at the epoch with the lowest validation loss."""
    import torch
    from torch.nn.functional import cross_entropy, dropout
    from torch_geometric.nn import GCNConv

    torch.manual_seed(seed)
    x, edges, y = (torch.as_tensor(data[name]) for name in ("x", "edge_index", "y"))
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


def auto(data: dict, train: np.ndarray, val: np.ndarray, seed: int, **options: Any) -> np.ndarray:
    """Probabilities of evengraph's default; which evengraph, the path of modules decides."""
    import torch
    from torch_geometric.data import Data

    import evengraph as eg

    if not Path(eg.__file__).resolve().is_relative_to(os.environ["PYTHONPATH"]):
        raise SystemExit(f"evengraph is that of {eg.__file__}, not of {os.environ['PYTHONPATH']}.")
    parts = {k: torch.as_tensor(v) if v.ndim else int(v) for k, v in data.items()}
    graph, masks = Data(**parts), [torch.as_tensor(mask) for mask in (train, val)]
    task = eg.Task(graph, *masks, (graph.y >= 0) & ~masks[0] & ~masks[1], int(graph.y.max()) + 1)
    model = eg.Auto(**options).fit(task, seed=seed)
    return model.predict_proba(task.graph).numpy()


def graphspot(data: dict, train: np.ndarray, val: np.ndarray, seed: int) -> np.ndarray:
    """Scores of graphspot's XGBoost over two hops, its default, as probabilities."""
    from graphspot import Graph  # type: ignore[import-not-found]
    from graphspot.detectors import XGBGraph  # type: ignore[import-not-found]
    from scipy import sparse

    size, edges = len(data["y"]), data["edge_index"]
    links = sparse.csr_matrix((np.ones(edges.shape[1]), edges), shape=(size, size))
    graph = Graph.from_scipy(links, x=data["x"])
    model = XGBGraph(random_state=seed, params={"n_jobs": 1})
    scores = model.fit(graph, y=np.where(train | val, data["y"], -1)).decision_function(graph)
    return np.stack([1 - scores, scores], 1)


FITS: dict[str, Any] = {name: partial(simple, name) for name in SIMPLE}
FITS |= {"gcn": gcn, "auto": auto, "before": partial(auto, folds=5), "graphspot": graphspot}


def work(job: dict[str, Any]) -> None:
    """Fit methods to one task in this process, and print a line for each."""
    with np.load(job["file"]) as file:
        data = dict(file)
    train, val = split(data["y"], job["regime"], job["draw"])
    for method in job["methods"]:
        warm_up(method)
        started = process_time(), perf_counter()
        found = FITS[method](data, train, val, job["draw"])
        cpu, wall = process_time() - started[0], perf_counter() - started[1]
        np.save(f"{job['out']}-{method}.npy", found)
        print(json.dumps([method, round(cpu, 4), round(wall, 4), release(method)]), flush=True)


def warm_up(method: str) -> None:
    """Import what a fit imports, by a fit to six nodes where that is quick."""
    data = {"x": np.eye(6, dtype="f4"), "y": np.arange(6) % 2}
    data["edge_index"] = np.array([np.arange(6), np.arange(6)[::-1]])
    train = np.arange(6) < 4
    names = ["logistic", "lightgbm", "gcn"] if method in ("auto", "before") else [method]
    for name in names:
        FITS[name](data, train, ~train, 0)
    if method in ("auto", "before"):
        import evengraph.methods  # noqa: F401


def release(method: str) -> str:
    """The package and version that a method is of."""
    package = {"logistic": "scikit-learn", "gcn": "torch_geometric"}.get(method, "lightgbm")
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


class Runner:
    """Run jobs as processes, score what they predict, and append rows to the file."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        import evengraph

        self.options, self.folder, self.lock = options, folder, threading.Lock()
        here = Path(evengraph.__file__).resolve().parents[1]
        self.sources = {"auto": here, "before": (options.before or here).resolve()}
        self.commits = {name: commit(path) for name, path in self.sources.items()}
        self.graph_file = cache(partial(write_set, folder=folder))

    def run(self, name: str, regime: str, draw: int, methods: list[str]) -> None:
        first, file = methods[0], self.folder / f"{name}.npz"
        out = self.folder / f"{name}-{regime}-{draw}"
        job = {"file": str(file), "regime": regime, "draw": draw, "methods": methods}
        python = self.options.graphspot if first == "graphspot" else sys.executable
        source = self.sources.get(first, self.sources["auto"])
        environ = os.environ | {f"{each}_NUM_THREADS": "1" for each in THREADS}
        environ |= {"LOKY_MAX_CPU_COUNT": "1", "PYTHONPATH": str(source)}
        words = ["-W", "ignore", "-m", "benchmarks.default", "--worker"]
        command = [python, *words, json.dumps(job | {"out": str(out)})]
        with np.load(file) as arrays:
            labels = arrays["y"]
        pipe = subprocess.Popen(command, stdout=-1, env=environ, cwd=ROOT, text=True)
        assert pipe.stdout is not None
        for line in pipe.stdout:
            method, cpu, wall, package = json.loads(line)
            predicted = Path(f"{out}-{method}.npy")
            metric, score = self.score(labels, regime, draw, np.load(predicted))
            predicted.unlink()
            package = f"{package} {self.commits.get(method, '')}".strip()
            with self.lock:
                values = [name, regime, draw, method, metric, round(score, 3), cpu, wall, package]
                append(self.options.out, values)
                print(*values, flush=True)
        if pipe.wait():
            print(f"{name} {regime} {draw}: {', '.join(methods)} ended with {pipe.returncode}.")

    def score(self, labels: np.ndarray, regime: str, draw: int, found: np.ndarray) -> tuple:
        import torch
        from torch_geometric.data import Data

        from evengraph import Task, evaluate

        masks = [torch.as_tensor(mask) for mask in split(labels, regime, draw)]
        y = torch.as_tensor(labels)
        graph = Data(x=torch.zeros(len(y), 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
        task = Task(graph, *masks, (y >= 0) & ~masks[0] & ~masks[1], found.shape[1])
        metric = "positive_average_precision" if found.shape[1] == 2 else "balanced_accuracy"
        return metric, 100 * float(evaluate(task, torch.as_tensor(found), positive=1)[metric])


def append(path: Path, row: list[Any]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, row] if is_new else [row])


def done(path: Path) -> set[tuple[str, ...]]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}


def run_all(options: argparse.Namespace) -> None:
    """Run what the file does not have, all sets and regimes of a draw before the next draw."""
    from evengraph.pipeline.parameters import parse_seeds

    methods = [one for one in options.methods.split(",") if one != "before" or options.before]
    if "graphspot" in methods:
        check = [options.graphspot or "", "-c", "import graphspot"]
        if (
            not options.graphspot
            or subprocess.run(check, capture_output=True, check=False).returncode
        ):
            print("graphspot is skipped: --graphspot must name a Python that can import it.")
            methods.remove("graphspot")
    regimes = [
        one for each in options.regimes.split(",") for one in (FEW if each == "few" else [each])
    ]
    there = done(options.out)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        runner, jobs = Runner(options, Path(folder)), []
        for draw in parse_seeds(options.draws):
            for name in options.sets.split(","):
                for regime in regimes:
                    if name in MANY and regime in FEW:
                        continue
                    left = [one for one in methods if (name, regime, str(draw), one) not in there]
                    groups = [[one] for one in left if one not in SIMPLE]
                    groups = [one for one in groups if name not in MANY or one != ["graphspot"]]
                    groups += [some] if (some := [one for one in left if one in SIMPLE]) else []
                    for group in groups:
                        runner.graph_file(name)
                        jobs.append(pool.submit(runner.run, name, regime, draw, group))
        for job in jobs:
            job.result()


def show(path: Path) -> None:
    """Print means over draws, and how `auto` compares."""
    import pandas as pd

    rows = pd.read_csv(path)
    rows["draw"] = rows["draw"].astype(int)
    names = [name for name in METHODS if name in set(rows["method"])]
    for name in names:
        found = rows.loc[rows["method"] == name, "version"].unique()
        print(f"{name}: {', '.join(found)}")
    setting = ["set", "regime"]
    wide = rows.pivot_table(index=[*setting, "draw"], columns="method", values="score")
    means = {
        value: rows.pivot_table(index=setting, columns="method", values=value, sort=False)[names]
        for value in ("score", "cpu", "wall")
    }

    def lines(frame: Any, shape: str = ".1f") -> list[list[object]]:
        return [
            [*key, *(format(value, shape) for value in row)] for key, *row in frame.itertuples()
        ]

    draws = rows.groupby(setting)["draw"].nunique()
    title = f"Mean score, percent ({draws.min()} to {draws.max()} draws)"
    table(title, [*setting, *names], lines(means["score"]))
    for value in ("cpu", "wall"):
        shown, heads = means[value].copy(), list(names)
        for other in ("lightgbm-2hop", "before"):
            if value == "cpu" and {"auto", other} <= set(names):
                heads.append(f"auto / {other}")
                shown[heads[-1]] = shown["auto"] / shown[other]
        table(f"Mean {value} seconds", [*setting, *heads], lines(shown, ".3g"))
    if "auto" in names:
        metrics = rows.drop_duplicates(setting).set_index(setting)["metric"]
        compared = []
        for other in (name for name in names if name != "auto"):
            gaps = (wide["auto"] - wide[other]).dropna().groupby(setting).mean()
            for metric, some in gaps.groupby(metrics):
                behind = some[some < -BEHIND]
                worst = " ".join(some.idxmin()) if len(behind) else ""
                found = [f"{some.mean():+.2f}", len(some), len(behind), f"{some.min():+.2f}", worst]
                compared.append([other, metric, *found])
        heads = ["against", "metric", "mean", "settings", f"{BEHIND} behind", "worst", "where"]
        table("auto minus the other, on the draws that both have", heads, compared)
    few = rows[rows["regime"].isin(FEW)]
    if len(few):
        quarter = few.groupby([*setting, "method"])["score"].agg(
            lambda scores: scores.nsmallest(max(1, len(scores) // 4)).mean()
        )
        table("Worst quarter of draws, mean", [*setting, *names], lines(quarter.unstack()[names]))


def example() -> None:
    """Measure the first command of the README: seconds in all, and until the first result."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", str(ROOT / "examples/shops"), "--label", "kind", "--save", "model"]
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
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--regimes", default="20+80,10%,50%,few")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--draws", default="0-4")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--before", type=Path, help="src of another checkout, for its auto")
    parser.add_argument("--graphspot", help="a Python that can import graphspot")
    parser.add_argument("--out", type=Path, default=Path("results/default.csv"))
    parser.add_argument("--example", action="store_true", help="measure the README's example")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.loads(options.worker))
    elif options.example:
        example()
    else:
        run_all(options)
        show(options.out)


if __name__ == "__main__":
    main()
