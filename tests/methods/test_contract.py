"""What every method promises: each line of the METHODS table is held to it."""

import dataclasses
import inspect
import pickle
import re
from itertools import product
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from oracles import task_with
from torch_geometric.data import Data

import evengraph.methods
from evengraph.datasets import toy
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.margin import MarginMethod
from evengraph.methods.bases.network import BackboneMethod, FreeMethod, NetworkMethod
from evengraph.methods.bases.self_training import DoublyBalanced
from evengraph.metrics import validation_score
from small_graphs import QUICK, graph_of, normal, small_task

pytestmark = pytest.mark.parametrize("name", METHODS)

EPOCHS = 6
NOTHING_RANDOM = {"labelpropagation", "boosting"}
SHARED = (Method, NetworkMethod, BackboneMethod, FreeMethod, MarginMethod, DoublyBalanced)


def make(name, **fields):
    return METHODS[name](
        **{"max_epochs": EPOCHS, "patience": EPOCHS} | QUICK.get(name, {}) | fields
    )


def fitted(name, task, seed=0, **fields):
    return make(name, **fields).fit(task, seed=seed)


def probabilities(name, task, seed=0, **fields):
    return fitted(name, task, seed, **fields).predict_proba(task.graph)


def check_probabilities(values, num_nodes, num_classes):
    assert values.shape == (num_nodes, num_classes)
    assert torch.isfinite(values).all()
    assert (values >= 0).all()
    torch.testing.assert_close(values.sum(1), torch.ones(num_nodes))
    assert not values.requires_grad


def check_fits(name, task):
    values = probabilities(name, task)
    check_probabilities(values, task.graph.num_nodes, task.num_classes)


def changed(task, **changes):
    """The task with other tensors in its graph."""
    graph = task.graph.clone()
    for key, value in changes.items():
        graph[key] = value
    return dataclasses.replace(task, graph=graph)


# What comes out.


def test_rows_are_probabilities(name):
    check_fits(name, small_task())


def test_it_learns(name):
    task = small_task()
    values = probabilities(name, task, max_epochs=60, patience=60)
    right = values.argmax(1)[task.train] == task.graph.y[task.train]
    assert right.float().mean() > (0.7 if name == "mlp" else 0.8)  # features alone say little here


def test_same_seed_same_answer(name):
    task = small_task()
    assert torch.equal(probabilities(name, task, seed=3), probabilities(name, task, seed=3))


def test_fitting_again_forgets_the_first_time(name):
    task, other = small_task(), small_task(seed=2)
    method = fitted(name, other, seed=1)
    again = method.fit(task, seed=3).predict_proba(task.graph)
    assert torch.equal(again, probabilities(name, task, seed=3))


def test_different_seeds_differ(name):
    task = small_task()
    same = torch.equal(probabilities(name, task, seed=3), probabilities(name, task, seed=4))
    assert same == (name in NOTHING_RANDOM)


def test_equal_copy_of_the_graph_gives_the_fitted_answer(name):
    task = small_task()
    method = fitted(name, task)
    assert torch.equal(method.predict_proba(task.graph.clone()), method.predict_proba(task.graph))


def test_another_graph_can_be_predicted(name):
    task = small_task()
    method = fitted(name, task)
    fresh = toy(90, 200, task.graph.num_features, 3, seed=9)
    fresh.edge_index = fresh.edge_index[:, (fresh.edge_index > 5).all(0)]  # six isolated nodes
    check_probabilities(method.predict_proba(fresh), 90, 3)
    larger = toy(300, 900, task.graph.num_features, 3, seed=9)
    check_probabilities(method.predict_proba(larger), 300, 3)
    no_labels = Data(x=fresh.x, edge_index=fresh.edge_index)
    assert torch.equal(method.predict_proba(no_labels), method.predict_proba(fresh))
    # the answer for the training graph is the same as before
    assert torch.equal(method.predict_proba(task.graph), probabilities(name, task))


def test_a_fitted_method_can_be_pickled(name):
    task, other = small_task(), small_task(seed=2).graph
    method = fitted(name, task)
    copy = pickle.loads(pickle.dumps(method))
    for graph in (task.graph, other):
        assert torch.equal(copy.predict_proba(graph), method.predict_proba(graph))


def test_the_history_is_kept(name):
    seen = []
    task = small_task()
    method = make(name).fit(task, seed=0, on_epoch=lambda history: seen.append(history.epochs))
    assert len(seen) >= EPOCHS
    assert all(len(history.loss) == len(history.score) for history in method.history_)
    assert sum(len(history.loss) for history in method.history_) == len(seen)
    assert method.is_fitted


def test_no_epochs_at_all(name):
    task = small_task()
    check_probabilities(probabilities(name, task, max_epochs=0), task.graph.num_nodes, 3)


# What is left alone.


def test_the_callers_random_state_is_left_alone(name, random_state):
    task = small_task()
    before = random_state()
    method = fitted(name, task)
    assert random_state() == before
    method.predict_proba(task.graph)
    method.predict_proba(toy(60, 120, task.graph.num_features, 3, seed=9))
    assert random_state() == before


def test_the_callers_random_state_does_not_matter(name):
    task = small_task()
    torch.manual_seed(1)
    first = probabilities(name, task)
    torch.manual_seed(2)
    assert torch.equal(probabilities(name, task), first)


def test_the_task_is_unchanged(name):
    task, untouched = small_task(), small_task()
    fitted(name, task).predict_proba(task.graph)
    assert task.graph.keys() == untouched.graph.keys()
    for key in ("x", "edge_index", "y"):
        assert torch.equal(task.graph[key], untouched.graph[key]), key
    for key in ("train", "val", "test"):
        assert torch.equal(getattr(task, key), getattr(untouched, key)), key


def test_fields_are_unchanged(name):
    method = make(name)
    before = dataclasses.asdict(method)
    method.fit(small_task(), seed=0)
    assert dataclasses.asdict(method) == before


def test_labels_outside_train_and_validation_change_nothing(name):
    task = small_task()
    hidden = ~(task.train | task.val)
    labels = task.graph.y.clone()
    labels[hidden] = (labels[hidden] + 1) % 3
    scrambled = changed(task, y=labels)
    none = changed(task, y=torch.where(hidden, -1, task.graph.y))
    first = probabilities(name, task)
    assert torch.equal(probabilities(name, scrambled), first)
    assert torch.equal(probabilities(name, none), first)


# Hard but legal tasks.


def test_one_labelled_node_in_a_class(name):
    task = small_task()
    rare = (task.train & (task.graph.y == 2)).nonzero().flatten()
    train = task.train.clone()
    train[rare[1:]] = False
    task = dataclasses.replace(task, train=train)
    assert task.class_counts.tolist() == [10, 10, 1]
    check_fits(name, task)


def test_one_labelled_node_in_every_class(name):
    task = small_task()
    train = torch.zeros_like(task.train)
    for label in range(3):
        train[(task.train & (task.graph.y == label)).nonzero()[0]] = True
    check_fits(name, dataclasses.replace(task, train=train))


@pytest.mark.parametrize("counts", [(9, 9, 2), (6, 6, 6), (2, 2, 2), (9, 4, 1), (1, 9, 9)])
def test_class_sizes_of_any_shape(name, counts):
    check_fits(name, task_with(*counts))


@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_class_missing_from_validation(name, label):
    task = small_task()
    check_fits(name, dataclasses.replace(task, val=task.val & (task.graph.y != label)))


def test_an_isolated_labelled_node(name):
    task = small_task()
    node = task.train.nonzero()[0]
    keep = (task.graph.edge_index != node).all(0)
    check_fits(name, changed(task, edge_index=task.graph.edge_index[:, keep]))


@pytest.mark.parametrize("label", [0, 2])
def test_a_class_whose_labelled_nodes_are_isolated(name, label):
    task = small_task()
    cut_off = task.train & (task.graph.y == label)
    keep = ~cut_off[task.graph.edge_index].any(0)
    check_fits(name, changed(task, edge_index=task.graph.edge_index[:, keep]))


def test_no_edges(name):
    check_fits(name, changed(small_task(), edge_index=torch.zeros(2, 0, dtype=torch.long)))


def test_self_loops_and_repeated_edges(name):
    task = small_task()
    loops = torch.arange(task.graph.num_nodes).repeat(2, 1)
    check_fits(name, changed(task, edge_index=torch.cat([task.graph.edge_index] * 2 + [loops], 1)))


def test_a_binary_problem(name):
    check_fits(name, small_task(num_classes=2))


def test_dense_and_negative_features(name):
    task = small_task()
    x = normal(task.graph.num_nodes, 7, dtype=torch.float32)
    check_fits(name, changed(task, x=x))


def test_features_that_are_all_zero(name):
    task = small_task()
    check_fits(name, changed(task, x=torch.zeros_like(task.graph.x)))


def test_features_in_double_precision(name):
    task = small_task()
    values = probabilities(name, changed(task, x=task.graph.x.double()))
    torch.testing.assert_close(
        values, probabilities(name, task), check_dtype=False, rtol=1e-3, atol=1e-3
    )


def test_all_nodes_labelled(name):
    task = small_task()
    val = torch.zeros_like(task.val)
    val[::5] = True
    nobody = torch.zeros_like(val)
    check_fits(name, dataclasses.replace(task, train=~val, val=val, test=nobody))


# Every choice that a method offers.


def choices(method):
    """The values of every field that has a few."""
    for field, hint in get_type_hints(method).items():
        if hint is bool:
            yield [(field, value) for value in (False, True)]
        elif get_origin(hint) is Literal:
            yield [(field, value) for value in get_args(hint)]


def test_all_choices_together(name):
    task = small_task()
    for chosen in product(*choices(METHODS[name])):
        values = probabilities(name, task, max_epochs=2, **dict(chosen))
        check_probabilities(values, task.graph.num_nodes, 3)


# Tasks that are refused.


def refused(name, task):
    method = make(name)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        method.fit(task, seed=0)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert not method.is_fitted
    return message


def test_a_class_without_training_nodes(name):
    task = small_task()
    task = dataclasses.replace(task, train=task.train & (task.graph.y != 1))
    assert "Class 1 has no training node" in refused(name, task)
    named = dataclasses.replace(task, class_names=("ants", "bees", "crabs"))
    assert "Class 1 (bees)" in refused(name, named)


def test_empty_sets(name):
    task = small_task()
    nobody = torch.zeros_like(task.val)
    assert "val set is empty" in refused(name, dataclasses.replace(task, val=nobody))
    assert "training node" in refused(name, dataclasses.replace(task, train=nobody))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_features_that_are_no_numbers(name, value):
    task = small_task()
    task.graph.x[7, 3] = value
    assert "node 7" in refused(name, task)


def test_features_that_are_missing_or_whole_numbers(name):
    task = small_task()
    assert "graph.x" in refused(name, changed(task, x=task.graph.x.long()))
    assert "graph.x" in refused(name, changed(task, x=task.graph.x[:, 0]))
    assert "graph.x" in refused(name, changed(task, x=None, num_nodes=150))


@pytest.mark.parametrize("which", ["train", "val"])
def test_sets_with_unlabelled_nodes(name, which):
    task = small_task()
    labels = task.graph.y.clone()
    labels[getattr(task, which).nonzero()[0]] = -1
    assert f"Some {which} nodes have no label" in refused(name, changed(task, y=labels))


def test_predicting_before_fitting(name):
    with pytest.raises(RuntimeError, match=f"{METHODS[name].title} is not fitted yet; call fit"):
        make(name).predict_proba(small_task().graph)


def test_predicting_a_graph_with_other_features(name):
    task = small_task()
    method = fitted(name, task)
    with pytest.raises(ValueError, match=r"64.*7"):
        method.predict_proba(graph_of(torch.ones(4, 7), [(0, 1)], [0, 0, 0, 0]))


def test_interrupted_early_it_is_still_usable(name):
    def stop(history):
        raise KeyboardInterrupt

    task = small_task()
    method = make(name)
    if "pretrain_epochs" in dataclasses.asdict(method):
        method.pretrain_epochs = 0
    method.fit(task, seed=0, on_epoch=stop)
    assert method.history_[0].interrupted
    check_probabilities(method.predict_proba(task.graph), task.graph.num_nodes, 3)


def test_interrupted_later_it_answers_with_what_it_has_learnt(name):
    """Stages that never came must not spoil the answer of those that did."""
    task = small_task()
    seen = []

    def stop(history):
        seen.append(history)
        if history.main and history.epochs == 40:
            raise KeyboardInterrupt

    method = make(name, max_epochs=60, patience=60).fit(task, seed=0, on_epoch=stop)
    values = method.predict_proba(task.graph)
    assert any(history.interrupted for history in method.history_)
    score = validation_score(values, task)
    (main,) = (history for history in method.history_ if history.main)
    assert float(score) == pytest.approx(main.best_score, abs=1e-6)


def test_one_stage_is_the_main_one(name):
    method = fitted(name, small_task())
    assert sum(history.main for history in method.history_) == 1


# How it is written.


def test_it_is_a_final_keyword_only_dataclass(name):
    method = METHODS[name]
    assert issubclass(method, Method)
    assert dataclasses.is_dataclass(method)
    assert method.__final__
    assert "__dataclass_params__" in vars(method)
    assert all(field.kw_only for field in dataclasses.fields(method))
    assert all(field.default is not dataclasses.MISSING for field in dataclasses.fields(method))


def test_its_parts_are_where_they_belong(name):
    method = METHODS[name]
    assert method.__module__ == f"evengraph.methods.{name}"
    assert method.__name__.lower() == name
    assert method.title.replace("-", "").replace(" ", "").lower() == name
    assert method.__name__ in evengraph.methods.__all__


def test_it_is_documented(name):
    method = METHODS[name]
    text = inspect.cleandoc(method.__doc__)
    sections = re.findall(r"^(Args|Shapes|Cost|Departs|Reference):$", text, flags=re.MULTILINE)
    order = ["Args", "Shapes", "Cost", "Departs", "Reference"]
    assert sections == sorted(sections, key=order.index)
    assert {"Shapes", "Cost", "Reference"} <= set(sections)
    shared = {
        field.name
        for base in SHARED
        if issubclass(method, base)
        for field in dataclasses.fields(base)
    }
    own = [field.name for field in dataclasses.fields(method) if field.name not in shared]
    arguments = (text.split("\nArgs:\n")[1].split("\n\n")[0]) if own else ""
    assert re.findall(r"^    (\w+):", arguments, flags=re.MULTILINE) == own


def test_unknown_fields_are_refused(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'hiden'"):
        METHODS[name](hiden=3)


def test_fields_show_in_the_repr(name):
    assert "max_epochs=6" in repr(make(name))


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("max_epochs", -1, "at least 0"),
        ("patience", -1, "at least 0"),
        ("weight_decay", -0.5, "at least 0"),
        ("weight_decay", float("nan"), "at least 0"),
        ("learning_rate", 0, "above 0"),
    ],
)
def test_bad_training_fields_are_refused(name, field, value, rule):
    with pytest.raises(ValueError, match=f"{field} must be {rule}, got {value}"):
        METHODS[name](**{field: value})
