"""Method: the contract of every method, and its training."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter
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
from evengraph.core.rng import seeded
from evengraph.core.task import (
    Task,
    bare_graph,
    check_edge_weight,
    check_relations,
    class_labels,
    count_relations,
    edge_weight,
    scored_nodes,
)
from evengraph.core.threads import limited_threads
from evengraph.fast import form_of
from evengraph.methods.bases.saving import (
    Description,
    Labelled,
    TensorMismatchError,
    checked,
    make_card,
    pack,
    unpack,
    write_model,
)
from evengraph.metrics.multiclass import balanced_accuracy, confusion_matrix
from evengraph.ops.features import (
    feature_signatures,
    find_signatures,
    matching_signatures,
)
from evengraph.training import Callback, Epoch, History, train
from evengraph.training.loop import Checkpoint, epoch_bar
from evengraph.training.ranks import ALONE, Ranks

BACKBONE_TITLES = {"sage": "GraphSAGE", "gat": "GAT"}  # in tables; GCN is not mentioned

SHARED_SEARCH_SPACE: Mapping[str, Sequence[Any]] = {
    "learning_rate": (0.01, 0.003, 0.03),
    "weight_decay": (5e-4, 5e-5, 5e-3),
    "dropout": (0.5, 0.2, 0.7),
    "hidden": (64, 128),
    "network": ("comparison", "plain"),
}
"""Values to try per parameter, in any method that has it."""


@dataclass(kw_only=True)
class Method(ABC):
    """Learns from a task, then predicts class probabilities of every node.

    Authors write `_fit` and `_logits`. A method whose `net_` is made by `_build_network` can be
    saved; one with other state also writes `_state` and `_load_state`. Attributes that fitting
    creates end in an underscore. Parameters are read, set and cloned as in scikit-learn.

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

    # What a method may declare

    title: ClassVar[str]
    """The name in the literature; the name of the class by default."""
    role: ClassVar[Literal["", "baseline", "highlight"]] = ""
    """How figures treat it: as the baseline of a comparison, highlighted, or like any other."""
    portfolio: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Parameters with which `auto` and, if no methods are named, `compare` try it; one mapping per
    candidate. Methods are tried in the order of METHODS."""
    _weighted_edges: ClassVar[bool] = False
    """Whether it propagates along `weighted_adjacency`, so that weights of edges count."""
    separate_relations: ClassVar[bool] = False
    """Whether it averages the neighbours of each relation apart; others use all edges as one."""
    suits_heterophily: ClassVar[bool] = False
    """Whether to try it on a graph whose neighbours mostly differ in class."""
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """Values to try per parameter; they add to or replace those that all methods share."""
    selects_itself: ClassVar[bool] = False
    """Whether fitting selects the settings on validation; a budget of settings then tries one."""
    former_params: ClassVar[Mapping[str, str]] = {}
    """Parameters of earlier versions that users may still name, and those that replaced them."""
    tuned_params: ClassVar[frozenset[str]] = frozenset()
    """Parameters that the paper set per graph; changing any other makes it a different method."""
    _untuned_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters for a graph that the method was not tuned for, besides patience."""
    _net_name: ClassVar[str] = "net"
    """What the tensors of `net_` are called in a model folder."""

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    max_epochs: int = 10_000
    patience: int = 100

    def __init_subclass__(cls) -> None:
        cls.title = vars(cls).get("title", cls.__name__)

    def __post_init__(self) -> None:
        check_params(self)

    @property
    def full_title(self) -> str:
        """The title, with the backbone if it is not the usual one."""
        backbone = BACKBONE_TITLES.get(getattr(self, "backbone", ""))
        return self.title if backbone is None else f"{self.title} on {backbone}"

    @property
    def uses_graph(self) -> bool:
        """Whether edges have an influence on predictions."""
        return True

    @property
    def uses_labels(self) -> bool:
        """Whether predictions rest on the labels of training nodes that the graph holds."""
        return False

    @property
    def uses_edge_weights(self) -> bool:
        """Whether weights of edges have an influence on predictions; attention ignores them."""
        return self._weighted_edges and self.uses_graph and getattr(self, "backbone", "") != "gat"

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Parameters to use on a graph that the method was not tuned for."""
        return {"patience": Method.patience, **cls._untuned_params}

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that an older version saved, as this version names them.

        Those that are new since then have their defaults, unless they are given here.
        """
        return dict(params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; none holds another estimator, so `deep` has no effect."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, all of them or, if one is invalid, none; takes effect at the next fit."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
        type(self)(**known | params)  # validates them
        for name, value in params.items():
            setattr(self, name, value)
        return self

    _callbacks = cast(Sequence[Callback], ())
    _ranks = ALONE
    _checkpoint = cast(Checkpoint | None, None)

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has completed."""
        return getattr(self, "fitted_", False)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise RuntimeError(f"This {self.title} is not fitted yet; call fit first.")

    @property
    def classes_(self) -> NDArray[Any]:
        """Names of the classes, or their numbers, in the order of the columns of predict_proba."""
        self._check_fitted()
        return np.array(self.class_names_ or range(self.num_classes_))

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
        if not isinstance(task, Task | Data):
            raise TypeError(
                f"task must be a Task or a torch_geometric.data.Data, got {type(task).__name__}."
            )
        if isinstance(task, Data):
            check_graph(task)
            task = Task.from_graph(task, seed=seed)
        self._reset(task)
        hidden = task.hide_test_labels()

        def body() -> None:
            try:
                quick = self._quick("fit")
                if quick is None or not quick(hidden, seed):
                    self._fit(hidden)
            except FloatingPointError as error:
                message, large = str(error), describe_large(hidden.graph.x)
                if large:  # not the learning rate is to blame
                    message = f"{message.partition(';')[0].rstrip('.')}.{large}"
                raise FloatingPointError(message) from None

        with limited_threads(hidden.graph):
            learn(self, body, seed=seed, on_epoch=on_epoch, progress=progress)
        return self

    def refitted(self, task: Task, *, seed: int) -> Method:
        """A copy fitted to another task, with what this one has selected; shows no progress."""
        return type(self)(**self.get_params()).fit(task, seed=seed, progress=False)

    def _reset(self, task: Task) -> None:
        """Validate the task and reset fitted state."""
        check_task(task)
        self.fitted_ = self.loaded_ = False
        self.history_: list[History] = []
        self.num_features_, self.device_ = task.graph.num_features, task.graph.x.device
        self.num_relations_ = count_relations(task.graph)
        self.num_classes_, self.class_names_ = task.num_classes, task.class_names
        self.fitted_params_, self.extra_ = self.get_params(), dict[str, Any]()
        self.details_ = dict[str, Any]()
        self.summary_: Sequence[str] = ()  # of the fit, a sentence each; empty for most methods
        # held-out nodes, (M,), and what is predicted for them where known labels do not vote
        self.apart_: tuple[Tensor, Tensor] | None = None
        self.notes_: Sequence[str] = ()  # what went otherwise than expected, a sentence each
        self._learns_from(task.train, task.graph)
        self._callbacks, self._ranks, self._checkpoint = (), ALONE, None

    def _learns_from(self, labelled: Tensor, graph: Data) -> None:
        """Remember the nodes whose labels are learnt from, a mask."""
        nodes = labelled.nonzero().squeeze(1)  # a copy: the caller's masks may change later
        rows, known = nodes.split(2**12), of_rows(graph)
        # of a graph on disk, x is one number until it is indexed
        signatures = torch.cat([feature_signatures(graph.x[r].detach()[:, known]) for r in rows])
        self.labelled_ = Labelled(nodes, graph.y[nodes], signatures)

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
        names = ("learning_rate", "weight_decay", "max_epochs", "patience")
        params: dict[str, Any] = {name: getattr(self, name) for name in names}
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

    def _train_in_steps(
        self, steps: Iterator[tuple[Tensor, Tensor]], patience: int | None = None
    ) -> History:
        """Early stopping for estimators that are not trained by gradient descent, such as trees.

        `steps` yields loss and score before the first step, after it, after the second and so on.
        """
        patience = self.patience if patience is None else patience
        history, started = History(max_epochs=self.max_epochs, patience=patience), perf_counter()
        try:
            for index, (loss, score) in enumerate(steps):
                history.append(float(loss), float(score))
                self._report_epoch(history)
                if index == self.max_epochs or index - history.first_best_epoch > patience:
                    break
        except KeyboardInterrupt:
            if not history.loss:
                raise
            history.interrupted = True
        history.seconds = perf_counter() - started
        self.history_.append(history)
        return history

    def _report_epoch(self, history: History) -> None:
        """Call the progress bar and the caller's function after an epoch."""
        for callback in self._callbacks:
            callback(history)

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
        inputs = model_input(self, graph)
        try:
            with limited_threads(inputs):
                logits = (self._quick("logits") or self._logits)(inputs)
            probabilities: Tensor = logits.softmax(dim=1).to(graph.x.device)
        except (IndexError, KeyError, RuntimeError, TypeError) as error:
            memory = isinstance(error, torch.OutOfMemoryError) or "allocate" in str(error)
            if not self.loaded_ or memory:
                raise
            raise ValueError(
                f"The saved model cannot predict: the tensors of {self.title} do not fit together "
                f"({first_line(error)})."
            ) from error
        if probabilities.dim() != 2 or probabilities.shape[1] != self.num_classes_:
            shape = " by ".join(map(str, probabilities.shape))
            raise ValueError(
                f"The saved model must predict {self.num_classes_} classes, and its tensors give "
                f"{shape} values."
            )
        if probabilities.isnan().any():
            raise FloatingPointError(f"{self.title} predicts NaN.{describe_large(graph.x)}")
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

    def score(self, task: Task | Data) -> float:
        """Balanced accuracy on the test nodes of a task, or of a PyG graph with masks."""
        if isinstance(task, Data):
            graph, test, predicted = task, scored_nodes(task), self.predict(task)
        else:
            graph, test, predicted = task.graph, task.test, self.predict_task(task).argmax(1)
        labels = class_labels(graph)[test]
        if not labels.numel() or labels.min() < 0:
            raise ValueError("There are no labelled nodes to score on.")
        num_classes = max(self.num_classes_, int(labels.max()) + 1)
        return float(balanced_accuracy(confusion_matrix(labels, predicted[test], num_classes)))

    def recognises(self, graph: Data) -> bool:
        """Whether a graph has at least half of the labelled nodes of training as they were."""
        return 2 * len(self._known_labels(graph)[0]) >= len(self.labelled_.nodes)

    def _known_labels(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Training nodes that the graph has in the same rows with the same features, and labels.

        If most are elsewhere, because the rows were sorted, say, they are found by their features.
        """
        nodes, labels, signatures = (part.to(graph.x.device) for part in self.labelled_)
        within = (nodes < graph.num_nodes).nonzero().squeeze(1)
        index = within[:0]
        for columns in (of_rows(graph), slice(None)):  # former versions signed all features
            if 2 * len(index) >= len(nodes):
                break
            found = feature_signatures(graph.x[nodes[within]][:, columns])
            index = within[matching_signatures(found, signatures[within])]
        if 2 * len(index) < len(nodes):
            every = feature_signatures(graph.x[:, of_rows(graph)])
            rows = find_signatures(every, signatures)
            found = (rows >= 0).nonzero().squeeze(1)
            if 2 * len(found) >= len(nodes):  # fewer may agree by chance
                return rows[found], labels[found]
        return nodes[index], labels[index]

    @abstractmethod
    def _logits(self, graph: Data) -> Tensor:
        """Logits of all nodes, (N, C)."""

    # Saving

    @final
    def save(self, folder: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Save the fitted method in a folder, for `evengraph.load_model`, with a model card.

        The folder is written completely or not at all; a model in it is replaced atomically. Of
        the training graph it holds no features and no edges, but the indices and labels of the
        training nodes, and a few sums per node to recognise it by.

        Args:
            folder: A new folder, an empty one, or that of another model.
            extra: Any JSON value, available as `extra_` of the loaded model: column names, the
                state of an encoder. By default that of this model, if it was loaded.
        """
        about, tensors = pack_method(self, extra)
        write_model(folder, about, tensors, card=make_card(self, about, folder))

    def _state(self) -> dict[str, Tensor]:
        """Tensors that predicting needs, by name; by default those of `net_`."""
        if type(self)._build_network is Method._build_network:
            raise NotImplementedError(
                f"{type(self).__name__} cannot be saved: it has neither _build_network nor _state."
            )
        return pack(self._net_name, self.net_)

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take what `_state` returned, on this method's device."""
        self.net_ = self._network_for(state)
        unpack(self._net_name, self.net_, state)

    def _details(self) -> dict[str, Any]:
        """Fitted state that is no tensor, as JSON can hold it; `details_` of a loaded method."""
        return {}

    def _build_network(self) -> nn.Module:
        """A network with initial weights, for `num_features_` and `num_classes_`."""
        raise NotImplementedError

    def _network_for(self, state: Mapping[str, Tensor]) -> Any:
        """A new network, if it is no larger than the tensors of a file that it is to hold.

        The sizes that a file states are not believed: the network is first built without memory.
        """
        layers = getattr(self, "layers", 0)
        if isinstance(layers, int) and layers > len(state):
            raise TensorMismatchError("There are fewer tensors than layers.")
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in self._build_network().parameters())
        if size > sum(tensor.numel() for tensor in state.values()):
            raise TensorMismatchError("The tensors are smaller than the network.")
        return self._new_network()

    def _new_network(self) -> Any:
        return self._build_network().to(self.device_)


def of_rows(graph: Data) -> Any:
    """The features that depend on their node alone: others change with every new edge."""
    return slice(None) if graph.get("of_rows") is None else graph.of_rows


def reset(method: Method, task: Task) -> None:
    """Validate the task and reset fitted state, before `learn`."""
    method._reset(task)


def learn(
    method: Method,
    body: Callable[[], None],
    *,
    seed: int,
    on_epoch: Callback | None = None,
    progress: bool | None = None,
    ranks: Ranks = ALONE,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Run the body of a fit with the random state of a seed, after `reset`.

    The `ranks` are processes that train together; training continues from the `checkpoint`.
    """
    method._ranks, method._checkpoint = ranks, checkpoint
    with epoch_bar(method.title, progress) as show:
        method._callbacks = [one for one in (show, on_epoch) if one is not None]
        try:
            with seeded(seed):
                body()
        finally:  # hold none of the caller's objects
            method._callbacks, method._ranks, method._checkpoint = (), ALONE, None
    method.fitted_ = True


def model_input(method: Method, graph: Data) -> Data:
    """Validate a graph and return its features and edges, without labels, on the device."""
    method._check_fitted()
    check_graph(graph)
    if graph.num_features != method.num_features_:
        raise ValueError(
            f"graph.x must have {method.num_features_} columns as in training, "
            f"got {graph.num_features}."
        )
    if method.separate_relations and count_relations(graph) != method.num_relations_:
        raise ValueError(
            f"graph.num_relations must be {method.num_relations_} as in training, "
            f"got {count_relations(graph)}."
        )
    return bare_graph(graph).to(method.device_)


def changed_params(method: Method) -> list[str]:
    """Names of the parameters that differ from their defaults."""
    return [item.name for item in fields(method) if getattr(method, item.name) != item.default]


def describe_use(method: Method, graph: Data) -> list[str]:
    """A sentence about what a method does not use of a graph's edges, if anything."""
    weights = edge_weight(graph) is not None and not method.uses_edge_weights
    relations = bool(count_relations(graph)) and not method.separate_relations
    parts = ["weights"] * weights + ["relations"] * relations
    if not parts or not method.uses_graph:
        return []
    return [f"{method.title} does not use the {' and '.join(parts)} of edges."]


def pack_method(
    method: Method, extra: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a fitted method, the nodes it was trained on included."""
    method._check_fitted()
    state, details = method._state(), method._details()
    params, fitted = method.get_params(), method.fitted_params_
    changed = sorted(name for name in params if params[name] != fitted[name])
    if changed:
        raise ValueError(f"{', '.join(changed)} changed after fitting: fit again, then save.")
    about = {
        "method": type(method).__name__.lower(),
        "fields": fitted,
        "num_features": method.num_features_,
        "num_classes": method.num_classes_,
        "class_names": list(method.class_names_),
        "history": [asdict(history) for history in method.history_],
        "extra": dict(method.extra_ if extra is None else extra),
    }
    if method.num_relations_:
        about["num_relations"] = method.num_relations_
    if details:
        about["details"] = dict(details)
    labelled = {f"labelled.{key}": value for key, value in method.labelled_._asdict().items()}
    return about, {**state, **labelled}


def restore_method(
    method: Method, about: Description, tensors: Mapping[str, Tensor], device: torch.device
) -> None:
    """Make a method the fitted one that `pack_method` described."""
    state = {name: value.to(device) for name, value in tensors.items()}
    method.num_features_, method.num_classes_ = about.num_features, about.num_classes
    method.num_relations_, method.class_names_ = about.num_relations, about.class_names
    method.extra_, method.history_, method.details_ = about.extra, about.history, about.details
    method.summary_, method.notes_ = (), ()
    method.fitted_params_, method.device_ = method.get_params(), device
    nodes, labels = (
        checked(state, f"labelled.{name}", 1, torch.int64) for name in ("nodes", "labels")
    )
    signatures = checked(state, "labelled.signatures", 2)
    if not len(nodes) == len(labels) == len(signatures) or (nodes < 0).any():
        raise ValueError("its training nodes do not fit their labels")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < method.num_classes_:
        raise ValueError("the label of a training node is no class")
    method.labelled_ = Labelled(nodes, labels, signatures)
    method._load_state(state)
    method.fitted_ = method.loaded_ = True


class Committee(NamedTuple):
    """Predictions of the members of a committee, and the weight of each vote.

    Shapes:
        probabilities: (M, N, C)
        weights: (M,), sum to one
    """

    probabilities: Tensor
    weights: Tensor

    @classmethod
    def even(cls, probabilities: Tensor) -> Committee:
        """A committee whose votes have the same weight."""
        members = probabilities.shape[0]
        return cls(probabilities, probabilities.new_full((members,), 1 / members))

    @classmethod
    def joined(cls, committees: Sequence[Committee], weights: Sequence[float]) -> Committee:
        """One committee of all members, where each committee has a weight."""
        parts = [part.weights * weight for part, weight in zip(committees, weights, strict=True)]
        return cls(torch.cat([part.probabilities for part in committees]), torch.cat(parts))

    def to(self, device: torch.device) -> Committee:
        return Committee(*(part.to(device) for part in self))

    def interval(self, classes: Tensor, share: float = 0.8) -> tuple[Tensor, Tensor]:
        """Between which probabilities of a class per node a share of the votes lies, by weight.

        What is beyond the share is cut off at both ends. `classes` is int64, (N,), as the ends are.
        """
        members = self.probabilities.shape[0]
        index = classes.expand(members, -1).unsqueeze(2)
        values, order = self.probabilities.gather(2, index).squeeze(2).sort(dim=0)
        votes = self.weights[order].cumsum(0)  # (M, N)
        cut = (1 - share) / 2
        ends = (
            (votes < level - 1e-6).sum(0).clamp(max=members - 1).unsqueeze(0)
            for level in (cut, 1 - cut)
        )
        low, high = (values.gather(0, end).squeeze(0) for end in ends)
        return low, high

    def agreement(self, predicted: Tensor) -> Tensor:
        """The share of the votes, by weight, that each node's predicted class gets.

        `predicted` is int64, (N,); the shares are (N,).
        """
        votes = (self.probabilities.argmax(2) == predicted).to(self.weights)
        return (self.weights @ votes).clamp(0, 1)


LARGE = 1e9  # features from which on single precision may overflow: they are multiplied often


def check_task(task: Task) -> None:
    """Raise ValueError for a task that nothing can be learnt from."""
    check_graph(task.graph)
    counts = replace(task).class_counts  # masks may have changed since they were counted
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


Limit = float | tuple[int, int] | Literal["fraction", "positive"]
"""What a number must be: at least this, from the first to the second, in [0, 1), or above 0."""


def check_params(method: Any) -> None:
    """Validate parameters by their annotations, and numbers by the `limits` of their classes."""
    limits, hints = _rules(method.__class__)
    for item in fields(method):
        name, value = item.name, getattr(method, item.name)
        words, hint = split_words(hints.get(name))
        if value in words:
            continue
        if words and isinstance(value, str):
            raise ValueError(f"{name} must be a number or {' or '.join(words)}, got {value!r}.")
        if isinstance(item.default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}.")
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                choices = ", ".join(get_args(hint))
                raise ValueError(f"{name} must be one of {choices}, got {value!r}.")
        elif (limit := limits.get(name)) is not None:
            check_limit(name, value, limit, whole=hint is int or isinstance(limit, tuple))


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


def check_limit(name: str, value: Any, limit: Limit, *, whole: bool = False) -> None:
    """Raise ValueError for a number outside its limit, or for one that should be whole."""
    if limit == "fraction":
        if not 0 <= value < 1:
            raise ValueError(f"{name} must lie in [0, 1), got {value}.")
        return
    if whole and limit != "positive" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    if limit == "positive":
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}.")
    else:
        least = limit[0] if isinstance(limit, tuple) else int(limit) if whole else limit
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")
    if isinstance(limit, tuple) and value > limit[1]:
        raise ValueError(f"{name} must be at most {limit[1]}, got {short(value)}.")


def same_graph(one: Data, other: Data) -> bool:
    """Whether two graphs have the same features, edges and weights; labels do not matter."""
    first, second = edge_weight(one), edge_weight(other)
    if (first is None) != (second is None) or one.x.device != other.x.device:
        return False
    pairs = [(one.x, other.x), (one.edge_index, other.edge_index)]
    if first is not None and second is not None:
        pairs.append((first, second))
    return all(a is b or (a.shape == b.shape and torch.equal(a, b)) for a, b in pairs)
