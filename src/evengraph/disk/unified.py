"""The network of Uni-GNN on a graph on disk, one layer after the other."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from evengraph.disk.layers import convolved_table, relu_table
from evengraph.disk.propagation import VERSION, Walk, Workspace, unweighted
from evengraph.disk.tables import (
    ColumnTable,
    DerivedTable,
    JoinedTable,
    Table,
    column_table,
    joined_hash,
    product_table,
    row_slices,
    tensor_hash,
)
from evengraph.nn.unified import UnifiedNetwork
from evengraph.ops.semantic import nearest_mean


def unified_table(net: UnifiedNetwork, x: Table, space: Workspace, known: Tensor) -> Table:
    """The convolution of the classifier at all nodes, where nodes are connected to neighbours only.

    Args:
        known: Which of the first nodes are nodes of training and keep their clusters. Others join
            those with the nearest means.
    """
    space = replace(space, links=unweighted(space.links))
    joint = x
    for number in range(len(net.weights)):
        joint = relu_table(_layer(net, number, joint, space, known))
    return convolved_table(net.classifier.conv, joint, space, "symmetric", "classifier")


def _layer(
    net: UnifiedNetwork, number: int, joint: Table, space: Workspace, known: Tensor
) -> Table:
    """A layer of both encoders side by side, before its activation."""
    parts: list[Table] = []
    for index, name in enumerate(net.encoders):
        weight, inputs = net.weights[number][name].detach(), joint  # type: ignore[index]
        if number > 0 and not net.share:
            width = joint.shape[1] // len(net.encoders)
            inputs = column_table(joint, slice(index * width, (index + 1) * width))
        narrow = product_table(inputs, weight)
        if name == "structural":
            stage = f"layer {number + 1}"
            parts.append(space.propagate(narrow, Walk("symmetric", 1), stage))
        else:
            clusters = _clusters(net, number, joint, space, known)
            parts.append(_averaged(narrow, clusters, net.num_clusters, space))
    return JoinedTable(parts)


def _clusters(
    net: UnifiedNetwork, number: int, joint: Table, space: Workspace, known: Tensor
) -> Table:
    """The cluster of each node as a column, unless it is stored already."""
    means, stored = net.means[number], net.get_buffer(f"clusters_{number}")
    hashes = map(tensor_hash, (means, stored, known))
    options = f"clusters {net.unit_length}"
    key = joined_hash(VERSION, options, joint.content_hash, *hashes)
    result = ColumnTable(space.folder / key[:24], (joint.shape[0], 1), key)

    def write() -> None:
        if not result.missing():
            return
        column = torch.empty(result.shape)  # as numbers below 2^24 they are exact
        for rows in row_slices(joint.shape[0]):
            nearest = nearest_mean(net.cluster_rows(joint.read(rows)), means)
            same = known[rows].nonzero().squeeze(1)
            nearest[same] = stored[rows.start + same]
            column[rows, 0] = nearest.float()
            space.progress(f"clusters of layer {number + 1}", rows.stop / joint.shape[0])
        result.write(0, column.numpy())

    space.ranks.once(write)
    return space.complete(result)


def _averaged(narrow: Table, clusters: Table, count: int, space: Workspace) -> Table:
    """`semantic_propagate` of a table, of which only the sums of the clusters are in memory."""

    def add_up() -> tuple[Tensor, Tensor]:
        sums, sizes = torch.zeros(count, narrow.shape[1], dtype=torch.float64), torch.zeros(count)
        for rows in row_slices(narrow.shape[0]):
            index = clusters.read(rows).squeeze(1).long()
            sums.index_add_(0, index, narrow.read(rows).double())
            sizes += torch.bincount(index, minlength=count)
        share = 1 / (sizes + 1).unsqueeze(1)
        return (sums * share).float(), share

    means, share = space.ranks.once(add_up)

    def average(rows: Tensor, some: slice) -> Tensor:
        index = rows[:, -1].long()
        return means[index][:, some] + rows[:, :-1][:, some] * share[index]

    joined = JoinedTable([narrow, clusters])
    return DerivedTable(joined, average, narrow.shape[1], ("averaged", [means, share]))
