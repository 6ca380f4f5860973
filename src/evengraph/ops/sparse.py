"""Sparse matrices of graphs: products with gradients, adjacency, normalisation, propagation.

Products are deterministic, on a GPU by the kernels of `evengraph.fast`. SciPy builds the matrices.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from evengraph.core.task import check_edges, count_relations, edge_weight
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
        rows, columns = self.matrix.shape
        return rows, columns

    @cached_property
    def _scipy(self) -> sp.csr_matrix:
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
        """The transpose times x, (M, d) or (R, M, d), without gradients."""
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
    """The entries of selected rows of a CSR matrix: the index of each one's row, its position."""
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
    """Sum the rows, (K, ...), that share an index, (K,), deterministically, (size, ...)."""
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


def product(matrix: Tensor, x: Tensor, chunks: RowChunks | None = None) -> Tensor:
    """Sparse CSR times dense, without gradients; a leading axis of x stands for several products.

    Deterministic on the CPU, and on CUDA with Triton; cuSPARSE adds in no fixed order. `chunks` are
    the row chunks of the matrix, if it is used more than once on a GPU.
    """
    if x.dim() == 3:
        side_by_side = x.transpose(0, 1).reshape(x.shape[1], -1)  # (N, R d)
        together = product(matrix, side_by_side, chunks)
        return together.view(matrix.shape[0], *x.shape[::2]).transpose(0, 1).contiguous()
    if has_kernels(x.device):
        from evengraph.fast.triton_kernels import deterministic_product

        if chunks is None:
            chunks = chunk_rows_fixed(matrix.crow_indices(), matrix.col_indices().numel())
        return deterministic_product(matrix, x, chunks)
    return _sum_of_rows(matrix, x) if x.is_cpu and x.numel() else matrix @ x


def _sum_of_rows(matrix: Tensor, x: Tensor) -> Tensor:
    """The product on the CPU, as weighted sums of rows of x."""
    # torch's bags of words are twice as fast as MKL's product, which does not prefetch rows
    bags = matrix.col_indices(), matrix.crow_indices()
    weighted_sum, *_ = torch.embedding_bag(
        x, *bags, mode=0, per_sample_weights=matrix.values(), include_last_offset=True
    )
    return weighted_sum


def sparsify(x: Tensor) -> Tensor | Sparse:
    """Node features as a sparse matrix if products with it are then cheaper, else unchanged.

    Text-like features are mostly zero. A GPU needs more zeros than a CPU for sparse products to
    pay off. A tensor that requires gradients stays dense, and so does an empty one.
    """
    if x.requires_grad or not x.numel():
        return x
    density = (x != 0).float().mean().item()
    return Sparse.from_dense(x) if density < (0.25 if x.is_cpu else 0.05) else x


Normalisation = Literal["symmetric", "row"]


def adjacency(edge_index: Tensor, num_nodes: int, weight: Tensor | None = None) -> sp.csr_matrix:
    """The adjacency matrix: A[i, j] is 1, or the weight, of an edge from i to j."""
    # repeated edges count once, their weights are summed; self-loops are dropped
    check_edges(edge_index, num_nodes)
    source, target = edge_index.cpu().numpy()
    keep = source != target
    values = np.ones(int(keep.sum()), dtype=np.float32)
    if weight is not None:
        values = weight.detach().cpu().numpy().astype(np.float64)[keep]
    matrix = sp.csr_matrix((values, (source[keep], target[keep])), shape=(num_nodes, num_nodes))
    if weight is None:
        matrix.data[:] = 1
    return matrix


def undirected_adjacency(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None = None
) -> sp.csr_matrix:
    """The adjacency matrix with every edge read in both directions, the larger weight in both.

    Built once per graph: as long as the tensor of edges lives unchanged, callers share the matrix
    and must not write into it.
    """
    if edge_index.is_inference() or (weight is not None and weight.is_inference()):
        return _undirected(edge_index, num_nodes, weight)  # such tensors count no changes
    state = num_nodes, edge_index._version, None if weight is None else weight._version
    known = _UNDIRECTED.get(edge_index)
    if known is None or known[0] != state or known[1] is not weight:
        known = state, weight, _undirected(edge_index, num_nodes, weight)
        _UNDIRECTED[edge_index] = known
        _DERIVED[known[2]] = {}
    matrix: sp.csr_matrix = known[2]
    return matrix


_UNDIRECTED: MutableMapping[Tensor, Any] = WeakIdKeyDictionary()
_DERIVED: MutableMapping[sp.csr_matrix, dict[Any, Any]] = WeakIdKeyDictionary()
"""What was computed from matrices that are shared, which nobody writes into."""


def _undirected(edge_index: Tensor, num_nodes: int, weight: Tensor | None) -> sp.csr_matrix:
    matrix = adjacency(edge_index, num_nodes, weight)
    return matrix.maximum(matrix.T).tocsr()


def weighted_adjacency(graph: Data) -> sp.csr_matrix:
    """The undirected adjacency matrix of a graph, with its edge weights if it has any.

    Weights are divided by their mean, so that their unit does not matter and a self-loop of
    weight 1 weighs as much as an average edge. Equal weights are as good as none.
    """
    weight = edge_weight(graph)
    matrix = undirected_adjacency(graph.edge_index, graph.num_nodes, weight)
    if weight is None:
        return matrix
    derived = _DERIVED.get(matrix, {})
    if "scaled" not in derived:
        positive = matrix.copy()
        positive.eliminate_zeros()
        mean = positive.data.mean() if positive.nnz else 1.0
        derived["scaled"] = (positive / mean).astype(np.float32).tocsr()
        if matrix in _DERIVED:
            _DERIVED[derived["scaled"]] = {}
    return derived["scaled"]


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


LARGEST_SHARED = 2**23  # edges of a graph whose means are kept


def propagation_matrix(
    matrix: sp.spmatrix,
    device: torch.device,
    *,
    how: Normalisation = "symmetric",
    dtype: torch.dtype = torch.float32,
) -> Sparse:
    """`normalise` a graph and put it on a device.

    Done once per graph and kind, as long as the matrix of the graph is shared.
    """
    shared = not torch.is_inference_mode_enabled()  # what it makes cannot be trained with
    derived, key = _DERIVED.get(matrix, {}) if shared else {}, (how, str(device), dtype)
    if key not in derived:
        result = normalise(matrix, how)
        if how == "row":
            derived[key] = Sparse.from_scipy(result, device, dtype)
        else:
            derived[key] = Sparse.symmetric(from_scipy(result, device, dtype))
    propagation: Sparse = derived[key]
    return propagation


def with_self_loops(matrix: sp.spmatrix, device: torch.device) -> Sparse:
    """An undirected graph with a self-loop at every node, on a device."""
    looped = matrix + sp.identity(matrix.shape[0], format="csr")
    return Sparse.symmetric(from_scipy(looped, device, torch.float32))


def neighbour_means(
    matrix: sp.spmatrix, device: torch.device, dtype: torch.dtype = torch.float32
) -> Sparse:
    """The matrix that averages over neighbours by weight, without the node; 0 if there are none.

    Done once per graph, unless it is large.
    """
    shared = matrix.nnz <= LARGEST_SHARED and not torch.is_inference_mode_enabled()
    derived, key = _DERIVED.get(matrix, {}) if shared else {}, ("mean", str(device), dtype)
    if key not in derived:
        degree = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
        scaled = sp.diags(1 / np.where(degree, degree, 1)) @ matrix
        derived[key] = Sparse.from_scipy(scaled, device, dtype)
    means: Sparse = derived[key]
    return means


def diffuse(propagation: Sparse, x: Tensor, steps: int, teleport: float) -> Tensor:
    """Propagate features for some steps; each adds a share of the original ones again."""
    again = teleport * x
    for _ in range(steps):
        x = (propagation @ x).mul_(1 - teleport).add_(again)  # new memory would take as long again
    return x


class Average(NamedTuple):
    """A mean over neighbours: the matrix, and how often it is applied."""

    matrix: Sparse
    steps: int

    def __call__(self, x: Tensor) -> Tensor:
        """The means of rows, (N, F)."""
        for _ in range(self.steps):
            x = self.matrix @ x
        return x


def neighbour_averages(
    graph: Data, hops: int, dtype: torch.dtype = torch.float32, union: sp.spmatrix | None = None
) -> list[Average]:
    """The means over neighbours 1, 2, ... hops away in all edges, then over those per relation."""
    # without hops there are none per relation; `union` is the adjacency matrix, if known already
    if not hops:
        return []
    device = graph.edge_index.device
    union = weighted_adjacency(graph) if union is None else union
    means = neighbour_means(union, device, dtype)
    averages = [Average(means, steps) for steps in range(1, hops + 1)]
    for relation in range(count_relations(graph)):
        chosen = graph.relation_index[0] == relation
        weight = graph.relation_weight[chosen] if "relation_weight" in graph else None
        matrix = adjacency(graph.relation_index[1:, chosen], graph.num_nodes, weight)
        averages.append(Average(neighbour_means(matrix, device, dtype), 1))
    return averages


TOLERANCE = 1e-8  # truncated share
PAGERANK_ENTRIES = 2**24  # in memory at a time


def personalised_pagerank(propagation: Sparse, x: Tensor, teleport: float) -> Tensor:
    """The product of teleport (I - (1 - teleport) P)^-1 with a matrix, by its power series."""
    # a walk restarts with probability `teleport` at every step, so a few dozen steps suffice
    steps = math.ceil(math.log(TOLERANCE) / math.log1p(-teleport)) if teleport < 1 else 0
    spread = x
    for _ in range(steps):
        spread = (1 - teleport) * (propagation @ spread) + teleport * x
    return spread


@torch.no_grad()
def pagerank_rows(propagation: Sparse, nodes: Tensor, *, teleport: float, keep: int) -> Tensor:
    """The `keep` largest entries of some rows of teleport (I - (1 - teleport) P)^-1, as CSR."""
    num_nodes = propagation.shape[0]
    columns, values = [nodes.new_empty(0)], [torch.empty(0, device=nodes.device)]
    ends = [nodes.new_zeros(1)]
    size = max(PAGERANK_ENTRIES // num_nodes, 1)
    for block in nodes.split(size) if nodes.numel() else ():
        start = torch.zeros(num_nodes, block.numel(), device=nodes.device)
        start[block, torch.arange(block.numel(), device=nodes.device)] = 1
        rank = personalised_pagerank(propagation, start, teleport)
        top = rank.t().topk(min(keep, num_nodes), dim=1)
        positive = top.values > 0
        columns.append(top.indices[positive])
        values.append(top.values[positive])
        ends.append(ends[-1][-1] + positive.sum(1).cumsum(0))
    shape = (nodes.numel(), num_nodes)
    return csr(torch.cat(ends), torch.cat(columns), torch.cat(values), shape)
