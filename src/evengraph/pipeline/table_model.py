"""TableModel: from tables to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph.core.devices import pick_device
from evengraph.core.errors import ArgumentError, unknown
from evengraph.core.task import Task
from evengraph.methods import DEFAULT_METHOD, METHODS, Method
from evengraph.metrics import evaluate, reported, validation_score
from evengraph.metrics.abstention import RiskCurve
from evengraph.metrics.binary import positive_class
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.costs import CostCurve, Costs
from evengraph.pipeline.drift import TrainingStatistics
from evengraph.pipeline.explanation import Explanation, explain
from evengraph.pipeline.graph_source import GraphSource, open_tables, tables_of
from evengraph.pipeline.loading import load_model
from evengraph.pipeline.model_info import ModelInfo, Prior, Threshold, TrainedOn
from evengraph.pipeline.new_nodes import NewNodes, build_new_nodes
from evengraph.pipeline.predictions import Predictions, predict_nodes
from evengraph.pipeline.refit import Refit, all_labels
from evengraph.splits import SplitProtocol
from evengraph.tables import Note, TableColumns, TableGraph, UnknownNodeError
from evengraph.tables.cells import has_class
from evengraph.tables.open import is_graph_file, open_graph_file, read_tables


@final
class TableModel:
    """Train on tables, predict new rows, and keep everything that takes in one folder.

    Holds the feature encoder, the fitted method, the class names, a calibrator and, for two
    classes, the threshold that gave the best F1 on validation.

    Args:
        method: A name in `METHODS`, which takes its defaults for the graph, or a method with
            parameters of your choice; it is copied.
        protocol: How to split the labelled nodes. By default the split or time column decides;
            without them 60% of each class is for training and 20% for validation.
        positive: Of two classes the one to find; by default the rarer one.
        refit: Once the test scores are known, fit again with the test labels added to those for
            training. Validation, the threshold and the scores stay those of the split.
        costs: For two classes, what a miss and a false alarm cost: the threshold then has the
            lowest cost on validation, `Costs(miss=50, alarm=1)`.

    Attributes after fitting:
        method_: The fitted method.
        info: Encoder, columns, calibrator, threshold, test scores, origin of the tables.
        notes: What was done to the training tables; empty for a loaded model.
    """

    method_: Method

    def __init__(
        self,
        method: str | Method = DEFAULT_METHOD,
        *,
        protocol: SplitProtocol | None = None,
        positive: str | None = None,
        refit: bool = True,
        costs: Costs | None = None,
    ) -> None:
        if isinstance(method, str) and method not in METHODS:
            raise ValueError(unknown("method", method, METHODS, METHODS.other_names))
        self.method = method
        self.protocol = protocol
        self.positive = positive
        self.refit = refit
        self.costs = costs
        self.info = ModelInfo()
        self.notes: tuple[Note, ...] = ()
        self._training_tables: TableGraph | None = None

    def fit(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        seed: int | Sequence[int] = 0,
        device: str | torch.device = "cpu",
        progress: bool | None = None,
        **columns: Any,
    ) -> Self:
        """Train on labelled tables.

        Args:
            nodes: A DataFrame or a path, as in `open_graph`, or a PyG graph.
            edges: The edges table, where `nodes` is a nodes table.
            seed: Decides the split and everything random in training. With several seeds, one
                model is trained per seed and the best on validation is kept.
            device: Where to train.
            progress: Show a live bar; by default on a terminal only.
            columns: The column arguments of `open_graph`: label, id, source, target, weight,
                type, edge_time, directed, unlabelled, split, time, features and drop.
        """
        data = open_tables(nodes, edges, **columns)
        protocol = self.protocol or data.make_split()
        best: tuple[float, Method, Task, int] | None = None
        for each in [seed] if isinstance(seed, int) else seed:
            task = protocol(data.graph, seed=each).to(pick_device(device))
            self._positive(task)  # fails before training, not after
            method = self._new_method(data.graph).fit(task, seed=each, progress=progress)
            score = float(validation_score(method.predict_task(task), task))
            if best is None or score > best[0]:
                best = score, method, task, each
        if best is None:
            raise ValueError("seed must hold at least one seed, got none.")
        self._take(*best[1:], data)
        label = self.info.columns.label
        if label is not None and _holds_integers(nodes, label, self.classes_):
            self.info = replace(self.info, integer_labels=True)
        return self

    @classmethod
    def from_fitted(
        cls,
        method: Method,
        task: Task,
        source: GraphSource,
        *,
        seed: int = 0,
        refit: bool = False,
        costs: Costs | None = None,
    ) -> Self:
        """Make a model of a method that was fitted to a task on the graph of a source."""
        return cls(method, refit=refit, costs=costs)._take(method, task, seed, source)

    def predict(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        known: Any = None,
        calibrated: bool = False,
        prior: str | Mapping[str, float] | None = None,
        abstain: float | None = None,
        max_error: float | None = None,
    ) -> Any:
        """Predict the class of every new node.

        Args:
            nodes: A DataFrame or a path, a folder included; or a PyG graph, or what `open` gave.
            edges: The edges table, where `nodes` is a nodes table.
            known: The graph that new nodes attach to: a folder, or a pair of tables. New edges may
                name its nodes; only new nodes are predicted.
            calibrated: Calibrate probabilities on validation.
            prior: Correct probabilities for class shares that differ from training: a share for
                each class, or `estimate`. Assumes that a node of a class looks as in training, and
                calibrates. Flags stay: the threshold finds the same part of each class.
            abstain: Leave this share of nodes undecided, as measured on validation: those with the
                least confidence.
            max_error: Leave so many undecided that the error on validation is no larger.

        Returns:
            A DataFrame with one row per node: `id`, `class` (the argmax), its `probability`,
            `p_<class>` for every class, for two classes `flagged` (uses the threshold). If the
            model is a committee, 80% of its votes lie between `low` and `high`, and `agreement` is
            the share of votes for the class. With abstention, `abstained` is true for nodes that
            should be left undecided.
        """
        return self.predictions(
            nodes,
            edges,
            known=known,
            calibrated=calibrated,
            prior=prior,
            abstain=abstain,
            max_error=max_error,
        ).frame

    def predictions(
        self, nodes: Any, edges: Any = None, *, known: Any = None, **options: Any
    ) -> Predictions:
        """What `predict` returns, with sentences about drift, and the shares and errors in use.

        Args:
            nodes: As in `predict`, and so are `edges` and `known`.
            options: The others of `predict`: calibrated, prior, abstain and max_error.
        """
        graph, rows, ids = self._graph_of(nodes, edges, known)
        options = {"calibrated": False, **options}
        if options["calibrated"]:
            self._calibrator()  # raises without one
        return predict_nodes(self.method_, self.info, self.classes_, graph, rows, ids, **options)

    def predict_proba(
        self, nodes: Any, edges: Any = None, *, known: Any = None, calibrated: bool = False
    ) -> NDArray[Any]:
        """Class probabilities of every new node, (M, C), in the order of `classes_`."""
        graph, rows, _ = self._graph_of(nodes, edges, known)
        probabilities = self.method_.predict_proba(graph)[rows].cpu()
        return (self._calibrator()(probabilities) if calibrated else probabilities).numpy()

    def explain(
        self,
        node: Any,
        *,
        nodes: Any = None,
        edges: Any = None,
        known: Any = None,
        columns: Mapping[str, str] | None = None,
        top: int = 10,
    ) -> Explanation:
        """Explain the prediction of one node.

        Args:
            node: The id of a node; in a PyG graph its index.
            nodes: The table of new nodes, if it is one of them.
            edges: The table of their edges.
            known: The training tables as in `predict`, or a PyG graph; by default those that the
                model was trained on, read again from their path if the model was loaded.
            columns: Names that differ from the training tables, as in `open`.
            top: How many labelled nodes to list.
        """
        self._check_fitted()
        if isinstance(known, Data):
            return explain(self.method_, known, node, top=top)
        tables = self._known_graph(nodes, edges, known, columns or {})
        ids = tuple(str(id) for id in tables.ids.tolist())
        if str(node) not in ids:
            raise UnknownNodeError(
                f"There is no node {str(node)!r}; ids are like {', '.join(ids[:3])}.",
                node=str(node),
                num_edges=0,
            )
        names = tables.encoder.names
        index = ids.index(str(node))
        return explain(self.method_, tables.graph, index, ids=ids, feature_names=names, top=top)

    def evaluate(self) -> dict[str, float | None]:
        """Metrics in percent on the test nodes of training; None for one that is undefined.

        A model that was fitted again to all labels (`info.refit`) has the scores from before.
        """
        self._check_fitted()
        return dict(self.info.test_scores)

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: weights as safetensors, the rest as JSON."""
        self._check_fitted()
        self.method_.save(folder, extra=self.info.as_dict())

    @classmethod
    def load(cls, folder: str | Path, *, device: str | torch.device = "cpu") -> Self:
        """Read a model that `save` or `evengraph run --save` wrote."""
        method = load_model(folder, device=device)
        model = cls(method)
        model.method_, model.info = method, ModelInfo.from_dict(method.extra_)
        return model

    def open(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        known: Any = None,
        only_unlabelled: bool = False,
        lists: str | Path | None = None,
        **columns: str,
    ) -> NewNodes:
        """Encode new tables, to read their notes before predicting.

        Args:
            nodes: As in `predict`, and so are `edges` and `known`.
            only_unlabelled: Predict only nodes whose label column holds none of the classes.
            lists: As in `open_graph`, for the new nodes.
            columns: Names that differ from the training tables: id, source, target, weight, type
                or edge_time.
        """
        self._check_fitted()
        if is_graph_file(nodes):
            return self._open_file(Path(nodes), edges, known, only_unlabelled)
        if self.info.encoder is None:
            raise ValueError("This model was trained on a graph and cannot encode tables.")
        trained = self.info.columns
        names = {role: getattr(trained, role) for role in ("id", "source", "target")}
        names |= trained.edge_options | columns
        known_tables = None if known is None else read_tables(*_pair(known))
        tables = read_tables(nodes, edges, lists)
        new = build_new_nodes(tables, known_tables, TableColumns(**names), self.info.encoder)
        if not only_unlabelled:
            return new
        return new.without(has_class(tables[0], self.info.columns.label, self.classes_))

    def _open_file(self, path: Path, edges: Any, known: Any, only_unlabelled: bool) -> NewNodes:
        """Open a file that holds a whole graph."""
        for name, value in (("edges", edges), ("known", known)):
            if value is not None:
                raise ValueError(f"{path} does not take {name}: it holds a whole graph.")
        tables = open_graph_file(path, self.info.columns, self.info.encoder)
        new = NewNodes(tables=tables, rows=slice(None))
        return new.without((tables.graph.y >= 0).numpy()) if only_unlabelled else new

    @property
    def classes_(self) -> tuple[str, ...]:
        """The names of the classes; numbers if they have none."""
        self._check_fitted()
        return self.method_.class_names_ or tuple(map(str, range(self.method_.num_classes_)))

    def threshold(self, *, calibrated: bool = False) -> Threshold | None:
        """The threshold on the probability of the positive class; calibration moves it along."""
        threshold = self.info.threshold
        if threshold is None or not calibrated:
            return threshold
        positive, value = threshold
        return Threshold(positive, self._calibrator().threshold(value, positive))

    def use_costs(self, costs: Costs) -> Self:
        """Replace the threshold by the one with the lowest cost on validation."""
        curve, threshold = self.info.cost_curve, self.info.threshold
        if curve is None or threshold is None:
            raise ValueError(
                "Costs need a model of two classes that was saved with what thresholds do on "
                "validation."
            )
        chosen = Threshold(threshold.positive, curve.threshold(costs))
        curve = curve._replace(costs=costs)
        self.info = replace(self.info, threshold=chosen, cost_curve=curve)
        return self

    def _take(self, method: Method, task: Task, seed: int, source: GraphSource) -> Self:
        """Adopt a fitted method: score it, fit it again, calibrate it and choose its threshold."""
        tables, data = tables_of(task, source), source.data
        positive = self._positive(task)
        probabilities = method.predict_task(task)
        scores = evaluate(task, probabilities, positive=positive, costs=self.costs)
        if self.refit:
            method = method.refitted(all_labels(task), seed=seed)
            probabilities = method.predict_proba(task.graph)
        self.method_, self._training_tables = method, tables
        self.notes = () if tables is None else tables.notes
        rows, labels = probabilities[task.val], task.graph.y[task.val]
        self.info = ModelInfo(
            encoder=None if tables is None else tables.encoder,
            columns=TableColumns() if tables is None else tables.columns,
            calibrator=Calibrator.fit(rows, labels),
            threshold=Threshold.best(rows, labels, positive, self.costs),
            cost_curve=None
            if positive is None
            else CostCurve.of(labels == positive, rows[:, positive], self.costs),
            test_scores={k: v if isfinite(v) else None for k, v in reported(scores).items()},
            trained_on=None if data is None else TrainedOn(data, dict(source.columns)),
            refit=Refit.of(task) if self.refit else None,
            statistics=TrainingStatistics.of(
                task.graph, all_labels(task).train if self.refit else task.train, probabilities
            ),
            prior=Prior.fit(rows, labels),
            risk=RiskCurve.of(labels, rows),
        )
        return self

    def _positive(self, task: Task) -> int | None:
        """The index of the positive class; None unless there are two classes."""
        if self.positive is None:
            return positive_class(task.class_counts) if task.num_classes == 2 else None
        names = task.class_names or tuple(map(str, range(task.num_classes)))
        if len(names) != 2 or self.positive not in names:
            raise ValueError(
                f"positive must be one of two classes, got {self.positive!r}; there are "
                f"{', '.join(names)}."
            )
        return names.index(self.positive)

    def _new_method(self, graph: Data) -> Method:
        """An unfitted method."""
        if isinstance(self.method, str):
            kind = METHODS[self.method]
            return kind(**kind.graph_defaults(graph))
        return type(self.method)(**self.method.get_params())

    def _graph_of(self, nodes: Any, edges: Any, known: Any) -> tuple[Data, slice, NDArray[Any]]:
        """The graph to predict, the rows of the new nodes in it, and their ids."""
        self._check_fitted()
        if isinstance(nodes, Data):
            return nodes, slice(None), np.arange(nodes.num_nodes)
        new = nodes if isinstance(nodes, NewNodes) else self.open(nodes, edges, known=known)
        return new.tables.graph, new.rows, new.ids

    def _known_graph(
        self, nodes: Any, edges: Any, known: Any, columns: Mapping[str, Any]
    ) -> TableGraph:
        """The training graph, with new nodes below the others if there are any."""
        if nodes is None and known is None and self._training_tables is not None:
            return self._training_tables
        known = self._trained_on() if known is None else known
        if nodes is None:
            data, edges, *lists = _pair(known)
            return self.open(data, edges, lists=lists[0] if lists else None, **columns).tables
        return self.open(nodes, edges, known=known, **columns).tables

    def _trained_on(self) -> tuple[str | None, ...]:
        """The paths of the training tables, and of a file of lists if one was named."""
        trained_on = self.info.trained_on
        if trained_on is None:
            raise ArgumentError(
                "known must be given: the model was not trained on files.", argument="known"
            )
        edges = trained_on.columns.get("edges")
        lists = [trained_on.columns["lists"]] if "lists" in trained_on.columns else []
        several = [] if edges is None else edges.split(",")
        for path in (trained_on.data, *several, *lists):
            if not Path(path).exists():
                raise ArgumentError(
                    f"{path} no longer exists; known must be the tables that the model was "
                    "trained on, a folder or a nodes and an edges table.",
                    argument="known",
                )
        return trained_on.data, edges, *lists

    def _calibrator(self) -> Calibrator:
        if self.info.calibrator is None:
            raise ValueError("This model has no calibrator: it was not saved by TableModel.")
        return self.info.calibrator

    def _check_fitted(self) -> None:
        if not hasattr(self, "method_"):
            raise RuntimeError("This TableModel is not fitted yet; call fit or load first.")


def _holds_integers(nodes: Any, label: str, classes: Sequence[str]) -> bool:
    """Whether the classes in a DataFrame are integers, or floats because some are missing."""
    kind = getattr(getattr(nodes, "dtypes", {}).get(label), "kind", "")
    return kind in "iuf" and all(name.lstrip("-").isdigit() for name in classes)


def _pair(known: Any) -> tuple[Any, ...]:
    """Known tables as a pair: a folder has no edges table of its own."""
    return known if isinstance(known, tuple) else (known, None)
