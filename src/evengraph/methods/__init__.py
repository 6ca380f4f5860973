"""Methods, one per file, behind the same `fit` and `predict_proba`.

A method has one line here: its import, written `X as X` so that type checkers see it exported.
METHODS lists it under the name of its class in lower case, and everything else finds it there.
"""

from torch_geometric.data import Data

from evengraph.core.registry import Registry
from evengraph.methods.bases.fitting import fit_many as fit_many
from evengraph.methods.bases.method import Method as Method

# isort: off
# In the order of the paper's table; then losses, later methods and baselines. Plugins come last.
# A portfolio is tried in this order, and of equally good candidates the first is preferred.
from evengraph.methods.gcn import GCN as GCN
from evengraph.methods.oversampling import Oversampling as Oversampling
from evengraph.methods.reweight import Reweight as Reweight
from evengraph.methods.smote import SMOTE as SMOTE
from evengraph.methods.embedsmote import EmbedSMOTE as EmbedSMOTE
from evengraph.methods.graphsmote import GraphSMOTE as GraphSMOTE
from evengraph.methods.graphens import GraphENS as GraphENS
from evengraph.methods.lte4g import LTE4G as LTE4G
from evengraph.methods.unignn import UniGNN as UniGNN
from evengraph.methods.balancedsoftmax import BalancedSoftmax as BalancedSoftmax
from evengraph.methods.logitadjustment import LogitAdjustment as LogitAdjustment
from evengraph.methods.pcsoftmax import PCSoftmax as PCSoftmax
from evengraph.methods.focal import Focal as Focal
from evengraph.methods.classbalanced import ClassBalanced as ClassBalanced
from evengraph.methods.imgagn import ImGAGN as ImGAGN
from evengraph.methods.renode import ReNode as ReNode
from evengraph.methods.graphsha import GraphSHA as GraphSHA
from evengraph.methods.bat import BAT as BAT
from evengraph.methods.unreal import UNREAL as UNREAL
from evengraph.methods.unison import Unison as Unison
from evengraph.methods.iceberg import IceBerg as IceBerg
from evengraph.methods.doublebalancing import DoubleBalancing as DoubleBalancing
from evengraph.methods.mlp import MLP as MLP
from evengraph.methods.labelpropagation import LabelPropagation as LabelPropagation
from evengraph.methods.boosting import Boosting as Boosting
from evengraph.methods.logistic import Logistic as Logistic
from evengraph.methods.auto import Auto as Auto
from evengraph.methods.auto import portfolio as portfolio
# isort: on

_BUILT_IN: dict[str, type[Method]] = {
    name.lower(): value
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Method) and value is not Method
}
METHODS: Registry[type[Method]] = Registry("evengraph.methods", Method, _BUILT_IN, subclasses=True)

DEFAULT_METHOD = "auto"  # what `run` and `TableModel` use
DEFAULT_ON_DISK = "unison"  # what `run` uses for a graph on disk


def new_method(method: str | Method, graph: Data) -> Method:
    """A method by its name, with its defaults for the graph, or a copy of one."""
    if isinstance(method, str):
        return METHODS[method](**METHODS[method].graph_defaults(graph))
    return type(method)(**method.get_params())
