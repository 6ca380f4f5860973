"""Principal components of propagated features, without the propagated features.

scikit-learn's and torch's randomised SVD take a matrix. Here the matrix is a product of the
graph's propagation and sparse features; forming it would take N F numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from evengraph.core.rng import generator
from evengraph.ops.sparse import LinearMap, Sparse

EXTRA = 16  # columns of the sketch beyond the wanted ones
LARGEST = 1e15  # above it, sums of squares may leave single precision
SEED = 0  # the sketch is the same for every run on a graph


def principal_components(
    x: Tensor | Sparse, propagate: LinearMap, transposed: LinearMap, count: int
) -> tuple[Tensor, Tensor]:
    """The leading principal components of `propagate(x)`, found by one power iteration.

    With no more features than wanted components, the features themselves are the components.

    Args:
        propagate: A linear map over nodes.
        transposed: Its transpose.
        count: Number of components.

    Shapes:
        x: (N, F)
        returns: the basis, (F, min(count, F)), and the components, not centred, of the same width
    """
    num_features = x.shape[1]
    device = x.matrix.device if isinstance(x, Sparse) else x.device
    if num_features <= count:
        basis = torch.eye(num_features, device=device)
        return basis, propagate(x @ basis)
    width = min(count + EXTRA, num_features)
    sketch = torch.randn(num_features, width, generator=generator(SEED)).to(device)
    rows = _squarable(_centred(propagate(x @ sketch)))
    basis = torch.linalg.qr(_transposed_product(x, transposed(rows))).Q
    rows = propagate(x @ basis)
    centred = _squarable(_centred(rows))
    vectors = eigenvectors(centred.T @ centred)[:, -count:].flip(1)
    return basis @ vectors, rows @ vectors


def eigenvectors(matrix: Tensor) -> Tensor:
    """Eigenvectors of a symmetric matrix, eigenvalues ascending.

    Features of low rank, such as a hashed text of few words, leave entries too small for single
    precision, and the solver then fails.
    """
    vectors: Tensor
    try:
        vectors = torch.linalg.eigh(matrix).eigenvectors
    except RuntimeError:
        vectors = torch.linalg.eigh(matrix.double()).eigenvectors.to(matrix.dtype)
    return vectors


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(0)


def _squarable(x: Tensor) -> Tensor:
    """Rows whose products stay finite; directions do not depend on their scale."""
    largest = x.abs().max()
    return x / largest if largest > LARGEST else x


def _transposed_product(x: Tensor | Sparse, y: Tensor) -> Tensor:
    return x.transposed_product(y) if isinstance(x, Sparse) else x.T @ y
