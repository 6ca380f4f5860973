"""Methods, each one file behind the same `fit` and `predict_proba`."""

from evengraph.methods.base import Method
from evengraph.methods.bat import BAT
from evengraph.methods.embedsmote import EmbedSMOTE
from evengraph.methods.gcn import GCN
from evengraph.methods.graphens import GraphENS
from evengraph.methods.graphsha import GraphSHA
from evengraph.methods.graphsmote import GraphSMOTE
from evengraph.methods.iceberg import IceBerg
from evengraph.methods.imgagn import ImGAGN
from evengraph.methods.lte4g import LTE4G
from evengraph.methods.many import fit_many
from evengraph.methods.oversampling import Oversampling
from evengraph.methods.reweight import Reweight
from evengraph.methods.smote import SMOTE
from evengraph.methods.unignn import UniGNN
from evengraph.methods.unreal import UNREAL

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
    # Beside it: named in its text, or newer.
    "imgagn": ImGAGN,
    "graphsha": GraphSHA,
    "bat": BAT,
    "unreal": UNREAL,
    "iceberg": IceBerg,
}

__all__ = [
    "BAT",
    "GCN",
    "LTE4G",
    "METHODS",
    "SMOTE",
    "UNREAL",
    "EmbedSMOTE",
    "GraphENS",
    "GraphSHA",
    "GraphSMOTE",
    "IceBerg",
    "ImGAGN",
    "Method",
    "Oversampling",
    "Reweight",
    "UniGNN",
    "fit_many",
]
