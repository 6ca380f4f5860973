"""Principal components of propagated features, against a dense SVD."""

import pytest
import torch

from evengraph.ops.features import principal_components
from evengraph.ops.sparse import Sparse


def propagation(size):
    matrix = torch.rand(size, size, generator=torch.Generator().manual_seed(1))
    return matrix / matrix.sum(1, keepdim=True) + torch.eye(size)


def low_rank(rows, columns, rank):
    random = torch.Generator().manual_seed(2)
    scales = torch.linspace(5, 1, rank)
    return (torch.randn(rows, rank, generator=random) * scales) @ torch.randn(
        rank, columns, generator=random
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_they_span_the_leading_directions(sparse):
    x, matrix = low_rank(40, 60, 4), propagation(40)
    basis, rows = principal_components(
        Sparse.from_dense(x) if sparse else x, lambda y: matrix @ y, lambda y: matrix.T @ y, 4
    )
    dense = matrix @ x
    _, _, directions = torch.linalg.svd(dense - dense.mean(0), full_matrices=False)
    torch.testing.assert_close(
        basis @ basis.T, directions[:4].T @ directions[:4], rtol=1e-3, atol=1e-3
    )
    torch.testing.assert_close(rows, dense @ basis, rtol=1e-3, atol=1e-3)
    variances = (rows - rows.mean(0)).square().sum(0)
    assert (variances.diff() <= 0).all()  # the largest first


def test_with_few_features_nothing_is_lost():
    x, matrix = low_rank(30, 5, 5), propagation(30)
    basis, rows = principal_components(x, lambda y: matrix @ y, lambda y: matrix.T @ y, 8)
    torch.testing.assert_close(basis, torch.eye(5))
    torch.testing.assert_close(rows, matrix @ x)


def test_they_are_the_same_every_time():
    x, matrix = low_rank(30, 50, 20), propagation(30)
    runs = [
        principal_components(x, lambda y: matrix @ y, lambda y: matrix.T @ y, 6) for _ in range(2)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_columns_of_zeros_do_not_matter():
    """A hashed text of few words: single precision alone fails here."""
    random = torch.Generator().manual_seed(3)
    x = torch.zeros(20, 264)
    x[:, torch.randperm(264, generator=random)[:20]] = torch.randn(20, 20, generator=random)
    basis, rows = principal_components(x, lambda y: y, lambda y: y, 256)
    torch.testing.assert_close(basis.T @ basis, torch.eye(256), rtol=0, atol=1e-4)
    torch.testing.assert_close(rows @ rows.T, x @ x.T, rtol=0, atol=0.02)


@pytest.mark.parametrize("scale", [1e-20, 1e20, 1e25])
def test_directions_do_not_depend_on_the_scale(scale):
    x, matrix = low_rank(40, 60, 4), propagation(40)
    maps = (lambda y: matrix @ y, lambda y: matrix.T @ y)
    basis, _ = principal_components(x, *maps, 4)
    scaled, rows = principal_components(x * scale, *maps, 4)
    torch.testing.assert_close(scaled @ scaled.T, basis @ basis.T, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(rows, matrix @ (x * scale) @ scaled, rtol=1e-3, atol=1e-3 * scale)
