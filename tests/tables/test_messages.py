"""Every mistake in a user's data gets one line that says where it is and what to do."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from small_tables import EDGES, NODES, people, ties

from evengraph.core.errors import ArgumentError
from evengraph.tables import FeatureEncoder, from_frames, from_matrix, from_networkx, read_table
from evengraph.tables.cells import column_kind, date_form, to_numbers
from evengraph.tables.columns import encode_labels, read_times
from evengraph.tables.encoders import Vector, fit_column, from_dict
from evengraph.tables.graph_files import read_npz, read_pyg
from evengraph.tables.notes import Notes
from evengraph.tables.open import open_graph
from evengraph.tables.read import csv_header

PATH = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
Y = np.array([0, 1, -1])
RNG = np.random.default_rng(0)


def numbered(file=None, **columns):
    """Three nodes in a row, from a file."""
    nodes, edges = pd.DataFrame({"id": [0, 1, 2], **columns}), pd.DataFrame({"a": [0], "b": [1]})
    nodes.attrs = {} if file is None else {"file": file}
    return lambda folder: from_frames(nodes, edges)


def frames(nodes=None, edges=None, **options):
    tables = (people() if nodes is None else nodes, ties() if edges is None else edges)
    return lambda folder: from_frames(*tables, **({"label": "kind"} | options))


def file(name, content, reader=read_table):
    def call(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return reader(folder / name)

    return call


def folder_with(data="", options=None, **files):
    """Open something of a folder with nodes.csv and edges.csv, some files replaced."""

    def call(folder):
        for name, content in ({"nodes_csv": NODES, "edges_csv": EDGES} | files).items():
            if content is not None:
                (folder / name.replace("_", ".")).write_text(content)
        named = {k: folder / v[1:] if v[0] == "/" else v for k, v in (options or {}).items()}
        return open_graph(folder / data, **named)

    return call


def column(*cells, use=fit_column, name="n", **options):
    return lambda folder: use(pd.Series(cells, name=name, dtype=object), "nodes", **options)


def label(values, name="kind"):
    return lambda folder: encode_labels(pd.Series(values, name=name), "t", Notes())


def later(first, new):
    edges = torch.tensor(PATH[:, :2])
    encoder = FeatureEncoder.fit(pd.DataFrame({"n": first}), ["n"], edge_index=edges)
    return lambda folder: encoder.transform(pd.DataFrame(new))


def stored(**fields):
    plain = {"column": "a", "median": 0.0, "mean": 0.0, "scale": 1.0}
    return lambda folder: from_dict(plain | fields)


def stored_encoder(**changes):
    content = {"version": 2, "columns": [], "structural": [], "plain": [], "notes": []}
    return lambda folder: FeatureEncoder.from_dict(content | changes)


def matrix(matrix=None, **arguments):
    ring = sp.csr_matrix(([1, 1], ([0, 1], [1, 2])), shape=(3, 3))
    return lambda folder: from_matrix(ring if matrix is None else matrix, **arguments)


def npz(**arrays):
    def call(folder):
        np.savez(folder / "g.npz", **arrays)
        return read_npz(folder / "g.npz")

    return call


def torch_file(make):
    def call(folder):
        torch.save({"edge_index": torch.tensor(PATH)} | make(), folder / "g.pt")
        return read_pyg(folder / "g.pt")

    return call


CASES = [
    # files of tables
    (file("t.csv", b""), "t.csv is empty."),
    (file("t.csv", b" \n\n"), "t.csv is empty."),
    (file("t.csv", "id,n\nx,1\né,2\n".encode("latin-1")), "line 3: byte 0xe9 is not UTF-8"),
    (file("t.csv", "id,n\nx,1\n".encode("utf-16")), "t.csv is UTF-16 text; save it as UTF-8."),
    (file("t.csv", b"id,n\nx,\0\n"), "t.csv, line 2 holds a zero byte"),
    (file("t.csv", "id,n\nx,1\ny,2,3\n"), "t.csv, line 3 has 3 cells, the first line has 2"),
    (file("t.csv", "id,n\nx,1\ny\n"), "line 3 has 1 cell, the first line has 2"),
    (file("t.csv", "id,n\nx,1,5\ny,2,6\n"), "line 2 has 3 cells"),
    (file("t.csv", 'id,n\nx,"1\ny,2\nz,3\n'), "row 1; is a quote not closed?"),
    (file("t.csv", 'id,n\nx,"1"\ny,"2\n'), "row 2; is a quote not closed?"),
    (file("t.csv", "id,id\nx,1\n"), "t.csv has two columns called 'id'"),
    (file("t.csv.gz", "id,n\n"), "t.csv.gz cannot be unpacked"),
    (file("t.csv.gz", gzip.compress(b"id,n\n" * 99)[:-9]), "cannot be unpacked"),
    (file("t.jsonl", '{"a": 1}\n{"a": \n'), "t.jsonl, line 2 is not JSON"),
    (file("t.jsonl", '{"a": 1}\n[1]\n'), "line 2 must be an object"),
    (file("t.jsonl", '{"a": "\\ud800"}'), "line 1 is not JSON: ... surrogates not allowed"),
    (file("t.jsonl", '{"a": ' + "[" * 10**5), "line 1 is not JSON: ... recursion"),
    (file("t.parquet", ""), "t.parquet is empty."),
    (file("t.parquet", "id,n\n"), "t.parquet cannot be read as Parquet"),
    (file("t.xlsx", "PK"), "t.xlsx is a spreadsheet; save its sheet as CSV"),
    (file("t.txt", ""), "t.txt cannot be read as a table; its name must end in .csv, .tsv"),
    (lambda folder: read_table(folder / "none.csv"), "none.csv does not exist"),
    (lambda folder: read_table(folder / "nodes.csv" / ".."), "cannot be read as a table"),
    (file("t.csv", " \n", csv_header), "t.csv is empty"),
    (file("t.csv.gz", "a,b\n", csv_header), "t.csv.gz cannot be unpacked"),
    # folders and paths
    (folder_with(options={"label": "topic"}), "nodes.csv has no column 'topic'; its columns are:"),
    (folder_with(edges_csv=EDGES + "ann,zoe\n"), "edges.csv, column 'target', row 3 names 'zoe'"),
    (folder_with(nodes_csv=NODES + "dee,inf,b\n"), "nodes.csv, column 'age', row 4 is infinite"),
    (folder_with(nodes_csv="id,age,kind\n"), "nodes.csv has no rows"),
    (
        folder_with(nodes_csv="id,n\n1,1\n2,2\n3,3\n4,4\n5,five\n", edges_csv="a,b\n1,2\n"),
        "nodes.csv, column 'n': 1 of 5 cells is not a number ('five' in row 5): mixed",
    ),
    (folder_with("nodes.csv"), "nodes.csv needs edges: link must name columns"),
    (folder_with(options={"edges": "edges.csv"}), "does not take edges: a folder holds both"),
    (folder_with("nothing"), "does not exist; expected a folder with a nodes and an edges table"),
    (folder_with("none.csv", {"edges": "/edges.csv"}), "none.csv does not exist"),
    (folder_with("none.csv"), "none.csv does not exist"),
    (folder_with("g.npz"), "g.npz does not exist"),
    (folder_with("g.npz", {"label": "y"}), "g.npz does not take label: its arrays have fixed"),
    (folder_with("g.graphml", {"source": "a"}), "does not take source: it holds nodes and edges"),
    (folder_with("g.graphml", g_graphml="<graphml><graph>"), "cannot be read as GraphML"),
    (folder_with("g.txt", g_txt=""), "g.txt cannot be opened; expected a folder"),
    (folder_with("g.xlsx"), "g.xlsx is a spreadsheet; save its sheet as CSV"),
    (folder_with(nodes_parquet=""), "several nodes tables: nodes.csv, nodes.parquet; keep one"),
    (folder_with(nodes_csv=None), "has no nodes table; name it nodes.csv; .tsv, "),
    (folder_with(nodes_csv=None, Nodes_xlsx=""), "Nodes.xlsx is a spreadsheet"),
    (folder_with(options={"drop": ["wieght"]}), "has no column 'wieght'"),
    # columns of two tables
    (frames(label="topic"), "nodes has no column 'topic'; its columns are: id, age, city, kind."),
    (frames(source="from"), "edges has no column 'from'; its columns are: source, target."),
    (frames(features=["age", "x"]), "nodes has no column 'x'"),
    (frames(features=["kind"]), "must not contain the label column 'kind'"),
    (frames(split="kind"), "Column 'kind' cannot be both label and split"),
    (frames(edges=ties(w=1), weight="w", type="w"), "'w' cannot be both weight and type"),
    (frames(source="target", target="target"), "must be two columns"),
    (frames(split="city"), "column 'city', row 1 holds 'Rome'; a split column holds"),
    (frames(time="city"), "column 'city' holds text values; times must be"),
    (frames(people()[:0]), "nodes has no rows"),
    (frames(edges=ties()[["source"]]), "edges needs two columns"),
    (frames(people().set_axis(["id", "a", "a", "kind"], axis=1)), "nodes has two columns called"),
    (frames([1, 2]), "nodes must be a pandas DataFrame, got list"),
    (frames(people().drop(columns="id")), "nodes has no column called id, ... set id to one of it"),
    # ends and ids
    (
        frames(edges=ties([("ann", "bob"), ("ann", "zoe"), ("zed", "ann")])),
        "edges, column 'target', row 2 names 'zoe', which is not the id of a node; 2 of 3 edges",
    ),
    (frames(edges=ties([("x", "y")])), "is the id column the right one?"),
    (frames(edges=ties([("ann", None)])), "edges, column 'target', row 1 is empty"),
    (frames(edges=ties([("ann", "bob"), (" ", "bob")])), "'source', row 2 is empty"),
    (frames(edges=ties([("ann", "9" * 5000)]), id="id"), "names '9999"),
    (
        frames(people(id=["ann", "bob", "bob", "dee", "eve", "bob"])),
        "row 3 repeats the id 'bob'",
    ),
    (frames(people(id=["ann", "bob", None, "dee", "eve", "fay"])), "'id', row 3 is empty; every"),
    (frames(people(id=[[i] for i in range(6)])), "column 'id' holds lists or other containers"),
    # weights
    (frames(edges=ties(w=[1, -1, 1]), weight="w"), "edges, column 'w', row 2 is -1; a weight must"),
    (frames(edges=ties(w=[1, 1, None]), weight="w"), "column 'w', row 3 is empty; a weight must"),
    (frames(edges=ties(w=[1, 1, np.inf]), weight="w"), "column 'w', row 3 is infinite"),
    # labels
    (frames(people(kind=["a", "a", None, "a", "", "a"])), "nodes, column 'kind' holds a single"),
    (frames(people(kind=[None, "", " ", None, None, "nan"])), "every label is empty"),
    (
        frames(people(kind=pd.Series([1, 2, "x", 1, 2, None], dtype=object))),
        "nodes, column 'kind', row 3 holds 'x', other rows hold 1: mixed types",
    ),
    (frames(people(kind=[[i] for i in range(6)])), "column 'kind' holds lists or other containers"),
    (label([1, np.inf, 2]), "column 'kind', row 2 is infinite"),
    (label(RNG.integers(0, 2000, 3000), "days"), "'days' is continuous ( ... distinct numbers in"),
    (label(np.round(RNG.exponential(9, 3000), 1), "spent"), "'spent' is continuous"),
    (label(range(30), "rank"), "'rank' is continuous"),
    (label(range(30), "user_id"), "all 30 labels are different, like an id; ... label column"),
    (label([f"n{i}" for i in range(30)]), "all 30 labels are different, like an id or a name"),
    (label(["0", "1"] * 9 + ["what"]), "mixed types"),
    (label([*map(str, range(50)), "?"]), "is continuous"),
    # cells
    (numbered("a.jsonl", day=["0001-01-01", "2024-01-01", "2024-01-02"]), "outside the years 1678"),
    (numbered("a.jsonl", t=[[{"a": 1}], [{"b": 2}], []]), "a.jsonl, column 't' holds lists or oth"),
    (frames(people(age=[1, 2, np.inf, 3, 4, 5])), "nodes, column 'age', row 3 is infinite"),
    (column(1.0, -np.inf, 2.0), "nodes, column 'n', row 2 is infinite"),
    (column("1", "2", "3", "4", "inf"), "nodes, column 'n', row 5 is infinite"),
    (column(1, 10**400), "nodes, column 'n', row 2 is infinite"),
    (lambda folder: to_numbers(pd.Series([1j], name="c"), "t"), "column 'c' holds complex numbers"),
    (
        column("1", "2", "3", "four", "5"),
        "nodes, column 'n': 1 of 5 cells is not a number ('four' in row 4): mixed types; fix or "
        "empty it, or drop the column.",
    ),
    (
        column(*map(str, range(20)), "", "a", "b", "c", "d"),
        "4 of 24 cells are not numbers (first: 'a' in row 22, 'b' in row 23, 'c' in row 24): mixed "
        "types; fix or empty them, or drop the column.",
    ),
    (
        column(*(f"2024-01-{day}" for day in range(10, 19)), "yesterday"),
        "1 of 10 cells is not a date ('yesterday' in row 10): mixed types; fix or empty it, or",
    ),
    (
        column("22.12.2016", *["2024-01-10"] * 4, None, *["2024-01-11"] * 4, "5"),
        "2 of 10 cells are not dates ('22.12.2016' in row 1, '5' in row 11): mixed types",
    ),
    (column(1, "a", 2), "row 2 holds 'a', other rows hold 1: mixed types"),
    (column({"a": 1}, None), "row 1 holds a dict; a cell must hold one"),
    (column("2024-01-01", "2024-02-31"), "row 2 holds '2024-02-31'; expected a date"),
    (later([1, 2, 3], {"n": ["1", "x"]}), "column 'n', row 2 holds 'x'; expected a number"),
    (later([1, 2, 3], {"n": ["1", "x" * 500]}), "xxx...; expected a number"),
    (later([1, 2, 3], {"n": ["1", "x", "y"]}), "2 of 3 cells ... ('x' in row 2, 'y' in row 3); ex"),
    (later([1, 2, 3], {"m": [1]}), "nodes has no column 'n'; its columns are: m"),
    (later([True, False, True], {"n": ["maybe"]}), "column 'n', row 1 holds 'maybe'; expected tru"),
    # dates
    (column("31/05/2024", "05/31/2024"), "'31/05/2024', day first, and '05/31/2024', month first"),
    (column("31/05/2024", "May 31, 2024"), "dates in several forms"),
    (
        column("31/05/2024", *[f"{i}/06/2024" for i in range(1, 10)], "soon"),
        "but also 'soon' (1 of",
    ),
    (column("03/04/2024", use=date_form, order="ymd"), "date_order must be dmy or mdy, got 'ymd'"),
    (column("2024-01-01", "2024-13-01", use=read_times), "row 2 holds '2024-13-01'; expected a da"),
    (column(*["2024-01-01"] * 4, "soon", use=read_times), "('soon' in row 5): ... fix or empty it"),
    (later(["31/05/2024", "1/6/2024"], {"n": ["05/31/2024"]}), "expected a date (day/month"),
    # lists and vectors
    (column([0.5, 1.5], [0.5], [1.5, 2.5]), "column 'n', row 2 holds 1 numbers, expected 2"),
    (column([0.5, 1.5], [0.5, None]), "column 'n', row 2 holds a list in which an item is not"),
    (column([0.5, np.inf], [0.5, 1]), "column 'n', row 1 holds a list in which an item is not"),
    (column([1e200, 1.0], [2.0, 1.0], use=Vector.fit), "holds a vector with a number above"),
    (later(['["a"]', '["a", "b"]', '["b"]'] * 3, {"n": ["[]", "[a"]}), "row 2 holds '[a'; expecte"),
    (later(["[1, 2]", "[1]", "[2]"] * 9, {"n": ["[1],[2]"]}), "row 1 holds '[1],[2]'; expected a"),
    # stored encoders
    (stored(kind="number", scale=0), "scale must not be 0"),
    (
        lambda folder: from_dict({"kind": "vector", "column": "a", "mean": [1.0], "scale": 0}),
        "be 0",
    ),
    (stored(kind="log", unit=0.0), "unit must be above 0"),
    (stored(kind="quantile", quantiles=[]), "quantiles must not be empty"),
    (stored(kind="date", form="a"), "form of dates must be one of ... got 'a'"),
    (stored_encoder(version=9), "version ... must be 2, got 9; ... train again"),
    (stored_encoder(columns=[{"kind": "magic"}]), "columns[0].kind must be one of ... got 'magic'"),
    (stored_encoder(columns=[{"kind": "number"}]), "columns[0].column is missing"),
    # matrices and networks
    (matrix(np.ones((2, 3))), "the matrix must be square, got shape (2, 3)"),
    (matrix(-np.ones((2, 2))), "is -1; a weight must be a number from 0 on"),
    (matrix(features=np.ones((2, 2))), "features must be numbers of shape (3, F), got"),
    (matrix(features=np.full((3, 1), np.inf)), "column 'x0', row 1 is infinite"),
    (matrix(labels=[0, 1]), "labels must hold one value for each of the 3 nodes, got shape (2,"),
    (matrix(labels=[0, 0, -1]), "the graph, column 'labels' holds a single class, '0'"),
    (matrix(labels=[-1, -1, -1]), "every label is empty"),
    (matrix(ids=["a", "a", "b"]), "row 2 repeats the id 'a' of row 1"),
    (matrix(masks={"dev": [1, 0, 0]}), "masks must be called train, val and test, got 'dev'"),
    (matrix(class_names=["zero"], labels=Y), "class_names must hold a name for each class"),
    (lambda folder: from_networkx([1]), "network must be a NetworkX graph, got list"),
    # files of arrays
    (npz(x=X), "g.npz has no edges: it needs edge_index, or ... its arrays are: x"),
    (npz(edge_index=np.array([[0], [3]]), x=X), "edge 1 is [0, 3], but nodes ... from 0 to 2"),
    (npz(edge_index=np.ones((3, 3))), "edge_index must be integers of shape (2, E)"),
    (npz(edge_index=PATH, y=np.array([0, None])), "g.npz cannot be read as npz"),
    (npz(edge_index=np.zeros((2, 0), int)), "holds no nodes"),
    (npz(adj_data=[1.0], adj_indices=[0], adj_indptr=[0, 1]), "not complete: it lacks adj_shape."),
    *[
        (npz(edge_index=PATH[:, :2], edge_weight=weights), "must hold a number for each of the 2")
        for weights in ([1.0], [1.0, 2.0, 3.0], ["a", "b"])
    ],
    # files of torch
    (file("g.pt", b"nothing of the kind", read_pyg), "g.pt cannot be read as a torch file"),
    (torch_file(lambda: {"x": X.cfloat()}), "g.pt: x must be a dense ... got complex numbers"),
    (torch_file(lambda: {"x": X.to("meta")}), "got one without data"),
    (
        torch_file(lambda: {"x": torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)}),
        "holds a quantized tensor",
    ),
    (torch_file(lambda: {"x": X.to_sparse_csc()}), "the layout torch.sparse_csc is not"),
    (torch_file(lambda: {"x": torch.ones(2, 2, 2).to_sparse()}), "have two dimensions, got 3"),
    (torch_file(lambda: {"x": [[1.0]]}), "x must be a tensor or a list of values, got list"),
    (torch_file(lambda: {"x": torch.tensor(1.0)}), "features must be an array"),
    (torch_file(lambda: {"class_names": 5}), "class_names must be an array, got '5'"),
    (torch_file(lambda: {"num_nodes": torch.tensor([3, 4])}), "must be a whole number, got [3 4]"),
    (torch_file(lambda: {"num_nodes": "many"}), "num_nodes must be a whole number, got many"),
    (torch_file(lambda: {"num_nodes": 10**12}), "4 edges ... may name at most 1,000,400 nodes"),
    (torch_file(lambda: {"num_nodes": 10**400}), "num_nodes must be a whole number, got 1000"),
    (torch_file(lambda: {"edge_index": torch.tensor([[0], [3 * 10**8]])}), "at most 1,000,100 nod"),
    (torch_file(lambda: {"edge_index": X.to_sparse()}), "edge_index must be integers"),
    (torch_file(lambda: {"x": torch.ones(1, 1).expand(3, 10**9)}), "to 11.2 GiB; ... after clone"),
]


@pytest.mark.filterwarnings("ignore")  # of torch, about sparse and quantized tensors
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: CASES[n][1][:40])
def test_one_line_that_says_what_is_wrong(number, tmp_path):
    call, message = CASES[number]
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        call(tmp_path)
    told = str(caught.value)
    assert re.search(".*".join(map(re.escape, message.split(" ... "))), told), told
    assert "\n" not in told
    assert len(told) < 300 + len(str(tmp_path))


def test_errors_that_an_option_can_mend_name_it():
    cells = pd.Series([*"123456789", "x"], name="spent a month")
    with pytest.raises(ArgumentError, match=r"fix or empty it, or drop the column\.$") as caught:
        column_kind(cells, "t")
    assert (caught.value.argument, caught.value.value) == ("drop", "spent a month")
    with pytest.raises(ValueError, match=r"fix or empty it\.$") as caught:
        column_kind(cells, "t", required=True)
    assert not isinstance(caught.value, ArgumentError)
    with pytest.raises(ArgumentError, match="no cell tells day from month; set date_or") as caught:
        date_form(pd.Series(["03/04/2024", "12/12/2024"], name="d"), "t")
    assert caught.value.argument == "date_order"
