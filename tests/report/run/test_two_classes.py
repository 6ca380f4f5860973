import pytest
from evengraph.report.result import curve_section, is_two_class, two_class_cards

from evengraph.report.run_page import render_page


@pytest.fixture
def fraud():
    run = {
        "seed": 5,
        "metrics": {"positive_average_precision": 39.0, "precision_at_k": 33.0},
        "per_class": {"support": [270, 30]},
        "base_rates": [{"base_rate": 0.1, "alarms": 0.125, "precision": 0.33, "recall": 0.4}],
        "precision_recall": [[0.1, 1.0], [0.5, 0.4], [1.0, 0.1]],
    }
    mean = {**run["metrics"], "tuned_threshold": 27.2}
    return {"runs": [run], "mean": mean, "std": dict.fromkeys(mean, 0.0)}


def test_cards_compare_with_the_base_rate_and_count_alarms(fraud, parse):
    first, second, third = (parse(card).text for card in two_class_cards(fraud))
    assert "39.0" in first
    assert "base rate 10.0" in first
    for text in ("33.0", "recall 40.0", "38 alarms among 300 test nodes", "threshold 0.272"):
        assert text in second
    assert "33.0" in third


def test_the_curve_falls_to_the_base_rate(fraud, parse):
    found = parse(curve_section(fraud))
    (path,) = found.all("path")
    assert path.attributes["d"] == "M100.0 0.0L500.0 600.0L1000.0 900.0"
    heights = {line.attributes.get("y1") for line in found.all("line", "reference")}
    assert "90.00%" in heights
    assert not curve_section({"runs": [{}]})


def test_no_card_says_the_same_twice(fraud, result, parse):
    """G-mean equals balanced accuracy of two classes."""
    heads = [card.all("h3")[0].text for card in parse(render_page(fraud)).all("article", "card")]
    assert len(heads) == 3
    assert "G-mean" not in heads
    assert is_two_class(fraud)
    assert not is_two_class(result)
    assert not is_two_class({})
