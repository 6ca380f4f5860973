"""evengraph explain and export."""

import numpy as np
import pytest

import evengraph as eg
from command_line import COLUMNS, call, read, write


def test_a_prediction_is_explained_and_drawn(model, shop, capsys):
    assert call("explain", "model", "a-003", "--out", "why.svg") == 0
    shown = capsys.readouterr().out
    for word in ("a-003: ", "neighbours, labelled among them: ", "amount", "usual", "Check: "):
        assert word in shown
    for word in ("bias", "logit"):
        assert word not in shown
    assert "Bars to the right support" in (shop / "why.svg").read_text()
    capsys.readouterr()
    assert call("explain", "model", "a-003", "--details") == 0
    shown = capsys.readouterr().out
    for word in ("bias: what average nodes get", "sum: logit of"):
        assert word in shown


def test_more_rows_are_explained_with_the_stored_encoder(model, shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    more = [{**rows[0], "account": f"late-{n}", "amount": "900"} for n in range(40)]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(list(r.values()) for r in [*rows, *more]))
    assert call("explain", "model", "a-003") == 0
    assert "labelled among them: " in capsys.readouterr().out


def test_a_new_node_is_explained_beside_the_known_ones(model, new, shop, capsys):
    assert call("predict", "model", *new, "--known", "shop", "--out", "p.csv") == 0
    row = read(shop / "p.csv")[0]
    tables = ["--new-nodes", "n.csv", "--new-edges", "e.csv"]
    for known in ([], ["--known", "shop"], ["--data", "shop"]):
        capsys.readouterr()
        assert call("explain", "model", "new-1", *tables, *known, "--out", "why.svg") == 0
        shown = capsys.readouterr().out
        sure = 100 * float(row["score"])
        assert f"new-1: {row['class']} {sure:.1f}%" in shown
        assert "It has 2 neighbours, labelled among them: " in shown


def test_known_nodes_are_found_where_new_edges_change_their_features(shop, new, capsys):
    """Features from the edges, such as PageRank, of known nodes stay as they were in training."""
    words = ["--drop", "amount,country", "--method", "labelpropagation", "--splits", "5-5"]
    assert call("run", "shop", *COLUMNS, *words, "--save", "model") == 0
    known = next(row["account"] for row in read(shop / "shop" / "nodes.csv") if row["kind"])
    write(shop / "e.csv", ["from", "to"], ["new-1", known], ["new-2", "new-1"])
    capsys.readouterr()
    tables = ["--new-nodes", "n.csv", "--new-edges", "e.csv"]
    assert call("explain", "model", "new-1", *tables) == 0
    shown = capsys.readouterr().out
    assert "It has 2 neighbours, labelled among them: 1 " in shown
    assert "known labels around it" in shown


def test_a_node_of_another_graph_is_explained_as_predict_predicts_it(model, shop, capsys):
    (shop / "other").mkdir()
    for name in ("nodes.csv", "edges.csv"):
        rows = (shop / "shop" / name).read_text().replace("a-", "b-").splitlines()
        (shop / "other" / name).write_text("\n".join([rows[0], *reversed(rows[1:])]))
    assert call("predict", "model", "other", "--out", "p.csv") == 0
    row = read(shop / "p.csv")[0]
    for words in (["--new-nodes", "other"], ["--data", "other"]):
        capsys.readouterr()
        assert call("explain", "model", row["account"], *words) == 0
        shown = capsys.readouterr().out
        probability = 100 * float(row["score"])
        assert f"{row['account']}: {row['class']} {probability:.1f}%" in shown
        assert "labelled among them: " in shown


def test_tables_are_found_from_another_folder(renamed, shop, monkeypatch, capsys):
    (shop / "elsewhere").mkdir()
    monkeypatch.chdir(shop / "elsewhere")
    assert call("explain", "../model", "a-003") == 0
    (shop / "payments.csv").rename(shop / "gone.csv")
    capsys.readouterr()
    assert call("explain", "../model", "a-003") == 2
    shown = capsys.readouterr().err
    assert "payments.csv no longer exists" in shown
    assert "--known" in shown
    moved = ["--data", "../customers.csv", "--edges", "../gone.csv"]
    assert call("explain", "../model", "a-003", *moved) == 0


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
