"""evengraph export: a saved model becomes an ONNX file, or one line says why not."""

import numpy as np
import pytest
from command_line import COLUMNS, call

import evengraph as eg

LOGISTIC = ["--method", "logistic", "--set", "hops=1", "--set", "max_epochs=6", "--splits", "5-5"]


def test_a_saved_model_is_exported(shop, capsys):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert call("run", "shop", *COLUMNS, *LOGISTIC, "--save", "model") == 0
    capsys.readouterr()
    assert call("export", "model", "--out", "files/model.onnx") == 0
    shown = capsys.readouterr().out
    for words in ("features", "scaled_mean_1", "fraud, honest, shop", "wrote files/model.onnx"):
        assert words in shown
    model = eg.TableModel.load("model")
    session = runtime.InferenceSession("files/model.onnx", providers=["CPUExecutionProvider"])
    got = session.run(None, model.onnx_inputs("shop"))[0]
    np.testing.assert_allclose(got, model.predict_proba("shop"), atol=2e-6)


def test_a_model_that_cannot_be_exported_leaves_no_file(model, shop, capsys):
    capsys.readouterr()
    assert call("export", model, "--out", "files/model.onnx") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: Uni-GNN cannot be exported: it does not predict a node from its")
    assert not (shop / "files").exists()


def test_the_file_has_the_name_of_its_format(model, capsys):
    capsys.readouterr()
    assert call("export", model, "--out", "model.pt") == 2
    assert "--out takes a name that ends in .onnx, got model.pt." in capsys.readouterr().err
