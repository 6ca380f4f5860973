"""check_dataset(): the contract of a data set."""

from pathlib import Path

import torch

from evengraph.datasets import load


def check_dataset(name: str, root: str | Path | None = None) -> None:
    """Load a data set by its name and raise AssertionError if it breaks the contract.

    Args:
        name: The name in `DATASETS`: a built-in one or that of an entry point.
        root: Folder with its files, as in `load`.
    """
    data, again = load(name, root), load(name, root)
    x, edges, y = data.x, data.edge_index, data.y
    nodes = len(x)
    rules = {
        "x must be float32 of shape (N, F)": x.dim() == 2 and x.dtype == torch.float32,
        "x must be finite": bool(torch.isfinite(x).all()),
        "edge_index must be int64 of shape (2, E)": (
            edges.dtype == torch.int64 and edges.dim() == 2 and edges.shape[0] == 2
        ),
        "edge_index must name nodes in [0, N)": not edges.numel()
        or (int(edges.min()) >= 0 and int(edges.max()) < nodes),
        "edge_index must have both directions of every edge": data.is_undirected(),
        "y must be int64 of shape (N,)": y.dtype == torch.int64 and y.shape == (nodes,),
        "name must be the name it was loaded by": data.name == name,
        "class_names must have a name per class": (
            "class_names" not in data or len(data.class_names) == int(y.max()) + 1
        ),
        "two loads must give the same graph": all(
            torch.equal(data[key], again[key]) for key in ("x", "edge_index", "y")
        ),
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    if broken:
        raise AssertionError(f"Data set {name!r}: {'; '.join(broken)}.")
