from dataclasses import replace

import pytest

from evengraph.datasets import toy
from evengraph.methods import GCN, Reweight
from evengraph.pipeline.executor import Failure
from evengraph.pipeline.run import RunPlan, RunResults, compare_results, run
from evengraph.splits import Natural, Step

SMALL_STEP = Step(minority=1, ratio=0.5, train_per_class=8, val_per_class=8, test_per_class=8)


@pytest.fixture(scope="module")
def plan():
    return RunPlan(
        dataset="toy",
        graph=toy(200, 800, 20, 2, size_ratio=0.3),
        imbalance="natural",
        protocol=Natural(train=0.3, val=0.3),
        methods={"gcn": GCN(max_epochs=3), "reweight": Reweight(max_epochs=3, hidden=8)},
        seeds=[5, 6, 7],
    )


@pytest.fixture(scope="module")
def outcome(plan):
    return run(plan)


def test_a_run_is_compared_as_compare_does(plan, outcome):
    found = compare_results(plan, outcome)
    assert found.seeds == [5, 6, 7]
    assert found.positive == 1
    assert {one.label for one in found.standings} == {"gcn", "reweight"}
    assert len(found.pairs) == 1
    content = found.as_dict()
    changed = {method["label"]: method["changed"] for method in content["methods"]}
    assert changed == {"gcn": ["max_epochs"], "reweight": ["max_epochs", "hidden"]} or changed == {
        "gcn": ["max_epochs"],
        "reweight": ["hidden", "max_epochs"],
    }
    run_of_best = content["methods"][0]["runs"][0]
    assert len(run_of_best["per_class"]["recall"]) == 2
    assert sum(run_of_best["train_counts"]) > 0


def test_only_seeds_that_all_have_are_compared(plan, outcome):
    first, second = outcome.standings
    short = RunResults(standings=[first, replace(second, records=second.records[:2])])
    short.failed["mlp"] = Failure(reason="no luck")
    found = compare_results(plan, short)
    assert found.seeds == [5, 6]
    assert found.stopped
    assert found.failed == {"mlp": "no luck"}
    none = RunResults(standings=[first, replace(second, records=[])])
    assert compare_results(plan, none) is None


def test_classes_have_the_names_of_the_split(plan):
    """As on the page of each method: step sorts classes by size."""
    graph = plan.graph.clone()
    graph.y, graph.class_names = 1 - plan.graph.y, ["rare", "common"]
    step = replace(plan, graph=graph, imbalance="step", protocol=SMALL_STEP)
    outcome = run(step)
    found = compare_results(step, outcome)
    assert found.classes == ["common", "rare"]
    assert found.positive == 1
    counts = found.as_dict()["methods"][0]["runs"][0]["train_counts"]
    assert counts[0] > counts[1]
