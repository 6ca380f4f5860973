"""Sparse products with their gradients, and the matrices that graphs are propagated with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from evengraph.ops.row_chunks import Pieces, cut, cut_evenly

Normalisation = Literal["symmetric", "row"]

BLOCK = 2048  # rows of 64 numbers that stay in the cache of one core
LONG = 64  # entries that a row must have in a block for its partial sum to pay


def csr(row_pointers: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor, with 32-bit indices where they suffice: a tenth faster, less memory."""
    if max(columns.numel(), *shape) < 2**31:
        row_pointers, columns = row_pointers.int(), columns.int()
    with warnings.catch_warnings():
        # Torch calls CSR tensors beta and says so once; a user of ours need not care.
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


def adjacency(edge_index: Tensor, num_nodes: int) -> sp.csr_matrix:
    """The binary adjacency matrix: A[i, j] = 1 where an edge leads from i to j.

    Repeated edges count once and self-loops not at all.
    """
    source, target = edge_index.cpu().numpy()
    if source.size and (edge_index.min() < 0 or edge_index.max() >= num_nodes):
        raise ValueError(f"edge_index must hold node ids from 0 to {num_nodes - 1}.")
    keep = source != target
    ones = np.ones(int(keep.sum()), dtype=np.float32)
    matrix = sp.csr_matrix((ones, (source[keep], target[keep])), shape=(num_nodes, num_nodes))
    matrix.data[:] = 1
    return matrix


def undirected_adjacency(edge_index: Tensor, num_nodes: int) -> sp.csr_matrix:
    """The binary adjacency matrix with every edge read in both directions."""
    matrix = adjacency(edge_index, num_nodes)
    return matrix.maximum(matrix.T).tocsr()


@dataclass(frozen=True, eq=False)
class Sparse:
    """A constant sparse matrix for use as `matrix @ x`, differentiated in `x`.

    It keeps its transpose, so that the backward pass is as fast as the forward pass: a product
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
        """A matrix that is its own transpose, stored once."""
        return cls(matrix, matrix)

    @classmethod
    def from_dense(cls, x: Tensor) -> Sparse:
        """The non-zero entries of a dense matrix."""
        return cls.from_scipy(sp.csr_matrix(x.cpu().numpy()), x.device, x.dtype)

    @cached_property
    def pieces(self) -> Pieces | None:
        """The matrix cut for products on a card."""
        return cut(self.matrix.crow_indices()) if self.matrix.is_cuda else None

    @cached_property
    def transposed_pieces(self) -> Pieces | None:
        """The transpose cut for products on a card."""
        if self.transpose is self.matrix:
            return self.pieces
        return cut(self.transpose.crow_indices()) if self.matrix.is_cuda else None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.matrix.shape
        return rows, columns

    @cached_property
    def _scipy(self) -> sp.csr_matrix:
        """The same memory for SciPy."""
        return to_scipy(self.matrix)

    @cached_property
    def entries(self) -> tuple[Tensor, Tensor]:
        """The row and the column of each entry, int64, one row after another."""
        sizes = self.matrix.crow_indices().diff().long()
        return torch.repeat_interleave(sizes), self.matrix.col_indices().long()

    def rows(self, index: Tensor) -> Sparse:
        """The matrix of some of the rows, in the order asked for."""
        if self.matrix.is_cpu:  # SciPy transposes in linear time, where torch would sort
            some = self._scipy[index.numpy()]
            return Sparse.from_scipy(some, index.device, self.matrix.dtype)
        owner, positions = row_entries(self.matrix, index)
        columns = self.matrix.col_indices()[positions]
        values = self.matrix.values()[positions]
        shape = (index.numel(), self.shape[1])
        ends = torch.bincount(owner, minlength=shape[0]).cumsum(0)
        matrix = csr(torch.cat([ends.new_zeros(1), ends]), columns, values, shape)
        order = torch.argsort(columns, stable=True)
        ends = torch.bincount(columns, minlength=shape[1]).cumsum(0)
        pointers = torch.cat([ends.new_zeros(1), ends])
        return Sparse(matrix, csr(pointers, owner[order], values[order], shape[::-1]))

    def without_empty_columns(self) -> tuple[Tensor, Sparse]:
        """The ids of the columns that hold an entry, and the matrix of those columns."""
        occupied, columns = torch.unique(self.matrix.col_indices(), return_inverse=True)
        shape = (self.shape[0], occupied.numel())
        matrix = csr(self.matrix.crow_indices(), columns, self.matrix.values(), shape)
        pointers = self.transpose.crow_indices()
        kept = torch.cat([pointers[occupied], pointers[-1:]])
        parts = self.transpose.col_indices(), self.transpose.values()
        return occupied.long(), Sparse(matrix, csr(kept, *parts, shape[::-1]))

    def __matmul__(self, x: Tensor) -> Tensor:
        result: Tensor = _Product.apply(self, x)  # type: ignore[no-untyped-call]
        return result

    def transposed_product(self, x: Tensor) -> Tensor:
        """The transpose times x, without gradients.

        Shapes:
            x: (M, d) or (R, M, d), where the matrix is (M, N)
            returns: (N, d) or (R, N, d)
        """
        if self._blocks is None:
            return product(self.transpose, x, self.transposed_pieces)
        partial: Tensor = product(self._blocks, x).unflatten(-2, (-1, self.shape[1]))
        return partial.sum(-3)

    @cached_property
    def _blocks(self) -> Tensor | None:
        """The transpose cut into blocks of columns, one below the other, or nothing to cut.

        The weights of few features get their gradients from long rows, which lead all over x.
        Block by block, what is read stays in the cache, and both halves of the work weigh the
        same; the partial sums are added up afterwards. Only on the CPU.
        """
        rows, columns = self.transpose.shape
        count = -(-columns // BLOCK)
        if self.transpose.is_cuda or not rows or count < 2:
            return None
        if self.transpose._nnz() < LONG * rows * count:
            return None
        entries = to_scipy(self.transpose).tocoo()
        places = entries.col // BLOCK * rows + entries.row, entries.col
        stacked = sp.csr_matrix((entries.data, places), shape=(count * rows, columns))
        return from_scipy(stacked, self.transpose.device, self.transpose.dtype)


def row_entries(matrix: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of some rows of a CSR matrix: which of the rows each is in, and where it stands.

    Shapes:
        index: (M,), rows, repeats allowed
        returns: (entries,), (entries,), in the order of the rows asked for
    """
    pointers = matrix.crow_indices()
    starts = pointers[index]
    sizes = (pointers[index + 1] - starts).long()
    owner = torch.repeat_interleave(sizes)
    before = sizes.cumsum(0) - sizes
    return owner, torch.arange(owner.numel(), device=index.device) + (starts - before)[owner]


def take(x: Tensor, index: Tensor) -> Tensor:
    """Rows of a matrix. The gradient has the same bits every time, on a card too."""
    # On a card index_select adds gradients up in any order; on the CPU the others are slower.
    return x[index] if x.is_cuda else x.index_select(0, index)


def scatter_sum(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum the rows that share an index, with the same bits every time.

    Shapes:
        values: (K, ...)
        index: (K,)
        returns: (size, ...)
    """
    total = values.new_zeros((size, *values.shape[1:]))
    if values.is_cuda:
        return total.index_put((index,), values, accumulate=True)
    return total.index_add(0, index, values)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sparse: Sparse, x: Tensor) -> Tensor:
        ctx.sparse = sparse
        return product(sparse.matrix, x, sparse.pieces)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.sparse.transposed_product(gradients[0].contiguous())


def has_kernels(device: torch.device) -> bool:
    """Whether our own kernels run here: on a card, with Triton, as beside torch's CUDA builds."""
    return device.type == "cuda" and find_spec("triton") is not None


def product(
    matrix: Tensor, x: Tensor, pieces: Pieces | None = None, output: Tensor | None = None
) -> Tensor:
    """Sparse CSR times dense, without gradients; a leading axis of x stands for several products.

    The same bits every time on the CPU, and on CUDA where Triton is there; without it cuSPARSE
    adds in an order of its own.

    Args:
        matrix: The sparse matrix.
        x: What to multiply.
        pieces: The matrix cut for a card, if it is used more than once.
        output: Where to write.

    Shapes:
        matrix: sparse CSR, (M, N)
        x: (N, d) or (R, N, d)
        output, returns: (M, d) or (R, M, d)
    """
    if has_kernels(x.device):
        from evengraph.ops.spmm import deterministic_product

        if pieces is None:
            pieces = cut_evenly(matrix.crow_indices(), matrix.col_indices().numel())
        return deterministic_product(matrix, x, pieces, output)
    if x.dim() == 2:
        result = _sum_of_rows(matrix, x) if x.is_cpu and x.numel() else matrix @ x
    else:
        side_by_side = x.transpose(0, 1).reshape(x.shape[1], -1)  # (N, R d)
        together = product(matrix, side_by_side)
        result = together.view(matrix.shape[0], *x.shape[::2]).transpose(0, 1).contiguous()
    return result if output is None else output.copy_(result)


def _sum_of_rows(matrix: Tensor, x: Tensor) -> Tensor:
    """The product on the CPU: each of its rows is a weighted sum of a few rows of x.

    Torch has that operation for bags of words, and it is more than twice as fast as MKL's
    product, which does not fetch the next rows ahead.
    """
    bags = matrix.col_indices(), matrix.crow_indices()
    weighted_sum, *_ = torch.embedding_bag(
        x, *bags, mode=0, per_sample_weights=matrix.values(), include_last_offset=True
    )
    return weighted_sum


def normalise(matrix: sp.spmatrix, how: Normalisation) -> sp.csr_matrix:
    """Add a self-loop to every node of an undirected graph and divide by degrees.

    `symmetric` is D^-1/2 (A + I) D^-1/2, `row` is D^-1 (A + I); D holds the row sums of A + I,
    so no degree is zero and an isolated node keeps its own row.
    """
    probe = np.random.default_rng(0).random(matrix.shape[0])
    if not np.allclose(matrix @ probe, matrix.T @ probe):
        raise ValueError("The matrix must be symmetric: list each edge in both directions.")
    looped = (matrix + sp.identity(matrix.shape[0], format="csr")).astype(np.float64)
    degree = np.asarray(looped.sum(axis=1)).ravel()
    if how == "row":
        return sp.diags(1 / degree) @ looped
    root = sp.diags(degree**-0.5)
    return root @ looped @ root


def normalised(
    matrix: sp.spmatrix,
    device: torch.device,
    *,
    how: Normalisation = "symmetric",
    dtype: torch.dtype = torch.float32,
) -> Sparse:
    """`normalise`, ready for products on a device."""
    ready = normalise(matrix, how)
    if how == "row":
        return Sparse.from_scipy(ready, device, dtype)
    return Sparse.symmetric(from_scipy(ready, device, dtype))


def closed(matrix: sp.spmatrix, device: torch.device) -> Sparse:
    """An undirected graph with every node linked to itself, ready for products on a device."""
    looped = matrix + sp.identity(matrix.shape[0], format="csr")
    return Sparse.symmetric(from_scipy(looped, device, torch.float32))


def features(x: Tensor, *, sparse_below: float | None = None) -> Tensor | Sparse:
    """Node features in the form in which products with them are cheapest.

    Text-like features are mostly zero; their first layer then costs a fraction. A card is so much
    better at dense products that fewer zeros do not pay there. What wants gradients stays dense.
    """
    if x.requires_grad:
        return x
    if sparse_below is None:
        sparse_below = 0.25 if x.is_cpu else 0.05
    density = (x != 0).float().mean().item() if x.numel() else 1.0
    return Sparse.from_dense(x) if density < sparse_below else x
