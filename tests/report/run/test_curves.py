import pytest

from evengraph.report.run_page import curves_section


@pytest.mark.parametrize("history", [{}, {"loss": [], "score": []}, None, {"score": [None]}])
def test_empty_history_is_said(result, history):
    for run in result["runs"]:
        run["history"] = history
    assert "no training history" in curves_section(result)


def test_a_history_of_one_epoch(result, parse):
    for run in result["runs"]:
        run |= {"history": {"loss": [1.0], "score": [50.0]}, "best_epoch": 0, "epochs": 1}
    assert len(parse(curves_section(result)).all("path", "curve")) == 6


def test_best_epochs_are_marked(result, parse):
    tree = parse(curves_section(result))
    assert len(tree.all("path", "curve")) == 6
    charts = tree.all("svg", "curves")
    assert [len(chart.all("circle", "best")) for chart in charts] == [3, 3]
    longest = max(run["epochs"] for run in result["runs"]) - 1
    places = [float((n.attributes["cx"] or "").strip("%")) for n in charts[0].all("circle", "best")]
    expected = [100 * run["best_epoch"] / longest for run in result["runs"]]
    assert places == pytest.approx(expected, abs=0.01)


def test_the_criterion_is_named(result):
    assert "Validation Macro-F1, %" in curves_section(result)
    for run in result["runs"]:
        run["criterion"] = "mean of this and that"
    assert "Validation mean of this and that, %" in curves_section(result)
    result["runs"][0]["criterion"] = "other"
    assert "Validation score, %" in curves_section(result)
