"""The readers under attack: how a valid file is written, mutated and read."""

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import evengraph as eg
from attack.fuzz.mutations import (
    VALUES,
    WORDS,
    mutate_array,
    mutate_bytes,
    mutate_json,
    mutate_zip,
)
from evengraph.core.store import JobSpec, Row, Store
from evengraph.experiment.plan import Plan
from evengraph.experiment.spec import read_spec
from evengraph.methods.bases.model_folder import MAIN, seal
from evengraph.report.run.page import render_page
from evengraph.tables import open_graph

torch.set_num_threads(1)
NODES = 30


class Reader:
    """A reader, its valid files, and how they are mutated."""

    name = ""
    accepts_errors = True
    is_text = False

    def prepare(self, folder):
        """Write the valid files, one file or folder each."""

    def mutate(self, stream, samples, folder):
        """Write a mutated copy of a valid file into a folder; returns its path."""
        sample = stream.choice(sorted(samples.iterdir()))
        folder.mkdir()
        path = folder / sample.name
        if sample.is_dir():
            shutil.copytree(sample, path)
        else:
            shutil.copy(sample, path)
        try:
            self.change(stream, path)
        except (
            RuntimeError,
            MemoryError,
            TypeError,
            IndexError,
        ):  # a file that cannot be written is no case
            Reader.change(self, stream, path)
        return path

    def change(self, stream, path):
        """Mutate a file or folder in place."""
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        file = stream.choice(files)
        content = mutate_bytes(stream, file.read_bytes())
        if self.is_text and stream.random() < 0.7:  # most damaged bytes are no text
            content = content.decode(errors="ignore").replace("\0", "").encode()
        file.write_bytes(content)

    def read(self, path):
        """Read the file; a valid result is checked."""
        check(open_graph(path))


def check(tables):
    """What holds for every graph that was read."""
    graph = tables.graph
    assert graph.x.shape[0] == graph.y.shape[0] == len(tables.ids)
    assert torch.isfinite(graph.x).all()
    if graph.edge_index.numel():
        assert 0 <= graph.edge_index.min() <= graph.edge_index.max() < len(graph.y)
    assert graph.y.max() < max(len(tables.class_names), 1)


def arrays():
    """A small graph as arrays."""
    stream = np.random.default_rng(0)
    edges = stream.integers(0, NODES, (2, 80))
    y = np.arange(NODES) % 3
    x = stream.normal(size=(NODES, 4)).astype("f4")
    masks = {f"{part}_mask": np.arange(NODES) % 3 == i for i, part in enumerate(("train", "val"))}
    names = np.array(["ant", "bee", "cat"])
    return {"edge_index": edges, "x": x, "y": y, "class_names": names, **masks}


def csr_arrays():
    """The same as CSR parts, with other optional arrays."""
    parts, made = {}, arrays()
    adjacency = sp.csr_matrix((np.ones(80), made["edge_index"]), shape=(NODES, NODES))
    for key, matrix in (("adj", adjacency), ("attr", sp.csr_matrix(np.round(made["x"])))):
        parts |= {f"{key}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
        parts[f"{key}_shape"] = np.array(matrix.shape)
    return parts | {"labels": made["y"], "time": np.arange(NODES), "ids": np.arange(NODES) + 7}


class Npz(Reader):
    """NumPy archives of a graph."""

    name = "npz"

    def prepare(self, folder):
        np.savez(folder / "dense.npz", **arrays(), edge_weight=np.ones(80))
        np.savez_compressed(folder / "csr.npz", **csr_arrays())

    def change(self, stream, path):
        kind = stream.randrange(4)
        if kind == 0:
            super().change(stream, path)
        elif kind == 1:
            mutate_zip(stream, path)
        else:
            with np.load(path) as file:
                content = dict(file)
            np.savez(path, **change_arrays(stream, content))


def change_arrays(stream, content):
    """Change, drop, swap or add some of the arrays."""
    for _ in range(stream.choice((1, 1, 2, 3))):
        key, other = stream.choice(sorted(content)), stream.choice(sorted(content))
        kind = stream.randrange(8)
        if kind == 0 and len(content) > 1:
            del content[key]
        elif kind == 1:
            content[key], content[other] = content[other], content[key]
        elif kind == 2:
            content[stream.choice(("num_nodes", "edge_attr", "ids", "time"))] = content[key]
        else:
            content[key] = mutate_array(stream, content[key])
    return content


class Torch(Reader):
    """Files by torch.save, of a `Data` or a dictionary."""

    name = "pt"

    def prepare(self, folder):
        tensors = self._tensors(arrays())
        torch.save(tensors, folder / "dict.pt")
        torch.save(Data(**tensors), folder / "data.pt")
        torch.save(tensors, folder / "old.pt", _use_new_zipfile_serialization=False)

    @staticmethod
    def _tensors(content):
        def tensor(array):
            try:
                return torch.from_numpy(np.array(array))
            except TypeError:
                return array.tolist()

        return {key: tensor(array) for key, array in content.items()}

    def change(self, stream, path):
        kind = stream.randrange(4)
        if kind == 0:
            super().change(stream, path)
        elif kind == 1 and path.stem != "old":
            mutate_zip(stream, path)
        else:
            content = self._tensors(change_arrays(stream, arrays()))
            for _ in range(stream.choice((0, 1, 2))):
                key = stream.choice(sorted(content))
                content[key] = self._odd(stream, content[key])
            torch.save(content, path)

    @staticmethod
    def _odd(stream, value):
        """The same value in another form."""
        forms = [
            lambda t: t.float().requires_grad_(),
            lambda t: t.bfloat16(),
            lambda t: t.to_sparse(),
            lambda t: t.to_sparse_csr(),
            lambda t: t.to_sparse_csc(),
            lambda t: t.to("meta"),
            lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.qint8),
            lambda t: t.cfloat(),
            lambda t: t[:1].expand(stream.choice((10, 10**6, 10**9)), *t.shape[1:]),
            lambda t: t.tolist(),
            lambda t: torch.sparse_coo_tensor(
                torch.randint(-1, 60, (2, 9)), torch.ones(9), (30, 4), check_invariants=False
            ),
            lambda t: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            lambda t: t.to(torch.float8_e4m3fn),
            lambda t: torch.nn.Parameter(t),
            lambda t: stream.choice(VALUES),
            lambda t: {"a": t},
        ]
        try:
            return stream.choice(forms)(value)
        except (RuntimeError, TypeError, AttributeError, IndexError, ValueError):
            return stream.choice(VALUES)


def table_text():
    """A nodes and an edges table as CSV."""
    nodes = "".join(
        f"{i},{i * 7 % 11},{['red', 'blue', 'green'][i % 3]},2024-01-{i % 28 + 1:02},"
        f"{'ab'[i % 2]}\n"
        for i in range(NODES)
    )
    edges = "".join(f"{i},{(i * 5 + 1) % NODES},{i % 4 + 1},pays\n" for i in range(NODES))
    return "id,age,colour,day,label\n" + nodes, "source,target,weight,type\n" + edges


class Csv(Reader):
    """A folder with a nodes and an edges table."""

    name = "csv"
    is_text = True

    def prepare(self, folder):
        nodes, edges = table_text()
        for suffix, separator in ((".csv", ","), (".tsv", "\t"), (".csv", ";")):
            own = folder / f"folder{ord(separator)}"
            own.mkdir()
            for name, text in (("nodes", nodes), ("edges", edges)):
                (own / f"{name}{suffix}").write_text(text.replace(",", separator))


class JsonLines(Reader):
    """Tables as JSON lines."""

    name = "jsonl"
    is_text = True

    def prepare(self, folder):
        nodes, edges = table_text()
        (folder / "folder").mkdir()
        for name, text in (("nodes", nodes), ("edges", edges)):
            head, *rows = (line.split(",") for line in text.splitlines())
            lines = (json.dumps(dict(zip(head, row, strict=True))) for row in rows)
            (folder / "folder" / f"{name}.jsonl").write_text("\n".join(lines))

    def change(self, stream, path):
        if stream.random() < 0.4:
            return super().change(stream, path)
        file = stream.choice(sorted(path.iterdir()))
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("\n".join(map(json.dumps, mutate_json(stream, rows))))
        return None


class Lists(Reader):
    """features.json beside the tables."""

    name = "lists"
    is_text = True

    def prepare(self, folder):
        Csv().prepare(folder)
        for own in folder.iterdir():
            lists = {str(i): [i % 5, i % 7, 9] for i in range(NODES)}
            (own / "features.json").write_text(json.dumps(lists))

    def change(self, stream, path):
        file = path / "features.json"
        if stream.random() < 0.5:
            file.write_bytes(mutate_bytes(stream, file.read_bytes()))
        else:
            file.write_text(json.dumps(mutate_json(stream, json.loads(file.read_text()))))


class Gzip(Csv):
    """Packed tables."""

    name = "gz"
    is_text = False

    def prepare(self, folder):
        import gzip

        super().prepare(folder)
        for file in [path for path in folder.rglob("*") if path.is_file()]:
            Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()


class Parquet(Reader):
    """Tables as Parquet."""

    name = "parquet"

    def prepare(self, folder):
        (folder / "folder").mkdir()
        for name, frame in zip(("nodes", "edges"), frames(), strict=True):
            frame.to_parquet(folder / "folder" / f"{name}.parquet")

    def change(self, stream, path):
        if stream.random() < 0.5:
            return super().change(stream, path)
        file = stream.choice(sorted(path.iterdir()))
        frame = pd.read_parquet(file)
        column = stream.choice(list(frame.columns))
        try:
            frame[column] = odd_column(stream, frame[column])
            frame.to_parquet(file)
        except Exception:  # a column that Parquet cannot hold is no case
            super().change(stream, path)
        return None


def frames():
    """The tables as DataFrames."""
    from io import StringIO

    return [pd.read_csv(StringIO(text)) for text in table_text()]


def odd_column(stream, column):
    """A column of another type, or with a cell of another type."""
    size = len(column)
    kind = stream.randrange(8)
    if kind == 0:
        return pd.Series([stream.choice(VALUES[:16])] * size)
    if kind == 1:
        return column.astype(str).astype("category")
    if kind == 2:
        return pd.Series([[1.0] * stream.randrange(3) for _ in range(size)])
    if kind == 3:
        return pd.Series([{"a": i} for i in range(size)])
    if kind == 4:
        return pd.to_datetime(pd.Series(range(size)), unit="D")
    if kind == 5:
        return pd.Series([bytes([i]) for i in range(size)])
    if kind == 6:
        return pd.to_timedelta(pd.Series(range(size)), unit="D")
    column = column.astype(object)
    column[stream.randrange(size)] = None
    return column


class Graphml(Reader):
    """GraphML."""

    name = "graphml"
    is_text = True

    def prepare(self, folder):
        import networkx

        nodes, edges = frames()
        graph = networkx.from_pandas_edgelist(edges, edge_attr=["weight", "type"])
        networkx.set_node_attributes(graph, nodes.set_index("id").to_dict("index"))
        networkx.write_graphml(graph, folder / "graph.graphml")


class Spec(Reader):
    """Experiments in TOML."""

    name = "spec"
    is_text = True
    text = """title = "Two methods"
draws = "comparison"
seeds = [5, 6]
map = "GCN"

[fields]
max_epochs = 3

[[setup]]
dataset = "toy"
imbalance = "step"
minority = 2
ratio = 0.1

[[setup]]
dataset = "cora"
imbalance = "natural"
train = 0.2

[[method]]
name = "gcn"
fields = { hidden = 8 }
grid = { dropout = [0.1, 0.5] }
more_seeds = "7-9"

[[method]]
name = "reweight"
label = "Ours"
like = "GCN"
search = { dropout = [0.1, 0.9], trials = 3 }
note = "a note"

[[method]]
name = "unignn"
presets = true
vary = { alpha = [1, 2, 3] }

[quick]
seeds = [5]
setups = ["toy"]
methods = ["gcn"]
"""

    def prepare(self, folder):
        (folder / "experiment.toml").write_text(self.text)

    def read(self, path):
        for quick in (False, True):
            spec = read_spec(str(path), quick=quick)
            assert spec.setups
            list(Plan(spec, []).jobs())


class Model(Reader):
    """Folders of saved models."""

    name = "model"
    methods = ("gcn", "unignn", "boosting", "labelpropagation", "logistic", "embedsmote")

    def prepare(self, folder):
        nodes, edges = frames()
        for name in self.methods:
            fields = {"gcn": {"hidden": 4}, "boosting": {}}.get(name, {})
            method = eg.METHODS[name](max_epochs=1, **fields)
            model = eg.TableModel(method, refit=False).fit(nodes, edges, progress=False)
            model.save(folder / name)

    def change(self, stream, path):
        kind = stream.randrange(4)
        main = path / MAIN
        about = json.loads(main.read_text())
        if kind == 0:
            return super().change(stream, path)
        file = path / about["tensors"]["file"]
        if kind == 1:
            file.write_bytes(mutate_bytes(stream, file.read_bytes()))
        elif kind == 2:
            self._change_tensors(stream, file)
        else:
            about = mutate_json(stream, about)
        return self._seal(stream, about, file, main)

    @staticmethod
    def _seal(stream, about, file, main):
        """Make all hashes right, as somebody would who wants the file to be opened."""
        if isinstance(about, dict):
            if isinstance(about.get("tensors"), dict) and stream.random() < 0.9:
                about["tensors"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
            about.pop("seal", None)
            about["seal"] = seal(about)
        main.write_text(json.dumps(about))

    @staticmethod
    def _change_tensors(stream, file):
        from safetensors.torch import load, save

        tensors = load(file.read_bytes())
        name = stream.choice(sorted(tensors))
        try:
            changed = torch.from_numpy(mutate_array(stream, tensors[name].numpy()))
            tensors[name] = changed.contiguous()
        except TypeError:
            del tensors[name]
        file.write_bytes(save(tensors))

    def read(self, path):
        model = eg.TableModel.load(path)
        try:
            assert len(model.predict(*frames())) == NODES
        except (ValueError, FloatingPointError) as error:  # about the tables, not the folder
            if isinstance(error, UnicodeError) or "\n" in str(error):
                raise


class ResultPage(Reader):
    """result.json, of which pages are drawn whatever it holds."""

    name = "result"
    accepts_errors = False

    def prepare(self, folder):
        from evengraph.experiment.run import RunPlan, run

        plan = RunPlan(
            dataset="toy",
            graph=eg.load("toy", num_nodes=200, num_edges=600, num_features=16, num_classes=3),
            imbalance="natural",
            protocol=eg.splits.Natural(),
            methods={"gcn": eg.GCN(max_epochs=2)},
            seeds=[1, 2],
        )
        (folder / "result.json").write_text(json.dumps(run(plan).results[0]))

    def change(self, stream, path):
        content = mutate_json(stream, json.loads(path.read_text()))
        path.write_text(json.dumps(content))

    def read(self, path):
        content = json.loads(path.read_text())
        if isinstance(content, dict):
            text = render_page(content)
            assert not any(sign in text for sign in "\x1b\x00\x07"), "control characters"


class StoreFile(Reader):
    """Stores of runs."""

    name = "store"

    def prepare(self, folder):
        store = Store(folder / "store.sqlite")
        for seed in range(12):
            job = JobSpec(
                dataset="toy",
                imbalance="natural",
                imbalance_fields={"train": 0.1},
                method="gcn",
                method_fields={"hidden": 8},
                seed=seed,
            )
            metrics = {"balanced_accuracy": 50.0 + seed, "macro_f1": 40.0, "g_mean": 30.0}
            store.add(Row(job=job, outcome={"metrics": metrics, "validation": 50.0}))
        with sqlite3.connect(store.path) as base:
            base.execute("PRAGMA journal_mode = DELETE")

    def change(self, stream, path):
        if stream.random() < 0.5:
            return super().change(stream, path)
        with sqlite3.connect(path) as base:
            columns = [row[1] for row in base.execute("PRAGMA table_info(runs)")]
            value = stream.choice([*WORDS, *(v for v in VALUES[:12] if v not in (2**63, 10**400))])
            text = f"UPDATE OR IGNORE runs SET {stream.choice(columns)} = ? WHERE rowid = ?"
            try:
                base.execute(text, (value, stream.randrange(1, 13)))
            except sqlite3.Error:
                base.execute("DROP TABLE claims")
        base.close()
        return None

    def read(self, path):
        store = Store(path)
        for row in store.rows():
            row.flat()
        store.experiments()


READERS = {
    kind.name: kind()
    for kind in (
        Npz,
        Torch,
        Csv,
        JsonLines,
        Lists,
        Gzip,
        Parquet,
        Graphml,
        Spec,
        Model,
        ResultPage,
        StoreFile,
    )
}
