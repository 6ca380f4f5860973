"""Which seed's model a run saves, and the words about it."""

from types import SimpleNamespace

import pytest
from command_line import COLUMNS, FAST, call

from evengraph.cli.run import BestFit
from evengraph.pipeline.table_model import SeedScore


@pytest.fixture
def scores(monkeypatch):
    """Every method is its own score."""
    monkeypatch.setattr(
        "evengraph.pipeline.table_model.seed_score",
        lambda method, task, source: SeedScore(method, "auroc"),
    )


def record(seed):
    return SimpleNamespace(seed=seed)


def test_the_best_score_is_kept_and_named(scores):
    best = BestFit(None, several=True)
    for seed, score in ((5, 71.0), (6, 82.04), (7, 60.0)):
        best.add(score, None, record(seed))
    assert best.fit.record.seed == 6
    assert best.reason() == "the best validation AUROC (82.0; others 71.0, 60.0)"


def test_one_seed_is_no_choice(scores):
    best = BestFit(None, several=False)
    best.add(71.0, None, record(5))
    assert (best.fit.record.seed, best.reason()) == (5, "")


def test_the_saved_model_is_the_one_that_is_named(shop, capsys, monkeypatch):
    values = iter([10.0, 90.0])
    monkeypatch.setattr(
        "evengraph.pipeline.table_model.seed_score",
        lambda *_: SeedScore(next(values), "macro_f1"),
    )
    assert call("run", "shop", *COLUMNS, *FAST, "--splits", "5,6", "--save", "model") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the model of seed 6, the best validation Macro-F1 (90.0; others 10.0);" in shown
    assert "; Macro-F1 " in shown
    assert " and balanced accuracy " in shown
