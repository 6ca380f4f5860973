import sqlite3
from contextlib import closing
from dataclasses import replace
from statistics import fmean, pstdev

import pytest
from made_up import (
    CENTRES,
    CHOSEN,
    FEW,
    PUBMED,
    SETUPS,
    STEP,
    TAIL,
    figures_of,
    fill,
    node_map,
    save_experiment,
)

from evengraph.lab.results import load_experiments, tabulate
from evengraph.lab.store import Store
from evengraph.metrics.registry import HEADLINE


def drop(store, wanted):
    """Take rows out of a store."""
    keys = [(row.job.key,) for row in store.rows() if wanted(row.job)]
    with closing(sqlite3.connect(store.path)) as base, base:
        base.executemany("DELETE FROM runs WHERE key = ?", keys)


def test_an_empty_store_has_no_boards(tmp_path):
    assert load_experiments(Store(tmp_path / "empty.sqlite")) == []


def test_boards_are_read_back_whole(experiments):
    assert [results.name for results in experiments] == ["comparison", "ablation", "sensitivity"]
    assert [results.kind for results in experiments] == ["comparison", "ablation", "sensitivity"]
    assert [results.title for results in experiments] == ["Comparison", "Ablation", "Sensitivity"]
    assert [len(results.cells) for results in experiments] == [11, 6, 8]
    assert all(results.seeds == [5, 6, 7] for results in experiments)


def test_cells_hold_what_was_kept(comparison):
    assert comparison.settings == list(SETUPS)
    assert comparison.labels == list(CENTRES)
    for setup, (dataset, *_) in SETUPS.items():
        for label in CENTRES:
            cell = comparison.find(setup, label)
            if (setup, label) == (PUBMED, "LTE4G"):
                assert cell is None
                continue
            figures = figures_of(setup, label)
            assert cell.dataset == dataset
            assert cell.by_seed("balanced_accuracy") == figures
            assert cell.values("balanced_accuracy") == list(figures.values())
            assert cell.mean("balanced_accuracy") == pytest.approx(fmean(figures.values()))
            assert cell.deviation("g_mean") == pytest.approx(pstdev(figures.values()))
            assert cell.selected == (CHOSEN if label == "Uni-GNN" else {})


def test_parts_and_values_give_the_same_numbers_as_rows(store):
    whole = load_experiments(store)
    stored = store.values([f"metrics.{name}" for name in HEADLINE])
    contents = store.experiments()
    for results, part in zip(whole, load_experiments(store, parts=("metrics",)), strict=True):
        small = tabulate(store, results.name, contents[results.name], stored)
        for cell, partial, plain in zip(results.cells, part.cells, small.cells, strict=True):
            assert (cell.size, cell.selected) == (plain.size, plain.selected)
            assert partial.outcomes() == [dict(row.outcome) for row in cell.rows]
            assert cell.outcomes() == [row.outcome for row in cell.rows]
            for name in HEADLINE:
                assert partial.values(name) == cell.values(name)
                assert plain.mean(name) == pytest.approx(cell.mean(name), abs=1e-9)
                assert cell.deviation(name) == pytest.approx(pstdev(cell.values(name)), abs=1e-9)


def test_published_means_are_of_the_metric(comparison):
    cell = comparison.find(STEP, "Uni-GNN")
    assert [cell.published(m) for m in ("balanced_accuracy", "macro_f1", "g_mean")] == [
        76.5,
        75.5,
        85.5,
    ]
    assert comparison.find(PUBMED, "Uni-GNN").published("g_mean") is None


def test_curves_keep_the_order_of_their_values(experiments):
    curves = experiments[2].curves()
    assert {name: [cell.value for cell in cells] for name, cells in curves.items()} == {
        "alpha": [1, 2, 3],
        "K": [3, 10, 20, 50],
    }
    assert [cell.varies for cell in curves["K"]] == ["clusters_per_class"] * 4
    assert experiments[2].find(STEP, "alpha") is None
    assert experiments[2].find(STEP, "Uni-GNN").selected == CHOSEN
    assert experiments[0].curves() == {}


def test_a_map_comes_with_its_board(experiments, store):
    assert [results.tsne for results in experiments] == [node_map(), None, None]
    content = store.experiments()["comparison"]
    store.save_experiment("comparison", content | {"map": "of another store"})
    assert load_experiments(store)[0].tsne is None


def test_cells_whose_rows_are_gone_are_left_out(store):
    drop(store, lambda job: job.method == "lte4g" or (job.method == "gcn" and job.seed > 6))
    results = load_experiments(store)[0]
    assert results.labels == ["GCN", "Re-weight", "Uni-GNN"]
    assert [row.job.seed for row in results.find(TAIL, "GCN").rows] == [5, 6]
    assert len(results.find(TAIL, "Uni-GNN").rows) == 20


def test_a_board_without_any_row_is_there_and_empty(store):
    drop(store, lambda job: True)
    assert [(results.name, list(results.cells)) for results in load_experiments(store)] == [
        ("comparison", []),
        ("ablation", []),
        ("sensitivity", []),
    ]


def test_rows_that_failed_count_as_gone(store):
    drop(store, lambda job: job.method == "lte4g" and job.seed > 5)
    for row in store.rows(method="lte4g"):
        store.add(replace(row, status="failed", reason="no memory", outcome={}))
    assert load_experiments(store)[0].labels == ["GCN", "Re-weight", "Uni-GNN"]


def test_a_board_kept_again_replaces_the_old_one(store):
    cells = store.experiments()["comparison"]["cells"]
    save_experiment(store, "comparison", "comparison", cells[:1])
    assert {results.name: len(results.cells) for results in load_experiments(store)}[
        "comparison"
    ] == 1


def test_reading_leaves_the_store_as_it_was(store):
    before = store.experiments(), [row.job.key for row in store.rows()]
    load_experiments(store)
    assert (store.experiments(), [row.job.key for row in store.rows()]) == before
    assert fill(store).experiments() == before[0]


def test_first_seeds_are_those_of_the_paper(experiments, comparison):
    first = comparison.with_selection_seeds()
    assert (first.name, first.title, first.kind) == ("comparison", "Comparison", "comparison")
    assert all([row.job.seed for row in cell.rows] == list(FEW) for cell in first.cells)
    assert len(first.cells) == 11
    assert first.find(STEP, "GCN").selected == comparison.find(STEP, "GCN").selected
    assert len(comparison.find(STEP, "GCN").rows) == 20
    single = experiments[2].with_selection_seeds().curves()["K"][-1]
    assert [row.job.seed for row in single.rows] == [5]


def test_cells_without_a_first_seed_are_left_out(comparison):
    elsewhere = replace(comparison, seeds=[20, 21]).with_selection_seeds()
    assert elsewhere.labels == ["GCN", "Uni-GNN"]
    assert all(len(cell.rows) == 2 for cell in elsewhere.cells)


def test_roles_say_which_method_is_the_baseline_and_which_to_highlight(comparison):
    assert (comparison.baseline, comparison.highlight) == ("GCN", "Uni-GNN")
    cells = [replace(c, role={"LTE4G": "baseline"}.get(c.label, "")) for c in comparison.cells]
    assert replace(comparison, cells=cells).baseline == "LTE4G"


def test_others_are_compared_with_the_highlighted_method_if_none_was_tuned(comparison):
    untuned = replace(comparison, cells=[replace(cell, selected={}) for cell in comparison.cells])
    assert (comparison.reference, untuned.reference) == ("Uni-GNN", "Uni-GNN")
    plain = replace(untuned, cells=[replace(cell, role="") for cell in untuned.cells])
    assert plain.reference == "GCN"


def test_without_roles_the_first_is_the_baseline_and_the_tuned_one_highlighted(store):
    """Stores of earlier versions have no roles."""
    content = store.experiments()["comparison"]
    for cell in content["cells"]:
        del cell["role"]
    store.save_experiment("comparison", content)
    first, *_ = load_experiments(store)
    assert {cell.role for cell in first.cells} == {""}
    assert (first.baseline, first.highlight) == ("GCN", "Uni-GNN")
    untuned = replace(first, cells=[replace(cell, selected={}) for cell in first.cells])
    assert (untuned.baseline, untuned.highlight) == ("GCN", "")


def test_the_run_of_a_map_has_a_name(experiments):
    assert [results.tsne_label for results in experiments] == ["Uni-GNN", "", ""]
