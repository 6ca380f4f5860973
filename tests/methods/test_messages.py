"""What every method says to a parameter that it cannot use."""

import re
from math import nan

import pytest

from evengraph.methods import METHODS

# Rule and a value that breaks it: parameters of methods.
BY_RULE = {
    ("be above 0", 0): """
        balancedsoftmax.tam_temperature graphens.tam_temperature
        graphsha.temperature graphsha.beta graphsha.teleport
    """,
    ("be at least 0", -1): """
        auto.time_limit auto.folds
        balancedsoftmax.tam_connectivity balancedsoftmax.tam_distribution
        doublebalancing.pseudo_weight embedsmote.copies embedsmote.minority focal.gamma
        graphens.warmup graphsmote.copies graphsmote.minority
        graphsmote.reconstruction_weight iceberg.pseudo_weight iceberg.steps imgagn.ratio
        imgagn.minority logitadjustment.tau lte4g.focal_gamma lte4g.focal_alpha
        lte4g.high_degree lte4g.pretrain_epochs lte4g.expert_epochs oversampling.copies
        renode.least reweight.scale smote.copies unignn.recluster_every unignn.pseudo_weight
        unreal.rounds unreal.margin
    """,
    ("be an integer", 0.5): """
        boosting.leaves gcn.hidden graphsmote.pretrain_epochs lte4g.head_tenths
        lte4g.student_epochs oversampling.copies reweight.minority smote.minority
    """,
    ("be at least 1", 0): """
        boosting.smallest_leaf embedsmote.layers gcn.hidden graphens.layers graphens.hidden
        graphsha.reach imgagn.generate_every imgagn.noise lte4g.head_tenths unignn.alpha
        unignn.clusters_per_class unignn.layers unignn.cluster_starts unreal.clusters
    """,
    (r"lie in \[0, 1\)", 1.0): """
        classbalanced.beta gcn.dropout graphens.dropout iceberg.teleport unignn.threshold
        unreal.persistence
    """,
}
OTHERS = [
    ("auto.metric", "brier", "be one of auto, balanced_accuracy, .*"),
    ("auto.candidates", "gcn,auto", "be among gcn, .*"),
    ("balancedsoftmax.margin", "wide", "be one of none, tam"),
    ("bat.variant", "BAT2", "be one of BAT0, BAT1"),
    ("bat.loss", "tam", "be one of cross_entropy, .*renode"),
    ("boosting.leaves", 1, "be at least 2"),
    ("boosting.engine", "xgboost", "be one of sklearn, lightgbm"),
    ("classbalanced.beta", -0.1, r"lie in \[0, 1\)"),
    ("doublebalancing.loss", "focal", "be one of .*"),
    ("gcn.dropout", nan, r"lie in \[0, 1\)"),
    ("gcn.normalisation", "both", "be one of symmetric, row"),
    ("gcn.backbone", "mlp", "be one of gcn, sage, gat"),
    ("graphens.masked", -0.1, r"lie in \[0, 1\)"),
    ("graphens.links", "BAT", "be one of none, BAT0, BAT1"),
    ("graphens.temperature", nan, "be above 0"),
    ("graphsmote.variant", "X", "be one of T, O"),
    ("iceberg.loss", "focal", "be one of .*"),
    ("labelpropagation.restart", 0, r"lie in \(0, 1\]"),
    ("labelpropagation.restart", 1.5, r"lie in \(0, 1\]"),
    ("logitadjustment.tau", nan, "be at least 0"),
    ("lte4g.head_tenths", 10, "be at most 9"),
    ("oversampling.minority", True, "be an integer"),
    ("renode.most", 0.25, "be at least 0.5"),
    ("renode.loss", "hinge", "be one of .*"),
    ("unignn.alpha", 2**63, "be at most 100"),
    ("unignn.alpha", "far", "be a number or auto"),
    ("unignn.pseudo_labels", "some", "be one of balanced, all, none"),
    ("unignn.encoders", "neither", "be one of both, structural, semantic"),
    ("unreal.backbone", "mlp", "be one of gcn, sage, gat"),
]
CASES = [(name, value, rule) for (rule, value), names in BY_RULE.items() for name in names.split()]


@pytest.mark.parametrize(("name", "value", "rule"), CASES + OTHERS)
def test_a_bad_parameter_is_refused(name, value, rule):
    method, _, parameter = name.partition(".")
    with pytest.raises(ValueError, match=rf"^{parameter} must {rule}, got ") as caught:
        METHODS[method](**{parameter: value})
    assert re.search(r"got .*\.$", str(caught.value))
