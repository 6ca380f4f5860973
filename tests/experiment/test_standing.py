import csv

import pytest

from evengraph.core.records import Record
from evengraph.pipeline.comparison import (
    Standing,
    compare_pairs,
    comparison_rows,
    pair_of,
    write_comparison,
)


def standing(label, values, **parts):
    records = [
        Record(
            seed=seed,
            metrics=dict.fromkeys(("balanced_accuracy", "macro_f1", "g_mean"), value),
            per_class={},
            confusion_matrix=[],
            history={},
            validation=value,
            best_epoch=1,
            epochs=2,
            seconds=1.0,
            calibration={"metrics": {"calibration_error": 5.0}, "calibrator": {}},
        )
        for seed, value in enumerate(values)
    ]
    return Standing(label=label, title=label, settings={}, records=records, seconds=1.5, **parts)


PAPER = {name: {"mean": 71.0, "std": 0.5} for name in ("balanced_accuracy", "macro_f1", "g_mean")}


@pytest.fixture
def standings():
    best = standing("gcn", [98.0, 99.5, 99.0], result={"complete": True, "paper": PAPER})
    return [best, standing("mlp", [60.0, 62.0, 64.0])]


def pairs_of(standings):
    values = {one.label: one.values("macro_f1") for one in standings}
    return compare_pairs(values, overlap=0.5, independent=True)


def test_an_interval_stays_within_the_range_of_the_metric(standings):
    mean, low, high, _ = standings[0].summary("macro_f1")
    assert low < mean < high == 100.0


def test_a_row_has_metrics_the_papers_values_and_the_difference(standings):
    pairs = pairs_of(standings)
    first, second = comparison_rows(standings, pairs)
    assert list(first) == list(second)
    assert (first["method"], first["splits"], first["complete"]) == ("gcn", 3, True)
    assert first["macro_f1"] == pytest.approx(98.833333)
    assert first["calibration_error"] == 5.0
    assert (first["g_mean_paper"], first["g_mean_paper_std"]) == (71.0, 0.5)
    assert second["g_mean_paper"] is None
    assert second["g_mean_std"] == pytest.approx(1.632993)
    assert first["behind_difference"] is None
    (pair,) = pairs
    assert second["behind_difference"] == pytest.approx(pair.difference, abs=1e-6)
    assert second["behind_strength"] == pair.strength == "clear"
    assert pair_of(pairs, "mlp", "gcn") is pair_of(pairs, "gcn", "mlp") is pair


def test_one_split_has_no_deviation():
    (row,) = comparison_rows([standing("gcn", [50.0])], [])
    assert row["macro_f1_std"] is None


def test_the_file_has_one_line_per_method(standings, tmp_path):
    write_comparison(standings, pairs_of(standings), tmp_path / "comparison.csv")
    with (tmp_path / "comparison.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["gcn", "mlp"]
    assert rows[0]["behind_p"] == ""
