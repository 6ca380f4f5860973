"""Method: the contract of every method, and its training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Self, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.graphs import bare_graph, count_relations
from evengraph.core.masks import class_labels, node_indices, scored_nodes
from evengraph.core.ranks import ALONE, Ranks
from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.fast import form_of
from evengraph.methods.bases.checks import (
    Limit,
    as_task,
    check_graph,
    check_params,
    check_task,
    describe_large,
    reason_of_overflow,
)
from evengraph.methods.bases.committee import Committee
from evengraph.methods.bases.costs import check_memory, estimate, stored_width
from evengraph.methods.bases.loaded import check_classes, one_line_errors
from evengraph.methods.bases.model_folder import (
    Labelled,
)
from evengraph.methods.bases.saving import Saving
from evengraph.metrics import balanced_accuracy, confusion_matrix
from evengraph.nn.attribution import with_features
from evengraph.nn.tracing import TRACERS, Contributions, gradient_times_input
from evengraph.ops.signature import feature_signatures
from evengraph.training import Callback, Epoch, History, train, train_stepwise
from evengraph.training.checkpoint import Checkpoint
from evengraph.training.progress import epoch_bar


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

    def contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """Attribute a weighted sum of a node's logits to nodes, by gradient times input.

        Args:
            graph: What `model_input` returned.
            node: Whose logits to explain.
            direction: The weight of each logit in the sum, (C,).
        """
        if (tracer := TRACERS.get(type(self).__name__)) is not None:
            traced: Contributions = import_module(tracer).contributions(
                self, graph, node, direction
            )
            return traced
        return gradient_times_input(
            lambda x: self._logits(with_features(graph, x))[node] @ direction, graph.x, node
        )

    @abstractmethod
    def _logits(self, graph: Data) -> Tensor:
        """Logits of all nodes, (N, C)."""
