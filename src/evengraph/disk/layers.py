"""Layer-wise inference: graph convolutions of a graph on disk, one layer after the other."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from evengraph.disk.attention import attended_table
from evengraph.disk.propagation import Kind, Walk, Workspace
from evengraph.disk.tables import DerivedTable, JoinedTable, Table, product_table
from evengraph.nn.backbones import AttentionConv, SageConv
from evengraph.nn.layers import GraphConv

DiskConv = GraphConv | SageConv | AttentionConv
"""Convolutions that can be computed in blocks."""


def stacked_table(convs: Iterable[nn.Module], x: Table, space: Workspace, kind: Kind) -> Table:
    """The output of the last of several convolutions, with ReLU between them."""
    for number, conv in enumerate(convs, start=1):
        assert isinstance(conv, DiskConv)
        inputs = x if number == 1 else relu_table(x)
        x = convolved_table(conv, inputs, space, kind, f"layer {number}")
    return x


def convolved_table(conv: DiskConv, x: Table, space: Workspace, kind: Kind, stage: str) -> Table:
    """The output of a convolution at all nodes; only what needs the edges is stored."""
    weight, bias = conv.weight.detach(), conv.bias.detach()
    width = bias.numel()
    if isinstance(conv, AttentionConv):
        parts = [attended_table(conv, x, space, stage)]
    else:
        parts = [space.propagate(product_table(x, weight[:, :width]), Walk(kind, 1), stage)]
    if isinstance(conv, SageConv):  # a node's own features have weights of their own
        parts.append(product_table(x, weight[:, width:]))

    def add(rows: Tensor, some: slice) -> Tensor:
        total: Tensor = rows.unflatten(1, (-1, width)).sum(1) + bias
        return total[:, some]

    return DerivedTable(JoinedTable(parts), add, width, ("convolved", [bias]))


def relu_table(table: Table) -> Table:
    """A table without negative numbers."""
    return DerivedTable(
        table, lambda rows, some: rows[:, some].relu(), table.shape[1], ("relu", [])
    )
