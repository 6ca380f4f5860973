"""Which method is better: pairs, verdicts and the rows of comparison.csv."""

import math
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from evengraph.core.task import Record
from evengraph.metrics.significance import holm
from evengraph.pipeline.comparison import (
    Standing,
    compare_pairs,
    comparison_rows,
    judge,
    pair_of,
)

TITLES = {"gcn": "GCN", "reweight": "Re-weight", "unignn": "Uni-GNN"}
WAVE = [0.0, 0.4, -0.3, 0.1, -0.2, 0.3]


def verdict(values, *, overlap=0.25, seconds=None, metric="balanced_accuracy", alone=()):
    pairs = compare_pairs(values, overlap=overlap)
    seconds = seconds or {"gcn": 1.0, "reweight": 2.0, "unignn": 9.0}
    standings = [
        SimpleNamespace(
            label=label,
            title=TITLES[label],
            seconds=seconds[label],
            values=lambda metric, label=label: values[label],
        )
        for label in values
    ]
    return judge(standings, pairs, metric, alone=alone), pairs


def series(mean, noise=1.0, turn=0):
    return [mean + noise * WAVE[(place + turn) % 6] for place in range(6)]


def test_a_clear_lead():
    found, (pair,) = verdict({"gcn": series(70), "unignn": series(73.1, 1, 2)})
    assert pair.significant
    assert (found.best, found.take) == ("unignn", "unignn")
    (text,) = found.sentences
    assert text.startswith("Uni-GNN is better than GCN by 3.1 points of balanced accuracy")
    assert f"(95% interval {pair.low:.1f} to {pair.high:.1f})" in text
    assert 0 < pair.low < 3.1 < pair.high


def test_a_lead_that_shared_nodes_put_in_doubt():
    values = {"gcn": series(70), "unignn": series(70.8, 1, 2)}
    found, (pair,) = verdict(values, overlap=4)
    (plain,) = compare_pairs(values, overlap=0)
    assert (plain.significant, pair.significant) == (True, False)
    assert pair.low < 0 < plain.low < plain.high < pair.high
    assert plain.p < 0.05 < pair.p
    assert found.take == "gcn"


NOISE = {"gcn": series(70, 3), "reweight": series(70.1, 3, 2), "unignn": series(70.2, 3, 4)}
FAR = {"gcn": series(70, 30), "reweight": series(78, 30, 1), "unignn": series(79, 30, 3)}
LEVEL = {"gcn": series(60), "reweight": series(70, 1, 2), "unignn": series(70.08, 1, 4)}
AHEAD = LEVEL | {"reweight": series(65, 1, 2)}


def two(values):
    return {"gcn": values["gcn"], "unignn": values["unignn"]}


@pytest.mark.parametrize(
    ("values", "options", "take", "words"),
    [
        (NOISE, {}, "gcn", ["the cheapest one"]),
        # as cheap as GCN, and a little better
        (NOISE, {"seconds": {"gcn": 1, "reweight": 1.2, "unignn": 9}}, "reweight", ["the cheap"]),
        (two(NOISE), {}, "gcn", ["Neither method .* use GCN, the cheaper one"]),
        (two(FAR), {}, "unignn", ["highest mean"]),  # not given up for seconds
        (FAR, {}, "reweight", ["cheaper one within 2 points"]),  # GCN is cheaper, and far behind
        (LEVEL, {}, "reweight", ["Uni-GNN and Re-weight do not differ", "better than GCN by 10.1"]),
        (AHEAD, {"metric": "macro_f1"}, "unignn", ["5.1 points of Macro-F1", "further ahead"]),
        ({"gcn": series(70)}, {}, "gcn", ["GCN is the only method"]),
        ({"gcn": series(70), "unignn": series(70)}, {}, "gcn", ["use GCN, the cheaper one"]),
    ],
)
def test_verdicts(values, options, take, words):
    found, _ = verdict(values, **options)
    assert found.take == take
    for text, word in zip(found.sentences, words, strict=True):
        assert re.search(word, text)


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_splits_tell_nothing(count):
    values = {"gcn": [70.0, 70.1][:count], "unignn": [80.0, 80.2][:count]}
    found, (pair,) = verdict(values)
    assert not pair.significant
    assert math.isnan(pair.p) == (count == 1)
    assert found.take == "unignn"
    assert "too few to tell whether it is better; use at least 5" in found.sentences[0]


def test_a_test_of_three_splits_that_finds_nothing_says_that_they_are_few():
    close = {"gcn": [70.0, 75.0, 80.0], "unignn": [74.0, 72.0, 86.0]}
    assert "3 splits are too few to tell" in verdict(close)[0].sentences[0]
    apart = {"gcn": [70.0, 70.3, 70.1], "unignn": [90.0, 90.2, 90.4]}
    assert "Uni-GNN is better than GCN" in verdict(apart)[0].sentences[0]


@given(st.lists(st.tuples(*[st.floats(0, 100)] * 3), min_size=3, max_size=7))
def test_pairs_are_those_of_scipy_corrected(rows):
    values = dict(zip(TITLES, map(list, zip(*rows, strict=True)), strict=True))
    gaps = [
        [a - b for a, b in zip(values[x], values[y], strict=True)]
        for x, y in (("gcn", "reweight"), ("gcn", "unignn"), ("reweight", "unignn"))
    ]
    if any(max(gap) - min(gap) < 0.01 for gap in gaps):
        return
    pairs = compare_pairs(values, overlap=0)
    raw = [float(ttest_rel(gap, [0] * len(gap)).pvalue) for gap in gaps]
    assert [pair.p for pair in pairs] == pytest.approx(holm(raw))
    for pair, shared in zip(pairs, compare_pairs(values, overlap=1), strict=True):
        assert pair.difference >= 0
        assert shared.p >= pair.p - 1e-12


@given(st.lists(st.tuples(*[st.integers(0, 60)] * 3), min_size=3, max_size=7))
def test_an_interval_leaves_out_zero_where_the_corrected_test_does(rows):
    values = dict(
        zip(TITLES, ([float(v) for v in one] for one in zip(*rows, strict=True)), strict=True)
    )
    for pair in compare_pairs(values, overlap=0.5):
        if pair.low < pair.high and abs(pair.p - 0.05) > 1e-6:
            assert (pair.low > 0) == (pair.p < 0.05) == pair.significant


def test_intervals_are_wider_where_more_is_compared():
    two = {"gcn": series(70), "unignn": series(73.1, 1, 2)}
    _, (alone,) = verdict(two)
    _, pairs = verdict({**two, "reweight": series(73.0, 2, 4)})
    (among,) = [one for one in pairs if {one.ahead, one.behind} == {"gcn", "unignn"}]
    assert among.high - among.low > alone.high - alone.low


def test_the_graph_does_not_help_if_the_difference_is_significant():
    found, _ = verdict({"gcn": series(60, 1, 3), "reweight": series(73)}, alone=["reweight"])
    assert found.sentences[0].startswith("The graph does not help: Re-weight, which ignores it,")


def test_that_the_graph_does_not_help_comes_first_and_nothing_that_uses_it_is_advised():
    values = {"gcn": series(72.83, 1, 3), "reweight": series(73), "unignn": series(68, 1, 2)}
    found, _ = verdict(values, alone=["reweight"])
    first, second, *_ = found.sentences
    assert first.startswith("Whether the graph helps is unclear: Re-weight, which ignores it,")
    assert second.endswith("use Re-weight, the one that ignores the graph.")
    assert found.take == "reweight"
    assert verdict(values)[0].take == "gcn"  # which is cheaper
    for alone in (["gcn"], ["gcn", "reweight", "unignn"]):
        assert "graph" not in " ".join(verdict(values, alone=alone)[0].sentences)


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
    return compare_pairs(values, overlap=0.5)


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
    assert second["g_mean_std"] == pytest.approx(2.0)
    assert first["behind_difference"] is None
    (pair,) = pairs
    assert second["behind_difference"] == pytest.approx(pair.difference, abs=1e-6)
    assert second["behind_significant"] is pair.significant is True
    assert pair_of(pairs, "mlp", "gcn") is pair_of(pairs, "gcn", "mlp") is pair
    (row,) = comparison_rows([standing("gcn", [50.0])], [])
    assert row["macro_f1_std"] is None  # of one split
