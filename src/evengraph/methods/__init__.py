"""Methods, each one file behind the same `fit` and `predict_proba`."""

from evengraph.methods.base import Method
from evengraph.methods.embedsmote import EmbedSMOTE
from evengraph.methods.gcn import GCN
from evengraph.methods.graphens import GraphENS
from evengraph.methods.graphsmote import GraphSMOTE
from evengraph.methods.lte4g import LTE4G
from evengraph.methods.many import fit_many
from evengraph.methods.oversampling import Oversampling
from evengraph.methods.reweight import Reweight
from evengraph.methods.smote import SMOTE
from evengraph.methods.unignn import UniGNN

# In the order of the paper's table.
METHODS: dict[str, type[Method]] = {
    "gcn": GCN,
    "oversampling": Oversampling,
    "reweight": Reweight,
    "smote": SMOTE,
    "embedsmote": EmbedSMOTE,
    "graphsmote": GraphSMOTE,
    "graphens": GraphENS,
    "lte4g": LTE4G,
    "unignn": UniGNN,
}

__all__ = [
    "GCN",
    "LTE4G",
    "METHODS",
    "SMOTE",
    "EmbedSMOTE",
    "GraphENS",
    "GraphSMOTE",
    "Method",
    "Oversampling",
    "Reweight",
    "UniGNN",
    "fit_many",
]
