"""Export to ONNX: rows of features and neighbour aggregates in, probabilities out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph import __version__
from evengraph.core.files import write_atomic
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.row_model import RowInput, RowModel, averaged_methods
from evengraph.nn.onnx_graph import OnnxGraph
from evengraph.pipeline.model_info import ModelInfo


class _Part(NamedTuple):
    """A method of an average."""

    method: Method
    model: RowModel
    weight: float
    names: dict[str, str]


def export_onnx(
    method: Method, path: str | Path, info: ModelInfo | None = None
) -> dict[str, RowInput]:
    """Write a fitted method as an ONNX file, completely or not at all.

    Args:
        method: One that predicts each node from its row, or an average of such methods.
        path: The file.
        info: What else is known of the model; its features and threshold are stored in the file.

    Returns:
        The inputs of the file by name, with their widths and what they hold.
    """
    parts, inputs = _parts(method)
    onnx = OnnxGraph()
    for name, item in inputs.items():
        onnx.input(name, item.width, item.about)
    votes = [part.model.onnx_probabilities(onnx, part.names) for part in parts]
    mean = onnx.weighted_mean(votes, [part.weight for part in parts])
    texts = {name: json.dumps(value) for name, value in _metadata(method, info).items()}
    write_atomic(onnx.serialised(mean, method.num_classes_, texts), Path(path))
    return inputs


def _metadata(method: Method, info: ModelInfo | None) -> dict[str, Any]:
    """What the file says about the model, as JSON values by name."""
    classes = [str(name) for name in method.classes_]
    about: dict[str, Any] = {
        "evengraph": __version__,
        "method": method.full_title,
        "classes": classes,
    }
    if info is not None and info.encoder is not None:
        about["features"] = list(info.encoder.names)
    if info is not None and info.threshold is not None:
        positive, value = info.threshold
        about["threshold"] = {"class": classes[positive], "from": value}
    return about


@torch.no_grad()
def onnx_inputs(method: Method, graph: Data) -> dict[str, NDArray[np.float32]]:
    """What the exported file takes for the nodes of a graph, by name, (N, width) each."""
    rows = {}
    for part in _parts(method)[0]:
        for name, table in part.model.rows(part.method.model_input(graph)).items():
            rows[part.names[name]] = np.ascontiguousarray(table.float().cpu().numpy())
    return rows


def _parts(method: Method) -> tuple[list[_Part], dict[str, RowInput]]:
    """The methods to export, and their inputs; equal ones are shared, others get a number."""
    parts: list[_Part] = []
    inputs: dict[str, RowInput] = {}
    method.classes_  # noqa: B018 - raises unless it is fitted
    for number, (one, weight) in enumerate(averaged_methods(method), start=1):
        if not isinstance(one, RowModel):
            raise ValueError(_refusal(method, one))
        names = {}
        for name, item in one.row_inputs().items():
            shared = not item.fitted and inputs.get(name, item) == item
            names[name] = name if shared or name not in inputs else f"{name}_{number}"
            inputs[names[name]] = item
        parts.append(_Part(one, one, weight, names))
    return parts, inputs


def _refusal(method: Method, part: Method) -> str:
    names = ", ".join(name for name, kind in METHODS.items() if issubclass(kind, RowModel))
    inside = "" if part is method else f" (in the average of {method.title})"
    return (
        f"{part.title}{inside} cannot be exported: it does not predict a node from its row alone. "
        f"Methods that can be: {names}, and averages of them."
    )
