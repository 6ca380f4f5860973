"""Method: what fit and predict_proba do around the two functions that authors write."""

import dataclasses
from dataclasses import dataclass

import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from torch import nn

from evengraph.methods import GCN
from evengraph.methods.bases.method import Method
from evengraph.metrics.evaluation import evaluate
from small_graphs import small_task


@dataclass(kw_only=True)
class Spy(Method):
    """Keeps what it is given; its logits are one weight of its own for each class."""

    fail: bool = False
    fail_late: bool = False

    def _fit(self, task):
        self.task_ = task
        self.drawn_ = float(torch.rand(()))
        if self.fail:
            raise ZeroDivisionError
        self.net_ = nn.Linear(1, task.num_classes)
        ones = torch.ones(1, 1)

        def epoch():
            return self.net_(ones).square().sum(), torch.tensor(0.5)

        self._train(self.net_, epoch)
        if self.fail_late:
            raise KeyboardInterrupt

    def _logits(self, graph):
        self.grad_enabled_ = torch.is_grad_enabled()
        return self.net_(torch.ones(graph.num_nodes, 1))


def spy(**fields):
    return Spy(**{"max_epochs": 3} | fields)


def test_fit_returns_the_method_itself():
    method = spy()
    assert method.fit(small_task(), seed=0) is method


def test_labels_of_other_nodes_are_hidden_from_the_author():
    task = small_task()
    seen = spy().fit(task, seed=0).task_
    known = task.train | task.val
    assert (seen.graph.y[~known] == -1).all()
    assert torch.equal(seen.graph.y[known], task.graph.y[known])
    assert (task.graph.y >= 0).all()


def test_labels_are_out_of_reach_when_predicting_too():
    @dataclass(kw_only=True)
    class Cheat(Spy):
        def _logits(self, graph):
            return nn.functional.one_hot(graph.y, 3).float()

    task = small_task()
    cheat = Cheat(max_epochs=1).fit(task, seed=0)
    with pytest.raises(TypeError):  # there is no graph.y to look at
        cheat.predict_proba(task.graph)


@pytest.mark.parametrize("missing", ["x", "edge_index"])
def test_a_graph_without_its_parts_is_refused(missing):
    task = small_task()
    graph = task.graph.clone()
    graph[missing] = None
    with pytest.raises(ValueError, match=f"graph.{missing} must hold"):
        spy().fit(task, seed=0).predict_proba(graph)


@pytest.mark.parametrize("value", [2.5, "3", True])
def test_counts_are_whole_numbers(value):
    with pytest.raises(ValueError, match="patience must be an integer"):
        spy(patience=value)


def test_the_seed_decides_what_is_drawn():
    task = small_task()
    drawn = [spy().fit(task, seed=seed).drawn_ for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_probabilities_are_the_softmax_without_gradients():
    task = small_task()
    method = spy().fit(task, seed=0)
    values = method.predict_proba(task.graph)
    torch.testing.assert_close(values, method._logits(task.graph).softmax(1).detach())
    method.predict_proba(task.graph)
    assert not method.grad_enabled_
    assert not values.requires_grad
    assert set(evaluate(task, values)) >= {"macro_f1"}


def test_callbacks_hear_of_every_epoch():
    seen = []
    method = spy(max_epochs=4).fit(
        small_task(), seed=0, on_epoch=lambda history: seen.append(history.epochs)
    )
    assert seen == [0, 1, 2, 3, 4]
    assert [history.epochs for history in method.history_] == [4]


def test_patience_reaches_the_loop():
    method = spy(max_epochs=50, patience=2).fit(small_task(), seed=0)
    assert method.history_[0].epochs == 3


# Stages.


@dataclass(kw_only=True)
class Staged(Spy):
    """Two stages, the second with limits of its own."""

    second_epochs: int = 5
    second_patience: int = 5

    def _fit(self, task):
        super()._fit(task)
        ones = torch.ones(1, 1)
        self._train(
            self.net_,
            lambda: (self.net_(ones).square().sum(), torch.tensor(0.5)),
            max_epochs=self.second_epochs,
            patience=self.second_patience,
        )


@pytest.mark.parametrize(
    ("fields", "lengths"),
    [
        ({"max_epochs": 9}, [9, 5]),
        ({"max_epochs": 3}, [3, 3]),  # the method's limit holds for every stage
        ({"max_epochs": 9, "patience": 2}, [3, 5]),
        ({"max_epochs": 9, "second_patience": 1}, [9, 2]),
        ({"max_epochs": 9, "second_epochs": 0}, [9, 0]),
        ({"max_epochs": 0}, [0, 0]),
    ],
)
def test_stages_have_limits_of_their_own(fields, lengths):
    seen = []
    method = Staged(**fields)
    method.fit(small_task(), seed=0, on_epoch=lambda history: seen.append(history.epochs))
    assert [history.epochs for history in method.history_] == lengths
    assert seen == [*range(lengths[0] + 1), *range(lengths[1] + 1)]


def test_a_stage_goes_on_from_the_one_before():
    task = small_task()
    method = Staged(max_epochs=4).fit(task, seed=0)
    first, second = (history.loss for history in method.history_)
    assert second[0] == first[-1] < first[0]
    again = method.fit(task, seed=0)
    assert len(again.history_) == 2  # of this fit alone


@pytest.mark.parametrize(("stop_at", "lengths"), [(2, [2, 0]), (7, [4, 2])])
def test_after_ctrl_c_later_stages_take_no_steps(stop_at, lengths):
    seen = []

    def stop(history):
        seen.append(history)
        if len(seen) == stop_at + 1:
            raise KeyboardInterrupt

    task = small_task()
    method = Staged(max_epochs=4).fit(task, seed=0, on_epoch=stop)
    assert [history.epochs for history in method.history_] == lengths
    assert [history.interrupted for history in method.history_] == [stop_at < 5, stop_at > 4]
    assert method.is_fitted
    assert method.fit(task, seed=0).history_[1].epochs == 4  # the next fit is a fresh one


# A fit that does not come to its end.


def test_a_fit_that_fails_is_no_fit(random_state):
    method = spy().fit(small_task(), seed=0)
    method.fail = True
    before = random_state()
    with pytest.raises(ZeroDivisionError):
        method.fit(small_task(), seed=0)
    assert random_state() == before
    assert not method.is_fitted
    with pytest.raises(RuntimeError, match="Spy is not fitted yet"):
        method.predict_proba(small_task().graph)


def test_a_fit_that_ends_after_training_is_no_fit_either():
    method = spy(fail_late=True)
    with pytest.raises(KeyboardInterrupt):
        method.fit(small_task(), seed=0)
    assert not method.is_fitted


def test_the_bar_is_shown_when_wanted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    spy().fit(small_task(), seed=0)
    assert capsys.readouterr().err == ""
    spy().fit(small_task(), seed=0, progress=True)
    assert "Spy" in capsys.readouterr().err


def test_a_method_without_its_two_functions_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Method()


@pytest.mark.parametrize("fail", [False, True])
def test_nothing_of_the_caller_stays_behind(fail):
    method = spy(fail=fail)
    try:
        method.fit(small_task(), seed=0, on_epoch=lambda history: None)
    except ZeroDivisionError:
        assert fail
    assert not method._callbacks


def test_masks_may_change_between_fits():
    task, method = small_task(), GCN(max_epochs=2)
    method.fit(task, seed=0)
    before = method.labelled_.nodes.numel()
    more = (~(task.train | task.val)).nonzero().flatten()[:7]
    task.train[more], task.test[more] = True, False
    method.fit(task, seed=0)
    assert method.labelled_.nodes.numel() == before + 7


# As scikit-learn's tools use it.


@pytest.fixture(scope="module")
def task():
    return small_task()


@pytest.fixture(scope="module")
def fitted(task):
    return GCN(max_epochs=20).fit(task, seed=0)


def test_predict_is_the_most_probable_class(task, fitted):
    assert torch.equal(fitted.predict(task.graph), fitted.predict_proba(task.graph).argmax(1))


def test_a_graph_with_masks_is_a_task_and_the_seed_has_a_default(task, fitted):
    graph = task.graph.clone()
    graph.train_mask, graph.val_mask, graph.test_mask = task.train, task.val, task.test
    again = fitted.__class__(**fitted.get_params()).fit(graph)
    expected = clone(fitted).fit(task, seed=0)
    assert torch.equal(again.predict_proba(graph), expected.predict_proba(task.graph))
    assert again.score(graph) == expected.score(task)
    assert again.score(graph, nodes=graph.val_mask) == expected.score(task, nodes=task.val)
    assert again.score(graph, nodes=[0, 1]) == again.score(task, nodes=torch.tensor([0, 1]))
    assert again.classes_.tolist() == list(range(task.num_classes))


def test_classes_are_names_where_there_are_some():
    task = dataclasses.replace(small_task(), class_names=("ant", "bee", "crab"))
    method = spy()
    with pytest.raises(RuntimeError, match="not fitted"):
        _ = method.classes_
    method.fit(task)
    assert method.classes_[method.predict(task.graph)].shape == (task.graph.num_nodes,)
    assert method.classes_.tolist() == ["ant", "bee", "crab"]


@pytest.mark.parametrize("what", [None, [1, 2], "cora"])
def test_what_cannot_be_fitted_is_named(what):
    with pytest.raises(TypeError, match=f"a Task or a .*Data, got {type(what).__name__}"):
        spy().fit(what)


@pytest.mark.parametrize("form", ["default", "mask", "list", "val"])
def test_score_is_balanced_accuracy(task, fitted, form):
    mask = task.val if form == "val" else task.test
    nodes = {"default": None, "list": mask.nonzero().squeeze(1)}.get(form, mask)
    found = fitted.predict(task.graph)[mask]
    expected = balanced_accuracy_score(task.graph.y[mask], found)
    assert fitted.score(task, nodes=nodes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (torch.zeros(150, dtype=torch.bool), "no nodes to score on"),
        (torch.zeros(3, dtype=torch.bool), "a mask of 150 nodes, got 3"),
        (torch.tensor([150]), "lie between 0 and 149"),
        (torch.tensor([-1]), "lie between 0 and 149"),
        (torch.tensor([0.5]), "a bool mask or a list of integers"),
    ],
)
def test_nodes_that_cannot_be_scored(task, fitted, nodes, message):
    with pytest.raises(ValueError, match=message):
        fitted.score(task, nodes=nodes)


def test_nodes_without_labels_cannot_be_scored(task, fitted):
    hidden = task.hide_test_labels()
    with pytest.raises(ValueError, match="have no label"):
        fitted.score(hidden)
