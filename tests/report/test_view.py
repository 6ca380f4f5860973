"""Numbers and sentences of results, comparisons and inspections."""

import pytest
from samples import DECISION, OPTION, RANKED, compared, make_fraud, stored_look

from evengraph.report.view import (
    ComparisonView,
    InspectionView,
    ResultView,
    describe_protocol,
    minority_classes,
    setting_title,
    shares,
    timestamp,
)

TWO = {
    "dataset": {"class_names": ["rare", "common"]},
    "imbalance": {"name": "step", "minority": 1, "ratio": 0.1},
    "class_counts": [2, 20],
    "runs": [
        {"confusion_matrix": [[1, 3], [10, 90]], "per_class": {"recall": [25.0, 90.0]}},
        {"confusion_matrix": [[2, 2], [0, 100]], "per_class": {"recall": [None, 80.0]}},
    ],
}


@pytest.mark.parametrize(
    ("protocol", "long", "short"),
    [
        (
            {"name": "step", "minority": 1, "ratio": 0.05},
            "step imbalance: 1 minority class at 5%",
            "Cora, 1 minority class at 5%",
        ),
        ({"name": "natural"}, "natural class imbalance", "Cora, natural class imbalance"),
        (
            {"name": "publicstep", "minority": 3, "ratio": 0.1, "normalise_features": True},
            "step imbalance on the public split: 3 minority classes at 10%",
            "Cora, 3 minority classes at 10%, public split",
        ),
        (
            {"name": "longtail", "ratio": 0.01},
            "long-tailed imbalance: the smallest class at 1% of the largest",
            "Cora, long tail, smallest class at 1%",
        ),
        ({"name": "mine", "a": 1}, "mine imbalance (a 1)", "Cora, mine"),
    ],
)
def test_split_protocols(protocol, long, short):
    assert describe_protocol(protocol) == long
    assert setting_title("cora", protocol) == short


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-01-05T13:07:00+01:00", "5 January 2026, 12:07 UTC"),
        ("2026-11-15T10:00:00+00:00", "15 November 2026, 10:00 UTC"),
    ],
)
def test_timestamp(created, expected):
    assert timestamp(created) == expected


@pytest.mark.parametrize(
    ("protocol", "counts", "rare"),
    [
        ({}, [100, 60, 50, 49, 1], {3, 4}),  # fewer than half of the largest
        ({"minority": 2}, [20, 20, 2, 2], {2, 3}),
        ({}, [20, 20], set()),
        ({}, [], set()),
    ],
)
def test_minority_classes(protocol, counts, rare):
    assert minority_classes(protocol, counts) == rare


def test_classes_come_head_to_tail_with_scores_of_each_run():
    common, rare = ResultView(TWO).classes
    assert (common.name, common.index, common.count, common.minority) == ("common", 1, 20, False)
    assert (rare.name, rare.minority) == ("rare", True)
    assert common.pooled == (190, 200, 195, 0.5)
    assert common.pooled.precision == "97.4 (92.1 to 99.2)"  # half of the nodes are different ones
    assert rare.pooled.recall == "37.5 (9.2 to 78.1)"
    assert ResultView(TWO).confusion == [[190, 10], [5, 3]]
    assert shares([0, 0]) == [0, 0]
    assert shares([1, 3]) == [0.25, 0.75]


def test_sizes_seeds_and_time():
    runs = [{"seconds": 60.0}, {"seconds": 45.0}, {"seconds": 0.0}]
    whole = make_fraud() | {"runs": runs}
    assert ResultView(whole).facts[0] == ("2,708", "nodes")
    assert ResultView(whole).facts[-1] == ("1.8 min", "of training")
    assert ResultView(whole | {"runs": runs[1:]}).facts[-1] == ("45.0 s", "of training")
    assert ResultView(whole | {"runs": runs[2:]}).facts[-1] == ("2", "classes")
    assert ResultView(whole | {"seeds": [5]}).seeds == "seed 5"
    assert ResultView(whole | {"seeds": list(range(20))}).seeds == "seeds 0, 1, 2, …, 19"
    assert ResultView(whole | {"seeds": list(range(10))}).seeds.endswith("8, 9")


MATRIX = [[90, 0, 6, 4], [0, 80, 10, 10], [0, 6, 4, 0], [8, 0, 0, 2]]


@pytest.mark.parametrize(
    ("counts", "start"),
    [
        (
            [20, 20, 2, 2],
            "Found 6 of 20 nodes of 2 minority classes (95% interval 15% to 52%) in 1 test set; "
            "30 of 36 alarms are false (68% to 92%).",
        ),
        (
            [20, 20, 20, 2],
            "Found 2 of 10 nodes of class d (95% interval 6% to 51%) in 1 test set; 14 of 16 "
            "alarms are false (64% to 97%).",
        ),
        ([20, 20, 20, 20], ""),
    ],
)
def test_the_verdict_counts_rare_nodes_and_compares_with_guessing(counts, start):
    content = {
        "class_counts": counts,
        "dataset": {"class_names": ["a", "b", "c", "d"]},
        "mean": {"balanced_accuracy": 57.5},
        "runs": [{"confusion_matrix": MATRIX}],
    }
    end = "Balanced accuracy is 57.5%; guessing gives 25.0%."
    assert " ".join(ResultView(content).verdict) == f"{start} {end}".strip()
    untested = content | {"runs": [{"confusion_matrix": []}]}
    assert ResultView(untested).verdict == [end]
    assert ResultView(untested | {"mean": {}}).verdict == []


def test_the_verdict_on_two_classes_is_about_the_threshold():
    view = ResultView(make_fraud())
    assert view.verdict == [
        "Found 12 of 18 nodes of class fraud (95% interval 35% to 88%) in 3 test sets; 21 of 33 "
        "alarms are false (40% to 82%).",
        "Average precision is 35.0% (95% interval 17.5 to 58.0) on 300 held-out nodes (18 of "
        "class fraud); a random ranking has 6.0%.",
    ]
    uneven = DECISION | {"options": [OPTION], "ranking": RANKED | {"share": 0.01}}
    assert ResultView(make_fraud() | {"decision": uneven}).verdict[2] == (
        "These counts are of labels as collected: if 1.0% of all nodes are of class fraud, 60% "
        "of the alarms (42% to 75%) would be false."
    )
    old = ResultView(make_fraud() | {"decision": None})
    assert old.average_precision == [
        "40.0% (95% interval 32.7 to 48.2)", "on 3 test sets; a random ranking has 6.0%"
    ]  # fmt: skip
    assert view.positive_name == "fraud"
    assert view.confusion == [[261, 21], [6, 12]]
    assert ResultView(make_fraud() | {"positive": 0}).positive_name == "honest"
    empty = ResultView(make_fraud() | {"runs": [{"confusion_matrix": []}], "decision": None})
    assert empty.verdict == ["Average precision is 40.0% on 1 test set."]


def test_thresholds_are_rows_with_costs_if_there_are_any():
    view = ResultView(make_fraud())
    first, second = view.thresholds
    assert first[:5] == ["the best F1 (in use)", "0.400", "30", "12", "6"]
    assert (first[5], second[5]) == ("40.0 (24.6 to 57.7)", "20.0 (11.8 to 31.8)")
    assert (view.threshold_heads[-1], first[-1]) == ("cost", "138")


def test_notes_and_summaries_of_runs():
    runs = [
        {"seed": 5, "notes": ["Alone."], "summary": ["Chose A."]},
        {"seed": 6, "notes": ["Other."]},
        {"seed": 7, "notes": ["Alone."] * 2},
    ]
    assert ResultView({"runs": runs}).notes == ["Seeds 5, 7: Alone.", "Seed 6: Other."]
    assert ResultView({"runs": runs}).summaries == [("5", ["Chose A."])]


@pytest.mark.parametrize(
    ("splits", "significant", "conclusive", "word"),
    [
        (2, True, False, "too few splits"),
        (4, True, True, "significant"),
        (4, True, False, "cannot tell"),
        (4, False, True, "too few splits"),  # finding nothing does not say there is nothing
        (5, False, True, "not significant"),
    ],
)
def test_the_verdict_on_a_pair(splits, significant, conclusive, word):
    content = compared(80.0, 70.0, splits=splits, significant=significant, conclusive=conclusive)
    best, second = ComparisonView(content).standings
    assert best.behind is None
    assert second.behind.verdict == word
    (pair,) = content["pairs"]
    assert second.behind.interval == (None if splits < 5 else (pair["low"], pair["high"]))
    assert (best.interval is None) == (splits < 5)
    pair["low"] = None
    assert ComparisonView(content).standings[1].behind.interval is None


def test_recalls_come_with_the_counts_of_the_first_split():
    content = compared(80.0, 70.0)
    assert [row[1] for row in ComparisonView(content).recalls] == [20, 20, 2]
    assert [row[2] for row in ComparisonView(content).recalls] == [False, False, True]


def test_classes_of_an_inspection():
    content = stored_look()
    whole = InspectionView(content | {"reach": content["reach"] | {"nodes": 0}})
    assert (whole.reach, whole.classes[0].reach) == ([], [])
