"""Decision trees as plain tensors: to keep, to move to a card, to ask without what grew them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

AT_ONCE = 2**22  # places in trees that are followed at a time


class Trees(NamedTuple):
    """Nodes of all trees, one tree after another; a leaf leads to itself.

    Shapes:
        feature, left, right: int64, (K,)
        threshold, value: float64, (K,); at most the threshold goes left
        roots: int64, (T,)
    """

    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    roots: Tensor

    def first(self, count: int) -> Trees:
        """The first trees alone."""
        if count >= self.roots.numel():
            return self
        end = int(self.roots[count])
        parts = {name: part[:end] for name, part in self._asdict().items()}
        return Trees(**parts | {"roots": self.roots[:count]})


def coarsen(x: Tensor, most: int) -> Tensor:
    """Columns with few distinct values: where there are more, each value becomes one nearby.

    Those kept are spread evenly over the rows in ascending order, and a value goes to the nearest.
    A tree that was grown on them, with thresholds in the middle, answers the same for both.

    Args:
        x: The columns.
        most: Distinct values of a column at most.

    Shapes:
        x, returns: (n, F)
    """
    ordered = x.double().sort(dim=0).values.t().contiguous()  # (F, n)
    many = (ordered.diff(dim=1) != 0).sum(1) >= most
    if not many.any():
        return x
    places = (torch.arange(most, device=x.device) + 0.5) * ordered.shape[1] / most
    kept = ordered[many][:, places.long()]  # (M, most)
    middles = (kept[:, :-1] + kept[:, 1:]) / 2
    nearest = torch.searchsorted(middles, x.double().t()[many].contiguous())
    coarse = x.clone()
    coarse[:, many] = kept.gather(1, nearest).t().to(x.dtype)
    return coarse


def trees_from_sklearn(tables: list[Any], device: torch.device) -> Trees:
    """Trees from the structured arrays of nodes that scikit-learn's histogram trees hold."""
    sizes = np.array([table.shape[0] for table in tables], dtype=np.int64)
    roots = sizes.cumsum() - sizes
    if not tables:
        nodes = torch.zeros(0, dtype=torch.long, device=device)
        numbers = nodes.double()
        return Trees(nodes, numbers, nodes, nodes, numbers, nodes)
    every, start = np.concatenate(tables), np.repeat(roots, sizes)
    leaf, here = every["is_leaf"].astype(bool), np.arange(start.size)
    parts = (
        np.where(leaf, 0, every["feature_idx"]).astype(np.int64),
        np.where(leaf, 0.0, every["num_threshold"]).astype(np.float64),
        np.where(leaf, here, start + every["left"]).astype(np.int64),
        np.where(leaf, here, start + every["right"]).astype(np.int64),
        every["value"].astype(np.float64),
        roots,
    )
    return Trees(*(torch.from_numpy(part).to(device) for part in parts))


def tree_values(trees: Trees, x: Tensor) -> Tensor:
    """What each tree says of each row.

    Shapes:
        x: (n, F)
        returns: float64, (n, T)
    """
    count = trees.roots.numel()
    found = []
    for rows in x.split(max(AT_ONCE // max(count, 1), 1)):
        place = trees.roots.expand(rows.shape[0], count)
        while True:
            small = rows.gather(1, trees.feature[place]) <= trees.threshold[place]
            following = torch.where(small, trees.left[place], trees.right[place])
            if torch.equal(following, place):
                break
            place = following
        found.append(trees.value[place])
    return torch.cat(found) if found else x.new_zeros(0, count, dtype=torch.float64)
