import math

import pytest

from evengraph.experiment.paper import _rows, paper_cell
from evengraph.results import HEADLINE

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


def test_fourteen_setups_of_uni_gnn():
    assert sum(row["method"] == "unignn" for row in _rows()) == 14


@pytest.mark.parametrize("row", _rows(), ids=lambda row: f"{row['dataset']}-{row['method']}")
def test_g_mean_follows_from_balanced_accuracy(row):
    # On balanced test sets one is a function of the other, up to the mean over three runs;
    # this finds slips of the copyist.
    recall = float(row["balanced_accuracy"]) / 100
    expected = 100 * math.sqrt(recall * (1 - (1 - recall) / (CLASSES[row["dataset"]] - 1)))
    assert float(row["g_mean"]) == pytest.approx(expected, abs=0.6)
    assert set(HEADLINE) <= set(row)
