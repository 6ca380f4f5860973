"""Tables of node features: scaling, means over neighbours, principal components, signatures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.ops.sparse import LinearMap, Sparse, undirected_adjacency

FAR = 10.0  # scaled values of spread columns are clipped here: an outlier is an outlier
SPREAD = 1.349  # quartile distance of a normal distribution with unit variance
SAMPLE = 2**22  # entries that quartiles are taken from
ROWS = 4_096  # rows that are read at a time
FEWEST = 100  # rows of that sample, however many columns there are


def sample_step(num_rows: int, num_columns: int) -> int:
    """Of how many rows one is in the sample that quartiles are taken from."""
    return max(num_rows // max(SAMPLE // max(num_columns, 1), FEWEST), 1)


class Scaling(NamedTuple):
    """How each column is shifted and scaled, (F,) each.

    A spread column is centred at its median and divided by its quartile distance. A column whose
    quartiles are equal, such as a word or a flag, is shifted by its most frequent value, usually
    zero, and divided by its largest absolute value: dividing by its deviation would make a rare
    word as large as it is rare.
    """

    centre: Tensor
    scale: Tensor
    spread: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Scaling:
        """Measure columns of a table; quartiles of evenly spaced rows if there are many entries."""
        x = x.detach().float()
        return cls.measure(x[:: sample_step(*x.shape)], x.split(ROWS))

    @classmethod
    def measure(cls, sample: Tensor, parts: Iterable[Tensor]) -> Scaling:
        """Measure columns: quartiles in a sample of the rows, largest values in parts of all."""
        sample = sample.sort(dim=0).values
        low, centre, high = (
            sample[int(share * (sample.shape[0] - 1))] for share in (0.25, 0.5, 0.75)
        )
        spread = high > low
        largest = torch.stack([(part - centre).abs().amax(0) for part in parts]).amax(0)
        scale = torch.where(spread, (high - low) / SPREAD, largest)
        return cls(centre, torch.where(scale > 0, scale, 1.0), spread)

    def __call__(self, x: Tensor) -> Tensor:
        """Scale the columns of a table, float32, (n, F)."""
        scaled = (x.float() - self.centre) / self.scale
        return torch.where(self.spread, scaled.clamp(-FAR, FAR), scaled)


LARGEST_FACTOR = 10.0  # of a column of means
TINY, TINY_SHARE = 1e-30, 1e-6  # keeps zero from being divided by zero; rounding of squares


def with_log_degree(x: Tensor, matrix: sp.spmatrix) -> Tensor:
    """Append a column, the logarithm of one plus the number of neighbours."""
    degree = torch.from_numpy(matrix.getnnz(axis=1)).to(x)
    return torch.cat([x, degree.log1p().unsqueeze(1)], dim=1)


def hop_table(
    table: Any,
    mean: sp.csr_matrix,
    nodes: np.ndarray,
    hops: int,
    relations: Sequence[sp.csr_matrix] = (),
) -> tuple[Any, Any]:
    """Rows of some nodes: theirs, `hops` means over neighbours, means in each relation."""
    # returns the table, (n, (1 + hops + R) F), and the factors of its columns, as `join_parts`
    parts, rows = [table[nodes]], mean[nodes]
    apart = [relation[nodes] @ table for relation in relations]
    for hop in range(hops):
        table = mean @ table if hop else table
        parts.append(rows @ table)
    return join_parts([*parts, *apart])


def join_parts(parts: Sequence[Any]) -> tuple[Any, Any]:
    """A table of a node's own columns, which come first, and of means of these, and factors of all.

    Means vary less than what they are means of. Each column is multiplied with a factor that gives
    it the standard deviation of the column it comes from, up to LARGEST_FACTOR.
    """
    both = parts, [part.power(2) if sp.issparse(part) else part**2 for part in parts]
    centres, squares = (
        np.stack([np.asarray(part.mean(axis=0, dtype=np.float64)).ravel() for part in some])
        for some in both
    )
    spread = squares - centres**2
    sizes = np.sqrt(np.where(spread > TINY_SHARE * squares, spread, 0))
    least = sizes[0] / LARGEST_FACTOR + TINY
    factors = np.where(sizes[0] > 0, sizes[0] / np.maximum(sizes, least), 1.0)
    factors = factors.ravel().astype(np.float32)
    if sp.issparse(parts[0]):
        return (sp.hstack(parts) @ sp.diags(factors)).tocsr(), factors
    return np.concatenate(parts, axis=1) * factors, factors


EXTRA = 16  # columns of the sketch beyond the wanted ones
LARGEST = 1e15  # above it, sums of squares may leave single precision
SEED = 0  # the sketch is the same for every run on a graph


def principal_components(
    x: Tensor | Sparse, propagate: LinearMap, transposed: LinearMap, count: int
) -> tuple[Tensor, Tensor]:
    """The leading principal components of `propagate(x)`, by one power iteration, and their basis.

    With no more features than wanted components, the features themselves are the components. A
    randomised SVD of scikit-learn or torch takes a matrix; the product of a graph's propagation and
    sparse features, once formed, would take N F numbers. The components are not centred.
    """
    num_features = x.shape[1]
    device = x.matrix.device if isinstance(x, Sparse) else x.device
    if num_features <= count:
        basis = torch.eye(num_features, device=device)
        return basis, propagate(x @ basis)
    width = min(count + EXTRA, num_features)
    sketch = torch.randn(num_features, width, generator=generator(SEED)).to(device)
    rows = transposed(_centred(propagate(x @ sketch)))
    product = x.transposed_product(rows) if isinstance(x, Sparse) else x.T @ rows
    basis = torch.linalg.qr(product).Q
    rows = propagate(x @ basis)
    centred = _centred(rows)
    vectors = eigenvectors(centred.T @ centred)[:, -count:].flip(1)
    return basis @ vectors, rows @ vectors


def eigenvectors(matrix: Tensor) -> Tensor:
    """Eigenvectors of a symmetric matrix, eigenvalues ascending."""
    # features of low rank leave entries too small for single precision, and the solver then fails
    vectors: Tensor
    try:
        vectors = torch.linalg.eigh(matrix).eigenvectors
    except RuntimeError:
        vectors = torch.linalg.eigh(matrix.double()).eigenvectors.to(matrix.dtype)
    return vectors


def _centred(x: Tensor) -> Tensor:
    """Rows around their mean, whose products stay finite: directions do not depend on scale."""
    x = x - x.mean(0)
    largest = x.abs().max()
    return x / largest if largest > LARGEST else x


TURNS = (0.7548776662466927, 0.5698402909980532)  # of a circle, from one index to the next
CLOSE = 1e-5  # tolerance for features that went through a table or another machine


def feature_signatures(x: Tensor) -> Tensor:
    """Two fixed weighted sums over the features of each node, and the norm of its row, (N, 3)."""
    # different features almost surely have different sums, and cannot be recovered from them
    directions = _waves(x.shape[1], x.device)
    parts = []
    for rows in x.float().split(2**12):
        rows = rows.double()
        parts.append(torch.cat([rows @ directions, rows.norm(dim=1, keepdim=True)], dim=1))
    return torch.cat(parts)


def node_signatures(x: Tensor, edge_index: Tensor) -> Tensor:
    """Signatures that change with a node's features, its neighbours and their features, (N, 6)."""
    # edges are read in both directions; repeats, self-loops and the order do not matter
    features, num_nodes = feature_signatures(x), x.shape[0]
    sums, length = features.split([2, 1], dim=1)
    sent = torch.cat([sums + _waves(num_nodes, x.device), length.square() + 1], dim=1)
    neighbours = undirected_adjacency(edge_index, num_nodes)
    received = Sparse.from_scipy(neighbours, x.device, torch.float64) @ sent
    around, scale = received.split([2, 1], dim=1)
    return torch.cat([features, around, scale.sqrt()], dim=1)


def matching_signatures(signatures: Tensor, before: Tensor) -> Tensor:
    """Mask of the nodes whose signature equals the earlier one at the same index, (N,)."""
    same = torch.zeros(signatures.shape[0], dtype=torch.bool, device=signatures.device)
    size = min(signatures.shape[0], before.shape[0])
    sums = before[:size].to(signatures).unflatten(1, (-1, 3))  # two sums and their scale
    gap = (signatures[:size].unflatten(1, (-1, 3)) - sums).abs()
    same[:size] = (gap <= CLOSE * sums[..., 2:]).flatten(1).all(dim=1)
    return same


ALIKE = 8  # rows with nearly the same first sum that are compared


def find_signatures(signatures: Tensor, wanted: Tensor) -> Tensor:
    """The row of each wanted signature, (n,); -1 where no row, or more than one, has it."""
    if not len(signatures):
        return torch.full_like(wanted[:, 0], -1, dtype=torch.long)
    order = signatures[:, 0].argsort()
    first, gap = signatures[order, 0], CLOSE * wanted[:, 2]
    low = torch.searchsorted(first, wanted[:, 0] - gap)
    high = torch.searchsorted(first, wanted[:, 0] + gap, right=True)
    row, count = torch.full_like(low, -1), (high - low > ALIKE).long() * 2
    for step in range(ALIKE):
        here = order[(low + step).clamp(max=len(order) - 1)]
        same = ((signatures[here] - wanted).abs() <= gap.unsqueeze(1)).all(1) & (low + step < high)
        row, count = torch.where(same, here, row), count + same
    return torch.where(count == 1, row, -1)


def _waves(size: int, device: torch.device) -> Tensor:
    """Fixed, non-repeating numbers between -1 and 1, (size, 2)."""
    index = torch.arange(1, size + 1, dtype=torch.float64).unsqueeze(1)
    turns = torch.tensor(TURNS, dtype=torch.float64)
    return (2 * torch.pi * (index * turns).frac()).cos().to(device)
