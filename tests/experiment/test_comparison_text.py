"""A comparison that is printed, and as a DataFrame."""

import pytest

from evengraph.datasets import toy
from evengraph.methods import GCN, MLP
from evengraph.pipeline.comparison import compare


@pytest.fixture(scope="module")
def comparison():
    methods = {"graph": GCN(max_epochs=8), "none": MLP(max_epochs=8)}
    return compare(toy(300, 1200, 40, 3), methods, seeds=range(5))


def test_it_prints_a_line_per_method_and_the_verdict(comparison):
    head, *lines = str(comparison).splitlines()
    assert head.split("  ")[0] == "method"
    best, other = comparison.standings
    for line, standing in zip(lines, (best, other), strict=False):
        summary = standing.summary("balanced_accuracy")
        assert line.startswith(standing.title)
        assert f" {summary.mean:.1f} " in line
        assert f"{summary.low:.1f} to {summary.high:.1f}" in line
    assert f" {comparison.pairs[0].difference:.1f} " in lines[1]
    assert tuple(lines[3:]) == tuple(comparison.verdict.sentences)
    assert max(map(len, lines[:2])) <= 80


def test_it_is_a_frame_with_a_row_per_method(comparison):
    frame = comparison.frame
    assert list(frame.index) == [standing.label for standing in comparison.standings]
    assert list(frame["title"]) == [standing.title for standing in comparison.standings]
    means = [standing.summary("macro_f1").mean for standing in comparison.standings]
    assert list(frame["macro_f1"]) == pytest.approx(means)
    assert "macro_f1_paper" not in frame
