"""OnnxGraph: models that take rows, written as ONNX node by node.

torch's exporter traces modules and needs onnxscript; trees and logistic regression are no modules,
and the networks here are a few matrix products, so the operators are written directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evengraph.core.lazy import import_optional
from evengraph.metrics.calibration import SMALLEST
from evengraph.ops.features import FAR, Scaling
from evengraph.ops.trees import Trees

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
