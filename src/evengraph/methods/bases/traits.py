"""Traits: what a method declares about itself, and its parameters as scikit-learn sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

from torch_geometric.data import Data

from evengraph.core.graphs import count_relations, edge_weight

BACKBONE_TITLES = {"sage": "GraphSAGE", "gat": "GAT"}
"""Titles of backbones in tables; GCN is not mentioned."""


@dataclass(kw_only=True)
class Traits:
    """Declarations that subclasses override, and what follows from them."""

    title: ClassVar[str]
    """The name in the literature; the name of the class by default."""
    other_names: ClassVar[Sequence[str]] = ()
    """Names under which users look for it, in lower case; errors suggest the method for them."""
    role: ClassVar[Literal["", "baseline", "highlight"]] = ""
    """How figures treat it: as the baseline of a comparison, highlighted, or like any other."""
    portfolio: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Parameters with which `auto` and, if no methods are named, `compare` try it; one mapping per
    candidate. Methods are tried in the order of METHODS."""
    votes: ClassVar[int] = 1
    """How many models it counts as in the average of `auto`."""
    is_quick: ClassVar[bool] = False
    """Whether a fit takes seconds on any graph; `auto` fits such methods early."""
    weighted_edges: ClassVar[bool] = False
    """Whether it propagates along `weighted_adjacency`, so that weights of edges count."""
    separate_relations: ClassVar[bool] = False
    """Whether it averages the neighbours of each relation apart; others use all edges as one."""
    shares_rows: ClassVar[bool] = False
    """Whether several processes can train it together, each on some rows of a graph on disk."""
    stores_dense: ClassVar[bool] = False
    """Whether fitting stores all features of a node, also where most of them are zero."""
    suits_heterophily: ClassVar[bool] = False
    """Whether to try it on a graph whose neighbours mostly differ in class."""
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """Values to try per parameter; they add to or replace those of `shared_search_space`."""
    shared_search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (0.01, 0.003, 0.03),
        "weight_decay": (5e-4, 5e-5, 5e-3),
        "dropout": (0.5, 0.2, 0.7),
        "hidden": (64, 128),
        "network": ("comparison", "plain"),
    }
    selects_itself: ClassVar[bool] = False
    """Whether fitting selects the settings on validation; a budget of settings then tries one."""
    former_params: ClassVar[Mapping[str, str]] = {}
    """Parameters of earlier versions that users may still name, and those that replaced them."""
    tuned_params: ClassVar[frozenset[str]] = frozenset()
    """Parameters that the paper set per graph; changing any other makes it a different method."""
    untuned_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters for a graph that the method was not tuned for, besides patience."""
    own_split_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters where training and validation nodes were drawn at random from a user's labels, and
    may be drawn again."""

    def __init_subclass__(cls) -> None:
        cls.title = vars(cls).get("title", cls.__name__)

    def describe_edges(self, graph: Data) -> str:
        """A sentence about what it does not use of the edges of a graph; empty if it uses all."""
        if not self.uses_graph:
            return ""
        weights = edge_weight(graph) is not None and not self.uses_edge_weights
        relations = bool(count_relations(graph)) and not self.separate_relations
        parts = ["weights"] * weights + ["relations"] * relations
        return f"{self.title} does not use the {' and '.join(parts)} of edges." if parts else ""

    @property
    def changed_params(self) -> list[str]:
        """Names of the parameters that differ from their defaults."""
        return [item.name for item in fields(self) if getattr(self, item.name) != item.default]

    @property
    def full_title(self) -> str:
        """The title, with the backbone if it is not the usual one."""
        backbone = BACKBONE_TITLES.get(getattr(self, "backbone", ""))
        return self.title if backbone is None else f"{self.title} on {backbone}"

    @property
    def uses_graph(self) -> bool:
        """Whether edges have an influence on predictions."""
        return True

    @property
    def uses_edge_weights(self) -> bool:
        """Whether weights of edges have an influence on predictions; attention ignores them."""
        return self.weighted_edges and self.uses_graph and getattr(self, "backbone", "") != "gat"

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that an older version saved, as this version names them.

        Those that are new since then have their defaults, unless they are given here.
        """
        return dict(params)

    @classmethod
    def renamed_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters as users write them, with `former_params` replaced by what they stand for."""
        former = {name: value for name, value in params.items() if name in cls.former_params}
        others = {name: value for name, value in params.items() if name not in former}
        return others | cls.current_params(former) if former else others

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; none holds another estimator, so `deep` has no effect."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, all of them or, if one is invalid, none; takes effect at the next fit."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
        type(self)(**known | params)  # validates them
        for name, value in params.items():
            setattr(self, name, value)
        return self
