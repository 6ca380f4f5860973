"""Small tables in files, and the comparison of a packed graph with the reader of tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from evengraph.disk import unpack_graph
from evengraph.tables import FeatureEncoder, open_graph


def make_tables(num_nodes=60, num_edges=150, seed=0, *, weight=False):
    """A nodes table with all kinds of columns, and edges with loops and repeats."""
    rng = np.random.default_rng(seed)
    ids = [f"n{number}" for number in rng.permutation(num_nodes)]
    nodes = pd.DataFrame(
        {
            "id": ids,
            "age": np.where(rng.random(num_nodes) < 0.1, np.nan, rng.normal(40, 9, num_nodes)),
            "pay": rng.lognormal(3, 2, num_nodes),
            "town": rng.choice(["Bonn", "Köln", "Ulm"], num_nodes),
            "member": rng.random(num_nodes) < 0.5,
            "label": rng.choice(["a", "b", "c", ""], num_nodes, p=[0.5, 0.3, 0.1, 0.1]),
            "split": rng.choice(["train", "val", "test"], num_nodes),
        }
    )
    edges = pd.DataFrame(
        {
            "source": rng.choice(ids[:-3], num_edges),  # the last nodes are isolated
            "target": rng.choice(ids[:-3], num_edges),
        }
    )
    edges = pd.concat(
        [edges, edges.iloc[:9], edges.iloc[:5].set_axis(["target", "source"], axis=1)]
    )
    if weight:
        edges["weight"] = rng.integers(0, 5, len(edges)) / 2
    return nodes, edges


def write(table, path):
    """Write a table in the format of its suffix; returns the path."""
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        table.to_csv(path, index=False, sep=separator)
    return path


def assert_same(packed, nodes, edges, **options):
    """A packed graph is what `open_graph` reads from the same tables."""
    expected = open_graph(nodes, edges=edges, **options)
    graph = unpack_graph(packed)
    assert list(packed.ids[:]) == list(expected.ids)
    assert torch.equal(graph.edge_index, expected.graph.edge_index)
    for name in ("y", "x", "edge_weight", "train_mask", "val_mask", "test_mask", "time"):
        assert (name in graph) == (name in expected.graph), name
        if name in graph:
            torch.testing.assert_close(graph[name], expected.graph[name], equal_nan=True)
    assert packed.class_names == expected.class_names
    assert FeatureEncoder.from_dict(packed.header["encoder"]) == replace(
        expected.encoder, edges=None
    )
