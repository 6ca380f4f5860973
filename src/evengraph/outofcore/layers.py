"""Layer-wise inference: graph convolutions of a graph on disk, one layer after the other."""

from __future__ import annotations

from torch import Tensor

from evengraph.nn.backbones import SageConv
from evengraph.nn.layers import GraphConv
from evengraph.outofcore.operators import Kind
from evengraph.outofcore.propagation import Walk, Workspace
from evengraph.outofcore.tables import DerivedTable, JoinedTable, Table, product_table


def convolved_table(
    conv: GraphConv | SageConv, x: Table, space: Workspace, kind: Kind, stage: str
) -> Table:
    """The output of a convolution at all nodes; only what needs the edges is stored."""
    weight, bias = conv.weight.detach(), conv.bias.detach()
    width = bias.numel()
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
