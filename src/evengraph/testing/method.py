"""check_method(): the contract of a method, one function per rule."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch_geometric.data import Data

from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.datasets import toy
from evengraph.methods import METHODS, Method
from evengraph.metrics import validation_score
from evengraph.pipeline.loading import load_model
from evengraph.testing.case import (
    EPOCHS,
    Case,
    error_of,
    expect,
    expect_equal,
    expect_fits,
    expect_probabilities,
)
from evengraph.testing.tasks import INVALID_TASKS, VALID_TASKS, small_task, with_graph
from evengraph.training import History

# Predictions.


def it_learns(case: Case) -> None:
    """Sixty epochs fit most training nodes."""
    task = small_task()
    values = case.predict(task, max_epochs=60, patience=60)
    correct = values.argmax(1)[task.train] == task.graph.y[task.train]
    accuracy = float(correct.float().mean())
    expect(accuracy > case.train_accuracy, f"accuracy on the training nodes is {accuracy:.2f}.")


def same_seed_same_answer(case: Case) -> None:
    """A seed decides everything."""
    task = small_task()
    first, second = (case.predict(task, seed=3) for _ in range(2))
    expect_equal(first, second, "two fits with one seed differ.")


def fitting_again_resets_the_state(case: Case) -> None:
    """A second fit gives what a first fit would have given."""
    task = small_task()
    method = case.fit(small_task(seed=2), seed=1)
    again = method.fit(task, seed=3).predict_proba(task.graph)
    expect_equal(again, case.predict(task, seed=3), "the first fit influences the second.")


def different_seeds_differ(case: Case) -> None:
    """The seed has an influence, unless the method is declared deterministic."""
    task = small_task()
    same = torch.equal(case.predict(task, seed=3), case.predict(task, seed=4))
    expect(same == case.deterministic, f"equal for two seeds: {same}.")


def equal_copy_of_the_graph_gives_the_same_answer(case: Case) -> None:
    """A clone of the training graph is recognised."""
    task = small_task()
    method = case.fit(task)
    clone = method.predict_proba(task.graph.clone())
    expect_equal(clone, method.predict_proba(task.graph), "a clone is predicted differently.")


def another_graph_can_be_predicted(case: Case) -> None:
    """Smaller, larger and unlabelled graphs are predicted; the training graph is not forgotten."""
    task = small_task()
    method = case.fit(task)
    smaller = toy(90, 200, task.graph.num_features, 3, seed=9)
    smaller.edge_index = smaller.edge_index[:, (smaller.edge_index > 5).all(0)]  # 6 isolated nodes
    expect_probabilities(method.predict_proba(smaller), 90, 3)
    larger = toy(300, 900, task.graph.num_features, 3, seed=9)
    expect_probabilities(method.predict_proba(larger), 300, 3)
    unlabelled = method.predict_proba(Data(x=smaller.x, edge_index=smaller.edge_index))
    expect_equal(unlabelled, method.predict_proba(smaller), "labels influence predictions.")
    again = method.predict_proba(task.graph)
    expect_equal(again, case.predict(task), "predicting another graph changes the method.")


def a_fitted_method_can_be_pickled(case: Case) -> None:
    """A pickled copy predicts the same."""
    task = small_task()
    method = case.fit(task)
    copy = pickle.loads(pickle.dumps(method))
    for graph in (task.graph, small_task(seed=2).graph):
        same = copy.predict_proba(graph), method.predict_proba(graph)
        expect_equal(*same, "the copy predicts differently.")


def a_fitted_method_can_be_saved(case: Case) -> None:
    """`load_model` returns a method that predicts the same."""
    task = small_task()
    method = case.fit(task)
    name = case.cls.__name__.lower()
    registered = METHODS.get(name)
    METHODS[name] = case.cls
    try:
        with tempfile.TemporaryDirectory() as folder:
            method.save(Path(folder, "model"))
            loaded = load_model(Path(folder, "model"))
    finally:
        if registered is None:
            del METHODS[name]
        else:
            METHODS[name] = registered
    for graph in (task.graph, small_task(seed=2).graph):
        expected = method.predict_proba(graph)
        torch.testing.assert_close(
            loaded.predict_proba(graph), expected, msg="the loaded method predicts differently."
        )


def the_history_is_recorded(case: Case) -> None:
    """`on_epoch` is called for every epoch, and `history_` holds them all."""
    epochs = list[int]()
    method = case.make().fit(small_task(), seed=0, on_epoch=lambda h: epochs.append(h.epochs))
    expect(len(epochs) >= EPOCHS, f"on_epoch was called {len(epochs)} times.")
    for history in method.history_:
        expect(len(history.loss) == len(history.score), "losses and scores differ in number.")
    recorded = sum(len(history.loss) for history in method.history_)
    expect(recorded == len(epochs), f"{recorded} epochs recorded, {len(epochs)} reported.")
    expect(method.is_fitted, "is_fitted is False after fit.")


def no_epochs_at_all(case: Case) -> None:
    """`max_epochs=0` gives an untrained method that predicts."""
    task = small_task()
    expect_probabilities(case.predict(task, max_epochs=0), len(task.train), 3)


def one_stage_is_the_main_one(case: Case) -> None:
    """Exactly one stage of training is marked `main`."""
    stages = [history.main for history in case.fit(small_task()).history_]
    expect(sum(stages) == 1, f"main is {stages}.")


# Side effects.


def _random_state() -> tuple[Any, ...]:
    _, words, *rest = np.random.get_state()
    return random.getstate(), np.asarray(words).tolist(), rest, torch.get_rng_state().tolist()


def global_random_state_is_unchanged(case: Case) -> None:
    """Neither `fit` nor `predict_proba` moves the caller's random state."""
    task = small_task()
    before = _random_state()
    method = case.fit(task)
    expect(_random_state() == before, "fit changes the global random state.")
    method.predict_proba(task.graph)
    method.predict_proba(toy(60, 120, task.graph.num_features, 3, seed=9))
    expect(_random_state() == before, "predict_proba changes the global random state.")


def global_random_state_has_no_influence(case: Case) -> None:
    """Only the seed of `fit` counts."""
    task = small_task()
    with seeded(1):
        first = case.predict(task)
    with seeded(2):
        second = case.predict(task)
    expect_equal(first, second, "the caller's random state influences the result.")


def the_task_is_unchanged(case: Case) -> None:
    """`fit` writes into neither the graph nor the masks."""
    task, untouched = small_task(), small_task()
    case.fit(task).predict_proba(task.graph)
    expect(task.graph.keys() == untouched.graph.keys(), "the graph has other attributes.")
    for key in ("x", "edge_index", "y"):
        expect_equal(task.graph[key], untouched.graph[key], f"graph.{key} changed.")
    for key in ("train", "val", "test"):
        expect_equal(getattr(task, key), getattr(untouched, key), f"task.{key} changed.")


def parameters_are_unchanged(case: Case) -> None:
    """`fit` does not write into constructor parameters."""
    method = case.make()
    before = dataclasses.asdict(method)
    method.fit(small_task(), seed=0)
    expect(dataclasses.asdict(method) == before, "fit changes a parameter.")


def hidden_labels_have_no_influence(case: Case) -> None:
    """Labels outside train and validation change nothing."""
    task = small_task()
    hidden = ~(task.train | task.val)
    labels = task.graph.y.clone()
    labels[hidden] = (labels[hidden] + 1) % 3
    scrambled = with_graph(task, y=labels)
    removed = with_graph(task, y=torch.where(hidden, -1, task.graph.y))
    expected = case.predict(task)
    expect_equal(case.predict(scrambled), expected, "test labels influence the result.")
    expect_equal(case.predict(removed), expected, "missing test labels influence the result.")


# Tasks.


def _fits(edit: Callable[[Task], Task], case: Case) -> None:
    expect_fits(case, edit(small_task()))


def _is_rejected(words: str, edit: Callable[[Task], Task], case: Case) -> None:
    """Fitting must raise a ValueError of one line that contains some words."""
    method = case.make()
    message = error_of(ValueError, lambda: method.fit(edit(small_task()), seed=0))
    expect(words in message, f"the error does not contain {words!r}: {message}")
    expect("\n" not in message and message.endswith("."), f"not one sentence: {message}")
    expect(not method.is_fitted, "is_fitted is True after an error.")


def features_in_double_precision(case: Case) -> None:
    """Double precision gives the result of single precision, up to rounding."""
    task = small_task()
    double = case.predict(with_graph(task, x=task.graph.x.double()))
    torch.testing.assert_close(double, case.predict(task), check_dtype=False, rtol=1e-3, atol=1e-3)


# Parameters.


def _choices(cls: type[Method]) -> Iterator[list[tuple[str, Any]]]:
    """Yield the values of every parameter that has only a few."""
    names = {field.name for field in dataclasses.fields(cls)}
    for name, hint in get_type_hints(cls).items():
        if name in names and hint is bool:
            yield [(name, value) for value in (False, True)]
        elif name in names and get_origin(hint) is Literal:
            yield [(name, value) for value in get_args(hint)]


def all_combinations_of_choices(case: Case) -> None:
    """Every combination of flags and choices fits."""
    task = small_task()
    for params in product(*_choices(case.cls)):
        values = case.predict(task, max_epochs=2, **dict(params))
        expect_probabilities(values, len(task.train), 3)


def a_final_keyword_only_dataclass(case: Case) -> None:
    """The class is final, and every parameter has a default and is given by keyword."""
    cls = case.cls
    expect(isinstance(cls, type) and issubclass(cls, Method), "it is no subclass of Method.")
    expect("__dataclass_params__" in vars(cls), "it is not decorated with @dataclass.")
    expect(hasattr(cls, "__final__"), "it is not decorated with @final.")
    expect(not inspect.isabstract(cls), "it is abstract.")
    for field in dataclasses.fields(cls):
        expect(bool(field.kw_only), f"{field.name} is not keyword-only.")
        expect(field.default is not dataclasses.MISSING, f"{field.name} has no default.")


def unknown_parameters_are_rejected(case: Case) -> None:
    """A misspelt parameter is an error."""
    message = error_of(TypeError, lambda: case.make(hiden=3))
    expect("unexpected keyword argument 'hiden'" in message, f"the error says: {message}")


def parameters_show_in_the_repr(case: Case) -> None:
    """The repr shows the parameters."""
    expect(f"max_epochs={EPOCHS}" in repr(case.make()), f"the repr is {case.make()!r}.")


def _is_bad(name: str, value: float, rule: str, case: Case) -> None:
    message = error_of(ValueError, lambda: case.make(**{name: value}))
    expect(f"{name} must be {rule}, got {value}" in message, f"the error says: {message}")


def predicting_before_fitting(case: Case) -> None:
    """The error says to call fit."""
    message = error_of(RuntimeError, lambda: case.make().predict_proba(small_task().graph))
    words = f"{case.cls.title} is not fitted yet; call fit"
    expect(words in message, f"the error says: {message}")


def predicting_with_other_features(case: Case) -> None:
    """The error names both numbers of features."""
    method = case.fit(small_task())
    graph = Data(x=torch.ones(4, 7), edge_index=torch.tensor([[0], [1]]))
    message = error_of(ValueError, lambda: method.predict_proba(graph))
    expect("64" in message.partition("7")[0], f"the error says: {message}")


# Interruption.


def interrupted_at_once(case: Case) -> None:
    """After Ctrl-C in the first epoch the method is still usable."""

    def stop(history: History) -> None:
        raise KeyboardInterrupt

    task = small_task()
    method = case.make()
    if "pretrain_epochs" in dataclasses.asdict(method):
        method.set_params(pretrain_epochs=0)
    method.fit(task, seed=0, on_epoch=stop)
    expect(method.history_[0].interrupted, "history_ does not record the interruption.")
    expect_probabilities(method.predict_proba(task.graph), len(task.train), 3)


def interrupted_later(case: Case) -> None:
    """After Ctrl-C the best model so far predicts, also if later stages have not run."""

    def stop(history: History) -> None:
        if history.main and history.epochs == 40:
            raise KeyboardInterrupt

    task = small_task()
    method = case.make(max_epochs=60, patience=60).fit(task, seed=0, on_epoch=stop)
    expect(any(h.interrupted for h in method.history_), "the interruption is not recorded.")
    (main,) = (history for history in method.history_ if history.main)
    score = float(validation_score(method.predict_proba(task.graph), task))
    same = abs(score - main.best_score) <= 1e-6
    expect(same, f"predictions score {score}, the best epoch scored {main.best_score}.")


_CHECKS = (
    it_learns,
    same_seed_same_answer,
    fitting_again_resets_the_state,
    different_seeds_differ,
    equal_copy_of_the_graph_gives_the_same_answer,
    another_graph_can_be_predicted,
    a_fitted_method_can_be_pickled,
    a_fitted_method_can_be_saved,
    the_history_is_recorded,
    no_epochs_at_all,
    one_stage_is_the_main_one,
    global_random_state_is_unchanged,
    global_random_state_has_no_influence,
    the_task_is_unchanged,
    parameters_are_unchanged,
    hidden_labels_have_no_influence,
    features_in_double_precision,
    all_combinations_of_choices,
    a_final_keyword_only_dataclass,
    unknown_parameters_are_rejected,
    parameters_show_in_the_repr,
    predicting_before_fitting,
    predicting_with_other_features,
    interrupted_at_once,
    interrupted_later,
)
_BAD_PARAMETERS = (
    ("max_epochs", -1, "at least 0"),
    ("patience", -1, "at least 0"),
    ("weight_decay", -0.5, "at least 0"),
    ("weight_decay", float("nan"), "at least 0"),
    ("learning_rate", 0, "above 0"),
)
METHOD_CHECKS: dict[str, Callable[[Case], None]] = {
    **{check.__name__: check for check in _CHECKS},
    **{name: partial(_fits, edit) for name, edit in VALID_TASKS.items()},
    **{f"rejects_{name}": partial(_is_rejected, *rule) for name, rule in INVALID_TASKS.items()},
    **{f"rejects_{bad[0]}_of_{bad[1]}": partial(_is_bad, *bad) for bad in _BAD_PARAMETERS},
}
"""Every rule of the contract by name; `check_method` runs them all."""


def check_method(
    cls: type[Method],
    *,
    params: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    train_accuracy: float = 0.8,
    only: str | Iterable[str] | None = None,
) -> None:
    """Raise AssertionError if a method breaks the contract that all methods keep.

    With pytest, run one test per rule:

        @pytest.mark.parametrize("rule", evengraph.testing.METHOD_CHECKS)
        def test_contract(rule):
            evengraph.testing.check_method(MyMethod, only=rule)

    Args:
        cls: The class to check; it need not be registered.
        params: Constructor arguments that make a fit quick, such as fewer rounds.
        deterministic: Whether the seed has no influence on the result.
        train_accuracy: What 60 epochs must reach on the training nodes of a small task.
        only: Names of the rules to check; by default all of `METHOD_CHECKS`.
    """
    case = Case(cls, params or {}, deterministic, train_accuracy)
    names = METHOD_CHECKS if only is None else [only] if isinstance(only, str) else only
    for name in names:
        try:
            METHOD_CHECKS[name](case)
        except Exception as error:
            raise AssertionError(f"{cls.__name__}, {name}: {error}") from error
