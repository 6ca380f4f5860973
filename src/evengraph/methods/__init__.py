"""Methods, each one file behind the same `fit` and `predict_proba`."""

from evengraph.methods.balancedsoftmax import BalancedSoftmax
from evengraph.methods.bases.method import Method
from evengraph.methods.bat import BAT
from evengraph.methods.boosting import Boosting
from evengraph.methods.classbalanced import ClassBalanced
from evengraph.methods.doublebalancing import DoubleBalancing
from evengraph.methods.embedsmote import EmbedSMOTE
from evengraph.methods.fitting import fit_many
from evengraph.methods.focal import Focal
from evengraph.methods.gcn import GCN
from evengraph.methods.graphens import GraphENS
from evengraph.methods.graphsha import GraphSHA
from evengraph.methods.graphsmote import GraphSMOTE
from evengraph.methods.iceberg import IceBerg
from evengraph.methods.imgagn import ImGAGN
from evengraph.methods.labelpropagation import LabelPropagation
from evengraph.methods.logitadjustment import LogitAdjustment
from evengraph.methods.lte4g import LTE4G
from evengraph.methods.mlp import MLP
from evengraph.methods.oversampling import Oversampling
from evengraph.methods.pcsoftmax import PCSoftmax
from evengraph.methods.renode import ReNode
from evengraph.methods.reweight import Reweight
from evengraph.methods.smote import SMOTE
from evengraph.methods.unignn import UniGNN
from evengraph.methods.unreal import UNREAL

# The nine of the paper's table in its order, then losses, later methods and plain outsiders.
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
    "balancedsoftmax": BalancedSoftmax,
    "logitadjustment": LogitAdjustment,
    "pcsoftmax": PCSoftmax,
    "focal": Focal,
    "classbalanced": ClassBalanced,
    "imgagn": ImGAGN,
    "renode": ReNode,
    "graphsha": GraphSHA,
    "bat": BAT,
    "unreal": UNREAL,
    "doublebalancing": DoubleBalancing,
    "iceberg": IceBerg,
    "mlp": MLP,
    "labelpropagation": LabelPropagation,
    "boosting": Boosting,
}

DEFAULT_METHOD = "unignn"  # what `run` uses

__all__ = [
    "BAT",
    "DEFAULT_METHOD",
    "GCN",
    "LTE4G",
    "METHODS",
    "MLP",
    "SMOTE",
    "UNREAL",
    "BalancedSoftmax",
    "Boosting",
    "ClassBalanced",
    "DoubleBalancing",
    "EmbedSMOTE",
    "Focal",
    "GraphENS",
    "GraphSHA",
    "GraphSMOTE",
    "IceBerg",
    "ImGAGN",
    "LabelPropagation",
    "LogitAdjustment",
    "Method",
    "Oversampling",
    "PCSoftmax",
    "ReNode",
    "Reweight",
    "UniGNN",
    "fit_many",
]
