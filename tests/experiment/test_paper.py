import math

import pytest

from evengraph.experiment.paper import _rows, ablation_cell, paper_cell, published_cell
from evengraph.experiment.spec import read_spec
from evengraph.metrics import HEADLINE

CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}


def test_a_known_cell():
    cell = paper_cell("cora", "step", {"minority": 3, "ratio": 0.1}, "unignn")
    assert cell is not None
    assert cell["balanced_accuracy"] == {"mean": 76.5, "std": 0.5}
    longtail = paper_cell("citeseer", "longtail", {"ratio": 0.01}, "gcn")
    assert longtail is not None
    assert longtail["macro_f1"] == {"mean": 45.7, "std": 0.8}


def test_no_cell_for_another_setup():
    assert paper_cell("cora", "step", {"minority": 2, "ratio": 0.1}, "unignn") is None
    assert paper_cell("cora", "natural", {"train": 0.1}, "unignn") is None
    assert paper_cell("toy", "step", {"minority": 3, "ratio": 0.1}, "unignn") is None


def test_figures_of_other_papers():
    fields = {"minority": 3, "ratio": 0.1}
    cell = published_cell("cora", "publicstep", fields, "UNREAL")
    assert cell is not None
    assert cell["macro_f1"] == {"mean": 76.4, "std": None}
    cell = published_cell("citeseer", "publicstep", fields, "Balanced softmax")
    assert cell is not None
    assert cell["balanced_accuracy"]["mean"] == 55.5
    assert cell["g_mean"]["mean"] is None
    assert published_cell("cora", "step", fields, "UNREAL") is None
    rows = _rows("published.csv")
    assert len({(row["dataset"], row["label"]) for row in rows}) == len(rows)
    assert all(row["imbalance"] == "publicstep" and row["balanced_accuracy"] for row in rows)


def test_fourteen_setups_of_uni_gnn():
    assert sum(row["method"] == "unignn" for row in _rows("paper.csv")) == 14


def test_ten_variants_in_four_setups():
    rows = _rows("ablation.csv")
    labels = [entry.label for entry in read_spec("table3").entries]
    assert sorted({row["label"] for row in rows}) == sorted(labels)
    assert len(rows) == 4 * len(labels) == 40
    fields = {"minority": 3, "ratio": 0.1}
    cell = ablation_cell("cora", "step", fields, "Ind. Enc.")
    assert cell is not None
    assert cell["g_mean"] == {"mean": 84.3, "std": 2.5}
    whole = ablation_cell("cora", "step", fields, "Uni-GNN")
    assert whole == paper_cell("cora", "step", fields, "unignn")
    assert ablation_cell("cora", "step", fields, "nothing") is None


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
