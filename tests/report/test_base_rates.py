"""Means over runs of what a threshold gives at other base rates."""

from evengraph.report.result import base_rate_rows, describe_threshold, has_costs

ROW = {
    "base_rate": 0.06,
    "alarms": 0.1,
    "precision": 0.4,
    "recall": 0.5,
    "average_precision": 0.3,
}


def test_runs_are_averaged_and_what_is_undefined_is_left_out():
    runs = [
        {"base_rates": [ROW, {**ROW, "base_rate": 0.001, "precision": None}]},
        {"base_rates": [{**ROW, "precision": 0.6}, {**ROW, "base_rate": 0.001, "precision": 0.2}]},
        {"base_rates": None},
    ]
    assert base_rate_rows({"runs": runs}) == [
        ("6% (test nodes)", [100, 50, 30]),
        ("0.1%", [100, 20, 30]),
    ]


def test_costs_are_one_more_value_and_are_named():
    result = {"runs": [{"base_rates": [{**ROW, "cost": 0.002}]}]}
    assert has_costs(result)
    assert base_rate_rows(result)[0][1] == [100, 40, 30, 2]
    assert "has the best F1 on validation nodes; it finds 50.0% of" in describe_threshold(result)
    result["costs"] = {"miss": 20.0, "alarm": 1.0}
    assert "lowest cost on validation nodes (a miss costs 20, an alarm 1)" in describe_threshold(
        result
    )


def test_strange_results_raise_nothing():
    for runs in (None, [], [None], [{"base_rates": 3}], [{"base_rates": [None, 3, {}]}]):
        assert base_rate_rows({"runs": runs}) == []
        assert "undefined" in describe_threshold({"runs": runs, "costs": 7})
