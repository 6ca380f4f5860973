"""check_method: a method that breaks a rule is told which."""

from dataclasses import dataclass
from typing import final

import pytest
import torch

from evengraph.methods import GCN, METHODS, LabelPropagation, Method
from evengraph.testing import METHOD_CHECKS, check_method, contract
from evengraph.testing.contract import VALID_TASKS, small_task


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
    assert "careless" not in METHODS


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


@pytest.mark.parametrize("other", [torch.tensor([1.0, 2.5]), torch.tensor([[1.0, 2.0]])])
def test_conditions_and_the_same_bits(other):
    contract.expect(torch.tensor(True), "no")
    values = torch.tensor([1.0, 2.0])
    contract.expect_equal(values, values.clone(), "differ")
    with pytest.raises(AssertionError, match="differ"):
        contract.expect_equal(values, other, "differ")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.ones(2, 3) / 3, "shape"),
        (torch.tensor([[float("nan"), 1.0]]), "finite"),
        (torch.tensor([[1.5, -0.5]]), "negative"),
        (torch.tensor([[0.5, 0.4]]), "sum to one"),
        (torch.tensor([[0.5, 0.5]], requires_grad=True), "gradients"),
    ],
)
def test_rows_are_probabilities(values, message):
    contract.expect_probabilities(torch.tensor([[0.5, 0.5]]), 1, 2)
    with pytest.raises(AssertionError, match=message):
        contract.expect_probabilities(values, 1, 2)


def test_an_error_with_its_words():
    def fail():
        raise ValueError("top must be at least 0.")

    contract.expect_error(ValueError, "top", fail)
    with pytest.raises(AssertionError, match="does not contain 'node'"):
        contract.expect_error(ValueError, "node", fail)
    with pytest.raises(AssertionError, match="no ValueError was raised"):
        contract.expect_error(ValueError, "top", lambda: None)


def test_valid_tasks_are_what_they_are_called():
    tasks = {name: edit(small_task()) for name, edit in VALID_TASKS.items()}
    assert tasks["one_training_node_in_a_class"].class_counts.tolist() == [10, 10, 1]
    assert tasks["one_training_node_in_every_class"].class_counts.tolist() == [1, 1, 1]
    for label in range(3):
        task = tasks[f"class_{label}_missing_from_validation"]
        assert label not in task.graph.y[task.val]
    for label in (0, 2):
        task = tasks[f"isolated_training_nodes_of_class_{label}"]
        nodes = (task.train & (task.graph.y == label)).nonzero()
        assert len(nodes)
        assert not torch.isin(task.graph.edge_index, nodes).any()
        assert task.graph.num_edges > 0
    node = tasks["an_isolated_training_node"].train.nonzero()[0]
    assert node not in tasks["an_isolated_training_node"].graph.edge_index
    assert tasks["no_edges"].graph.num_edges == 0
    assert (tasks["all_nodes_labelled"].train | tasks["all_nodes_labelled"].val).all()
    for name, task in tasks.items():
        assert task.class_counts.min() > 0, name
        assert task.val.any(), name
