"""Tables of nodes and edges, and GraphML."""

import json
from functools import cache
from io import StringIO
from pathlib import Path

import pandas as pd

from attack.fuzz.mutations import VALUES, mutate_json
from attack.fuzz.readers.base import NODES, Reader
from evengraph.tables.open import read_tables

ROWS = 12
COLUMNS = {"id", "age", "colour", "day", "label", "source", "target", "weight", "type"}
SMALL = {  # a table with few columns is read in a third of the time
    "number": COLUMNS - {"colour", "day", "weight", "type"},
    "text": COLUMNS - {"age", "day", "weight"},
    "date": COLUMNS - {"age", "colour", "type"},
}


@cache
def table_text(columns=frozenset(COLUMNS), rows=NODES):
    """A nodes and an edges table as CSV, with some of the columns."""
    nodes = [
        {
            "id": i,
            "age": i * 7 % 11,
            "colour": ["red", "blue", "green"][i % 3],
            "day": f"2024-01-{i % 28 + 1:02}",
            "label": "ab"[i % 2],
        }
        for i in range(rows)
    ]
    edges = [
        {"source": i, "target": (i * 5 + 1) % rows, "weight": i % 4 + 1, "type": "pays"}
        for i in range(rows)
    ]
    return _text(nodes, columns), _text(edges, columns)


def _text(rows, columns):
    head = [name for name in rows[0] if name in columns]
    lines = [head, *([str(row[name]) for name in head] for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines)


class Tables(Reader):
    """Every case is parsed; of some, a graph is built as well, which takes most of the time."""

    whole = True
    share = 0.25

    def mutate(self, stream, samples, folder):
        path = super().mutate(stream, samples, folder)
        self.whole = stream.random() < self.share
        return path

    def read(self, path):
        if self.whole:
            super().read(path)
        else:
            read_tables(path)


class Csv(Tables):
    """A folder with a nodes and an edges table."""

    name = "csv"
    is_text = True

    def prepare(self, folder):
        forms = ((".csv", ","), (".tsv", "\t"), (".csv", ";"))
        for (suffix, separator), (kind, columns) in zip(forms, SMALL.items(), strict=True):
            (folder / kind).mkdir()
            texts = table_text(frozenset(columns), ROWS)
            for name, text in zip(("nodes", "edges"), texts, strict=True):
                (folder / kind / f"{name}{suffix}").write_text(text.replace(",", separator))


class JsonLines(Tables):
    """Tables as JSON lines."""

    name = "jsonl"
    is_text = True

    def prepare(self, folder):
        for kind, columns in SMALL.items():
            (folder / kind).mkdir()
            texts = table_text(frozenset(columns), ROWS)
            for name, text in zip(("nodes", "edges"), texts, strict=True):
                head, *rows = (line.split(",") for line in text.splitlines())
                lines = (json.dumps(dict(zip(head, row, strict=True))) for row in rows)
                (folder / kind / f"{name}.jsonl").write_text("\n".join(lines))

    def change(self, stream, path):
        if stream.random() < 0.4:
            return super().change(stream, path)
        file = stream.choice(sorted(path.iterdir()))
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("\n".join(map(json.dumps, mutate_json(stream, rows))))
        return None


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


class Parquet(Tables):
    """Tables as Parquet."""

    name = "parquet"

    def prepare(self, folder):
        for kind, columns in SMALL.items():
            (folder / kind).mkdir()
            tables = frames(frozenset(columns), ROWS)
            for name, frame in zip(("nodes", "edges"), tables, strict=True):
                frame.to_parquet(folder / kind / f"{name}.parquet")

    def change(self, stream, path):
        if stream.random() < 0.5:
            return super().change(stream, path)
        file = stream.choice(sorted(path.iterdir()))
        frame = frames(frozenset(SMALL[path.name]), ROWS)[file.stem == "edges"]
        column = stream.choice(list(frame.columns))
        try:
            frame[column] = odd_column(stream, frame[column])
            frame.to_parquet(file)
        except Exception:  # a column that Parquet cannot hold is no case
            super().change(stream, path)
        return None


def frames(columns=frozenset(COLUMNS), rows=NODES):
    """The tables as DataFrames, each time new ones."""
    return [table.copy() for table in _frames(columns, rows)]


@cache
def _frames(columns, rows):
    return [pd.read_csv(StringIO(text)) for text in table_text(columns, rows)]


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

        for kind, columns in SMALL.items():
            nodes, edges = frames(frozenset(columns), ROWS)
            extra = [name for name in edges.columns if name not in ("source", "target")]
            graph = networkx.from_pandas_edgelist(edges, edge_attr=extra or None)
            networkx.set_node_attributes(graph, nodes.set_index("id").to_dict("index"))
            networkx.write_graphml(graph, folder / f"{kind}.graphml")
