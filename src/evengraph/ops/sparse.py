"""Sparse matrices, and deterministic products with their gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.fast.row_chunks import RowChunks, chunk_rows, chunk_rows_fixed

BLOCK = 2048  # rows of 64 numbers that stay in the cache of one core
LONG = 64  # entries per row and block from which partial sums pay off

LinearMap = Callable[[Tensor], Tensor]


def csr(row_pointers: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor, with 32-bit indices if they suffice: a tenth faster, less memory."""
    if max(columns.numel(), *shape) < 2**31:
        row_pointers, columns = row_pointers.int(), columns.int()
    with warnings.catch_warnings():
        # Torch warns once that CSR tensors are in beta.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(row_pointers, columns, values, shape, check_invariants=False)


def from_scipy(matrix: sp.spmatrix, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A SciPy sparse matrix as a torch CSR tensor."""
    matrix = matrix.tocsr()
    matrix.sort_indices()
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    row_pointers, columns, values = (part.to(device) for part in parts)
    return csr(row_pointers, columns, values.to(dtype), matrix.shape)


def to_scipy(matrix: Tensor) -> sp.csr_matrix:
    """A torch CSR tensor as a SciPy sparse matrix."""
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    return sp.csr_matrix(tuple(part.cpu().numpy() for part in parts), shape=tuple(matrix.shape))


@dataclass(frozen=True, eq=False)
class Sparse:
    """A constant sparse matrix for use as `matrix @ x`, differentiable in `x`.

    It stores its transpose, so that the backward pass is as fast as the forward pass: a product
    with autograd's own transpose takes two to four times as long.
    """

    matrix: Tensor
    transpose: Tensor

    @classmethod
    def from_scipy(
        cls, matrix: sp.spmatrix, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> Sparse:
        """Put a SciPy matrix and its transpose on a device."""
        return cls(from_scipy(matrix, device, dtype), from_scipy(matrix.T, device, dtype))

    @classmethod
    def symmetric(cls, matrix: Tensor) -> Sparse:
        """A matrix equal to its transpose, stored once."""
        return cls(matrix, matrix)

    @classmethod
    def from_dense(cls, x: Tensor) -> Sparse:
        """The non-zero entries of a dense matrix."""
        return cls.from_scipy(sp.csr_matrix(x.cpu().numpy()), x.device, x.dtype)

    @cached_property
    def chunks(self) -> RowChunks | None:
        """The row chunks of the matrix, on a GPU."""
        return chunk_rows(self.matrix.crow_indices()) if self.matrix.is_cuda else None

    @cached_property
    def transposed_chunks(self) -> RowChunks | None:
        """The row chunks of the transpose, on a GPU."""
        if self.transpose is self.matrix:
            return self.chunks
        return chunk_rows(self.transpose.crow_indices()) if self.matrix.is_cuda else None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.matrix.shape
        return rows, columns

    @cached_property
    def _scipy(self) -> sp.csr_matrix:
        """The matrix for SciPy, sharing memory."""
        return to_scipy(self.matrix)

    @cached_property
    def entries(self) -> tuple[Tensor, Tensor]:
        """The row and the column of each entry, int64, row by row."""
        sizes = self.matrix.crow_indices().diff().long()
        return torch.repeat_interleave(sizes), self.matrix.col_indices().long()

    def rows(self, index: Tensor) -> Sparse:
        """The matrix of selected rows, in the order of the index."""
        if self.matrix.is_cpu:  # SciPy transposes in linear time, torch would sort
            selected = self._scipy[index.numpy()]
            return Sparse.from_scipy(selected, index.device, self.matrix.dtype)
        owner, positions = row_entries(self.matrix, index)
        columns = self.matrix.col_indices()[positions]
        values = self.matrix.values()[positions]
        shape = (index.numel(), self.shape[1])
        matrix = csr(_pointers(owner, shape[0]), columns, values, shape)
        order = torch.argsort(columns, stable=True)
        transposed = _pointers(columns, shape[1]), owner[order], values[order]
        return Sparse(matrix, csr(*transposed, shape[::-1]))

    def without_empty_columns(self) -> tuple[Tensor, Sparse]:
        """The ids of the columns that hold an entry, and the matrix of those columns."""
        occupied, columns = torch.unique(self.matrix.col_indices(), return_inverse=True)
        shape = (self.shape[0], occupied.numel())
        matrix = csr(self.matrix.crow_indices(), columns, self.matrix.values(), shape)
        pointers = self.transpose.crow_indices()
        pointers = torch.cat([pointers[occupied], pointers[-1:]])
        parts = self.transpose.col_indices(), self.transpose.values()
        return occupied.long(), Sparse(matrix, csr(pointers, *parts, shape[::-1]))

    def __matmul__(self, x: Tensor) -> Tensor:
        return linear_map(
            x,
            lambda x: product(self.matrix, x, self.chunks),
            lambda gradient: self.transposed_product(gradient.contiguous()),
        )

    def transposed_product(self, x: Tensor) -> Tensor:
        """The transpose times x, without gradients.

        Shapes:
            x: (M, d) or (R, M, d), where the matrix is (M, N)
            returns: (N, d) or (R, N, d)
        """
        if self._blocks is None:
            return product(self.transpose, x, self.transposed_chunks)
        partial: Tensor = product(self._blocks, x).unflatten(-2, (-1, self.shape[1]))
        return partial.sum(-3)

    @cached_property
    def _blocks(self) -> Tensor | None:
        """The transpose cut into blocks of columns, one below the other; None if that is slower.

        With few features, the gradients of their weights come from long rows that read all of x.
        Block by block, the rows read stay in the cache and threads get equal work; the partial
        sums are added up afterwards. CPU only.
        """
        rows, columns = self.transpose.shape
        count = -(-columns // BLOCK)
        if self.transpose.is_cuda or not rows or count < 2:
            return None
        if self.transpose._nnz() < LONG * rows * count:
            return None
        entries = to_scipy(self.transpose).tocoo()
        coordinates = entries.col // BLOCK * rows + entries.row, entries.col
        stacked = sp.csr_matrix((entries.data, coordinates), shape=(count * rows, columns))
        return from_scipy(stacked, self.transpose.device, self.transpose.dtype)


def _pointers(index: Tensor, size: int) -> Tensor:
    """CSR row pointers from the row of each entry."""
    ends = torch.bincount(index, minlength=size).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def row_entries(matrix: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of selected rows of a CSR matrix: the index of each one's row, and its position.

    Shapes:
        index: (M,), rows, repeats allowed
        returns: (entries,), from 0 to M - 1, and (entries,), in the order of the index
    """
    pointers = matrix.crow_indices()
    starts = pointers[index]
    sizes = (pointers[index + 1] - starts).long()
    owner = torch.repeat_interleave(sizes)
    before = sizes.cumsum(0) - sizes
    return owner, torch.arange(owner.numel(), device=index.device) + (starts - before)[owner]


def take(x: Tensor, index: Tensor) -> Tensor:
    """Rows of a matrix, with a deterministic gradient on every device."""
    # On CUDA the gradient of index_select is not deterministic; on the CPU it is the fastest.
    return x[index] if x.is_cuda else x.index_select(0, index)


def scatter_sum(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum the rows that share an index, deterministically.

    Shapes:
        values: (K, ...)
        index: (K,)
        returns: (size, ...)
    """
    total = values.new_zeros((size, *values.shape[1:]))
    if values.is_cuda:
        return total.index_put((index,), values, accumulate=True)
    return total.index_add(0, index, values)


def linear_map(x: Tensor, apply: LinearMap, apply_transpose: LinearMap) -> Tensor:
    """Apply a linear map to x; gradients go through its transpose."""
    result: Tensor = _LinearMap.apply(x, apply, apply_transpose)  # type: ignore[no-untyped-call]
    return result


class _LinearMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, apply: LinearMap, apply_transpose: LinearMap) -> Tensor:
        ctx.apply_transpose = apply_transpose
        return apply(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.apply_transpose(gradients[0]), None, None


def has_kernels(device: torch.device) -> bool:
    """Whether our Triton kernels run on a device: CUDA, with Triton installed."""
    return device.type == "cuda" and find_spec("triton") is not None


def product(
    matrix: Tensor, x: Tensor, chunks: RowChunks | None = None, output: Tensor | None = None
) -> Tensor:
    """Sparse CSR times dense, without gradients; a leading axis of x stands for several products.

    Deterministic on the CPU, and on CUDA with Triton; cuSPARSE adds in no fixed order.

    Args:
        chunks: The row chunks of the matrix, if it is used more than once on a GPU.
        output: Where to write.

    Shapes:
        matrix: sparse CSR, (M, N)
        x: (N, d) or (R, N, d)
        output, returns: (M, d) or (R, M, d)
    """
    if has_kernels(x.device):
        from evengraph.fast.triton_kernels import deterministic_product

        if chunks is None:
            chunks = chunk_rows_fixed(matrix.crow_indices(), matrix.col_indices().numel())
        return deterministic_product(matrix, x, chunks, output)
    if x.dim() == 2:
        result = _sum_of_rows(matrix, x) if x.is_cpu and x.numel() else matrix @ x
    else:
        side_by_side = x.transpose(0, 1).reshape(x.shape[1], -1)  # (N, R d)
        together = product(matrix, side_by_side)
        result = together.view(matrix.shape[0], *x.shape[::2]).transpose(0, 1).contiguous()
    return result if output is None else output.copy_(result)


def _sum_of_rows(matrix: Tensor, x: Tensor) -> Tensor:
    """The product on the CPU, as weighted sums of rows of x.

    Torch's operation for bags of words is more than twice as fast as MKL's product, which does
    not prefetch the next rows.
    """
    bags = matrix.col_indices(), matrix.crow_indices()
    weighted_sum, *_ = torch.embedding_bag(
        x, *bags, mode=0, per_sample_weights=matrix.values(), include_last_offset=True
    )
    return weighted_sum


def sparsify(x: Tensor, *, sparse_below: float | None = None) -> Tensor | Sparse:
    """Node features as a sparse matrix if products with it are then cheaper, else unchanged.

    Text-like features are mostly zero. A GPU needs more zeros than a CPU for sparse products to
    pay off. A tensor that requires gradients stays dense, and so does an empty one.
    """
    if x.requires_grad or not x.numel():
        return x
    if sparse_below is None:
        sparse_below = 0.25 if x.is_cpu else 0.05
    density = (x != 0).float().mean().item()
    return Sparse.from_dense(x) if density < sparse_below else x


LARGEST = 0x7F7FFFFF  # bits of the largest finite number
DIGITS = 16  # bits of a number that are used: the last ones depend on the order of summation


def first_digits(x: Tensor) -> Tensor:
    """Numbers rounded to their first `DIGITS` bits, (...)."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 2**DIGITS).round(), exponent - DIGITS)


def largest_up_to(function: Callable[[Tensor], Tensor], limit: Tensor) -> Tensor:
    """The largest finite float32 at which a function that never falls is at most a limit.

    Shapes:
        limit, returns: (K,)
    """
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
