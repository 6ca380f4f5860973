"""The seed whose model is saved has the best score, by the metric that is shown."""

import pytest
import torch

import evengraph as eg
from evengraph.pipeline.sources import GraphSource
from evengraph.pipeline.table_model import SeedScore, fit_seeds, seed_score
from small_graphs import small_task

TASK = small_task(num_classes=2)
SOURCE = GraphSource(name="graph", graph=TASK.graph)


class Fitted:
    """A method that predicts what it is told to, and holds out given nodes."""

    def __init__(self, probabilities, held_out=None, metric=None):
        self.probabilities, self.nodes, self.metric = probabilities, held_out, metric
        self.selects_itself = metric is not None

    def get_params(self):
        return {} if self.metric is None else {"metric": self.metric}

    def predict_task(self, task):
        return self.probabilities

    def held_out(self, task):
        return task.val if self.nodes is None else self.nodes


def right(mask):
    """Correct on some nodes, wrong on the others."""
    truth = torch.nn.functional.one_hot(TASK.graph.y, 2).float()
    return torch.where(mask.unsqueeze(1), truth, 1 - truth)


def test_the_score_is_that_of_the_held_out_nodes():
    assert seed_score(Fitted(right(TASK.val)), TASK, SOURCE) == SeedScore(100, "balanced_accuracy")
    assert seed_score(Fitted(right(~TASK.val)), TASK, SOURCE).value == 0
    folds = TASK.val | TASK.train
    assert seed_score(Fitted(right(folds), folds), TASK, SOURCE).value == 100
    assert 0 < seed_score(Fitted(right(TASK.val), folds), TASK, SOURCE).value < 100


def test_a_method_that_selects_is_scored_by_its_metric():
    score = seed_score(Fitted(right(TASK.val), metric="macro_f1"), TASK, SOURCE)
    assert (score.metric, score.title) == ("macro_f1", "Macro-F1")
    assert seed_score(Fitted(right(TASK.val), metric="auto"), TASK, SOURCE).title == (
        "balanced accuracy"
    )


def test_no_seed_is_an_error_and_one_is_not_scored(monkeypatch):
    monkeypatch.setattr("evengraph.pipeline.table_model.seed_score", None)
    split = eg.splits.Natural()
    options = None, torch.device("cpu"), False
    found = fit_seeds(lambda: eg.MLP(max_epochs=1), split, SOURCE, [3], *options)
    assert found[2] == 3
    with pytest.raises(ValueError, match="at least one seed, got none"):
        fit_seeds(eg.MLP, split, SOURCE, [], *options)
