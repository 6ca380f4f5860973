"""check_method() and check_dataset(): contracts; each function of `MethodContract` is one rule."""

import dataclasses
import inspect
import pickle
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin, get_type_hints
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import MissingPackageError
from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.datasets import load, toy
from evengraph.methods import METHODS, Method
from evengraph.metrics.multiclass import validation_score
from evengraph.pipeline.model_info import load_model
from evengraph.splits import Step
from evengraph.training import History

Edit = Callable[[Task], Task]


def small_task(
    num_classes: int = 3, *, num_nodes: int = 150, num_features: int = 64, seed: int = 1
) -> Task:
    """Return a task on a generated graph with one small class."""
    graph = toy(num_nodes, 4 * num_nodes, num_features, num_classes, seed, size_ratio=0.5)
    protocol = Step(minority=1, ratio=0.2, train_per_class=10, val_per_class=5, test_per_class=8)
    return protocol(graph, seed=0)


def task_with(*class_counts: int, num_nodes: int = 150, seed: int = 1) -> Task:
    """Return a task with this many training nodes per class, and five validation nodes each."""
    num_classes = len(class_counts)
    graph = toy(num_nodes, 4 * num_nodes, 64, num_classes, seed, size_ratio=0.5)
    train, val = (torch.zeros(num_nodes, dtype=torch.bool) for _ in range(2))
    for label, size in enumerate(class_counts):
        nodes = (graph.y == label).nonzero().flatten().flip(0)
        train[nodes[:size]] = True
        val[nodes[size : size + 5]] = True
    return Task(graph, train, val, torch.zeros_like(val), num_classes=num_classes)


def with_graph(task: Task, **tensors: Tensor | int | None) -> Task:
    graph = task.graph.clone()
    for key, value in tensors.items():
        graph[key] = value
    return replace(task, graph=graph)


def _isolated(task: Task, nodes: Tensor) -> Task:
    edges = task.graph.edge_index
    return with_graph(task, edge_index=edges[:, ~torch.isin(edges, nodes).any(0)])


def _train_nodes(task: Task, label: int) -> Tensor:
    nodes = task.train.nonzero().flatten()
    return nodes[task.graph.y[nodes] == label]


def _first_only(task: Task, *labels: int) -> Task:
    """Leave one training node in some classes."""
    train = task.train.clone()
    for label in labels:
        train[_train_nodes(task, label)[1:]] = False
    return replace(task, train=train)


def _without(task: Task, mask: str, label: int) -> Task:
    return replace(task, **{mask: getattr(task, mask) & (task.graph.y != label)})


def _repeated_edges(task: Task) -> Task:
    loops = torch.arange(len(task.train)).repeat(2, 1)
    return with_graph(task, edge_index=torch.cat([task.graph.edge_index] * 2 + [loops], 1))


def _normal_features(task: Task) -> Task:
    with seeded(0):
        return with_graph(task, x=torch.randn(len(task.train), 7))


def _all_labelled(task: Task) -> Task:
    val = torch.arange(len(task.val)) % 5 == 0
    return replace(task, train=~val, val=val, test=torch.zeros_like(val))


VALID_TASKS: dict[str, Edit] = {
    "rows_are_probabilities": lambda task: task,
    "one_training_node_in_a_class": lambda task: _first_only(task, 2),
    "one_training_node_in_every_class": lambda task: _first_only(task, 0, 1, 2),
    "class_counts_9_9_2": lambda task: task_with(9, 9, 2),
    "class_counts_6_6_6": lambda task: task_with(6, 6, 6),
    "class_counts_2_2_2": lambda task: task_with(2, 2, 2),
    "class_counts_9_4_1": lambda task: task_with(9, 4, 1),
    "class_counts_1_9_9": lambda task: task_with(1, 9, 9),
    "class_0_missing_from_validation": lambda task: _without(task, "val", 0),
    "class_1_missing_from_validation": lambda task: _without(task, "val", 1),
    "class_2_missing_from_validation": lambda task: _without(task, "val", 2),
    "an_isolated_training_node": lambda task: _isolated(task, task.train.nonzero()[0]),
    "isolated_training_nodes_of_class_0": lambda task: _isolated(task, _train_nodes(task, 0)),
    "isolated_training_nodes_of_class_2": lambda task: _isolated(task, _train_nodes(task, 2)),
    "no_edges": lambda task: with_graph(task, edge_index=task.graph.edge_index[:, :0]),
    "self_loops_and_repeated_edges": _repeated_edges,
    "two_classes": lambda task: small_task(num_classes=2),
    "dense_and_negative_features": _normal_features,
    "features_all_zero": lambda task: with_graph(task, x=torch.zeros_like(task.graph.x)),
    "features_that_require_gradients": lambda task: with_graph(
        task, x=task.graph.x.clone().requires_grad_()
    ),
    "all_nodes_labelled": _all_labelled,
}
"""Tasks that every method must fit, most of them unusual, each as a change of `small_task()`."""


def expect(condition: bool | Tensor, message: str) -> None:
    """Raise AssertionError unless the condition holds, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def expect_equal(first: Tensor, second: Tensor, message: str) -> None:
    expect(torch.equal(first, second), message)


def expect_probabilities(values: Tensor, num_nodes: int, num_classes: int) -> None:
    """Expect non-negative rows that sum to one."""
    shape = (num_nodes, num_classes)
    expect(values.shape == shape, f"the shape is {tuple(values.shape)} instead of {shape}.")
    expect(torch.isfinite(values).all(), "some probabilities are not finite.")
    expect((values >= 0).all(), "some probabilities are negative.")
    torch.testing.assert_close(values.sum(1), torch.ones(num_nodes), msg="rows do not sum to one.")
    expect(not values.requires_grad, "the result requires gradients.")


def expect_error(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    """Expect a call to raise an error whose message contains some words."""
    try:
        call()
    except kind as error:
        expect(words in str(error), f"the error does not contain {words!r}: {error}")
        return
    raise AssertionError(f"no {kind.__name__} was raised.")


EPOCHS = 6


def _random_state() -> tuple[Any, ...]:
    _, words, *rest = np.random.get_state()
    return random.getstate(), np.asarray(words).tolist(), rest, torch.get_rng_state().tolist()


@dataclass(frozen=True)
class MethodContract:
    """The rules that a method keeps: every public function here is one."""

    cls: type[Method]
    params: Mapping[str, Any]
    deterministic: bool
    train_accuracy: float

    def _make(self, **params: Any) -> Method:
        return self.cls(**{"max_epochs": EPOCHS, "patience": EPOCHS, **self.params, **params})

    def _fit(self, task: Task, seed: int = 0, **params: Any) -> Method:
        return self._make(**params).fit(task, seed=seed)

    def _predict(self, task: Task, seed: int = 0, **params: Any) -> Tensor:
        return self._fit(task, seed, **params).predict_proba(task.graph)

    def _fits(self, edit: Callable[[Task], Task]) -> None:
        task = edit(small_task())
        expect_probabilities(self._predict(task), len(task.train), task.num_classes)

    def wrong_parameters_are_rejected(self) -> None:
        """Those that all methods have are checked, also by a `__post_init__` of a method's own."""
        for name, value, rule in (
            *(("max_epochs", -1, "at least 0"), ("patience", -1, "at least 0")),
            *(("weight_decay", -0.5, "at least 0"), ("weight_decay", nan, "at least 0")),
            ("learning_rate", 0, "above 0"),
        ):
            words = f"{name} must be {rule}, got {value}"
            expect_error(ValueError, words, partial(self._make, **{name: value}))

    def it_learns(self) -> None:
        """Sixty epochs fit most training nodes."""
        task = small_task()
        values = self._predict(task, max_epochs=60, patience=60)
        correct = values.argmax(1)[task.train] == task.graph.y[task.train]
        accuracy = float(correct.float().mean())
        expect(accuracy > self.train_accuracy, f"accuracy on the training nodes is {accuracy:.2f}.")

    def same_seed_same_answer(self) -> None:
        """A seed decides everything."""
        task = small_task()
        first, again = (self._predict(task, seed=3) for _ in range(2))
        expect_equal(first, again, "two fits with one seed differ.")

    def fitting_again_resets_the_state(self) -> None:
        """A second fit gives what a first fit would have given."""
        task = small_task()
        method = self._fit(small_task(seed=2), seed=1)
        again = method.fit(task, seed=3).predict_proba(task.graph)
        expect_equal(again, self._predict(task, seed=3), "the first fit influences the second.")

    def different_seeds_differ(self) -> None:
        """The seed has an influence, unless the method is declared deterministic."""
        same = torch.equal(*(self._predict(small_task(), seed=seed) for seed in (3, 4)))
        expect(same == self.deterministic, f"equal for two seeds: {same}.")

    def equal_copy_of_the_graph_gives_the_same_answer(self) -> None:
        """A clone of the training graph is recognised."""
        method = self._fit(task := small_task())
        clone = method.predict_proba(task.graph.clone())
        expect_equal(clone, method.predict_proba(task.graph), "a clone is predicted differently.")

    def another_graph_can_be_predicted(self) -> None:
        """Smaller, larger and unlabelled graphs are predicted, and the training graph again."""
        method = self._fit(task := small_task())
        smaller = toy(90, 200, task.graph.num_features, 3, seed=9)
        connected = (smaller.edge_index > 5).all(0)  # the first 6 nodes are isolated
        smaller.edge_index = smaller.edge_index[:, connected]
        expect_probabilities(method.predict_proba(smaller), 90, 3)
        larger = toy(300, 900, task.graph.num_features, 3, seed=9)
        expect_probabilities(method.predict_proba(larger), 300, 3)
        unlabelled = method.predict_proba(Data(x=smaller.x, edge_index=smaller.edge_index))
        expect_equal(unlabelled, method.predict_proba(smaller), "labels influence predictions.")
        again = method.predict_proba(task.graph)
        expect_equal(again, self._predict(task), "predicting another graph changes the method.")

    def a_fitted_method_can_be_pickled(self) -> None:
        method = self._fit(task := small_task())
        copy = pickle.loads(pickle.dumps(method))
        for graph in (task.graph, small_task(seed=2).graph):
            same = copy.predict_proba(graph), method.predict_proba(graph)
            expect_equal(*same, "the copy predicts differently.")

    def a_fitted_method_can_be_saved(self) -> None:
        """`load_model` returns a method that predicts the same."""
        method = self._fit(task := small_task())
        registered = patch.dict(METHODS, {self.cls.__name__.lower(): self.cls})
        with registered, TemporaryDirectory() as folder:
            method.save(Path(folder, "model"))
            loaded = load_model(Path(folder, "model"))
        for graph in (task.graph, small_task(seed=2).graph):
            both = loaded.predict_proba(graph), method.predict_proba(graph)
            torch.testing.assert_close(*both, msg="the loaded method predicts differently.")

    def the_history_is_recorded(self) -> None:
        """`on_epoch` is called for every epoch, and `history_` holds them all."""
        epochs = list[int]()
        method = self._make().fit(small_task(), seed=0, on_epoch=lambda h: epochs.append(h.epochs))
        expect(len(epochs) >= EPOCHS, f"on_epoch was called {len(epochs)} times.")
        for history in method.history_:
            expect(len(history.loss) == len(history.score), "losses and scores differ in number.")
        recorded = sum(len(history.loss) for history in method.history_)
        expect(recorded == len(epochs), f"{recorded} epochs recorded, {len(epochs)} reported.")
        expect(method.is_fitted, "is_fitted is False after fit.")

    def no_epochs_at_all(self) -> None:
        """`max_epochs=0` gives an untrained method that predicts."""
        task = small_task()
        expect_probabilities(self._predict(task, max_epochs=0), len(task.train), 3)

    def one_stage_is_the_main_one(self) -> None:
        """Exactly one stage of training is marked `main`."""
        stages = [history.main for history in self._fit(small_task()).history_]
        expect(sum(stages) == 1, f"main is {stages}.")

    def global_random_state_is_unchanged(self) -> None:
        """Neither `fit` nor `predict_proba` moves the caller's random state."""
        task = small_task()
        before = _random_state()
        method = self._fit(task)
        expect(_random_state() == before, "fit changes the global random state.")
        method.predict_proba(task.graph)
        method.predict_proba(toy(60, 120, task.graph.num_features, 3, seed=9))
        expect(_random_state() == before, "predict_proba changes the global random state.")

    def global_random_state_has_no_influence(self) -> None:
        """Only the seed of `fit` counts."""
        found = []
        for seed in (1, 2):
            with seeded(seed):
                found.append(self._predict(small_task()))
        expect_equal(found[0], found[1], "the caller's random state influences the result.")

    def the_task_is_unchanged(self) -> None:
        task, untouched = small_task(), small_task()
        self._fit(task).predict_proba(task.graph)
        expect(task.graph.keys() == untouched.graph.keys(), "the graph has other attributes.")
        for key in ("x", "edge_index", "y"):
            expect_equal(task.graph[key], untouched.graph[key], f"graph.{key} changed.")
        for key in ("train", "val", "test"):
            expect_equal(getattr(task, key), getattr(untouched, key), f"task.{key} changed.")

    def parameters_are_unchanged(self) -> None:
        """`fit` does not write into constructor parameters."""
        method = self._make()
        before = dataclasses.asdict(method)
        method.fit(small_task(), seed=0)
        expect(dataclasses.asdict(method) == before, "fit changes a parameter.")

    def hidden_labels_have_no_influence(self) -> None:
        """Labels outside train and validation change nothing."""
        task = small_task()
        hidden, labels, expected = ~(task.train | task.val), task.graph.y, self._predict(task)
        scrambled = with_graph(task, y=torch.where(hidden, (labels + 1) % 3, labels))
        removed = with_graph(task, y=torch.where(hidden, -1, labels))
        expect_equal(self._predict(scrambled), expected, "test labels influence the result.")
        expect_equal(self._predict(removed), expected, "missing test labels influence the result.")

    def edge_weights(self) -> None:
        """Equal weights are as good as none; others count where the method says so."""
        task = small_task()
        plain, threes = self._predict(task), 3 * torch.ones(task.graph.num_edges)
        equal = self._predict(with_graph(task, edge_weight=threes))
        expect_equal(equal, plain, "equal weights change the result.")
        weight = 1 + 9.0 * (task.graph.edge_index.sum(0) % 3 == 0)
        differs = not torch.equal(self._predict(with_graph(task, edge_weight=weight)), plain)
        found = f"weights {'change' if differs else 'do not change'} the result, "
        as_said = differs == self._make().uses_edge_weights
        expect(as_said, f"{found}but uses_edge_weights says otherwise.")

    def features_in_double_precision(self) -> None:
        task = small_task()
        double = self._predict(with_graph(task, x=task.graph.x.double())).float()
        torch.testing.assert_close(double, self._predict(task), rtol=1e-3, atol=1e-3)

    def all_combinations_of_choices(self) -> None:
        """Every combination of flags and choices fits, if its packages are installed."""
        task, choices = small_task(), dict[str, tuple[Any, ...]]()
        hints = get_type_hints(self.cls)
        for name in (field.name for field in dataclasses.fields(self.cls)):
            if hints[name] is bool or get_origin(hints[name]) is Literal:
                choices[name] = get_args(hints[name]) or (False, True)
        for values in product(*choices.values()):
            with suppress(MissingPackageError):
                params = dict(zip(choices, values, strict=True))
                found = self._predict(task, max_epochs=2, **params)
                expect_probabilities(found, len(task.train), 3)

    def a_final_keyword_only_dataclass(self) -> None:
        """The class is final, and every parameter has a default and is given by keyword."""
        cls = self.cls
        expect(isinstance(cls, type) and issubclass(cls, Method), "it is no subclass of Method.")
        expect("__dataclass_params__" in vars(cls), "it is not decorated with @dataclass.")
        expect(hasattr(cls, "__final__"), "it is not decorated with @final.")
        expect(not inspect.isabstract(cls), "it is abstract.")
        for field in dataclasses.fields(cls):
            expect(bool(field.kw_only), f"{field.name} is not keyword-only.")
            expect(field.default is not dataclasses.MISSING, f"{field.name} has no default.")

    def interrupted_at_once(self) -> None:
        """After Ctrl-C in the first epoch the method is still usable."""

        def stop(history: History) -> None:
            raise KeyboardInterrupt

        task, method = small_task(), self._make()
        if "pretrain_epochs" in dataclasses.asdict(method):
            method.set_params(pretrain_epochs=0)
        method.fit(task, seed=0, on_epoch=stop)
        expect(method.history_[0].interrupted, "history_ does not record the interruption.")
        expect_probabilities(method.predict_proba(task.graph), len(task.train), 3)

    def interrupted_later(self) -> None:
        """After Ctrl-C the best model so far predicts, also if later stages have not run."""

        def stop(history: History) -> None:
            if history.main and history.epochs == 40:
                raise KeyboardInterrupt

        task = small_task()
        method = self._make(max_epochs=60, patience=60).fit(task, seed=0, on_epoch=stop)
        expect(any(h.interrupted for h in method.history_), "the interruption is not recorded.")
        (main,) = (history for history in method.history_ if history.main)
        score = float(validation_score(method.predict_proba(task.graph), task))
        same = abs(score - main.best_score) <= 1e-6
        expect(same, f"predictions score {score}, the best epoch scored {main.best_score}.")


METHOD_CHECKS: dict[str, Callable[[MethodContract], None]] = {
    **{name: rule for name, rule in vars(MethodContract).items() if not name.startswith("_")},
    **{name: partial(MethodContract._fits, edit=edit) for name, edit in VALID_TASKS.items()},
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
    contract = MethodContract(cls, params or {}, deterministic, train_accuracy)
    names = METHOD_CHECKS if only is None else [only] if isinstance(only, str) else only
    for name in names:
        try:
            METHOD_CHECKS[name](contract)
        except Exception as error:
            raise AssertionError(f"{cls.__name__}, {name}: {error}") from error


def check_dataset(name: str, root: str | Path | None = None) -> None:
    """Load a data set by its name and raise AssertionError if it breaks the contract.

    Args:
        name: The name in `DATASETS`: a built-in one or that of an entry point.
        root: Folder with its files, as in `load`.
    """
    data, again = load(name, root), load(name, root)
    x, edges, y = data.x, data.edge_index, data.y
    nodes = len(x)
    rules = {
        "x must be float32 of shape (N, F)": x.dim() == 2 and x.dtype == torch.float32,
        "x must be finite": bool(torch.isfinite(x).all()),
        "edge_index must be int64 of shape (2, E)": (
            edges.dtype == torch.int64 and edges.dim() == 2 and edges.shape[0] == 2
        ),
        "edge_index must name nodes in [0, N)": not edges.numel()
        or (int(edges.min()) >= 0 and int(edges.max()) < nodes),
        "edge_index must have both directions of every edge": data.is_undirected(),
        "y must be int64 of shape (N,)": y.dtype == torch.int64 and y.shape == (nodes,),
        "name must be the name it was loaded by": data.name == name,
        "class_names must have a name per class": (
            "class_names" not in data or len(data.class_names) == int(y.max()) + 1
        ),
        "two loads must give the same graph": all(
            torch.equal(data[key], again[key]) for key in ("x", "edge_index", "y")
        ),
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    if broken:
        raise AssertionError(f"Data set {name!r}: {'; '.join(broken)}.")
