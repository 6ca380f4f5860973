"""The contract: fit and predict around what authors write, parameters, saving, memory, votes."""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from torch import nn

from evengraph.methods import GCN, METHODS, UNREAL, GraphSMOTE, UniGNN
from evengraph.methods.bases.method import (
    Committee,
    Method,
    changed_params,
    check_graph,
    check_params,
    describe_large,
    restore_method,
    same_graph,
)
from evengraph.methods.bases.saving import Description, TensorMismatchError, read_model
from evengraph.metrics.evaluation import evaluate
from small_graphs import normal, small_task


@dataclass(kw_only=True)
class Spy(Method):
    """Keeps its task; logits are one weight of its own for each class."""

    fail: bool = False

    def _fit(self, task):
        self.task_ = task
        self.net_ = nn.Linear(1, task.num_classes)
        ones = torch.ones(1, 1)

        def epoch():
            return self.net_(ones).square().sum(), torch.tensor(0.5)

        self._train(self.net_, epoch)
        if self.fail:
            raise KeyboardInterrupt

    def _logits(self, graph):
        self.grad_enabled_ = torch.is_grad_enabled()
        return self.net_(torch.ones(graph.num_nodes, 1))


def spy(**fields):
    return Spy(**{"max_epochs": 3} | fields)


def test_labels_of_other_nodes_are_out_of_reach():
    @dataclass(kw_only=True)
    class Cheat(Spy):
        def _logits(self, graph):
            return nn.functional.one_hot(graph.y, 3).float()

    task = small_task()
    cheat = Cheat(max_epochs=1).fit(task, seed=0)
    known = task.train | task.val
    assert torch.equal(cheat.task_.graph.y, torch.where(known, task.graph.y, -1))
    with pytest.raises(TypeError):  # there is no graph.y to look at
        cheat.predict_proba(task.graph)


@pytest.mark.parametrize("missing", ["x", "edge_index"])
def test_a_graph_without_its_parts_is_refused(missing):
    task = small_task()
    graph = task.graph.clone()
    graph[missing] = None
    with pytest.raises(ValueError, match=f"graph.{missing} must hold"):
        spy().fit(task, seed=0).predict_proba(graph)


def test_probabilities_are_the_softmax_without_gradients():
    task = small_task()
    method = spy().fit(task, seed=0)
    values = method.predict_proba(task.graph)
    torch.testing.assert_close(values, method._logits(task.graph).softmax(1).detach())
    method.predict_proba(task.graph)
    assert not method.grad_enabled_
    assert not values.requires_grad
    assert set(evaluate(task, values)) >= {"macro_f1"}


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
    first, second = (history.loss for history in method.history_)
    assert second[0] == first[-1]  # it goes on from the stage before


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


def test_a_fit_that_fails_is_no_fit_and_leaves_nothing_behind(random_state):
    method = spy().fit(small_task(), seed=0)
    method.fail = True
    before = random_state()
    with pytest.raises(KeyboardInterrupt):
        method.fit(small_task(), seed=0, on_epoch=lambda history: None)
    assert random_state() == before
    assert not method._callbacks
    with pytest.raises(RuntimeError, match="Spy is not fitted yet"):
        method.predict_proba(small_task().graph)
    with pytest.raises(TypeError, match="abstract"):
        Method()


def test_the_bar_is_shown_when_wanted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    spy().fit(small_task(), seed=0)
    assert capsys.readouterr().err == ""
    spy().fit(small_task(), seed=0, progress=True)
    assert "Spy" in capsys.readouterr().err


def test_masks_may_change_between_fits():
    task, method = small_task(), GCN(max_epochs=2)
    method.fit(task, seed=0)
    before = method.labelled_.nodes.numel()
    more = (~(task.train | task.val)).nonzero().flatten()[:7]
    task.train[more], task.test[more] = True, False
    method.fit(task, seed=0)
    assert method.labelled_.nodes.numel() == before + 7
    task.train[task.graph.y == 1] = False
    with pytest.raises(ValueError, match="Class 1 has no training node"):
        method.fit(task, seed=0)


# As scikit-learn's tools use it.


@pytest.fixture(scope="module")
def task():
    return small_task()


@pytest.fixture(scope="module")
def fitted(task):
    return GCN(max_epochs=20).fit(task, seed=0)


def test_a_graph_with_masks_is_a_task_and_the_seed_has_a_default(task, fitted):
    graph = task.graph.clone()
    graph.train_mask, graph.val_mask, graph.test_mask = task.train, task.val, task.test
    again = fitted.__class__(**fitted.get_params()).fit(graph)
    expected = clone(fitted).fit(task, seed=0)
    assert torch.equal(again.predict_proba(graph), expected.predict_proba(task.graph))
    assert again.score(graph) == expected.score(task)
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


def test_score_is_balanced_accuracy(task, fitted):
    found = fitted.predict_proba(task.graph).argmax(1)[task.test]
    assert torch.equal(fitted.predict(task.graph)[task.test], found)
    expected = balanced_accuracy_score(task.graph.y[task.test], found)
    assert fitted.score(task) == pytest.approx(expected)
    for hidden in (task.hide_test_labels(), dataclasses.replace(task, test=task.test & False)):
        with pytest.raises(ValueError, match="no labelled nodes to score on"):
            fitted.score(hidden)


@pytest.mark.parametrize("name", METHODS)
def test_clone_has_the_fields_and_is_not_fitted(name):
    method = METHODS[name](max_epochs=0, weight_decay=0.125).fit(small_task(), seed=0)
    copy = clone(method)
    assert copy is not method
    assert copy == method
    assert not copy.is_fitted
    assert copy.get_params() == dataclasses.asdict(method)


def test_params_are_set_together_or_not_at_all():
    method = UniGNN()
    assert method.set_params(alpha=3, hidden=8) is method
    assert (method.alpha, method.hidden) == (3, 8)
    with pytest.raises(ValueError, match="hidden must be at least 1, got 0"):
        method.set_params(alpha=1, hidden=0)
    with pytest.raises(ValueError, match="patience must be an integer, got True"):
        method.set_params(patience=True)
    with pytest.raises(ValueError, match="UniGNN has no parameter 'hiden'; it has learning_rate, "):
        method.set_params(alpha=1, hiden=4)
    assert (method.alpha, method.hidden) == (3, 8)
    assert method.set_params() is method
    assert UniGNN().full_title == "Uni-GNN"
    assert METHODS["reweight"](backbone="sage").full_title == "Re-weight on GraphSAGE"
    assert changed_params(GCN(hidden=32)) == ["hidden"]


@dataclass(kw_only=True)
class Savable(Spy):
    """One whose network can be made again."""

    def _build_network(self):
        return nn.Linear(1, self.num_classes_)


@pytest.fixture
def savable():
    return Savable(max_epochs=1).fit(small_task(), seed=0)


def test_a_method_that_makes_its_network_is_saved_and_restored(tmp_path, savable):
    graph = small_task().graph
    savable.save(tmp_path / "model", extra={"columns": ["a"]})
    about, tensors = read_model(tmp_path / "model")
    again, about = Savable(), Description.of(about)
    restore_method(again, about, tensors, torch.device("cpu"))
    assert again.is_fitted
    assert again.extra_ == {"columns": ["a"]}
    assert torch.equal(again.predict_proba(graph), savable.predict_proba(graph))
    assert torch.equal(again.labelled_.nodes, savable.labelled_.nodes)
    with pytest.raises(TensorMismatchError, match="smaller than the network"):
        restore_method(Savable(), replace(about, num_classes=10**9), tensors, torch.device("cpu"))


def test_what_cannot_be_saved(tmp_path, savable):
    with pytest.raises(NotImplementedError, match="Spy cannot be saved"):
        spy().fit(small_task(), seed=0).save(tmp_path / "model")
    with pytest.raises(RuntimeError, match="Savable is not fitted yet; call fit first"):
        Savable().save(tmp_path / "model")
    savable.set_params(patience=3, max_epochs=2)
    with pytest.raises(ValueError, match="max_epochs, patience changed after fitting: fit again"):
        savable.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def fail_to_allocate(graph):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")


@pytest.mark.parametrize(
    ("logits", "loaded", "kind", "message"),
    [
        (lambda graph: torch.ones(4, 5) @ torch.ones(3, 2), False, RuntimeError, "shapes"),
        (
            *(lambda graph: torch.ones(4, 5) @ torch.ones(3, 2), True, ValueError),
            r"^The saved model cannot predict: the tensors of Savable do not fit [^\n]*$",
        ),
        (fail_to_allocate, True, RuntimeError, "allocate"),  # no damage
        *(
            (lambda graph, shape=shape: torch.ones(shape), True, ValueError, "predict 3 classes")
            for shape in ((150, 1), (150, 2), (150, 3, 1))
        ),
    ],
)
def test_logits_that_cannot_be_used(savable, monkeypatch, logits, loaded, kind, message):
    """Errors of a loaded model are one line, others are bugs."""
    savable.loaded_ = loaded
    monkeypatch.setattr(savable, "_logits", logits)
    with pytest.raises(kind, match=message):
        savable.predict_proba(small_task().graph)


def test_a_graph_without_numbers_is_refused():
    graph = small_task().graph
    check_graph(graph)
    graph.x = torch.full_like(graph.x, 3e38)  # the sum of finite numbers may be infinite
    check_graph(graph)
    for values in ([torch.nan], [torch.inf], [torch.inf, -torch.inf]):
        graph.x = torch.zeros_like(graph.x)
        graph.x[2, : len(values)] = torch.tensor(values)
        with pytest.raises(ValueError, match="node 2 has a NaN or an infinity"):
            check_graph(graph)


def test_same_graph():
    graph = small_task().graph
    assert same_graph(graph, graph)
    assert same_graph(graph, graph.clone())
    labels = graph.clone()
    labels.y = -labels.y
    assert same_graph(graph, labels)  # labels do not matter
    for change in (
        {"x": graph.x + 1},
        {"x": graph.x[:, 1:]},
        {"edge_index": graph.edge_index[:, 1:]},
        {"edge_index": graph.edge_index.flip(0)},
    ):
        other = graph.clone()
        other.update(change)
        assert not same_graph(graph, other)


@dataclass(kw_only=True)
class Params:
    limits: ClassVar = {"width": 1, "rate": "positive", "share": "fraction", "weight": 0}
    width: int = 3
    rate: float = 0.1
    share: float = 0.5
    weight: float = 1.0
    kind: Literal["a", "b"] = "a"
    deep: bool = False
    free: float = 0.0


@dataclass(kw_only=True)
class More(Params):
    limits: ClassVar = {"depth": (2, 9), "reach": 1}
    depth: int = 2
    reach: int | Literal["auto"] = "auto"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("width", "3", "be an integer, got '3'"),
        ("width", True, "be an integer, got True"),
        ("rate", math.inf, "be finite, got inf"),
        ("share", math.nan, r"lie in \[0, 1\), got nan"),
        ("weight", math.nan, "be at least 0, got nan"),
        ("weight", math.inf, "be finite, got inf"),
        ("deep", 1, "be True or False"),
        ("depth", 10, "be at most 9, got 10"),
        ("reach", 1.5, "be an integer, got 1.5"),
    ],
)
def test_check_params(name, value, rule):
    check_params(More(free=-5.0))
    check_params(More(reach=2))
    with pytest.raises(ValueError, match=f"{name} must {rule}"):
        check_params(More(**{name: value}))


def test_features_that_overflow_are_told():
    assert describe_large(torch.tensor([[3.0, -1e6]])) == ""
    assert describe_large(torch.empty(0, 2)) == ""
    assert "as large as 2e+25: scale them" in describe_large(torch.tensor([[1.0, -2e25]]))


@pytest.mark.parametrize("method", [GraphSMOTE(max_epochs=2), UNREAL(max_epochs=2, rounds=2)])
def test_a_method_that_overflows_says_why(method):
    task = small_task()
    graph = task.graph.clone()
    graph.x = graph.x * 1e25
    with pytest.raises(FloatingPointError, match=r"as large as .e\+25: scale them"):
        method.fit(replace(task, graph=graph), seed=0).predict(graph)


def one_hot(*classes):
    """A member that is certain of these classes, (N, 2)."""
    return torch.nn.functional.one_hot(torch.tensor(classes), 2).float()


def test_votes_are_counted_by_weight():
    committee = Committee(
        torch.stack([one_hot(0, 0, 1), one_hot(0, 1, 1), one_hot(0, 1, 0)]),
        torch.tensor([0.5, 0.3, 0.2]),
    )
    found = committee.agreement(torch.tensor([0, 0, 0]))
    torch.testing.assert_close(found, torch.tensor([1.0, 0.5, 0.2]))
    # a vote is the most probable class, however sure
    committee = Committee.even(torch.tensor([[[0.51, 0.49]], [[0.0, 1.0]]]))
    assert committee.agreement(torch.tensor([0])).tolist() == [0.5]
    assert {part.device.type for part in committee.to(torch.device("meta"))} == {"meta"}


@given(st.integers(1, 4), st.integers(1, 4), st.floats(0, 1))
def test_joined_committees_agree_as_their_weighted_parts(first, second, share):
    parts = [Committee.even(normal(size, 6, 3, seed=size).softmax(2)) for size in (first, second)]
    joined = Committee.joined(parts, [share, 1 - share])
    predicted = torch.tensor([0, 1, 2, 0, 1, 2])
    expected = share * parts[0].agreement(predicted) + (1 - share) * parts[1].agreement(predicted)
    assert joined.probabilities.shape == (first + second, 6, 3)
    torch.testing.assert_close(joined.weights.sum(), torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(joined.agreement(predicted), expected)


def test_an_interval_cuts_off_light_votes():
    first = torch.tensor([0.1, 0.5, 0.6, 0.9]).unsqueeze(1)
    rows = torch.stack([first, 1 - first], dim=2)  # (M, 1, C)
    committee = Committee(rows, torch.tensor([0.05, 0.45, 0.45, 0.05]))
    for label, share, ends in ((0, 0.8, (0.5, 0.6)), (1, 0.8, (0.4, 0.5)), (0, 1.0, (0.1, 0.9))):
        low, high = committee.interval(torch.tensor([label]), share)
        torch.testing.assert_close(torch.cat([low, high]), torch.tensor(ends))
