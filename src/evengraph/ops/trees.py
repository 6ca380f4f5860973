"""Decision trees as tensors: save, move to a device, and evaluate without what grew them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

AT_ONCE = 2**22  # pairs of row and tree evaluated at a time


class Trees(NamedTuple):
    """Nodes of all trees, (K,) each, tree by tree; a leaf points to itself."""

    feature: Tensor
    threshold: Tensor  # values up to it go left
    left: Tensor
    right: Tensor
    value: Tensor
    roots: Tensor  # (T,)

    def first(self, count: int) -> Trees:
        if count >= self.roots.numel():
            return self
        end = int(self.roots[count])
        parts = {name: part[:end] for name, part in self._asdict().items()}
        return Trees(**parts | {"roots": self.roots[:count]})


def coarsen(x: Tensor, most: int) -> Tensor:
    """Limit the distinct values per column: round to the nearest of evenly spaced quantiles."""
    # a tree grown on the result, with thresholds halfway between, gives the same values for both
    ordered = x.double().sort(dim=0).values.t().contiguous()  # (F, n)
    many = (ordered.diff(dim=1) != 0).sum(1) >= most
    if not many.any():
        return x
    ranks = (torch.arange(most, device=x.device) + 0.5) * ordered.shape[1] / most
    values = ordered[many][:, ranks.long()]  # (M, most)
    middles = (values[:, :-1] + values[:, 1:]) / 2
    nearest = torch.searchsorted(middles, x.double().t()[many].contiguous())
    coarse = x.clone()
    coarse[:, many] = values.gather(1, nearest).t().to(x.dtype)
    return coarse


def separation(x: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Variance between the means of classes over that within them, per column (F statistic)."""
    # a constant column is 0, one that tells classes apart without exception infinite
    return separation_in_passes(lambda: [(x, labels)], num_classes)


def separation_in_passes(
    blocks: Callable[[], Iterable[tuple[Tensor, Tensor]]], num_classes: int
) -> Tensor:
    """The `separation` of rows that need not fit in memory; `blocks` is called twice."""
    sums = sizes = torch.zeros((), dtype=torch.float64)
    for x, labels in blocks():
        members = torch.nn.functional.one_hot(labels, num_classes).double()
        sums, sizes = sums + members.t() @ x.double(), sizes + members.sum(0).unsqueeze(1)
    means, count = sums / sizes.clamp(min=1), sizes.sum()
    between = (sizes * (means - sums.sum(0) / count) ** 2).sum(0)
    within = torch.zeros_like(between)
    for x, labels in blocks():
        within += ((x.double() - means[labels]) ** 2).sum(0)
    freedom = (count - num_classes).clamp(min=1) / max(num_classes - 1, 1)
    return torch.where(between > 0, freedom * between / within, 0.0)


def trees_from_tables(tables: list[Any], device: torch.device) -> Trees:
    """Trees from structured node arrays, in the form of scikit-learn's histogram trees."""
    sizes = np.array([table.shape[0] for table in tables], dtype=np.int64)
    roots = sizes.cumsum() - sizes
    if not tables:
        nodes = torch.zeros(0, dtype=torch.long, device=device)
        numbers = nodes.double()
        return Trees(nodes, numbers, nodes, nodes, numbers, nodes)
    every, start = np.concatenate(tables), np.repeat(roots, sizes)
    leaf, index = every["is_leaf"].astype(bool), np.arange(start.size)
    parts = (
        np.where(leaf, 0, every["feature_idx"]).astype(np.int64),
        np.where(leaf, 0.0, every["num_threshold"]).astype(np.float64),
        np.where(leaf, index, start + every["left"]).astype(np.int64),
        np.where(leaf, index, start + every["right"]).astype(np.int64),
        every["value"].astype(np.float64),
        roots,
    )
    return Trees(*(torch.from_numpy(part).to(device) for part in parts))


def check_trees(trees: Trees, columns: int) -> None:
    """Raise ValueError for trees of a file on which a path would not end, or lead elsewhere."""
    indices = (trees.left, trees.right, trees.feature, trees.roots)
    if any(part.dim() != 1 or part.dtype != torch.int64 for part in indices):
        raise ValueError("The trees are damaged: their nodes must be numbered by integers.")
    if not all(part.is_floating_point() for part in (trees.threshold, trees.value)):
        raise ValueError("The trees are damaged: thresholds and values must be floating-point.")
    size = trees.left.numel()
    sizes = {part.numel() for name, part in trees._asdict().items() if name != "roots"}
    index = torch.arange(size, device=trees.left.device)
    fits = sizes == {size} and bool(((trees.roots >= 0) & (trees.roots < size)).all())
    if fits:  # a child comes after its parent, a leaf is its own child
        below = [(child > index) & (child < size) for child in (trees.left, trees.right)]
        leaf = (trees.left == index) & (trees.right == index)
        fits = bool((leaf | (below[0] & below[1])).all())
    if not fits:
        raise ValueError("The trees are damaged: a child must come after its parent.")
    if not ((trees.feature >= 0) & (trees.feature < max(columns, 1))).all():
        raise ValueError(f"The trees are damaged: they must split on columns below {columns}.")


def path_contributions(trees: Trees, row: Tensor, shrinkage: float) -> tuple[Tensor, Tensor]:
    """What the splits on the path of one row add to the value of each tree, with their features.

    A split adds the value of the child minus that of its parent; the root has none, so the parts
    of a tree sum to the value of the leaf (Saabas, 2014). The values of leaves have already been
    multiplied by the learning rate, `shrinkage`.
    """
    leaf = trees.left == torch.arange(trees.left.numel(), device=trees.left.device)
    value = torch.where(leaf, trees.value, shrinkage * trees.value)
    value[trees.roots] = 0 * value[trees.roots]
    node, features, parts = trees.roots, [], []
    while not leaf[node].all():
        feature = trees.feature[node]
        left = row[feature] <= trees.threshold[node]
        child = torch.where(left, trees.left[node], trees.right[node])
        features.append(feature)
        parts.append(value[child] - value[node])
        node = child
    if not parts:
        return trees.roots.new_zeros(0, node.numel()), value.new_zeros(0, node.numel())
    return torch.stack(features), torch.stack(parts)


def class_logits(sums: Tensor) -> Tensor:
    """Logits, (n, C), of sums of trees; those of two classes are (n, 1), for the second one."""
    if sums.shape[1] > 1:
        return sums
    return torch.cat([torch.zeros_like(sums), sums], dim=1)


def tree_values(trees: Trees, x: Tensor) -> Tensor:
    """The value of each tree for each row, float64, (n, T)."""
    count = trees.roots.numel()
    values, children = [], torch.stack([trees.right, trees.left], dim=1).flatten()
    for rows in x.split(max(AT_ONCE // max(count, 1), 1)):
        node = trees.roots.expand(rows.shape[0], count)
        while True:
            left = rows.gather(1, trees.feature[node]) <= trees.threshold[node]
            child = children[2 * node + left]
            if torch.equal(child, node):
                break
            node = child
        values.append(trees.value[node])
    return torch.cat(values) if values else x.new_zeros(0, count, dtype=torch.float64)


LARGEST = 0x7F7FFFFF  # bits of the largest finite number
DIGITS = 16  # bits of a number that are used: the last ones depend on the order of summation


def first_digits(x: Tensor) -> Tensor:
    """Numbers rounded to their first `DIGITS` bits, (...)."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 2**DIGITS).round(), exponent - DIGITS)


def largest_up_to(function: Callable[[Tensor], Tensor], limit: Tensor) -> Tensor:
    """The largest finite float32 at which a function that never falls is at most a limit, (K,)."""
    low = torch.full(limit.shape, -LARGEST, device=limit.device)  # int64
    high = -low
    while (low < high).any():
        middle = (low + high + 1).div(2, rounding_mode="floor")
        fits = function(_number(middle)) <= limit
        low, high = torch.where(fits, middle, low), torch.where(fits, high, middle - 1)
    return _number(low)


def _number(rank: Tensor) -> Tensor:
    """The float32 of a rank: zero has rank 0, the next larger number 1, and so on."""
    bits = torch.where(rank >= 0, rank, -(2**31) - rank)
    return bits.to(torch.int32).view(torch.float32)
