"""Method: the contract of every method, and its training."""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, partial
from importlib.resources import files
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.errors import first_line, short
from evengraph.core.machine import format_size, free_memory
from evengraph.core.rng import seeded
from evengraph.core.task import (
    Task,
    bare_graph,
    check_edge_weight,
    check_relations,
    class_labels,
    count_relations,
    edge_weight,
    node_indices,
    scored_nodes,
)
from evengraph.fast import form_of
from evengraph.methods.bases.saving import (
    Labelled,
    Saving,
)
from evengraph.methods.bases.search import Committee
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix
from evengraph.ops.features import feature_signatures
from evengraph.training import Callback, Epoch, History, train, train_stepwise
from evengraph.training.loop import Checkpoint, epoch_bar
from evengraph.training.ranks import ALONE, Ranks

LARGE = 1e9
"""Features from which on single precision may overflow: networks multiply them several times."""


def as_task(task: Task | Data, seed: int) -> Task:
    """A task, or that of a PyG graph with masks."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, Data):
        raise TypeError(
            f"task must be a Task or a torch_geometric.data.Data, got {type(task).__name__}."
        )
    check_graph(task)
    return Task.from_graph(task, seed=seed)


def check_task(task: Task) -> None:
    """Raise ValueError for a task that nothing can be learnt from."""
    check_graph(task.graph)
    counts = task.class_counts
    if counts.min() < 1:
        empty = int(counts.argmin())
        name = f" ({task.class_names[empty]})" if task.class_names else ""
        gap = "" if (task.graph.y == empty).any() else " Number the classes without gaps."
        raise ValueError(f"Class {empty}{name} has no training node; every class needs one.{gap}")
    for name in ("train", "val"):
        mask = getattr(task, name)
        if not mask.any():
            raise ValueError(f"The {name} set is empty.")
        if (task.graph.y[mask] < 0).any():
            raise ValueError(f"Some {name} nodes have no label.")


def check_graph(graph: Data) -> None:
    """Raise ValueError for a graph without usable features and edges."""
    x, edges = graph.x, graph.edge_index
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        raise ValueError("graph.x must hold a row of floating-point features per node, a tensor.")
    if x.layout != torch.strided:
        raise ValueError("graph.x must be a dense tensor, got a sparse one; x.to_dense() is dense.")
    # a sum needs no memory and a fraction of the time; that of huge numbers overflows
    if not torch.isfinite(x.sum()) and not torch.isfinite(x).all():
        row = int((~torch.isfinite(x)).any(dim=1).nonzero()[0])
        raise ValueError(f"graph.x must be finite; node {row} has a NaN or an infinity.")
    if edges is None or edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise ValueError("graph.edge_index must hold the edges as integers, shape (2, E).")
    check_edge_weight(graph)
    check_relations(graph)


def describe_large(x: Tensor) -> str:
    """A sentence about features so large that their products overflow; otherwise nothing."""
    largest = float(x.abs().max()) if x.numel() else 0.0
    if largest < LARGE:
        return ""
    return f" Features are as large as {largest:.0e}: scale them, for example to mean 0 and std 1."


def reason_of_overflow(message: str, x: Tensor) -> str:
    """The message of a loss that overflowed: huge features are to blame, not the learning rate."""
    large = describe_large(x)
    return f"{message.partition(';')[0].rstrip('.')}.{large}" if large else message


Limit = float | tuple[int, int] | Literal["fraction", "positive"]
"""What a number must be: at least this, from the first to the second, in [0, 1), or above 0."""


def check_params(method: Any) -> None:
    """Validate parameters by their annotations, and numbers by the `limits` of their classes."""
    limits, hints = _rules(method.__class__)
    for item in fields(method):
        name, value = item.name, getattr(method, item.name)
        limit, hint = limits.get(name), hints.get(name)
        words, hint = split_words(hint)
        if value in words:
            continue
        if words and isinstance(value, str):
            raise ValueError(f"{name} must be a number or {' or '.join(words)}, got {value!r}.")
        if isinstance(item.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}.")
        if get_origin(hint) is Literal:
            check_choice(name, value, get_args(hint))
        elif limit == "fraction":
            check_fraction(name, value)
        elif limit == "positive":
            check_positive(name, value)
        elif isinstance(limit, tuple):
            check_range(name, value, *limit)
        elif limit is not None and hint is int:
            check_integer(name, value, int(limit))
        elif isinstance(limit, float | int):
            check_minimum(name, value, limit)


def split_words(hint: Any) -> tuple[tuple[str, ...], Any]:
    """Words that stand beside numbers, and the type of these: `int | Literal["auto"]`."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else ()
    words = tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))
    return words, next(part for part in parts if get_origin(part) is not Literal) if words else hint


@cache
def _rules(kind: type) -> tuple[dict[str, Limit], dict[str, Any]]:
    """Limits and types of all parameters of a class; evaluating the types takes a millisecond."""
    limits: dict[str, Limit] = {}
    for base in reversed(kind.__mro__):
        limits |= vars(base).get("limits", {})
    try:
        return limits, get_type_hints(kind)
    except NameError:  # a type that is imported for type checkers only
        return limits, {}


def check_integer(name: str, value: int, minimum: int) -> None:
    """Raise ValueError for a parameter that is no integer, or below its minimum."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    check_minimum(name, value, minimum)


def check_range(name: str, value: int, minimum: int, maximum: int) -> None:
    """Raise ValueError for a parameter that is no integer, or outside its range."""
    check_integer(name, value, minimum)
    if value > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {short(value)}.")


def check_minimum(name: str, value: float, minimum: float) -> None:
    """Raise ValueError for a parameter that is below its minimum, or infinite."""
    if not value >= minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")


def check_positive(name: str, value: float) -> None:
    """Raise ValueError for a parameter that is not above 0, or infinite."""
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")


def check_fraction(name: str, value: float) -> None:
    """Raise ValueError for a parameter outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}.")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError for a parameter that is not among its choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")


def same_graph(one: Data, other: Data) -> bool:
    """Whether two graphs have the same features, edges and weights; labels do not matter."""
    weights = edge_weight(one), edge_weight(other)
    if (weights[0] is None) != (weights[1] is None):
        return False
    return (
        one.x.shape == other.x.shape
        and one.edge_index.shape == other.edge_index.shape
        and one.x.device == other.x.device
        and (one.x is other.x or torch.equal(one.x, other.x))
        and (one.edge_index is other.edge_index or torch.equal(one.edge_index, other.edge_index))
        and (weights[0] is None or weights[1] is None or torch.equal(weights[0], weights[1]))
    )


def fit_hidden(method: Method, task: Task) -> None:
    """Fit to a task whose test labels are hidden, in the body of `learn`."""
    method._fit(task)


def train_network(method: Method, net: nn.Module, epoch: Epoch) -> None:
    """Train a network with the parameters of a method, in the body of `learn`."""
    method._train(net, epoch)


@contextmanager
def one_line_errors(title: str, *, loaded: bool) -> Iterator[None]:
    """Turn errors of torch into one of a line, if the tensors come from a folder.

    Args:
        title: Name of the method.
        loaded: Whether it was loaded; an error of a method that was fitted here is a bug.
    """
    try:
        yield
    except (IndexError, KeyError, RuntimeError, TypeError) as error:
        if not loaded or _is_memory(error):
            raise
        raise ValueError(
            f"The saved model cannot predict: the tensors of {title} do not fit together "
            f"({first_line(error)})."
        ) from error


def check_classes(probabilities: Tensor, classes: int) -> None:
    """Raise ValueError unless there is a column for each class."""
    if probabilities.dim() != 2 or probabilities.shape[1] != classes:
        shape = " by ".join(map(str, probabilities.shape))
        raise ValueError(
            f"The saved model must predict {classes} classes, and its tensors give {shape} values."
        )


def _is_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "allocate" in str(error)


TYPICAL_EPOCHS = 300

DEGREE, FEATURES, WIDTH, EDGE = 10, 64, 64, 8
"""Of the graphs on which methods were measured; an edge weighs as much as so many numbers."""

ENTRY, SPARSE_BELOW, SAMPLE = 4, 0.25, 1000
"""Numbers that an entry of sparse features weighs as much as; below which density they are sparse;
and rows from which that is estimated."""

MARGIN = 2.0
"""Times the free memory that an estimate may be: it can be off by as much."""


class Cost(NamedTuple):
    """What fitting takes, about.

    Args:
        memory: Bytes.
        seconds: On one core, for `TYPICAL_EPOCHS` epochs.
    """

    memory: float
    seconds: float


def estimate(method: str, num_nodes: int, num_edges: int, num_features: float) -> Cost | None:
    """What a method takes, if it grows with nodes, edges and features; None if not measured.

    Args:
        method: Its name in `METHODS`.
        num_nodes: N.
        num_edges: E, two for each undirected edge.
        num_features: F, or `stored_width`.
    """
    measured = _measurements().get(method)
    if measured is None:
        return None
    size = num_nodes * (num_features + WIDTH) + EDGE * num_edges
    nodes = size / (FEATURES + WIDTH + EDGE * DEGREE)  # of the size of those measured
    memory, once, epoch = measured
    return Cost(memory * nodes, 1e-6 * nodes * (once + TYPICAL_EPOCHS * epoch))


def stored_width(x: Any) -> float:
    """Numbers that a row of features takes while a method learns that keeps sparse ones sparse.

    From a sample of rows. An entry is stored with its column, in the matrix and its transpose.

    Shapes:
        x: (N, F), of torch or NumPy
    """
    some = x[:: max(len(x) // SAMPLE, 1)]
    rows = some if isinstance(some, torch.Tensor) else torch.from_numpy(np.array(some))
    entries = int(torch.count_nonzero(rows)) / max(len(rows), 1)
    num_features = x.shape[1]
    return ENTRY * entries if entries < SPARSE_BELOW * num_features else num_features


def check_memory(method: Method, task: Task) -> None:
    """Raise MemoryError if a fit needs far more memory than is free."""
    needed, free = method.memory_needed(task), free_memory(task.graph.x.device)
    if needed is None or needed <= MARGIN * free:
        return
    graph = task.graph
    raise MemoryError(
        f"{method.title} needs about {format_size(needed)} of memory to learn from "
        f"{graph.num_nodes:,} nodes, {graph.num_edges // 2:,} edges and {graph.num_features:,} "
        f"features, and {format_size(free)} are free."
    )


@cache
def _measurements() -> dict[str, tuple[float, float, float]]:
    """Bytes, microseconds and microseconds per epoch of each method, for a node."""
    text = files("evengraph.methods").joinpath("costs.csv").read_text(encoding="utf-8")
    return {
        row["method"]: (
            float(row["bytes_per_node"]),
            float(row["microseconds_per_node"]),
            float(row["microseconds_per_node_and_epoch"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


@dataclass(kw_only=True)
class Method(Saving, ABC):
    """Learns from a task, then predicts class probabilities of every node.

    Authors write `_fit` and `_logits`. A method whose `net_` is made by `_build_network` can be
    saved; one with other state also writes `_state` and `_load_state`. Attributes that fitting
    creates end in an underscore. Parameters can be read and set as in scikit-learn, and
    `sklearn.base.clone` works.

    Args:
        learning_rate: Adam's learning rate.
        weight_decay: Weight decay, except for layers that a network exempts.
        max_epochs: Maximum number of training steps, in each stage of a method with several.
        patience: Epochs without a better validation score before training stops.

    Shapes:
        task.graph.x: (N, F)
        predict_proba: (N, C)
    """

    limits: ClassVar[Mapping[str, Limit]] = {
        "learning_rate": "positive",
        "weight_decay": 0,
        "max_epochs": 0,
        "patience": 0,
    }
    """Limits of numeric parameters, beside those of the base classes."""

    summary_ = cast(Sequence[str], ())
    """Summary of the fit, one sentence per line; empty for most methods."""
    notes_ = cast(Sequence[str], ())
    """What went otherwise than expected in the fit, a sentence each; usually empty."""

    _callbacks = cast(Sequence[Callback], ())
    _ranks = ALONE
    _checkpoint = cast(Checkpoint | None, None)

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    max_epochs: int = 10_000
    patience: int = 100

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Parameters to use on a graph that the method was not tuned for."""
        return {"patience": Method.patience, **cls.untuned_params}

    def describe_defaults(self, graph: Data) -> str:
        """A sentence about parameters that depend on the graph; empty if there are none."""
        return ""

    @property
    def resolved_params(self) -> dict[str, Any]:
        """Parameters whose value was left to fitting, such as `alpha="auto"`, with that value."""
        return {}

    def __post_init__(self) -> None:
        check_params(self)

    def _repr_html_(self) -> str:
        """Parameters, and what is known of the fit, for notebooks."""
        from evengraph.report.notebook import method_html

        facts: list[tuple[str, str]] = [("", "not fitted")]
        if self.is_fitted:
            epochs = sum(history.epochs for history in self.history_)
            seconds = sum(history.seconds for history in self.history_)
            facts = [(f"{self.num_classes_:,}", "classes"), (f"{epochs:,}", "epochs")]
            facts.append((f"{seconds:.1f} s", "of training"))
        params = {name: repr(value) for name, value in self.get_params().items()}
        about = {"title": self.full_title, "params": params, "facts": facts}
        return method_html({**about, "changed": self.changed_params})

    # Fitting

    @final
    def fit(
        self,
        task: Task | Data,
        *,
        seed: int = 0,
        on_epoch: Callback | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Train on the training nodes and select on the validation nodes.

        Test labels are hidden before `_fit` sees the task. The caller's random state is unchanged.

        Args:
            task: What to learn: a task, or a PyG graph with masks (`Task.from_graph`).
            seed: Seed of everything random: initial weights, dropout, clusters.
            on_epoch: Called with the history after every epoch, for example with a TensorBoard
                writer: `lambda h: writer.add_scalar("loss", h.loss[-1], h.epochs)`.
            progress: Show a progress bar; by default on a terminal only.
        """
        task = as_task(task, seed)
        self.reset(task)
        check_memory(self, task)
        hidden = task.hide_test_labels()

        def learn() -> None:
            try:
                quick = self._quick("fit")
                if quick is None or not quick(hidden, seed):
                    self._fit(hidden)
            except FloatingPointError as error:
                message = reason_of_overflow(str(error), hidden.graph.x)
                raise FloatingPointError(message) from None

        return self.learn(learn, seed=seed, on_epoch=on_epoch, progress=progress)

    @final
    def learn(
        self,
        body: Callable[[], None],
        *,
        seed: int,
        on_epoch: Callback | None = None,
        progress: bool | None = None,
        ranks: Ranks = ALONE,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Run the body of a fit with the random state of a seed, after `reset`.

        Args:
            body: Trains.
            seed: Seed of everything random.
            on_epoch: Called with the history after every epoch.
            progress: Show a progress bar; by default on a terminal only.
            ranks: The processes that train together.
            checkpoint: Where training is saved as it goes on, and continues.
        """
        self._ranks, self._checkpoint = ranks, checkpoint
        with epoch_bar(self.title, progress) as show:
            given = (show, on_epoch)
            self._callbacks = [callback for callback in given if callback is not None]
            try:
                with seeded(seed):
                    body()
            finally:
                self._forget_caller()
        self.fitted_ = True
        return self

    def refitted(self, task: Task, *, seed: int) -> Method:
        """A copy fitted to another task, with what this one has selected; shows no progress."""
        return type(self)(**self.get_params()).fit(task, seed=seed, progress=False)

    def reset(self, task: Task) -> None:
        """Validate the task and reset fitted state."""
        check_task(task)
        self.fitted_ = self.loaded_ = False
        self.history_: list[History] = []
        self.num_features_, self.device_ = task.graph.num_features, task.graph.x.device
        self.num_relations_ = count_relations(task.graph)
        self.num_classes_, self.class_names_ = task.num_classes, task.class_names
        self.fitted_params_, self.extra_ = self.get_params(), dict[str, Any]()
        self.details_, self.summary_, self.notes_ = dict[str, Any](), (), ()
        nodes = task.train.nonzero().squeeze(1)  # a copy: the caller's masks may change later
        rows = nodes.split(2**12)  # of a graph on disk, x is one number until it is indexed
        signatures = torch.cat([feature_signatures(task.graph.x[some].detach()) for some in rows])
        self.labelled_ = Labelled(nodes, task.graph.y[nodes], signatures)
        self._forget_caller()

    def _forget_caller(self) -> None:
        """Hold none of the caller's objects."""
        self._callbacks, self._ranks, self._checkpoint = (), ALONE, None

    def memory_needed(self, task: Task) -> float | None:
        """Bytes that fitting takes, about, besides the graph itself; None if that is not known.

        By default an estimate from measurements, linear in nodes, edges and features. A method
        that needs more, such as all pairs of some nodes, adds it.
        """
        graph, name = task.graph, type(self).__name__.lower()
        width = graph.num_features if self.stores_dense else stored_width(graph.x)
        cost = estimate(name, graph.num_nodes, graph.num_edges, width)
        return None if cost is None else cost.memory

    @property
    def classes_(self) -> NDArray[Any]:
        """Names of the classes, or their numbers, in the order of the columns of predict_proba."""
        self._check_fitted()
        return np.array(self.class_names_ or range(self.num_classes_))

    def _quick(self, name: str) -> Callable[..., Any] | None:
        """A function of the method's quick form (`evengraph.fast`); None if it has none."""
        function = getattr(form_of(self), name, None)
        return None if function is None else partial(function, self)

    @abstractmethod
    def _fit(self, task: Task) -> None:
        """Learn; the task's test labels are hidden and the random state is set."""

    def _train(
        self,
        module: nn.Module,
        epoch: Epoch,
        *,
        max_epochs: int | None = None,
        patience: int | None = None,
        main: bool = True,
        recordable: bool = False,
    ) -> History:
        """Run the training loop with this method's parameters, and append its history.

        A method with several stages, one of them the main one, calls it once per stage. The
        method's `max_epochs` bounds every stage; after Ctrl-C, later stages take no steps.
        """
        params = self._training_params()
        if max_epochs is not None:
            params["max_epochs"] = min(max_epochs, self.max_epochs)
        if patience is not None:
            params["patience"] = patience
        if any(history.interrupted for history in self.history_):
            params["max_epochs"] = 0
        params |= {"on_epoch": self._report_epoch, "main": main, "recordable": recordable}
        params |= {"ranks": self._ranks, "checkpoint": self._checkpoint}
        self.history_.append(train(module, epoch, **params))
        return self.history_[-1]

    def _train_in_steps(self, steps: Iterator[tuple[Tensor, Tensor]]) -> History:
        """Early stopping for estimators that are not trained by gradient descent."""
        limits = {"max_epochs": self.max_epochs, "patience": self.patience}
        self.history_.append(train_stepwise(steps, on_epoch=self._report_epoch, **limits))
        return self.history_[-1]

    def _report_epoch(self, history: History) -> None:
        """Call the progress bar and the caller's function after an epoch."""
        for callback in self._callbacks:
            callback(history)

    def _training_params(self) -> dict[str, Any]:
        """The parameters of training, by name."""
        names = ("learning_rate", "weight_decay", "max_epochs", "patience")
        return {name: getattr(self, name) for name in names}

    # Predicting

    @final
    @torch.no_grad()
    def predict_proba(self, graph: Data) -> Tensor:
        """Class probabilities of every node, rows sum to one; nothing is trained.

        The graph is the training graph, possibly with nodes and edges added or removed, or another
        one with the same features. Keep the row of a known node, and append new nodes: a node in
        its row of training is recognised (`matching_signatures` in `evengraph.ops`).

        Shapes:
            returns: (N, C)
        """
        inputs = self.model_input(graph)
        with one_line_errors(self.title, loaded=self.loaded_):
            logits = (self._quick("logits") or self._logits)(inputs)
            probabilities: Tensor = logits.softmax(dim=1).to(graph.x.device)
        check_classes(probabilities, self.num_classes_)
        if probabilities.isnan().any():
            message = f"{self.title} predicts NaN.{describe_large(graph.x)}"
            raise FloatingPointError(message)
        return probabilities

    def predict_task(self, task: Task) -> Tensor:
        """Class probabilities of every node of a task, (N, C).

        Where a split by time hides edges, training and validation nodes are predicted without
        those that came after them, all others with all edges.
        """
        probabilities = self.predict_proba(task.graph)
        if task.past is None:
            return probabilities
        seen = (task.train | task.val).unsqueeze(1)
        return torch.where(seen, self.predict_proba(task.past), probabilities)

    def held_out(self, task: Task) -> Tensor:
        """Nodes that `predict_task` predicts without having learnt from their label, bool, (N,)."""
        return task.val

    def predict(self, graph: Data) -> Tensor:
        """The most probable class of every node.

        Shapes:
            returns: int64, (N,)
        """
        return self.predict_proba(graph).argmax(dim=1)

    @torch.no_grad()
    def predict_members(self, graph: Data) -> Committee | None:
        """What each member of a committee predicts; None if the method is no committee.

        How far members agree tells how far to trust a prediction (`Committee.agreement`). Like
        probabilities, they are on the device of the graph.
        """
        return None

    def score(self, task: Task | Data, *, nodes: Tensor | None = None) -> float:
        """Balanced accuracy on the test nodes, or on others.

        Args:
            task: The graph and its labels: a task, or a PyG graph with masks.
            nodes: A mask, or node indices, to score instead of the test nodes.

        Shapes:
            nodes: bool, (N,), or int64, (M,)
        """
        graph = task if isinstance(task, Data) else task.graph
        if nodes is None:
            nodes = scored_nodes(graph) if isinstance(task, Data) else task.test
        index = node_indices(nodes, graph)
        labels = class_labels(graph)[index]
        if not labels.numel():
            raise ValueError("There are no nodes to score on.")
        if labels.min() < 0:
            raise ValueError("Some of the nodes to score on have no label.")
        predicted = self.predict(graph)[index]
        num_classes = max(self.num_classes_, int(labels.max()) + 1)
        return float(balanced_accuracy(confusion_matrix(labels, predicted, num_classes)))

    def model_input(self, graph: Data) -> Data:
        """Validate a graph and return its features and edges, without labels, on the device."""
        self._check_fitted()
        check_graph(graph)
        if graph.num_features != self.num_features_:
            raise ValueError(
                f"graph.x must have {self.num_features_} columns as in training, "
                f"got {graph.num_features}."
            )
        if self.separate_relations and count_relations(graph) != self.num_relations_:
            raise ValueError(
                f"graph.num_relations must be {self.num_relations_} as in training, "
                f"got {count_relations(graph)}."
            )
        return bare_graph(graph).to(self.device_)

    @abstractmethod
    def _logits(self, graph: Data) -> Tensor:
        """Logits of all nodes, (N, C)."""
