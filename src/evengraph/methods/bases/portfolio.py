"""The portfolio: the methods that are tried where nobody names one, and models by description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

if TYPE_CHECKING:
    from evengraph.methods.bases.method import Method


def method_table() -> Mapping[str, type[Method]]:
    """All methods by name; imported late, because the table imports every method."""
    from evengraph.methods import METHODS

    return METHODS


def portfolio(
    graph: Data, params: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Method]:
    """The candidates that methods declare in `Method.portfolio`, in the order of METHODS.

    Args:
        graph: Whose `graph_defaults` the candidates have.
        params: Parameters by name of the method, which replace those of the portfolio.

    Returns:
        Unfitted methods by label: the name of the method, and what differs if it occurs twice.
    """
    candidates = {}
    for name, kind in method_table().items():
        for entry in kind.portfolio:
            settings = ", ".join(
                f"{key}={value}" for key, value in entry.items() if _differs(kind, key)
            )
            label = f"{name} {settings}" if len(kind.portfolio) > 1 else name
            fixed = (params or {}).get(name, {})
            candidates[label] = kind(**{**kind.graph_defaults(graph), **entry, **fixed})
    return candidates


def _differs(kind: type[Method], key: str) -> bool:
    """Whether the candidates of a method differ in a parameter."""
    return any(entry.get(key) != kind.portfolio[0].get(key) for entry in kind.portfolio)
