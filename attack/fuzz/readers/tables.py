"""Tables of nodes and edges, and GraphML."""

import json
from io import StringIO
from pathlib import Path

import pandas as pd

from attack.fuzz.mutations import VALUES, mutate_bytes, mutate_json
from attack.fuzz.readers.base import NODES, Reader


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
