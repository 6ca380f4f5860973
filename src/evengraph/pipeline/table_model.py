"""TableModel: from tables to predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, Self, cast, final
from warnings import warn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from evengraph.core.errors import ArgumentError, one_line_errors, unknown
from evengraph.core.machine import pick_device
from evengraph.core.task import Task, mean_and_deviation
from evengraph.methods import DEFAULT_METHOD, METHODS, Method, new_method
from evengraph.methods.auto import ERRORS
from evengraph.metrics.binary import positive_class
from evengraph.metrics.decisions import Costs, Decided, Rule
from evengraph.pipeline.executor import Executor, FittedMethod
from evengraph.pipeline.explanation import Explainer, Explanation, Suspect, suspects
from evengraph.pipeline.model_info import (
    ModelInfo,
    NewNodes,
    Refit,
    Threshold,
    TrainedOn,
    TrainingStatistics,
    all_labels,
    as_arguments,
    holds_integers,
    load_model,
    open_new_nodes,
    saved_info,
    training_paths,
)
from evengraph.pipeline.onnx_export import RowInput, export_onnx, onnx_inputs
from evengraph.pipeline.predictions import ModelInput, NodePredictions, predict_nodes
from evengraph.pipeline.run import RunPlan, Selection, run
from evengraph.pipeline.sources import GraphSource, open_tables, tables_of
from evengraph.splits import SplitProtocol
from evengraph.tables import Note, TableGraph, UnknownNodeError


def assess(
    selection: Selection, source: GraphSource, *, refit: bool
) -> tuple[FittedMethod, ModelInfo]:
    """Fit the selected method again if asked, and calibrate it.

    Calibration rests on what a fit holds out of all labels, if it has folds, otherwise on what the
    splits held out together. The threshold is the one that the splits chose. If the second fit
    fails or Ctrl-C ends it, the method stays as it was, with a warning. A graph on disk has no
    statistics that drift is measured by.
    """
    fitted, plan = selection.best, selection.plan
    assert fitted is not None
    task, disk = fitted.task, source.disk
    (encoder, columns), data = source.encoding(task), source.data
    sizes = source.graph if disk is None else disk.packed
    learnt = Refit.of(task, fitted.method.held_out(task))
    again = _fit_again(fitted) if refit else None
    last, full = (fitted, task) if again is None else (again, all_labels(task))
    held_out = last.method.held_out(full)
    rows, labels = last.probabilities[held_out].cpu(), task.graph.y[held_out].cpu()
    if int(held_out.sum()) <= int(task.val.sum()):  # one validation set
        labels, rows, _ = selection.evidence
    rule = selection.positive, plan.rule, plan.shares
    calibrator, _, sets = Decided.by(rows, labels, *rule)
    apart = None
    if last.method.apart_ is not None:
        nodes, others = last.method.apart_
        apart = Decided.by(others.cpu(), task.graph.y[nodes].cpu(), *rule)
    records = selection.records
    mean, _ = mean_and_deviation(records)
    intervals = [record.interval for record in records if record.interval]
    splits = selection.about_splits()
    lines = [calibrator.describe(selection.classes), *splits["calibration"]["lines"]]
    return last, ModelInfo(
        encoder=encoder,
        columns=columns,
        calibrator=calibrator,
        decision=selection.decision,
        sets=sets,
        apart=apart,
        test={k: v if isfinite(v) else None for k, v in mean.items()},
        trained_on=None if data is None else TrainedOn(data, dict(source.columns)),
        refit=None if again is None else learnt,
        statistics=None
        if disk is not None
        else TrainingStatistics.of(
            task.graph, full.train, last.probabilities, None if encoder is None else encoder.numbers
        ),
        counts={
            "nodes": int(sizes.num_nodes),
            "edges": int(sizes.num_edges) // 2,
            "validation": learnt.validation,
            "test": int(task.test.sum()),
        },
        confusion=torch.tensor([record.decided for record in records]).sum(0).tolist(),
        calibration=splits["calibration"] | {"lines": lines},
        made={
            "seed": fitted.record.seed,
            "seeds": [record.seed for record in records],
            "splits": len(records),
            "reason": selection.reason,
            "seconds": sum(record.seconds for record in records),
            "interval": [fmean(ends) for ends in zip(*intervals, strict=True)],
            "distinct": splits["distinct"],
            "ranking": (splits["decision"] or {}).get("ranking"),
        },
    )


def _fit_again(fitted: FittedMethod) -> FittedMethod | None:
    """The method fitted to all labels; None with a warning if that failed or was interrupted."""
    full = all_labels(fitted.task)
    try:
        again = fitted.method.refitted(full, seed=fitted.record.seed)
        if not any(stage.interrupted for stage in again.history_):
            return fitted._replace(method=again, probabilities=again.predict_task(full))
        reason = "it was interrupted."
    except ERRORS as error:  # such as too little memory for all labels
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    warn(f"Not trained again on all labels: {reason}", stacklevel=5)  # the line that calls fit
    return None


def population_shares(task: Task, shares: Mapping[str, float] | None) -> tuple[float, ...] | None:
    """Shares of the classes in their order, which sum to one."""
    if shares is None:
        return None
    names = task.class_names or tuple(map(str, range(task.num_classes)))
    if set(shares) != set(names) or not all(0 < share < inf for share in shares.values()):
        raise ValueError(f"shares must give a number above 0 to each of {', '.join(names)}.")
    total = sum(shares.values())
    return tuple(shares[name] / total for name in names)


def positive_index(task: Task, name: str | None) -> int | None:
    """The index of the positive class, by default the rarer one; None unless there are two."""
    if name is None:
        return positive_class(task.class_counts) if task.num_classes == 2 else None
    names = task.class_names or tuple(map(str, range(task.num_classes)))
    if len(names) != 2 or name not in names:
        raise ValueError(
            f"positive must be one of two classes, got {name!r}; there are {', '.join(names)}."
        )
    return names.index(name)


@final
class TableModel:
    """Train on tables and predict new rows; a saved folder holds all that this needs.

    Holds the feature encoder, the fitted method, the class names, a calibrator and, for two
    classes, the threshold from which on a node is flagged.

    Args:
        method: A name in `METHODS`, which takes its defaults for the graph, or a method with
            parameters of your choice; it is copied.
        protocol: How to split the labelled nodes. By default the split or time column decides;
            without them 60% of each class is for training and 20% for validation.
        positive: Of two classes the one to find; by default the rarer one.
        refit: Once the test scores are known, fit again with the test labels added to those for
            training. The scores stay those of the splits.
        costs: For two classes, what a miss and a false alarm cost, `Costs(miss=50, alarm=1)`: the
            threshold then has the lowest cost.
        rule: Another rule for the threshold, such as `Rule.of(alerts=0.01)`; by default the best
            F1.
        shares: Of the classes in the population, by name, if labels were collected unevenly.

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
        rule: Rule | None = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        if isinstance(method, str) and method not in METHODS:
            raise ValueError(unknown("method", method, METHODS))
        self.method = method
        self.protocol = protocol
        self.positive = positive
        self.refit = refit
        if rule is not None and costs is not None:
            raise ValueError("costs and rule exclude each other; give one.")
        self.rule = rule or Rule.of(costs)
        self.shares = shares
        self.info = ModelInfo()
        self.notes: tuple[Note, ...] = ()
        self._training_tables: TableGraph | None = None
        self._probabilities: Tensor | None = None

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
            edges: The edges table, if `nodes` is a nodes table.
            seed: Decides the split and everything random in training. With several seeds, one
                model is trained per seed; scores and calibration are of all, and the first is
                kept.
            device: Where to train.
            progress: Show a live bar; by default on a terminal only.
            columns: The column arguments of `open_graph`: label, id, source, target, weight,
                type, edge_time, directed, unlabelled, split, time, features and drop.
        """
        data = open_tables(nodes, edges, **columns)
        protocol = self.protocol or data.make_split()
        seeds = [seed] if isinstance(seed, int) else list(dict.fromkeys(seed))
        if not seeds:
            raise ValueError("seed must hold at least one seed, got none.")
        plan = RunPlan(
            dataset=data.name,
            graph=data.graph,
            protocol=protocol,
            methods={"": new_method(self.method, data.graph)},
            seeds=seeds,
            rule=self.rule,
        )
        plan = plan.changed(shares=population_shares(plan.task(seeds[0]), self.shares))
        if self.positive is not None:  # fails before training; the rarer one may differ by split
            plan = plan.changed(positive=positive_index(plan.task(seeds[0]), self.positive))
        where = str(pick_device(device))
        executor = Executor(device=where, keep_interrupted=True, progress=progress)
        outcome = run(plan, executor, keep_best=True)
        for failure in outcome.failed.values():
            raise failure.error or ValueError(failure.reason)
        self._take(outcome.fits[""], data)
        if holds_integers(nodes, self.info.columns.label, self.classes_):
            self.info = replace(self.info, integer_labels=True)
        return self

    @classmethod
    def from_fits(cls, selection: Selection, source: GraphSource, *, refit: bool = False) -> Self:
        """Make a model of what `run` has fitted to the graph of a source."""
        assert selection.best is not None
        return cls(selection.best.method, refit=refit)._take(selection, source)

    def predict_unlabelled(self) -> Any:
        """What `predict` returns, for the nodes of the training tables that have no label."""
        new, known = self._unlabelled()
        model = self.method_, self.info, self.classes_
        return predict_nodes(*model, new, probabilities=known).frame

    def most_likely(self, name: str, count: int = 10) -> list[Suspect]:
        """The unlabelled nodes of training that are most likely of a class, and why."""
        (new, known), index = self._unlabelled(), self.classes_.index(name)
        rows = self.info.calibrated(known[new.rows].cpu())[:, index].numpy()
        return suspects(self.method_, new, rows, positive=index, count=count)

    def _unlabelled(self) -> tuple[NewNodes, Tensor]:
        """Nodes of the training tables without a label, and what is predicted for all."""
        tables, known = self._training_tables, self._probabilities
        if tables is None or known is None:
            raise RuntimeError("Call fit first: a loaded model does not hold its training tables.")
        nodes = NewNodes(tables=tables, rows=slice(None))
        return nodes.without((tables.graph.y >= 0).cpu().numpy()), known

    def predict(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        known: Any = None,
        tables: Any = None,
        calibrated: bool | None = None,
        prior: str | Mapping[str, float] | None = None,
        alerts: int | None = None,
        coverage: float | None = None,
        align: bool = True,
    ) -> Any:
        """Predict the class of every new node.

        Args:
            nodes: A DataFrame or a path, a folder included; or a PyG graph, or what `open` gave.
            edges: The edges table, if `nodes` is a nodes table.
            known: The known graph that new nodes are connected to: a folder, or nodes, edges and,
                if there are, tables of other kinds. New edges may refer to its nodes; only new
                nodes are predicted.
            tables: New rows of other kinds, as in `open_graph`.
            calibrated: Whether probabilities are calibrated; by default they are, for models saved
                by version 0.3 or later.
            prior: Correct probabilities for class shares that differ from training: a share for
                each class, or `estimate`. Assumes that a node of a class looks as in training, and
                calibrates. With costs, the threshold holds for the new shares; otherwise the same
                nodes are flagged. An estimate
                is not used, with a warning, if nodes differ from training or a class vanishes.
            alerts: Flag this many nodes, the most probable ones of the positive class.
            coverage: Add `set`, the classes that a node may have: it holds the true class of this
                share of the nodes of every class.
            align: Undo shifts of whole numeric columns since training, by a factor or a constant.
                Applies to a separate graph with at least 200 nodes, and not together with `prior`.
                Assumes similar nodes, measured at another place or time.

        Returns:
            A DataFrame with one row per node: its id under the name of the id column in `nodes`
            (`id` if there is none), `class`, its `probability`, `p_<class>` for every class, for
            two classes `flagged`. Of two classes, `class` is the positive one if the node is
            flagged; of more, the one that the method decides for, to which rare classes count as
            much as common ones, so that another may be more probable. Columns are called `score`
            and `score_<class>` where too few nodes were held out. If the model is a committee, 80%
            of its votes lie between `low` and `high`, and `agreement` is the share of votes for the
            class.
        """
        options: dict[str, Any] = {"prior": prior, "align": align}
        options |= {"alerts": alerts, "coverage": coverage}
        if tables is not None:
            nodes, edges, known = self.open(nodes, edges, known=known, tables=tables), None, None
        new = self._opened(nodes, edges, known)
        found = self.predictions(new, calibrated=calibrated, **options)
        for doubt in (found.doubt, "" if isinstance(new, Data) else new.doubt):
            if doubt:
                warn(doubt, stacklevel=2)
        return found.frame

    def predictions(
        self, nodes: Any, edges: Any = None, *, known: Any = None, **options: Any
    ) -> NodePredictions:
        """What `predict` returns, with sentences about drift, and the shares and errors in use.

        The arguments are those of `predict`.
        """
        new = self._opened(nodes, edges, known)
        return predict_nodes(self.method_, self.info, self.classes_, new, **options)

    def predict_proba(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        known: Any = None,
        calibrated: bool | None = None,
        align: bool = True,
    ) -> NDArray[Any]:
        """Class probabilities of every new node, (M, C), in the order of `classes_`."""
        options = {"calibrated": calibrated, "align": align}
        found = self.predictions(nodes, edges, known=known, **options)
        return cast(Tensor, found.probabilities).numpy()

    def explain(
        self,
        node: Any,
        *,
        nodes: Any = None,
        edges: Any = None,
        known: Any = None,
        tables: Any = None,
        columns: Mapping[str, str] | None = None,
        top: int = 10,
        align: bool = True,
    ) -> Explanation:
        """Explain the prediction of one node.

        Args:
            node: The id of a node; in a PyG graph its index.
            nodes: New nodes as in `predict`, if it is one of them.
            edges: The table of their edges.
            known: The graph of the node, or the one that new nodes are connected to. By default
                the training graph, read again from its path if the model was loaded. New nodes
                whose edges refer only to each other are a separate graph, as in `predict`.
            tables: New rows of other kinds, as in `open_graph`.
            columns: Names that differ from the training tables, as in `open`.
            top: How many labelled nodes to list.
            align: As in `predict`.
        """
        self._check_fitted()
        graph = next((one for one in (nodes, known) if isinstance(one, Data)), None)
        about = dict[str, Any]()
        if graph is None:
            new = self._explained(nodes, edges, known, tables, columns or {})
            ids = tuple(str(id) for id in new.tables.ids.tolist())
            if str(node) not in ids:
                text = f"There is no node {str(node)!r}; ids are like {', '.join(ids[:3])}."
                raise UnknownNodeError(text, node=str(node), num_edges=0)
            graph, encoder = self._input(new, None, None, align).graph, new.tables.encoder
            about = {"ids": ids, "feature_names": encoder.names, "encoder": encoder}
            node = ids.index(str(node))
        info = self.info.on(self.method_, graph)
        explainer = Explainer(self.method_, graph, transform=info.calibrated, **about)
        decision = info.decision
        if decision is None or not isinstance(node, int) or not 0 <= node < len(explainer.raw):
            return explainer.explain(node, top=top)
        row = explainer.predicted[node]
        positive, threshold = decision.positive, decision.threshold
        if row[positive] < min(threshold, float(row.max())):  # neither flagged nor most probable
            return explainer.explain(node, int(row.argmax()), top=top)
        return explainer.explain(node, positive, threshold=threshold, top=top)

    def evaluate(self) -> dict[str, float | None]:
        """Metrics in percent on the test nodes of training; None for one that is undefined.

        A model that was fitted again to all labels has the scores from before.
        """
        self._check_fitted()
        return dict(self.info.test)

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: weights as safetensors, the rest as JSON."""
        self._check_fitted()
        self.method_.save(folder, extra=self.info.as_dict())

    def export_onnx(self, path: str | Path) -> dict[str, RowInput]:
        """Write the method as an ONNX file, which takes `onnx_inputs` and gives `predict_proba`.

        Methods that use edges before the model, such as Unison and boosting, and averages of them
        can be exported. The metadata hold the names of classes and features, and the threshold.

        Returns:
            The inputs by name, with their widths and what they hold.
        """
        self._check_fitted()
        return export_onnx(self.method_, path, self.info)

    def onnx_inputs(
        self, nodes: Any, edges: Any = None, *, known: Any = None, align: bool = True
    ) -> dict[str, NDArray[np.float32]]:
        """What the exported file takes for every new node, (M, width) each, by name of the input.

        The arguments are those of `predict`.
        """
        given = self._input(nodes, edges, known, align)
        tables = onnx_inputs(self.method_, given.graph)
        return {name: table[given.rows] for name, table in tables.items()}

    @classmethod
    @one_line_errors()
    def load(cls, folder: str | Path, *, device: str | torch.device = "cpu") -> Self:
        """Read a model that `save` or `evengraph run --save` wrote."""
        method = load_model(folder, device=device)
        model = cls(method)
        model.method_, model.info = method, saved_info(method, folder)
        return model

    def open(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        known: Any = None,
        only_unlabelled: bool = False,
        tables: Any = None,
        **columns: str,
    ) -> NewNodes:
        """Encode new tables, to read their notes before predicting.

        Args:
            nodes: As in `predict`, and so are `edges` and `known`.
            only_unlabelled: Predict only nodes whose label column holds none of the classes.
            tables: New rows of other kinds, as in `open_graph`.
            columns: Names that differ from the training tables: id, source, target, weight, type
                or edge_time.
        """
        self._check_fitted()
        options = {"known": known, "only_unlabelled": only_unlabelled, "tables": tables}
        return open_new_nodes(self.info, self.classes_, nodes, edges, columns=columns, **options)

    @property
    def classes_(self) -> tuple[str, ...]:
        """The names of the classes; numbers if they have none."""
        self._check_fitted()
        return self.method_.class_names_ or tuple(map(str, range(self.method_.num_classes_)))

    def _repr_html_(self) -> str:
        """Scores and classes, for notebooks."""
        from evengraph.report.notebook import model_html

        if not hasattr(self, "method_"):
            return f"<p>{escape(repr(self))}</p>"
        labels = self.method_.labelled_.labels
        counts = torch.bincount(labels, minlength=len(self.classes_)).tolist()
        return model_html(self.method_.full_title, self.classes_, counts, self.info.as_dict())

    @property
    def threshold(self) -> Threshold | None:
        """The probability of the positive class from which a node is flagged."""
        found = self.info.decision
        return None if found is None else Threshold(found.positive, found.threshold)

    def use_rule(self, rule: Rule) -> Self:
        """Replace the threshold by the one that another rule chooses."""
        self.info = self.info.by(rule)
        return self

    def _take(self, selection: Selection, source: GraphSource) -> Self:
        """Adopt a fitted method: fit it again and calibrate it."""
        last, self.info = assess(selection, source, refit=self.refit)
        self.method_, self._probabilities = last.method, last.probabilities
        self._training_tables = tables = tables_of(last.task, source)
        self.notes = () if tables is None else tables.notes
        return self

    def _opened(self, nodes: Any, edges: Any, known: Any) -> Data | NewNodes:
        """The nodes to predict: a graph, or what `open` gives for tables."""
        self._check_fitted()
        given = isinstance(nodes, Data | NewNodes)
        return nodes if given else self.open(nodes, edges, known=known)

    def _input(self, nodes: Any, edges: Any, known: Any, align: bool) -> ModelInput:
        return ModelInput.of(self._opened(nodes, edges, known), self.method_, self.info, align)

    def known_graph(self, known: Any, columns: Mapping[str, Any]) -> TableGraph:
        """The graph of the known tables, by default those of training, which are read again."""
        if known is None and self._training_tables is not None:
            return self._training_tables
        given = as_arguments(training_paths(self.info) if known is None else known)
        return self.open(given.pop("data"), given.pop("edges"), **given, **columns).tables

    def _explained(
        self, nodes: Any, edges: Any, known: Any, tables: Any, columns: Mapping[str, Any]
    ) -> NewNodes:
        """Nodes to explain; new ones attach to the known graph if it is given or edges name it."""
        if nodes is None:
            return NewNodes(tables=self.known_graph(known, columns), rows=slice(None))
        if isinstance(nodes, NewNodes):
            return nodes
        if known is None:
            try:
                return self.open(nodes, edges, tables=tables, **columns)
            except (UnknownNodeError, ArgumentError):  # a table of other kinds may be missing
                known = training_paths(self.info)
        return self.open(nodes, edges, known=known, tables=tables, **columns)

    def _check_fitted(self) -> None:
        if not hasattr(self, "method_"):
            raise RuntimeError("This TableModel is not fitted yet; call fit or load first.")
