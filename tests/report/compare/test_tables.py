import pytest
from compared import compared

from evengraph.metrics.registry import METRICS
from evengraph.report.compare_page import metrics_section, pairs_section, recall_section


def test_the_best_of_each_metric_is_bold(parse):
    content = compared(80.0, 70.0)
    errors = [name for name, metric in METRICS.items() if metric.calibration]
    for method, value in zip(content["methods"], (9.0, 1.0), strict=True):
        method["figures"] |= {name: {"mean": value} for name in errors}
    rows = parse(metrics_section(content)).all("tr")
    heads = [node.text for node in rows[0].all("th")]
    bold = [
        [head for head, cell in zip(heads[1:], row.all("td"), strict=True) if cell.all("b")]
        for row in rows[1:]
    ]
    assert "balanced accuracy" in bold[0]
    assert bold[1] == [METRICS[name].title for name in errors if METRICS[name].column]


def test_two_methods_need_no_table_of_pairs(parse):
    assert pairs_section(compared(80.0, 70.0)) == ""
    assert len(parse(pairs_section(compared(80.0, 70.0, 60.0))).all("tr")) == 4


def test_several_rare_classes_have_a_mean(parse):
    content = compared(80.0, 70.0, protocol={"name": "step", "minority": 2, "ratio": 0.1})
    for method in content["methods"]:
        for run in method["runs"]:
            run["per_class"] = {"recall": [90.0, 40.0, 60.0]}
    last = parse(recall_section(content)).all("tr")[-1]
    assert last.all("th")[0].text == "mean of rare classes"
    assert [cell.text for cell in last.all("td")[1:]] == ["50", "50"]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_an_undefined_recall_shows_as_a_dash(parse, value):
    content = compared(80.0)
    for run in content["methods"][0]["runs"]:
        run["per_class"]["recall"][0] = value
    first = parse(recall_section(content)).all("tr")[1]
    assert first.all("td")[1].text == "–"
