"""A small graph as arrays, and other arrays instead."""

import numpy as np
import scipy.sparse as sp

from attack.fuzz.mutations import mutate_array
from attack.fuzz.readers.base import NODES


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
