"""evengraph suggest, on tables, models and data sets."""

import json

from command_line import COLUMNS, call, read, write
from evengraph.methods import Method


def test_tables_get_nodes_with_reasons_and_a_curve(shop, capsys):
    assert call("suggest", "shop", *COLUMNS, "--budget", "3", "--out", "next.csv") == 0
    shown = capsys.readouterr().out
    assert "Label these 3 next" in shown
    assert "(now)" in shown
    assert "more labels" in shown
    rows = read(shop / "next.csv")
    known = {row["account"]: row["kind"] for row in read(shop / "shop" / "nodes.csv")}
    assert [known[row["id"]] for row in rows] == ["", "", ""]
    assert all(row["reason"] and row["predicted"] in ("fraud", "honest", "shop") for row in rows)


def test_a_model_suggests_with_its_own_predictions(model, capsys, monkeypatch):
    predict = Method.predict_proba
    loud = lambda *arguments: print("a plugin") or predict(*arguments)  # noqa: E731
    monkeypatch.setattr(Method, "predict_proba", loud)
    assert call("suggest", "model", "--budget", "2", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["nodes"]) == 2
    assert sum(content["labelled"].values()) + content["unlabelled"] == 120


def test_no_label_at_all_and_classes_that_nobody_has_labelled(shop, capsys):
    rows = read(shop / "shop" / "nodes.csv")
    nobody = [{**row, "kind": ""} for row in rows]
    write(shop / "shop" / "nodes.csv", list(rows[0]), *(row.values() for row in nobody))
    assert call("suggest", "shop", *COLUMNS, "--classes", "fraud,honest", "--budget", "4") == 0
    shown = capsys.readouterr().out
    assert "No label yet" in shown
    assert "cannot be said yet" in shown


def test_a_data_set_has_all_labels(capsys):
    assert call("suggest", "toy") == 2
    assert "Every node has a label" in capsys.readouterr().err
