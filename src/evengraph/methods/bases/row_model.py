"""RowModel: methods that propagate first and then predict each node from its own row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor
from torch_geometric.data import Data

from evengraph.methods.bases.method import Method
from evengraph.nn.onnx_graph import OnnxGraph


class RowInput(NamedTuple):
    """A table that a row model takes, one row per node.

    Args:
        width: Number of columns.
        about: What it holds. Inputs of two methods with the same name and description are the same.
        fitted: Whether its values depend on the fitted method, so that no two methods share it.
    """

    width: int
    about: str
    fitted: bool = False


@runtime_checkable
class RowModel(Protocol):
    """What a method has that can be exported: rows from the graph, and probabilities from rows."""

    def row_inputs(self) -> dict[str, RowInput]:
        """The tables that it takes, by name."""
        ...

    def rows(self, graph: Data) -> dict[str, Tensor]:
        """These tables of a graph, which `model_input` returned, float32, (N, width) each."""
        ...

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        """Add what computes probabilities, (N, C), from the inputs, which are given by name."""
        ...


def averaged_methods(method: Method) -> list[tuple[Method, float]]:
    """The methods whose probabilities a method averages, and their weights; most are alone."""
    members, weights = getattr(method, "members_", None), getattr(method, "weights_", None)
    if not isinstance(members, list) or not isinstance(weights, list):
        return [(method, 1.0)]
    return list(zip(members, weights, strict=True))


def hop_inputs(
    width: int, hops: int, relations: int, *, degree: bool, scaled: bool = False
) -> dict[str, RowInput]:
    """The inputs of a model on features and means over neighbours.

    Args:
        width: Features of a node.
        hops: How many means.
        relations: Relations with a mean of their own.
        degree: Whether the logarithm of the degree is a column.
        scaled: Whether means are those of columns that the model has scaled.
    """
    inputs = {"features": RowInput(width, "encoded features of the node")}
    if not hops:
        return inputs
    if degree:
        inputs["log_degree"] = RowInput(1, "log(1 + number of neighbours)")
    what = ("scaled features" if scaled else "features") + (" and log_degree" if degree else "")
    start = "scaled_" if scaled else ""
    means = {f"{start}mean_1": f"mean of the neighbours' {what}"}
    for hop in range(2, hops + 1):
        means[f"{start}mean_{hop}"] = f"mean of the neighbours' {start}mean_{hop - 1}"
    for relation in range(1, relations + 1):
        means[f"{start}relation_{relation}"] = f"mean of {what} over relation {relation}"
    return inputs | {name: RowInput(width + degree, about, scaled) for name, about in means.items()}
