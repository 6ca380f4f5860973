import pytest

from evengraph.pipeline.parameters import _presets, paper_cell, preset_for

STEP = {"minority": 3, "ratio": 0.1}


@pytest.mark.parametrize(
    ("setup", "row", "metric", "values"),
    [
        (("cora", "step", STEP), ("unignn",), "balanced_accuracy", (76.5, 0.5)),
        (("citeseer", "longtail", {"ratio": 0.01}), ("gcn",), "macro_f1", (45.7, 0.8)),
        (("cora", "publicstep", STEP), ("UNREAL", "published"), "macro_f1", (76.4, None)),
        (
            ("citeseer", "publicstep", STEP),
            ("Balanced softmax", "published"),
            "balanced_accuracy",
            (55.5, None),
        ),
        (("cora", "step", STEP), ("Ind. Enc.", "ablation"), "g_mean", (84.3, 2.5)),
        (("cora", "step", {"minority": 2, "ratio": 0.1}), ("unignn",), "", None),
        (("cora", "natural", {"train": 0.1}), ("unignn",), "", None),
        (("toy", "step", STEP), ("unignn",), "", None),
        (("cora", "step", STEP), ("UNREAL", "published"), "", None),
        (("cora", "step", STEP), ("nothing", "ablation"), "", None),
    ],
    ids=str,
)
def test_cells(setup, row, metric, values):
    label, *table = row
    cell = paper_cell(*setup, label, **({"table": table[0]} if table else {}))
    found = None if cell is None else cell[metric]
    assert found == (None if values is None else {"mean": values[0], "std": values[1]})


def test_a_preset_is_found_by_its_setup_alone():
    preset = _presets()[0]
    setup = {"minority": preset["minority"], "ratio": preset["ratio"], "train_per_class": 20}
    asked = (preset["dataset"], preset["imbalance"])
    assert preset_for(*asked, setup, preset["method"]) == preset["fields"]
    assert preset_for(*asked, {**setup, "ratio": 0.2}, preset["method"]) is None
    assert preset_for("toy", preset["imbalance"], setup, preset["method"]) is None
    assert preset_for(*asked, setup, "gcn") is None
