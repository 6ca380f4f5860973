"""Published numbers and presets: copied without a slip, of settings that can be run."""

import math
from dataclasses import fields

import pytest

from evengraph.datasets import DATASETS
from evengraph.lab.spec import read_spec
from evengraph.methods import METHODS
from evengraph.metrics.registry import HEADLINE
from evengraph.pipeline.parameters import _presets, _rows, paper_cell
from evengraph.splits import SPLITS

CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}

STEP = {"minority": 3, "ratio": 0.1}


def test_tables_have_all_rows_once():
    assert sum(row["method"] == "unignn" for row in _rows("paper.csv")) == 14
    rows = _rows("published.csv")
    keys = {(row["dataset"], row["ratio"], row["label"]) for row in rows}
    assert len(keys) == len(rows)
    assert all(row["imbalance"] == "publicstep" and row["balanced_accuracy"] for row in rows)
    rows, labels = _rows("ablation.csv"), [entry.label for entry in read_spec("table3").entries]
    assert sorted({row["label"] for row in rows}) == sorted(labels)
    assert len(rows) == 4 * len(labels) == 40
    whole = paper_cell("cora", "step", STEP, "Uni-GNN", table="ablation")
    assert whole == paper_cell("cora", "step", STEP, "unignn")


@pytest.mark.parametrize(
    "row",
    [*_rows("paper.csv"), *_rows("ablation.csv")],
    ids=lambda row: f"{row['dataset']}-{row.get('method') or row['label']}",
)
def test_g_mean_follows_from_balanced_accuracy(row):
    # On balanced test sets one is a function of the other, up to the mean over three runs;
    # this finds slips of the copyist.
    recall = float(row["balanced_accuracy"]) / 100
    expected = 100 * math.sqrt(recall * (1 - (1 - recall) / (CLASSES[row["dataset"]] - 1)))
    assert float(row["g_mean"]) == pytest.approx(expected, abs=0.6)
    assert set(HEADLINE) <= set(row)


def test_every_preset_can_be_run():
    assert _presets()
    for preset in _presets():
        assert preset["dataset"] in DATASETS
        METHODS[preset["method"]](**preset["fields"])
        known = {item.name for item in fields(SPLITS[preset["imbalance"]])}
        assert {name for name in ("minority", "ratio") if name in preset} <= known


def test_presets_come_from_the_papers_grid():
    grid = {
        "alpha": {1, 2},
        "clusters_per_class": {3, 4, 10, 20, 30},
        "threshold": {0.5, 0.7},
        "recluster_every": {50, 100},
    }
    for preset in (one for one in _presets() if one["method"] == "unignn"):
        assert set(preset["fields"]) == set(grid)
        assert all(value in grid[name] for name, value in preset["fields"].items())
