"""Method: the contract that every method keeps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.rng import seeded
from evengraph.core.task import Task
from evengraph.methods.bases.estimator import Estimator
from evengraph.methods.bases.model_folder import check_place, write_model
from evengraph.nn.tracing import Contributions, gradient_times_input
from evengraph.ops.signature import feature_signatures
from evengraph.training import Callback, Epoch, History, train, train_stepwise
from evengraph.training.batch.replicas import can_replicate
from evengraph.training.progress import epoch_bar

BACKBONE_TITLES = {"sage": "GraphSAGE", "gat": "GAT"}
"""What tables call a backbone; of GCN they say nothing."""


class Fit(NamedTuple):
    """A method to fit, what it learns, its seed, and what to do when it is fitted."""

    method: Method
    task: Task
    seed: int
    done: Callable[[], None] = lambda: None


class Labelled(NamedTuple):
    """The nodes that a method learnt from, told by their features and not by them.

    Shapes:
        nodes, labels: int64, (n,)
        signatures: float64, (n, 3)
    """

    nodes: Tensor
    labels: Tensor
    signatures: Tensor


@dataclass(kw_only=True)
class Method(Estimator):
    """Learns from a task, then gives class probabilities of every node.

    Authors write `_fit` and `_logits`; what fitting creates ends in an underscore.

    Args:
        learning_rate: Adam's step.
        weight_decay: Weight decay, but of layers that a network says do not decay.
        max_epochs: Training steps at most, in each stage of a method that has several.
        patience: Epochs without a better validation score before training stops.
    """

    title: ClassVar[str]
    """The name in the literature; the name of the class by default."""
    role: ClassVar[Literal["", "baseline", "highlight"]] = ""
    """How figures treat it: as the baseline of a comparison, highlighted, or like any other."""
    compared_by_default: ClassVar[bool] = False
    """Whether `compare` includes it when no methods are named."""
    suits_heterophily: ClassVar[bool] = False
    """Whether to try it on a graph whose neighbours mostly differ in class."""
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """Values to try per parameter; they add to or replace those of `shared_search_space`."""
    shared_search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (0.01, 0.003, 0.03),
        "weight_decay": (5e-4, 5e-5, 5e-3),
        "dropout": (0.5, 0.2, 0.7),
        "hidden": (64, 128),
        "network": ("comparison", "plain"),
    }
    tuned_params: ClassVar[frozenset[str]] = frozenset()
    """Parameters that the paper set per graph; changing any other makes it a different method."""
    untuned_patience: ClassVar[int] = 100
    """Patience on a graph that the method was not tuned for."""

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    max_epochs: int = 10_000
    patience: int = 1_000

    def __init_subclass__(cls) -> None:
        cls.title = vars(cls).get("title", cls.__name__)

    @property
    def full_title(self) -> str:
        """The title, and the backbone if it is another than usual."""
        other = BACKBONE_TITLES.get(getattr(self, "backbone", ""))
        return self.title if other is None else f"{self.title}, {other}"

    @classmethod
    def graph_defaults(cls, graph: Data) -> dict[str, Any]:
        """Parameters to use on a graph that the method was not tuned for."""
        return {"patience": cls.untuned_patience}

    def describe_defaults(self) -> str:
        """A sentence about parameters that `graph_defaults` changed; empty if there are none."""
        return ""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(item.default, bool) and not isinstance(value, bool):
                raise ValueError(f"{item.name} must be True or False, got {value!r}.")
        whole("max_epochs", self.max_epochs, 0)
        whole("patience", self.patience, 0)
        at_least("weight_decay", self.weight_decay, 0)
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate}.")

    @final
    def fit(
        self,
        task: Task,
        *,
        seed: int,
        on_epoch: Callback | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn from the training nodes; choose on the validation nodes.

        Test labels are out of reach: they are hidden before `_fit` sees the task. Random state
        outside is left as it was.

        Args:
            task: What to learn.
            seed: Decides everything random: first weights, dropout, clusters.
            on_epoch: Called with the history after every epoch, as a curve for TensorBoard is:
                `on_epoch=lambda history: writer.add_scalar("loss", history.loss[-1],
                history.epochs)`, where `writer` is a `torch.utils.tensorboard.SummaryWriter`.
            progress: Show a live bar; by default on a terminal only.
        """
        self._begin(task)
        with epoch_bar(self.title, progress) as show:
            self._callbacks = [callback for callback in (show, on_epoch) if callback is not None]
            try:
                with seeded(seed):
                    self._fit(task.hide_test_labels())
            finally:
                del self._callbacks  # a fitted method holds no bar and no function of the caller's
        self.fitted_ = True
        return self

    @final
    @torch.no_grad()
    def predict_proba(self, graph: Data) -> Tensor:
        """Class probabilities of every node, rows sum to one; nothing is trained.

        The graph is that of training, that with nodes and edges added or taken away, or another
        with the same features. Known nodes are best left in their places, new ones put behind
        them: a node that is where it was is known again (`unchanged` in `evengraph.ops`).

        Shapes:
            returns: (N, C)
        """
        bare = self._bare(graph)
        return self._logits(bare).softmax(dim=1).to(graph.x.device)

    @final
    def save(self, folder: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Keep what was fitted in a folder, for `evengraph.load_model`.

        The folder appears whole or not at all; a model that it held before is replaced in one
        move. Of the training graph it keeps no features and no edges, but the numbers and labels
        of the labelled nodes, and a few sums for each node by which it is known again.

        Args:
            folder: A new folder, an empty one, or that of another model.
            extra: Whatever JSON holds, to be found as `extra_` of the loaded model: names of
                columns, the state of an encoder. By default that of this model, if it was loaded.
        """
        self._check_fitted()
        now, then = self.get_params(), self.fields_
        changed = sorted(name for name in now if now[name] != then[name])
        if changed:
            raise ValueError(f"{', '.join(changed)} changed after fitting: fit again, then save.")
        check_place(Path(folder))
        about = {
            "method": type(self).__name__.lower(),
            "fields": then,
            "num_features": self.num_features_,
            "num_classes": self.num_classes_,
            "class_names": list(self.class_names_),
            "history": [asdict(history) for history in self.history_],
            "extra": dict(self.extra_ if extra is None else extra),
        }
        labelled = {f"labelled.{key}": value for key, value in self.labelled_._asdict().items()}
        write_model(folder, about, self._kept() | labelled)

    @final
    def _restore(
        self, about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> None:
        """Become the fitted method that was saved."""
        here = {name: value.to(device) for name, value in tensors.items()}
        self.num_features_, self.num_classes_ = about["num_features"], about["num_classes"]
        self.class_names_, self.extra_ = tuple(about["class_names"]), dict(about["extra"])
        self.history_: list[History] = [History(**stage) for stage in about["history"]]
        self.fields_, self.device_ = self.get_params(), device
        self.labelled_ = Labelled(*(here[f"labelled.{name}"] for name in Labelled._fields))
        self._put_back(here)
        self.fitted_ = True

    def _bare(self, graph: Data) -> Data:
        """Features and edges alone: labels that a graph may carry are no business of ours."""
        self._check_fitted()
        check_graph(graph)
        if graph.num_features != self.num_features_:
            raise ValueError(
                f"graph.x must have {self.num_features_} columns as in training, "
                f"got {graph.num_features}."
            )
        return Data(x=graph.x, edge_index=graph.edge_index).to(self.device_)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise RuntimeError(f"This {self.title} is not fitted yet; call fit first.")

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has come to its end."""
        return getattr(self, "fitted_", False)

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
        """Run the training loop with this method's settings, and keep its history.

        A method of several stages calls it once for each, with limits of the stage's own where
        it has some; `max_epochs` of the method bounds every stage, and one stage is the main one.
        After Ctrl-C in one stage, those that follow take no steps. `recordable` is as in `train`.
        """
        limit = self.max_epochs if max_epochs is None else min(max_epochs, self.max_epochs)
        if any(history.interrupted for history in self.history_):
            limit = 0

        history = train(
            module,
            epoch,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            max_epochs=limit,
            patience=self.patience if patience is None else patience,
            on_epoch=self._tell,
            main=main,
            recordable=recordable,
        )
        self.history_.append(history)
        return history

    def _follow(self, steps: Iterator[tuple[Tensor, Tensor]]) -> History:
        """What `_train` is for gradients, for what improves in steps of its own."""
        limits = {"max_epochs": self.max_epochs, "patience": self.patience}
        self.history_.append(train_stepwise(steps, on_epoch=self._tell, **limits))
        return self.history_[-1]

    def _tell(self, history: History) -> None:
        """Let the bar and the caller hear of an epoch."""
        for callback in self._callbacks:
            callback(history)

    def _begin(self, task: Task) -> None:
        """Refuse what cannot be learnt, and forget what was."""
        check_task(task)
        self.fitted_ = False
        self.history_ = []
        self.num_features_, self.device_ = task.graph.num_features, task.graph.x.device
        self.num_classes_, self.class_names_ = task.num_classes, task.class_names
        self.fields_, self.extra_ = self.get_params(), dict[str, Any]()
        nodes = task.train.nonzero().squeeze(1)  # the caller's masks may change later
        signatures = feature_signatures(task.graph.x[nodes])
        self.labelled_ = Labelled(nodes, task.graph.y[nodes], signatures)
        self._callbacks = []

    def _together_with(self, other: Method) -> bool:
        """Whether this method can be fitted side by side with another on the same graph."""
        return False

    def _fit_together(self, fits: Sequence[Fit], slots: int) -> Iterator[None]:
        """Fit methods side by side that said they can be, with stops as `Replicas.steps` has."""
        raise NotImplementedError

    def _fit_on_card(self, task: Task) -> bool:
        """Fit where a card is, as a batch of one; whether it is so here."""
        device = task.graph.x.device
        if not can_replicate(device):
            return False
        with torch.cuda.device(device):
            for _ in self._fit_together([Fit(self, task, torch.initial_seed())], slots=1):
                pass
        return True

    def _alike(self, other: Method, except_in: Collection[str] = ()) -> bool:
        """Whether another is of the same kind, with the same settings but for some."""
        return type(self) is type(other) and all(
            getattr(self, item.name) == getattr(other, item.name)
            for item in fields(self)
            if item.name not in except_in
        )

    def _training(self) -> dict[str, Any]:
        """The settings of training, by name."""
        names = ("learning_rate", "weight_decay", "max_epochs", "patience")
        return {name: getattr(self, name) for name in names}

    def _contributions(self, graph: Data, node: int, direction: Tensor) -> Contributions:
        """What a sum of a node's logits is made of; the direction says what each counts in it."""

        def logits(x: Tensor) -> Tensor:
            return self._logits(Data(x=x, edge_index=graph.edge_index))

        return gradient_times_input(logits, graph.x, node, direction)

    def _kept(self) -> dict[str, Tensor]:
        """What predicting needs of what was fitted, by name."""
        raise NotImplementedError(f"{type(self).__name__} has no _kept: it cannot be saved.")

    def _put_back(self, kept: Mapping[str, Tensor]) -> None:
        """Take what `_kept` gave, on this method's device."""
        raise NotImplementedError(f"{type(self).__name__} has no _put_back: it cannot be loaded.")

    @abstractmethod
    def _fit(self, task: Task) -> None:
        """Learn; the task's test labels are hidden and the random state is set."""

    @abstractmethod
    def _logits(self, graph: Data) -> Tensor:
        """Logits of all nodes, (N, C)."""


def check_task(task: Task) -> None:
    """Refuse a task that nothing can be learnt from."""
    check_graph(task.graph)
    counts = task.class_counts
    if counts.min() < 1:
        empty = int(counts.argmin())
        name = f" ({task.class_names[empty]})" if task.class_names else ""
        raise ValueError(f"Class {empty}{name} has no training node; every class needs one.")
    for name in ("train", "val"):
        mask = getattr(task, name)
        if not mask.any():
            raise ValueError(f"The {name} set is empty.")
        if (task.graph.y[mask] < 0).any():
            raise ValueError(f"Some {name} nodes have no label.")


def check_graph(graph: Data) -> None:
    """Refuse a graph without usable features and edges."""
    x, edges = graph.x, graph.edge_index
    if x is None or x.dim() != 2 or not x.is_floating_point():
        raise ValueError("graph.x must hold a row of floating-point features for each node.")
    if not torch.isfinite(x).all():
        row = int((~torch.isfinite(x)).any(dim=1).nonzero()[0])
        raise ValueError(f"graph.x must be finite; node {row} has a NaN or an infinity.")
    if edges is None or edges.dim() != 2 or edges.shape[0] != 2 or edges.is_floating_point():
        raise ValueError("graph.edge_index must hold the edges as whole numbers, shape (2, E).")


def whole(name: str, value: int, least: int) -> None:
    """Refuse a field that is no whole number or below its least value."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {value!r}.")
    at_least(name, value, least)


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a field below its least value."""
    if not value >= least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
    if value == math.inf:
        raise ValueError(f"{name} must be finite, got {value}.")


def fraction(name: str, value: float) -> None:
    """Refuse a field outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}.")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a field that is none of the words allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")


def same_graph(one: Data, other: Data) -> bool:
    """Whether two graphs have the same features and edges, so that what is cached holds."""
    return (
        one.x.shape == other.x.shape
        and one.edge_index.shape == other.edge_index.shape
        and one.x.device == other.x.device
        and (one.x is other.x or torch.equal(one.x, other.x))
        and (one.edge_index is other.edge_index or torch.equal(one.edge_index, other.edge_index))
    )
