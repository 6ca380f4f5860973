"""The result of a comparison as a dictionary, and what it says of itself."""

import json

import pytest

from evengraph.datasets import toy
from evengraph.methods import GCN, MLP
from evengraph.pipeline.comparison import compare


@pytest.fixture(scope="module")
def comparison():
    methods = {"graph": GCN(max_epochs=3), "none": MLP(max_epochs=3)}
    return compare(toy(150, 600, 20, 3), methods, seeds=[2, 5])


def test_the_best_has_the_highest_mean(comparison):
    means = [one.summary("balanced_accuracy").mean for one in comparison.standings]
    assert comparison.best is comparison.standings[0]
    assert means[0] == max(means)


def test_the_dictionary_holds_every_run(comparison):
    content = json.loads(json.dumps(comparison.as_dict()))
    assert (content["schema"], content["kind"]) == (1, "comparison")
    assert content["seeds"] == [2, 5]
    assert content["complete"]
    assert not content["conclusive"]  # two splits are too few
    assert content["positive"] is None
    assert sum(content["class_counts"]) == 150
    assert len(content["pairs"]) == 1
    for method, standing in zip(content["methods"], comparison.standings, strict=True):
        assert method["label"] == standing.label
        assert [run["seed"] for run in method["runs"]] == [2, 5]
        for run, record in zip(method["runs"], standing.records, strict=True):
            assert run["metrics"]["macro_f1"] == record.metrics["macro_f1"]
            assert run["place"] == 0
        mean = standing.summary("macro_f1").mean
        assert method["figures"]["macro_f1"]["mean"] == pytest.approx(mean)
