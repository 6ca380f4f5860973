"""What every method says to a parameter that it cannot use."""

import re

import pytest

from evengraph.methods import METHODS

# method: parameter, value, what the message says that it must be
REFUSED = {
    "auto": [
        ("time_limit", -1, "be at least 0"),
        ("metric", "brier", "be one of auto, balanced_accuracy, .*"),
        ("candidates", "gcn,auto", "be among gcn, .*"),
    ],
    "balancedsoftmax": [
        ("margin", "wide", "be one of none, tam"),
        ("tam_connectivity", -1, "be at least 0"),
        ("tam_distribution", -1, "be at least 0"),
        ("tam_temperature", 0, "be above 0"),
    ],
    "bat": [
        ("variant", "BAT2", "be one of BAT0, BAT1"),
        ("loss", "tam", "be one of cross_entropy, .*renode"),
    ],
    "boosting": [
        ("leaves", 1, "be at least 2"),
        ("leaves", 2.5, "be an integer"),
        ("smallest_leaf", 0, "be at least 1"),
        ("sample", 0, "be above 0"),
        ("sample", 1.5, r"lie in \(0, 1\]"),
        ("engine", "xgboost", "be one of sklearn, lightgbm"),
    ],
    "classbalanced": [
        ("beta", 1.0, r"lie in \[0, 1\)"),
        ("beta", -0.1, r"lie in \[0, 1\)"),
    ],
    "doublebalancing": [("loss", "focal", "be one of .*"), ("pseudo_weight", -1, "be at least 0")],
    "embedsmote": [
        ("layers", 0, "be at least 1"),
        ("copies", -1, "be at least 0"),
        ("minority", -1, "be at least 0"),
    ],
    "focal": [("gamma", -1, "be at least 0")],
    "gcn": [
        ("hidden", 0, "be at least 1"),
        ("hidden", 2.5, "be an integer"),
        ("dropout", 1, r"lie in \[0, 1\)"),
        ("dropout", float("nan"), r"lie in \[0, 1\)"),
        ("normalisation", "both", "be one of symmetric, row"),
        ("backbone", "mlp", "be one of gcn, sage, gat"),
    ],
    "graphens": [
        ("layers", 0, "be at least 1"),
        ("hidden", 0, "be at least 1"),
        ("warmup", -1, "be at least 0"),
        ("dropout", 1, r"lie in \[0, 1\)"),
        ("masked", -0.1, r"lie in \[0, 1\)"),
        ("links", "BAT", "be one of none, BAT0, BAT1"),
        ("temperature", float("nan"), "be above 0"),
        ("tam_temperature", 0, "be above 0"),
    ],
    "graphsha": [
        ("temperature", 0.0, "be above 0"),
        ("beta", 0.0, "be above 0"),
        ("teleport", 0.0, "be above 0"),
        ("reach", 0, "be at least 1"),
    ],
    "graphsmote": [
        ("variant", "X", "be one of T, O"),
        ("copies", -1, "be at least 0"),
        ("minority", -1, "be at least 0"),
        ("pretrain_epochs", 0.5, "be an integer"),
        ("reconstruction_weight", -1e-6, "be at least 0"),
    ],
    "iceberg": [
        ("loss", "focal", "be one of .*"),
        ("pseudo_weight", -1, "be at least 0"),
        ("teleport", 1.0, r"lie in \[0, 1\)"),
        ("steps", -1, "be at least 0"),
    ],
    "imgagn": [
        ("ratio", -1.0, "be at least 0"),
        ("generate_every", 0, "be at least 1"),
        ("noise", 0, "be at least 1"),
        ("minority", -1, "be at least 0"),
    ],
    "labelpropagation": [
        ("restart", 0, r"lie in \(0, 1\]"),
        ("restart", 1.5, r"lie in \(0, 1\]"),
    ],
    "logitadjustment": [
        ("tau", -0.1, "be at least 0"),
        ("tau", float("nan"), "be at least 0"),
    ],
    "lte4g": [
        ("focal_gamma", -1, "be at least 0"),
        ("focal_alpha", -0.1, "be at least 0"),
        ("head_tenths", 0, "be at least 1"),
        ("head_tenths", 10, "be at most 9"),
        ("head_tenths", 7.5, "be an integer"),
        ("high_degree", -1, "be at least 0"),
        ("pretrain_epochs", -1, "be at least 0"),
        ("expert_epochs", -1, "be at least 0"),
        ("student_epochs", 0.5, "be an integer"),
    ],
    "oversampling": [
        ("copies", -1, "be at least 0"),
        ("copies", 1.5, "be an integer"),
        ("minority", True, "be an integer"),
    ],
    "renode": [
        ("least", -1, "be at least 0"),
        ("most", 0.25, "be at least 0.5"),
        ("loss", "hinge", "be one of .*"),
    ],
    "reweight": [
        ("scale", -0.5, "be at least 0"),
        ("minority", 1.5, "be an integer"),
    ],
    "smote": [("copies", -1, "be at least 0"), ("minority", 0.5, "be an integer")],
    "unignn": [
        ("alpha", 0, "be at least 1"),
        ("alpha", 2**63, "be at most 100"),
        ("alpha", "far", "be a number or auto"),
        ("clusters_per_class", 0, "be at least 1"),
        ("layers", 0, "be at least 1"),
        ("recluster_every", -1, "be at least 0"),
        ("pseudo_weight", -0.5, "be at least 0"),
        ("threshold", 1.0, r"lie in \[0, 1\)"),
        ("pseudo_labels", "some", "be one of balanced, all, none"),
        ("encoders", "neither", "be one of both, structural, semantic"),
        ("cluster_starts", 0, "be at least 1"),
    ],
    "unreal": [
        ("rounds", -1, "be at least 0"),
        ("clusters", 0, "be at least 1"),
        ("persistence", 1.0, r"lie in \[0, 1\)"),
        ("margin", -0.5, "be at least 0"),
        ("backbone", "mlp", "be one of gcn, sage, gat"),
    ],
}
CASES = [(method, *case) for method, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("method", "name", "value", "rule"), CASES)
def test_a_bad_parameter_is_refused(method, name, value, rule):
    with pytest.raises(ValueError, match=rf"^{name} must {rule}, got ") as caught:
        METHODS[method](**{name: value})
    assert re.search(r"got .*\.$", str(caught.value))
