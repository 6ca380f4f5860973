from dataclasses import fields

from evengraph.datasets import DATASETS
from evengraph.experiment.presets import _presets, preset_for
from evengraph.methods import METHODS
from evengraph.splits import SPLITS


def test_every_preset_can_be_run():
    assert _presets()
    for preset in _presets():
        assert preset["dataset"] in DATASETS
        METHODS[preset["method"]](**preset["fields"])
        known = {item.name for item in fields(SPLITS[preset["imbalance"]])}
        assert {name for name in ("minority", "ratio") if name in preset} <= known


def test_a_preset_is_found_by_its_setup_alone():
    preset = _presets()[0]
    setup = {"minority": preset["minority"], "ratio": preset["ratio"], "train_per_class": 20}
    asked = (preset["dataset"], preset["imbalance"])
    assert preset_for(*asked, setup, preset["method"]) == preset["fields"]
    assert preset_for(*asked, {**setup, "ratio": 0.2}, preset["method"]) is None
    assert preset_for("toy", preset["imbalance"], setup, preset["method"]) is None
    assert preset_for(*asked, setup, "gcn") is None


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
