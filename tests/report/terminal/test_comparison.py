"""Tables of a comparison; tests/cli/test_compare.py has them in full."""

import math

import pytest
from rich.console import Console

from evengraph.metrics.registry import METRICS
from evengraph.report.terminal import comparison_notes, comparison_tables

NAMES = [name for name, metric in METRICS.items() if not metric.binary]


def method(label, mean, notes=("", "")):
    return {
        "label": label,
        "title": label,
        "seconds": 2.0,
        "figures": {name: {"mean": mean, "low": mean - 1, "high": mean + 1} for name in NAMES},
        "runs": [{"calibrator": {"note": note}} for note in notes],
    }


def comparison(*methods, strength="clear", **changes):
    best, *others = methods
    pairs = [
        {
            "ahead": best["label"],
            "behind": other["label"],
            "difference": 5.0,
            "low": 4.0,
            "high": 6.0,
            "p": 0.01,
            "wide_low": 3.0,
            "wide_high": 7.0,
            "wide_p": 0.02,
            "strength": strength,
        }
        for other in others
    ]
    plain = {
        "metric": "balanced_accuracy",
        "seeds": [0, 1, 2, 3, 4],
        "budget": 1,
        "positive": None,
        "methods": list(methods),
        "pairs": pairs,
        "conclusive": True,
    }
    return plain | changes


def cells(table, head):
    (column,) = [column for column in table.columns if column.header == head]
    return list(column.cells)


@pytest.mark.parametrize(
    ("strength", "interval", "verdict"),
    [
        ("clear", "5.0 (3.0 to 7.0)", "significant"),
        ("here", "5.0 (4.0 to 6.0)", "on these nodes"),
        ("noise", "5.0 (3.0 to 7.0)", "not significant"),
    ],
)
def test_the_first_table_says_how_far_a_method_is_behind(strength, interval, verdict):
    content = comparison(method("GCN", 70.0), method("MLP", 65.0), strength=strength)
    first, *_ = comparison_tables(content)
    assert cells(first, "balanced accuracy") == ["70.0 (69.0 to 71.0)", "65.0 (64.0 to 66.0)"]
    assert cells(first, "behind the best") == ["", interval]
    assert cells(first, "verdict") == ["", verdict]
    first, *_ = comparison_tables({**content, "conclusive": False})
    assert cells(first, "verdict") == ["", "cannot tell"]


def test_two_splits_give_no_interval():
    content = comparison(method("GCN", 70.0), method("MLP", 65.0)) | {"seeds": [0, 1]}
    first, *_ = comparison_tables(content)
    assert cells(first, "balanced accuracy") == ["70.0", "65.0"]
    assert cells(first, "behind the best") == ["", "5.0"]
    assert cells(first, "verdict") == ["", "too few splits"]
    notes = " ".join(comparison_notes(content))
    assert "means over 2 splits, too few for an interval;" in notes
    assert "p =" not in notes


def test_the_other_tables_have_other_metrics_calibration_and_cost():
    content = comparison(method("GCN", math.nan), method("MLP", 65.0))
    _, others, calibration = comparison_tables(content)
    assert cells(others, "Macro-F1") == ["–", "65.0"]
    assert "bAcc" not in [column.header for column in others.columns]  # the first table has it
    assert cells(calibration, "ECE") == ["–", "65.0"]
    assert cells(calibration, "seconds") == ["2.0", "2.0"]


def test_long_names_fit():
    names = [f"A [graph] method of a third party, {number}" for number in (1, 2)]
    content = comparison(*(method(name, 100.0) for name in names), strength="noise")
    for metric in ("balanced_accuracy", "average_precision"):
        console = Console(width=80)
        with console.capture() as capture:
            for table in comparison_tables(content | {"metric": metric}):
                console.print(table)
        assert max(map(len, capture.get().splitlines())) <= 80
        assert capture.get().count("100.0 (99.0 to 101.0)") == 2
        assert capture.get().count("not significant") == 1
        assert "[graph]" in capture.get()
        assert "…" not in capture.get()


def test_notes_name_the_tests_behind_the_verdict():
    lines = comparison_notes(comparison(method("GCN", 70.0), method("MLP", 65.0)))
    assert any("p = 0.020; p = 0.010 without" in line for line in lines)
    assert not any("comparisons (Holm)" in line for line in lines)
    lines = comparison_notes(comparison(*(method(name, 60.0) for name in "abc"), strength="here"))
    assert any("corrected for 2 comparisons (Holm)" in line for line in lines)
    assert any(line.startswith("On these nodes:") for line in lines)


def test_reasons_that_differ_in_numbers_only_are_one_note():
    notes = [f"a temperature of {value} would fit 55 nodes." for value in (1.14, 0.69)]
    content = comparison(method("GCN", 70.0, notes), method("MLP", 65.0, notes[:1]))
    (line,) = [line for line in comparison_notes(content) if line.startswith("Calibration of")]
    assert "GCN (2 of 5 splits), MLP (1 of 5 splits): in the first of them, a temp" in line
    assert "1.14" in line


def test_notes_on_two_classes():
    two = {"positive": "fraud", "classes": ["honest", "fraud"], "class_counts": [990, 1010]}
    lines = comparison_notes(comparison(method("GCN", 70.0), **two))
    assert any("positive class is fraud, 1,010 of 2,000 labelled" in line for line in lines)


def test_notes_on_calibration_name_the_methods():
    def told(*methods):
        lines = comparison_notes(comparison(*methods) | {"seeds": [0, 1]})
        return [line for line in lines if line.startswith("Calibration")]

    def noted(label, *notes):
        return method(label, 70.0, notes)

    assert told(noted("GCN", "", "")) == []
    assert told(noted("GCN", "Few.", "Few.")) == ["Calibration of GCN: Few."]
    both = noted("GCN", "Few.", "Few."), noted("SMOTE", "Few.", "Few.")
    assert told(*both) == ["Calibration of all methods: Few."]
    assert told(*both, noted("UNREAL", "", "")) == ["Calibration of GCN, SMOTE: Few."]
    assert told(noted("GCN", "Few.", "Few."), noted("SMOTE", "Right.", "Few.")) == [
        "Calibration of GCN, SMOTE (1 of 2 splits): Few.",
        "Calibration of SMOTE (1 of 2 splits): Right.",
    ]
