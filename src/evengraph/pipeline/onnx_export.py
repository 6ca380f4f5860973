"""Export to ONNX: rows of features and neighbour aggregates in, probabilities out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph import __version__
from evengraph.core.files import write_atomic
from evengraph.core.lazy import import_optional
from evengraph.methods import METHODS, MLP, Boosting, Logistic, Method, Unison
from evengraph.methods.bases.method import model_input
from evengraph.metrics.calibration import SMALLEST
from evengraph.ops.features import FAR, Scaling
from evengraph.ops.sparse import neighbour_averages
from evengraph.ops.trees import Trees, class_logits, first_digits, largest_up_to
from evengraph.pipeline.model_info import ModelInfo

ABOUT_VIEWS = {
    "structural": "principal components of personalised PageRank of the features",
    "ego": "principal components of the features and of their means over neighbours",
}
FEATURES = "encoded features of the node"
CONTEXT = "place of the node in the graph, and known labels around it"

OPSETS = {"": 17, "ai.onnx.ml": 3}  # old enough for runtimes of the last years
IR_VERSION = 8  # that of these operators
OUTPUT = "probabilities"


class OnnxGraph:
    """An ONNX graph in the making. Values are tensors of float32 and referred to by name."""

    def __init__(self) -> None:
        self.onnx: Any = import_optional("onnx", "'.[onnx]'")
        self.inputs: dict[str, Any] = {}
        self.constants: list[Any] = []
        self.nodes: list[Any] = []

    def input(self, name: str, width: int, about: str) -> str:
        """Declare an input with a row per node, (N, width); one that exists stays."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.inputs.setdefault(
            name, helper.make_tensor_value_info(name, kind, ["nodes", width], doc_string=about)
        )
        return name

    def constant(self, values: Tensor | float) -> str:
        name = f"constant_{len(self.constants)}"
        array = torch.as_tensor(values).detach().cpu().float().numpy()
        tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def apply(self, operator: str, *values: str, domain: str = "", **attributes: Any) -> str:
        name = f"{operator}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(
            operator, list(values), [name], name=name, domain=domain, **attributes
        )
        self.nodes.append(node)
        return name

    def concatenate(self, values: Sequence[str]) -> str:
        return values[0] if len(values) == 1 else self.apply("Concat", *values, axis=1)

    def linear(self, rows: str, weight: Tensor, bias: Tensor) -> str:
        """Rows times a weight, (inputs, outputs), plus a bias, (outputs,)."""
        return self.apply("Gemm", rows, self.constant(weight), self.constant(bias))

    def perceptron(self, rows: str, layers: Sequence[tuple[Tensor, Tensor]]) -> str:
        """Linear layers with ReLU between them."""
        for index, (weight, bias) in enumerate(layers):
            rows = self.linear(self.apply("Relu", rows) if index else rows, weight, bias)
        return rows

    def scaled(self, rows: str, scaling: Scaling) -> str:
        centre, scale = self.constant(scaling.centre), self.constant(scaling.scale)
        rows = self.apply("Div", self.apply("Sub", rows, centre), scale)
        limit = torch.where(scaling.spread, FAR, torch.finfo(torch.float32).max)
        low, high = self.constant(-limit), self.constant(limit)
        return self.apply("Min", self.apply("Max", rows, low), high)

    def softmax(self, logits: str) -> str:
        return self.apply("Softmax", logits, axis=1)

    def weighted_mean(self, values: Sequence[str], weights: Sequence[float]) -> str:
        """The sum of values times weights, which sum to one."""
        if len(values) == 1:
            return values[0]
        parts = [
            self.apply("Mul", value, self.constant(weight))
            for value, weight in zip(values, weights, strict=True)
        ]
        return self.apply("Sum", *parts)

    def calibrated(self, rows: str, temperature: float, shift: Sequence[float]) -> str:
        """Probabilities as `Calibrator` changes them."""
        logs = self.apply("Log", self.apply("Max", rows, self.constant(SMALLEST)))
        logs = self.apply("Div", logs, self.constant(temperature))
        return self.softmax(self.apply("Add", logs, self.constant(torch.tensor(shift))))

    def tree_sums(self, rows: str, trees: Trees, targets: Tensor, start: Tensor) -> str:
        """Sums of the values of trees, (N, C); a value up to a threshold in float32 goes left."""
        # `targets` are the columns that trees add to, (T,); `start` is what they are added to, (C,)
        index = torch.arange(trees.left.numel(), device=trees.left.device)
        tree = torch.searchsorted(trees.roots, index, right=True) - 1
        node, leaf = index - trees.roots[tree], trees.left == index
        inner = {"nodes_truenodeids": trees.left, "nodes_falsenodeids": trees.right}
        children = {
            name: torch.where(leaf, 0, child - trees.roots[tree]).tolist()
            for name, child in inner.items()
        }
        return self.apply(
            "TreeEnsembleRegressor",
            rows,
            domain="ai.onnx.ml",
            n_targets=start.numel(),
            base_values=start.tolist(),
            nodes_treeids=tree.tolist(),
            nodes_nodeids=node.tolist(),
            nodes_featureids=trees.feature.tolist(),
            nodes_values=trees.threshold.tolist(),
            nodes_modes=["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf.tolist()],
            **children,
            target_treeids=tree[leaf].tolist(),
            target_nodeids=node[leaf].tolist(),
            target_ids=targets[tree[leaf]].tolist(),
            target_weights=trees.value[leaf].tolist(),
        )

    def serialised(self, result: str, num_classes: int, metadata: Mapping[str, str]) -> bytes:
        """The checked model, whose output is a value of shape (N, C), as the bytes of a file."""
        helper, kind = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.nodes.append(helper.make_node("Identity", [result], [OUTPUT], name=OUTPUT))
        output = helper.make_tensor_value_info(OUTPUT, kind, ["nodes", num_classes])
        graph = helper.make_graph(
            self.nodes, "evengraph", list(self.inputs.values()), [output], self.constants
        )
        opsets = [helper.make_opsetid(*item) for item in OPSETS.items()]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="evengraph"
        )
        helper.set_model_props(model, dict(metadata))
        self.onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


class RowInput(NamedTuple):
    """A table that a row model takes, one row per node."""

    width: int  # number of columns
    about: str  # inputs of two methods with the same name and description are the same
    fitted: bool = False  # values depend on the fitted method: no two methods share it


@runtime_checkable
class RowModel(Protocol):
    """What can be exported: an adapter below, or a method of another package with these."""

    def row_inputs(self) -> dict[str, RowInput]:
        """The tables that it takes, by name."""

    def rows(self, graph: Data) -> dict[str, Tensor]:
        """These tables of a graph, which `model_input` returned, float32, (N, width) each."""

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        """Add what computes probabilities, (N, C), from the inputs, which are given by name."""


def export_onnx(
    method: Method, path: str | Path, info: ModelInfo | None = None
) -> dict[str, RowInput]:
    """Write a fitted method, or an average of such, as an ONNX file; returns its inputs by name.

    Probabilities are calibrated as `info` says; features and the threshold are stored in the file.
    """
    parts, inputs = _parts(method)
    onnx = OnnxGraph()
    for name, item in inputs.items():
        onnx.input(name, item.width, item.about)
    votes = [model.onnx_probabilities(onnx, names) for _, model, _, names in parts]
    mean = onnx.weighted_mean(votes, [weight for _, _, weight, _ in parts])
    if info is not None and info.calibrator is not None and info.calibrates:
        mean = onnx.calibrated(mean, info.calibrator.temperature, info.calibrator.shift)
    classes = [str(name) for name in method.classes_]
    about: dict[str, Any] = {"evengraph": __version__, "method": method.full_title}
    about["classes"] = classes
    if info is not None and info.encoder is not None:
        about["features"] = list(info.encoder.names)
    if info is not None and (found := info.decision) is not None:
        about["threshold"] = {"class": classes[found.positive], "from": found.threshold}
    texts = {name: json.dumps(value) for name, value in about.items()}
    write_atomic(onnx.serialised(mean, method.num_classes_, texts), Path(path))
    return inputs


@torch.no_grad()
def onnx_inputs(method: Method, graph: Data) -> dict[str, NDArray[np.float32]]:
    """What the exported file takes for the nodes of a graph, by name, (N, width) each."""
    rows = {}
    for one, model, _, names in _parts(method)[0]:
        if one.uses_labels and not one.recognises(graph):  # the file votes and calibrates with it
            raise ValueError(
                f"{one.full_title} needs labelled nodes of training, and the graph has fewer than "
                "half of them: add new nodes to the known graph, or export a model that needs none."
            )
        for name, table in model.rows(model_input(one, graph)).items():
            rows[names[name]] = np.ascontiguousarray(table.float().cpu().numpy())
    return rows


_Part = tuple[Method, RowModel, float, dict[str, str]]
"""A method of an average, what exports it, its weight, and the names of its inputs in the file."""


def _parts(method: Method) -> tuple[list[_Part], dict[str, RowInput]]:
    """The methods to export, and their inputs; equal ones are shared, others get a number."""
    parts: list[_Part] = []
    inputs: dict[str, RowInput] = {}
    method.classes_  # noqa: B018 - raises unless it is fitted
    members, weights = getattr(method, "members_", None), getattr(method, "weights_", None)
    if not isinstance(members, list) or not isinstance(weights, list):
        members, weights = [method], [1.0]  # it averages no others
    for number, (one, weight) in enumerate(zip(members, weights, strict=True), start=1):
        adapter = ADAPTERS.get(type(one))
        if not isinstance(one, RowModel) and adapter is None:
            able = ", ".join(name for name, kind in METHODS.items() if can_export(kind))
            inside = "" if one is method else f" (in the average of {method.title})"
            raise ValueError(
                f"{one.title}{inside} cannot be exported: it does not predict a node from its row "
                f"alone. Methods that can be: {able}, and averages of them."
            )
        model: RowModel = one if adapter is None else adapter(one)
        names = {}
        for name, item in model.row_inputs().items():
            shared = not item.fitted and inputs.get(name, item) == item
            names[name] = name if shared or name not in inputs else f"{name}_{number}"
            inputs[names[name]] = item
        parts.append((one, model, weight, names))
    return parts, inputs


def can_export(kind: type[Method]) -> bool:
    """Whether methods of a class predict a node from its row alone."""
    return kind in ADAPTERS or issubclass(kind, RowModel)


class _MLP(NamedTuple):
    """The features alone, and three layers."""

    method: MLP

    def row_inputs(self) -> dict[str, RowInput]:
        return {"features": RowInput(self.method.num_features_, FEATURES)}

    def rows(self, graph: Data) -> dict[str, Tensor]:
        return {"features": graph.x.float()}

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        net = self.method.net_
        first, (second, last) = net.encoder, net.classifier.children()
        layers = [(layer.weight, layer.bias) for layer in (first, second)]
        layers.append((last.weight.t(), last.bias))
        return onnx.softmax(onnx.perceptron(rows["features"], layers))


class _Unison(NamedTuple):
    """The views, all members on them, and the mean of their votes."""

    method: Unison

    def row_inputs(self) -> dict[str, RowInput]:
        widths, names = self.method.net_.views.widths, self.method.view_names
        return {name: RowInput(widths[name], ABOUT_VIEWS[name], True) for name in names}

    def rows(self, graph: Data) -> dict[str, Tensor]:
        widths, views = self.method.net_.views.widths, self.method.net_.views(graph)
        names = enumerate(self.method.view_names)
        return {name: views[index, :, : widths[name]] for index, name in names}

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        names, net, votes = self.method.view_names, self.method.net_, []
        for index, layers in enumerate(net.members.networks()):
            name = names[index // self.method.size.members]
            (first, bias), second = layers
            width = net.views.widths[name]
            votes.append(onnx.perceptron(rows[name], [(first[:width], bias), second]))
        return onnx.weighted_mean([onnx.softmax(vote) for vote in votes], net.votes.tolist())


class _Boosting(NamedTuple):
    """Features and their means over neighbours, not rounded, and the trees."""

    method: Boosting

    def row_inputs(self) -> dict[str, RowInput]:
        one = self.method
        inputs = hop_inputs(one.num_features_, one.hops, one.num_relations_, degree=one.degree)
        if one.context_width:
            inputs["context"] = RowInput(one.context_width, CONTEXT, fitted=True)
        return inputs

    def rows(self, graph: Data) -> dict[str, Tensor]:
        nodes = torch.arange(graph.num_nodes, device=graph.x.device)
        inputs = self.row_inputs()
        widths = [item.width for item in inputs.values()]
        parts = self.method._unrounded(graph, nodes).split(widths, dim=1)
        return dict(zip(inputs, parts, strict=True))

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        row, trees = onnx.concatenate(list(rows.values())), self.method.trees_
        outputs = self.method.outputs
        start = class_logits(self.method.baseline_.unsqueeze(0))[0]
        if not trees.roots.numel():
            width = sum(item.width for item in self.row_inputs().values())
            return onnx.softmax(onnx.linear(row, torch.zeros(width, start.numel()), start))
        targets = torch.arange(trees.roots.numel()) % outputs + start.numel() - outputs
        # thresholds that a value that was not rounded can be compared with
        trees = trees._replace(threshold=largest_up_to(first_digits, trees.threshold))
        return onnx.softmax(onnx.tree_sums(row, trees, targets.to(start.device), start))


class _Logistic(NamedTuple):
    """Features and means of the scaled features over neighbours; scaling is part of the model."""

    method: Logistic

    def row_inputs(self) -> dict[str, RowInput]:
        one = self.method
        sizes = one.num_features_, one.hops, one.num_relations_
        return hop_inputs(*sizes, degree=one.degree, scaled=True)

    def rows(self, graph: Data) -> dict[str, Tensor]:
        one = self.method
        x, matrix = one._inputs(graph)
        own = x.float().tensor_split([one.num_features_], dim=1)  # the degree comes last, if any
        averages = neighbour_averages(graph, one.hops, union=matrix)
        means = [average(one.scaling_(x)) for average in averages]
        tables = [*(part for part in own if part.shape[1]), *means]
        return dict(zip(self.row_inputs(), tables, strict=True))

    def onnx_probabilities(self, onnx: OnnxGraph, rows: Mapping[str, str]) -> str:
        weights = self.method.weights_
        own = [rows[name] for name in ("features", "log_degree") if name in rows]
        means = [name for key, name in rows.items() if key not in ("features", "log_degree")]
        scaled = onnx.scaled(onnx.concatenate(own), self.method.scaling_)
        row = onnx.concatenate([scaled, *means])
        return onnx.softmax(onnx.linear(row, weights[:, :-1].t(), weights[:, -1]))


ADAPTERS: Mapping[type[Method], Callable[[Any], RowModel]] = {
    MLP: _MLP,
    Unison: _Unison,
    Boosting: _Boosting,
    Logistic: _Logistic,
}


def hop_inputs(
    width: int, hops: int, relations: int, *, degree: bool, scaled: bool = False
) -> dict[str, RowInput]:
    """The inputs of a model on `width` features and means over neighbours.

    With the logarithm of the degree as a column, or means of columns that the model has scaled.
    """
    inputs = {"features": RowInput(width, FEATURES)}
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
