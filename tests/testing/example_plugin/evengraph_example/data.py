"""Rings: one ring per class, stored as an npz file."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from evengraph.datasets import Counts, Dataset

SIZES = (120, 90, 60)


def load_rings(folder: Path) -> Data:
    """Read the graph from its folder; write it there first if need be."""
    path = folder / "rings.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, **_arrays())
    with np.load(path) as arrays:
        return Data(**{name: torch.from_numpy(arrays[name]) for name in arrays.files})


def _arrays() -> dict[str, np.ndarray]:
    y = np.repeat(np.arange(len(SIZES)), SIZES)
    x = np.eye(len(SIZES), 8)[y] + np.random.default_rng(0).normal(size=(len(y), 8))
    starts = np.cumsum((0, *SIZES))
    nodes = np.arange(len(y))
    following = np.where(np.isin(nodes + 1, starts), starts[y], nodes + 1)
    one_way = np.stack([nodes, following])
    return {
        "x": x.astype(np.float32),
        "edge_index": np.concatenate([one_way, one_way[::-1]], axis=1),
        "y": y,
    }


RINGS = Dataset(
    "Rings, one per class", Counts(270, 540, 8, 3), class_names=("a", "b", "c"), loader=load_rings
)
