"""check_method: a method that breaks a rule is told which."""

from dataclasses import dataclass
from typing import final

import pytest
import torch

from evengraph.methods import GCN, METHODS, LabelPropagation, Method
from evengraph.testing import METHOD_CHECKS, check_method


@final
@dataclass(kw_only=True)
class Careless(Method):
    """Breaks what it can: draws when it predicts, reads all labels, writes into the task."""

    def _fit(self, task):
        task.graph.x += 1
        self.weight_ = torch.rand(self.num_features_, self.num_classes_)

    def _logits(self, graph):
        return graph.x @ self.weight_ + torch.rand(graph.num_nodes, self.num_classes_)


def test_a_method_that_keeps_the_contract_passes():
    check_method(LabelPropagation, deterministic=True, only=("no_edges", "different_seeds_differ"))


def test_one_that_does_not_is_told_which_rule_it_breaks():
    messages = {}
    for rule in METHOD_CHECKS:
        try:
            check_method(Careless, only=rule)
        except AssertionError as error:
            messages[rule] = str(error)
    assert all(text.startswith(f"Careless, {rule}: ") for rule, text in messages.items())
    assert {
        "it_learns",
        "same_seed_same_answer",
        "the_task_is_unchanged",
        "global_random_state_is_unchanged",
        "the_history_is_recorded",
        "one_stage_is_the_main_one",
        "a_fitted_method_can_be_saved",
        "interrupted_at_once",
    } <= messages.keys()
    assert "rejects_no_features" not in messages
    assert "careless" not in METHODS


def test_a_whole_check_stops_at_the_first_rule():
    with pytest.raises(AssertionError, match="Careless, it_learns: accuracy on the training nodes"):
        check_method(Careless)


def test_a_class_that_is_not_final_or_no_dataclass():
    class Plain(Method):
        _fit = _logits = None

    with pytest.raises(AssertionError, match="not decorated with @dataclass"):
        check_method(Plain, only="a_final_keyword_only_dataclass")


def test_what_a_method_declares_is_held_against_it():
    with pytest.raises(AssertionError, match="equal for two seeds: False"):
        check_method(GCN, deterministic=True, only="different_seeds_differ")
    with pytest.raises(AssertionError, match="accuracy on the training nodes is"):
        check_method(GCN, train_accuracy=1.0, only="it_learns")
