from dataclasses import replace

import pytest
from made_up import FEW, STEP, make_results, spread

from evengraph.lab.tables import _pareto_front, _ticks, cost_figure

matplotlib = pytest.importorskip("matplotlib", reason="figures want matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def shown(figure):
    return [place for place in figure.axes if place.get_visible()]


def with_outcome(results, change):
    """The results with other outcomes, from a label and an outcome."""

    def other(cell):
        rows = [replace(r, outcome={**r.outcome, **change(cell.label)}) for r in cell.rows]
        return replace(cell, rows=rows)

    return replace(results, cells=[other(cell) for cell in results.cells])


def test_cost_names_every_method_twice(comparison):
    figure = cost_figure(comparison)
    for place in shown(figure):
        assert [text.get_text() for text in place.texts] == comparison.labels
        assert place.get_xscale() == "log"


def test_runs_side_by_side_share_the_seconds_but_not_the_memory(comparison):
    def first_costs(together):
        figure = cost_figure(with_outcome(comparison, lambda _: {"together": together}))
        return [place.collections[0].get_offsets()[0][0] for place in shown(figure)]

    seconds, memory = first_costs(1)
    assert first_costs(8) == pytest.approx([seconds / 8, memory])
    (place,) = shown(cost_figure(with_outcome(comparison, lambda _: {"memory": None})))
    assert place.get_xlabel() == "amortized seconds per run"
    assert len(place.texts) == 4


def test_a_figure_of_different_devices_says_so(comparison):
    assert shown(cost_figure(comparison))[0].get_xlabel() == "amortized seconds per run"
    first, *others = comparison.cells
    rows = [replace(row, environment={"device": "cuda (a GPU)"}) for row in first.rows]
    results = replace(comparison, cells=[replace(first, rows=rows), *others])
    assert shown(cost_figure(results))[0].get_xlabel().endswith(" (some on CPU, some on GPU)")


def test_of_many_methods_the_front_is_named():
    labels = ["GCN", *(f"method {n}" for n in range(1, 20)), "Uni-GNN"]
    results = make_results(
        {(STEP, one): spread(60 + n, FEW, one, 0) for n, one in enumerate(labels)}
    )
    seconds = {label: 100.0 - n for n, label in enumerate(labels)} | {"method 3": 0.5}
    results = with_outcome(results, lambda label: {"seconds": seconds[label], "memory": None})
    (place,) = shown(cost_figure(results))
    assert {text.get_text() for text in place.texts} == {"GCN", "method 3", "Uni-GNN"}
    assert len(place.collections) == 21


def test_of_many_names_none_lies_upon_a_better_one():
    labels = ["GCN", *(f"method {n}" for n in range(1, 20)), "Uni-GNN"]
    scores = {(STEP, one): spread(n**2, FEW, one, 0) for n, one in enumerate(labels)}
    results = make_results(scores)  # close together at the bottom
    seconds = {label: 100.0 + n / 99 for n, label in enumerate(labels)}  # a front of all of them
    results = with_outcome(results, lambda label: {"seconds": seconds[label], "memory": None})
    figure = cost_figure(results)
    (place,) = shown(figure)
    names = [text for text in place.texts if text.get_visible()]
    assert 3 < len(names) < len(place.texts) == 21
    assert "Uni-GNN" in {name.get_text() for name in names}  # the best one
    boxes = [name.get_window_extent() for name in names]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_the_front_is_what_nothing_cheaper_is_as_good_as():
    points = {"a": (1.0, 50.0), "b": (2.0, 50.0), "c": (1.0, 40.0), "d": (9.0, 51.0)}
    assert _pareto_front(points) == ["a", "d"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 2000, [1, 10, 100, 1000]),
        (0.8, 60, [1, 2, 5, 10, 20, 50]),
        (0.045, 0.16, [0.05, 0.1, 0.15]),
        (99, 102, [99, 100]),
    ],
)
def test_ticks_are_round_and_three_where_there_are_as_many(low, high, ticks):
    found = _ticks(low, high)
    assert set(ticks) <= {round(tick, 6) for tick in found}
    assert all(low <= tick <= high for tick in found)


def test_methods_without_a_measurement_are_named(comparison):
    def no_memory(label):
        return {"memory": None} if label == "GCN" else {}

    seconds, memory = shown(cost_figure(with_outcome(comparison, no_memory)))
    assert "not measured" not in seconds.get_xlabel()
    assert memory.get_xlabel().endswith("not measured (1): GCN")


def test_few_names_meet_neither_dots_nor_one_another():
    labels = [f"method {n}" for n in range(6)]
    results = make_results({(STEP, one): spread(60 + n, FEW, one, 0)
                            for n, one in enumerate(labels)})  # fmt: skip
    results = with_outcome(results, lambda _: {"seconds": 1.0, "memory": None})
    (place,) = shown(cost_figure(results))
    boxes = [name.get_window_extent() for name in place.texts]
    assert all(name.get_visible() for name in place.texts)
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
