"""Sections on base rates and on the model to use."""

from evengraph.report import render_page
from evengraph.report.run_page import base_rate_section, model_section

ROW = {"base_rate": 0.06, "alarms": 0.1, "precision": 0.4, "recall": 0.5, "average_precision": 0.3}
LEVEL = {"confidence": 0.0, "coverage": 1.0, "error": 0.1, "balanced_error": 0.25}
MODEL = {
    "seed": 6,
    "refit": {"train": 717, "validation": 179, "train_before": 538},
    "validation": 179,
    "abstention": [LEVEL, {**LEVEL, "coverage": 0.9, "confidence": 0.6254, "error": None}],
}


def cells(tree):
    return [[cell.text for cell in row.children] for row in tree.all("tr")]


def test_base_rates_with_and_without_costs(parse):
    tree = parse(base_rate_section({"runs": [{"base_rates": [ROW]}]}))
    assert cells(tree)[1] == ["6% (test nodes)", "100.0", "40.0", "30.0"]
    assert len(cells(tree)[0]) == 4
    runs = [{"base_rates": [{**ROW, "cost": 0.05}]}]
    tree = parse(base_rate_section({"runs": runs, "costs": {"miss": 9, "alarm": 1}}))
    assert [row[-1] for row in cells(tree)] == ["cost per 1,000", "50.0"]
    assert "a miss costs 9, an alarm 1" in tree.all("p")[0].text


def test_the_model_says_what_it_was_trained_on_and_what_abstaining_gains(parse):
    tree = parse(model_section({"model": MODEL}))
    first, second = (node.text for node in tree.all("p"))
    assert first.startswith("This is the model of seed 6, the best on validation. Once tested,")
    assert "on 717 labels instead of 538" in first
    assert "179 held-out nodes" in second
    assert cells(tree)[1:] == [
        ["0.0%", "10.0", "25.0", "0.000"],
        ["10.0%", "–", "25.0", "0.625"],
    ]
    tree = parse(model_section({"model": {**MODEL, "refit": None, "abstention": []}}))
    assert tree.all("p")[0].text.endswith("It is used as it was tested.")
    assert not tree.all("table")
    tree = parse(model_section({"model": {**MODEL, "reason": "the best validation AUROC (71.0)"}}))
    assert "seed 6, the best validation AUROC (71.0). Once" in tree.all("p")[0].text
    tree = parse(model_section({"model": {**MODEL, "reason": ""}}))
    assert "This is the model of seed 6. Once" in tree.all("p")[0].text


def test_other_results_have_no_such_section(result):
    assert base_rate_section(result) == model_section(result) == ""
    assert model_section({"model": 3}) == ""
    page = render_page({**result, "model": MODEL, "runs": [{"base_rates": [ROW]}]})
    assert "Other base rates" in page
    assert "The saved model" in page
