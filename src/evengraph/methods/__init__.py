"""Methods, each one file behind the same `fit` and `predict_proba`."""

from evengraph.methods.base import Method
from evengraph.methods.gcn import GCN
from evengraph.methods.unignn import UniGNN

METHODS: dict[str, type[Method]] = {
    "gcn": GCN,
    "unignn": UniGNN,
}

__all__ = ["GCN", "METHODS", "Method", "UniGNN"]
