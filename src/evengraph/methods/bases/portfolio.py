"""The portfolio: the methods that are tried where nobody names one, and models by description."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method


def method_table() -> Mapping[str, type[Method]]:
    """All methods by name; imported late, because the table imports every method."""
    from evengraph.methods import METHODS

    return METHODS


def portfolio(
    graph: Data,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    names: Collection[str] = (),
) -> dict[str, Method]:
    """The candidates that methods declare in `Method.portfolio`, in the order of METHODS.

    Args:
        graph: Whose `graph_defaults` the candidates have.
        params: Parameters by name of the method, which replace those of the portfolio; candidates
            that they make equal are one.
        names: Only these methods; one without a portfolio is tried as it is.

    Returns:
        Unfitted methods by label: the name of the method, and what differs if it occurs twice.
    """
    candidates = {}
    for name, kind in method_table().items():
        if names and name not in names:
            continue
        given = (params or {}).get(name, {})
        entries = [{**entry, **given} for entry in kind.portfolio or ({},) * bool(names)]
        for entry in entries:
            label = _label(name, entry, entries)
            candidates[label] = kind(**{**kind.graph_defaults(graph), **entry})
    return candidates


def restored(
    about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> Method:
    """The fitted method that `Method.packed` described."""
    name, table = about["method"], method_table()
    if name not in table:
        raise ValueError(f"there is no method {name!r} in this version")
    method = table[name](**table[name].current_params(about["fields"]))
    method.restore(about, tensors, device)
    return method


def _label(name: str, entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    """The name, with the parameters that tell this entry from the others of its method."""
    differing = {
        key: value
        for key, value in entry.items()
        if any(other.get(key) != value for other in entries)
    }
    return " ".join([name, *(f"{key}={value}" for key, value in differing.items())])
