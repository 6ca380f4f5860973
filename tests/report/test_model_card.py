import re
from pathlib import Path

import pytest
from samples import OPTION

from evengraph.report.model_card import MARK, code, model_card
from snapshots import check_snapshot

HOSTILE = "<script>alert(1)</script> `a` | [x](javascript:1)\n# h ![i](http://e)"


def about(**extra):
    content = {
        "test": {"balanced_accuracy": 70.0, "accuracy": 80.0, "unknown": 3.0, "auroc": None}
        | {"positive_average_precision": 45.0},
        "confusion": [[80, 10], [4, 6]],
        "counts": {"nodes": 600, "edges": 1200, "validation": 50, "test": 100},
        "columns": {"label": "kind", "id": "shop", "features": ["turnover", "country"]},
        "encoder": {"version": 2},
        "trained_on": {"data": "/data/shops", "columns": {}},
        "refit": {"train": 150, "validation": 50, "train_before": 100},
        "calibration": {
            "lines": ["Probabilities are calibrated on 50 held-out nodes (40 honest, 10 fraud)."],
            "reliability": {"before": [[0.3, 0.1, 50]], "after": [[0.1, 0.1, 50]]},
        },
        "decision": {"positive": 1, "options": [OPTION]},
        "made": {"seed": 5, "seeds": [5, 6], "splits": 2, "reason": "the first of 2 splits"}
        | {
            "seconds": 12.5,
            "interval": [30.0, 60.0],
            "distinct": 0.9,
            "command": "evengraph run x",
        },
    }
    history = [{"seconds": 1.5}, {"seconds": 2.0}]
    plain = {"method": "gcn", "evengraph": "0.2.0", "num_features": 3, "history": history}
    chosen = "Chose an average of GCN (60%) and MLP (40%) (validation x 3.0) out of 7 in 9 s."
    plain |= {"details": {"summary": [chosen]}, "uses": ["Of the graph, predictions use: edges."]}
    return plain | {"class_names": ["honest", "fraud"], "extra": content | extra}


def card(content=None, **changes):
    given = {"title": "GCN", "counts": [140, 10], "folder": "model", "date": "2026-11-16"}
    return model_card(about() if content is None else content, **given | changes)


def test_it_says_what_when_how_well_and_how():
    text = card()
    assert text.startswith(MARK)
    check_snapshot(Path(__file__).with_name("snapshots") / "model-card.md", text)


def test_classes_without_a_threshold_have_intervals_of_accuracy():
    text = card(about(decision=None, test={"balanced_accuracy": 74.4, "accuracy": 86.0}))
    assert "| Balanced accuracy | 74.4 (60.5 to 88.4) |" in text
    assert "| Accuracy | 86.0 (77.4 to 91.7) |" in text
    assert "## Thresholds" not in text


def test_a_method_that_knows_no_tables_has_a_card():
    content = about() | {"extra": {}, "class_names": []}
    text = card(content)
    assert "# GCN: 2 classes of nodes" in text
    assert 'model = eg.load_model("model")' in text
    assert "- Features: 3." in text
    assert "## Scores" not in text
    assert "## Calibration" not in text
    assert "guessing" not in text


def test_a_model_of_a_graph_file_predicts_one_and_no_folder_breaks_out_of_the_code():
    text = card(about(trained_on={"data": "/data/calls.PT", "columns": {}}))
    assert "evengraph predict model graph.pt --out predictions.csv" in text
    assert 'model.predict("graph.pt")' in text
    assert "nodes.csv" not in text
    text = card(folder='a`\n```\n"; evil')
    assert text.count("```") == card().count("```")
    assert '"; evil' not in text


def test_foreign_names_stay_code():
    content = about(
        columns={"label": HOSTILE, "id": HOSTILE, "features": [HOSTILE]},
        trained_on={"data": HOSTILE},
    )
    content["class_names"] = [HOSTILE, "fraud"]
    text = card(content)
    spans = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text.replace("```", ""))
    for piece in ("<script", "javascript", "http", "![i]"):
        assert piece in text
        assert piece not in spans
    rows = [line for line in text.splitlines() if line.startswith("| ") and "alert" in line]
    (row,) = rows
    assert len(re.findall(r"(?<!\\)\|", row)) == 7


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "`plain`"),
        ("a`b", "`` a`b ``"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "`a b`"),
        ("", "` `"),
        ("\x1b[2J", "`\\x1b[2J`"),
        ("x" * 100, f"`{'x' * 79}…`"),
    ],
)
def test_code(text, wanted):
    assert code(text) == wanted


@pytest.mark.parametrize("bad", [None, "text", [], [[1]], [[1, 2], 3], {"a": 1}, float("nan")])
@pytest.mark.parametrize(
    "name", ["test", "confusion", "counts", "columns", "calibration", "decision", "made"]
)
def test_damaged_parts_do_not_break_it(name, bad):
    assert card(about(**{name: bad})).startswith(MARK)
