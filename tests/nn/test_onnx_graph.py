"""ONNX graphs: operators against the same in torch, and the error without the package."""

import sys

import numpy as np
import pytest
import torch

from evengraph.nn.onnx_graph import OnnxGraph
from evengraph.ops.features import Scaling
from evengraph.ops.trees import Trees, tree_values
from small_graphs import normal


@pytest.fixture
def run():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")

    def run(build, x, width):
        onnx = OnnxGraph()
        content = onnx.serialised(
            build(onnx, onnx.input("x", x.shape[1], "rows")), width, {"a": "b"}
        )
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        assert session.get_modelmeta().custom_metadata_map == {"a": "b"}
        return torch.from_numpy(session.run(["probabilities"], {"x": x.float().numpy()})[0])

    return run


def test_a_perceptron_is_linear_layers_with_relu_between(run):
    x, first, second = normal(9, 5), normal(5, 4, seed=1), normal(4, 3, seed=2)
    layers = [(first, normal(4, seed=3)), (second, normal(3, seed=4))]
    expected = (x @ first + layers[0][1]).relu() @ second + layers[1][1]
    got = run(lambda onnx, rows: onnx.perceptron(rows, layers), x, 3)
    torch.testing.assert_close(got, expected.float())


def test_columns_are_scaled_and_spread_ones_clipped(run):
    x = torch.cat([normal(40, 3), torch.zeros(40, 1)], dim=1).float()
    x[0] = torch.tensor([1e6, -1e6, 2.0, 5.0])
    scaling = Scaling.of(x)
    assert scaling.spread.tolist() == [True, True, True, False]
    torch.testing.assert_close(run(lambda onnx, rows: onnx.scaled(rows, scaling), x, 4), scaling(x))


def test_trees_add_to_their_columns_and_a_tree_may_be_a_leaf(run):
    trees = Trees(
        feature=torch.tensor([1, 0, 0, 0, 0, 1, 0, 0]),
        threshold=torch.tensor([0.5, 0, -0.25, 0, 0, 0, 0, 0]).double(),
        left=torch.tensor([1, 1, 3, 3, 4, 5, 6, 7]),
        right=torch.tensor([2, 1, 4, 3, 4, 5, 6, 7]),
        value=torch.tensor([0, 1, 0, 2, 4, 8, 16, 32]).double(),
        roots=torch.tensor([0, 5, 6, 7]),
    )
    x, start = normal(30, 2), torch.tensor([0.0, 0.5, -1.0]).double()
    x[0, 1], x[1, 0] = 0.5, -0.25
    targets = torch.tensor([1, 2, 1, 2])
    sums = torch.zeros(30, 3).double().index_add_(1, targets, tree_values(trees, x)) + start
    got = run(lambda onnx, rows: onnx.tree_sums(rows, trees, targets, start), x, 3)
    torch.testing.assert_close(got, sums.float())


def test_a_mean_has_weights(run):
    def build(onnx, rows):
        return onnx.weighted_mean(
            [rows, onnx.apply("Neg", rows), onnx.softmax(rows)], [0.5, 0.2, 0.3]
        )

    x = normal(4, 3).float()
    torch.testing.assert_close(run(build, x, 3), 0.3 * x + 0.3 * x.softmax(1))


def test_equal_models_are_equal_files():
    pytest.importorskip("onnx")

    def content():
        onnx = OnnxGraph()
        return onnx.serialised(onnx.softmax(onnx.input("x", 2, "")), 2, {"b": "1", "a": "2"})

    assert content() == content()


def test_without_the_package_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r"^onnx is not installed; try: pip install 'evengraph\["):
        OnnxGraph()


def test_constants_are_stored_in_single_precision():
    pytest.importorskip("onnx")
    onnx = OnnxGraph()
    onnx.constant(np.pi)
    assert onnx.onnx.numpy_helper.to_array(onnx.constants[0]) == np.float32(np.pi)
