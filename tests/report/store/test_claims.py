from dataclasses import replace

import pytest

from evengraph.core.store import JobSpec, Row
from evengraph.report.store.claims import check_claims, compare_with_paper
from evengraph.report.store.experiment_results import Cell, ExperimentResults

METRIC = "balanced_accuracy"


def cell(label, values, paper=None, setup="toy", chosen=None):
    """A place with a run for each seed, from 5 on."""
    rows = [
        Row(
            job=JobSpec(
                dataset="toy",
                imbalance="step",
                imbalance_fields={},
                method="gcn",
                method_fields={"label": label},
                seed=seed,
            ),
            outcome={"metrics": {METRIC: value}},
        )
        for seed, value in enumerate(values, start=5)
    ]
    return Cell(
        setting=setup,
        dataset="toy",
        label=label,
        varies=None,
        value=None,
        selected=chosen or {},
        paper=None if paper is None else {METRIC: {"mean": paper, "std": 1.0}},
        rows=rows,
    )


def results(*cells, draws="comparison"):
    return ExperimentResults(name="made", title="Made", kind=draws, seeds=[5, 6, 7], cells=cells)


@pytest.mark.parametrize(
    ("paper", "verdict"),
    [
        (70.0, "reached"),
        (69.9, "reached"),
        (70.1, "below, within chance"),  # other seeds lie above
        (73.1, "below"),  # beyond what any three seeds could give
    ],
)
def test_a_figure_of_the_paper_is_reached_on_its_own_seeds_or_not(paper, verdict):
    ours = cell("Ours", [69.0, 70.0, 71.0, 73.0, 73.0, 72.0, 71.0], paper, chosen={"alpha": 1})
    (found,) = compare_with_paper(results(ours), "Ours", [METRIC])
    assert found.verdict == verdict
    assert found.same_seeds == pytest.approx(70.0)
    assert found.cell is ours


def test_a_mean_is_compared_as_the_paper_prints_it():
    (found,) = compare_with_paper(results(cell("Ours", [69.96] * 3, 70.0)), "Ours", [METRIC])
    assert found.verdict == "reached"


def test_the_chance_is_that_of_as_few_seeds_as_the_paper_has():
    half = cell("Ours", [0.0, 0.0, 0.0, 100.0, 100.0, 100.0], 100.0)
    (found,) = compare_with_paper(results(half), "Ours", [METRIC])
    assert found.chance == pytest.approx(1 / 8, abs=0.02)  # all three from the better half


def test_only_what_the_paper_has_and_the_method_asked_for_is_told():
    cells = cell("Ours", [1.0, 2.0], None), cell("GCN", [1.0, 2.0], 3.0)
    assert compare_with_paper(results(*cells), "Ours", [METRIC]) == []


WHOLE = [70.0, 71.0, 72.0, 73.0, 74.0, 75.0]


@pytest.mark.parametrize(
    ("gaps", "paper", "verdict"),
    [
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], -3.0, "holds"),
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], +3.0, "opposite sign"),
        ([-5.0, -5.1, -4.9, -5.2, -4.8, -5.0], None, "differs"),
        ([5.0, -5.0, 4.0, -4.0, 1.0, -1.0], -3.0, "not significant"),
        ([0.0] * 6, -3.0, "identical"),
        ([-3.0, -0.1, -2.0, -0.1, -0.2, 0.1], -3.0, "likely"),
    ],
)
def test_a_claim_holds_or_is_not_significant(gaps, paper, verdict):
    other = [a + b for a, b in zip(WHOLE, gaps, strict=True)]
    theirs = None if paper is None else 76.0 + paper
    cells = (
        cell("Whole", WHOLE, 76.0, chosen={"alpha": 1}),
        cell("Without", other, theirs),
    )
    (found,) = check_claims(results(*cells, draws="ablation"), METRIC)
    assert found.verdict == verdict
    assert found.comparison.difference == pytest.approx(sum(gaps) / 6)
    assert found.comparison.low <= found.comparison.difference + 1e-9
    assert found.comparison.difference <= found.comparison.high + 1e-9
    assert (found.comparison.label, found.comparison.against) == ("Without", "Whole")
    assert found.paper == (None if paper is None else pytest.approx(paper))


def test_with_few_seeds_nothing_is_claimed():
    cells = cell("Whole", WHOLE[:4], chosen={"alpha": 1}), cell("Without", WHOLE[:4])
    assert check_claims(results(*cells), METRIC) == []


def test_means_are_compared_over_equally_many_seeds():
    uneven = results(cell("Ours", WHOLE), cell("GCN", WHOLE[:3]))
    assert [len(one.rows) for one in uneven.with_equal_seeds().cells] == [3, 3]
    level = replace(uneven, cells=[cell("Ours", WHOLE), cell("GCN", WHOLE)])
    assert level.with_equal_seeds() is level
