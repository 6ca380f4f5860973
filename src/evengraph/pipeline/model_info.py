"""ModelInfo: what a saved model holds beside its method; load_model() reads both again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from evengraph.core.errors import SHOWN, ArgumentError, first_line, one_line_errors, short
from evengraph.core.machine import pick_device
from evengraph.core.rng import seeded
from evengraph.core.schema import Count, Percent, SchemaError, Share, Size, read
from evengraph.core.task import Task
from evengraph.methods import METHODS, Method
from evengraph.methods.bases.method import restore_method
from evengraph.methods.bases.saving import Description, TensorMismatchError, read_model
from evengraph.metrics.binary import flagged
from evengraph.metrics.calibration import Calibrator
from evengraph.metrics.decisions import Decided, Decision, Rule
from evengraph.tables import FeatureEncoder, Note, NoteKind, TableColumns, TableGraph, build_graph
from evengraph.tables.cells import (
    canonical_names,
    check_columns,
    table_name,
)
from evengraph.tables.columns import edge_ends, read_times
from evengraph.tables.edges import edge_rows, id_index
from evengraph.tables.kinds import Step
from evengraph.tables.links import ALL_ROWS
from evengraph.tables.notes import Notes
from evengraph.tables.open import is_graph_file, open_graph_file, read_tables

MAX_LOG_DEGREE = 50  # of a number of neighbours; more are no graph
LARGE = 0.5  # standard deviations of a feature from which on a shift of its mean is told
LARGE_SHARE = 0.1  # difference of class shares that is told
CERTAIN = 4.0  # standard errors that a difference must exceed
LISTED = 3  # features that are named
DIFFERENT = "Different from training"


@dataclass(frozen=True, kw_only=True)
class TrainingStatistics:
    """Means over the training graph; no row of it is stored."""

    means: tuple[float, ...]  # of every feature
    deviations: tuple[Size, ...]
    log_degree: tuple[Size, Size]  # mean and standard deviation of log(1 + neighbours)
    predicted: tuple[Share, ...]  # share of each class, for nodes that were not learnt from
    labels: tuple[Share, ...]  # share of each class
    quartiles: tuple[float, ...] = ()  # of columns of numbers, three each; not in former versions

    @classmethod
    def of(
        cls,
        graph: Data,
        train: Tensor,
        probabilities: Tensor,
        numbers: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Measure the graph of a model that learnt from the nodes of a mask."""
        degree = _log_degrees(graph)
        quartiles: tuple[float, ...] = ()
        unseen = ~train if bool((~train).any()) else torch.ones_like(train)
        labels = graph.y[graph.y >= 0]
        if numbers is not None and numbers.any():
            columns = graph.x[:, torch.from_numpy(numbers).to(graph.x.device)].double().cpu()
            found = np.quantile(columns.numpy(), (0.25, 0.5, 0.75), axis=0)
            quartiles = _rounded(torch.from_numpy(found.T.ravel()))
        return cls(
            means=_rounded(graph.x.float().mean(0)),
            deviations=_rounded(graph.x.float().std(0, correction=0)),
            log_degree=(float(f"{degree.mean():.4g}"), float(f"{degree.std(correction=0):.4g}")),
            predicted=_shares(probabilities[unseen].argmax(1), probabilities.shape[1]),
            labels=_shares(labels, probabilities.shape[1]),
            quartiles=quartiles,
        )

    def check(self, num_features: int, num_classes: int) -> None:
        """Raise ValueError for statistics, read from a file, of a graph of other sizes."""
        features, classes = (self.means, self.deviations), (self.predicted, self.labels)
        sizes = *(len(part) for part in features), *(len(part) for part in classes)
        if sizes != (num_features,) * 2 + (num_classes,) * 2:
            raise SchemaError("must fit the features and classes", "statistics")
        if self.log_degree[0] >= MAX_LOG_DEGREE:
            raise SchemaError(f"must be below {MAX_LOG_DEGREE}", "statistics.log_degree")

    def as_dict(self) -> dict[str, Any]:
        return {name: list(values) for name, values in asdict(self).items()}

    def compare(
        self,
        graph: Data,
        rows: Any,
        probabilities: Tensor,
        *,
        features: Sequence[str] = (),
        classes: Sequence[str],
    ) -> list[str]:
        """Sentences about how new nodes, some rows of a graph, clearly differ; at most two."""
        if len(probabilities) < 2:
            return []
        names = features or [f"feature {index}" for index in range(graph.num_features)]
        parts = [*self._shifts(graph.x[rows].float(), names), *self._degrees(graph, rows)]
        lines = [self._shares(probabilities.argmax(1), classes)]
        if parts:
            lines.append(f"{DIFFERENT}: {'; '.join(parts)}.")
        return [line for line in lines if line]

    def _shares(self, predicted: Tensor, classes: Sequence[str]) -> str:
        """The class whose share among predictions has grown most, if it has clearly."""
        before = torch.tensor(self.predicted, dtype=torch.float64)
        now = torch.tensor(_shares(predicted, len(before)), dtype=torch.float64)
        index = int((now - before).argmax())
        gap, level = float((now - before)[index]), before[index].clamp(0.05, 0.95)
        error = float((level * (1 - level) / len(predicted)).sqrt())
        if gap < LARGE_SHARE or gap < CERTAIN * error:
            return ""
        return (
            f"{now[index]:.0%} are predicted {classes[index]}; in the training graph "
            f"{before[index]:.0%} were, and {self.labels[index]:.0%} of the labels."
        )

    def steps(self, x: Tensor) -> Tensor:
        """How far the mean of each feature has moved, in standard deviations, (F,)."""
        means, deviations = torch.tensor(self.means), torch.tensor(self.deviations)
        return torch.where(deviations > 0, (x.mean(0).cpu() - means) / deviations, 0.0)

    def _shifts(self, x: Tensor, names: Sequence[str]) -> list[str]:
        """The features whose means have moved most, by more than half a standard deviation."""
        steps = self.steps(x)
        moved = steps.abs() > max(LARGE, CERTAIN / len(x) ** 0.5)
        order = steps.abs().argsort(descending=True)[: int(moved.sum())].tolist()
        parts = [
            f"{names[index]} is {abs(steps[index]):.1f} standard deviations "
            f"{'higher' if steps[index] > 0 else 'lower'}"
            for index in order[:LISTED]
        ]
        more = len(order) - LISTED
        return parts + ([f"{more} other feature{'s' * (more > 1)}"] if more > 0 else [])

    def _degrees(self, graph: Data, rows: Any) -> list[str]:
        """Whether nodes have clearly more or fewer neighbours."""
        mean, deviation = self.log_degree
        degrees = _log_degrees(graph)[rows]
        gap = abs(float(degrees.mean()) - mean)
        if gap <= max(LARGE, CERTAIN / len(degrees) ** 0.5) * deviation:
            return []
        now, before = (f"{math.expm1(value):.1f}" for value in (float(degrees.mean()), mean))
        if now == before:  # all nodes of training had about as many, so that any change is large
            return []
        return [f"a node has typically {now} neighbours, {before} in training"]


def _log_degrees(graph: Data) -> Tensor:
    degree = torch.bincount(graph.edge_index[0].cpu(), minlength=int(graph.num_nodes))
    return degree.double().log1p()


def _shares(classes: Tensor, count: int) -> tuple[float, ...]:
    counts = torch.bincount(classes.cpu(), minlength=count).double()
    return _rounded(counts / counts.sum().clamp(min=1))


def _rounded(values: Tensor) -> tuple[float, ...]:
    """Four digits, so that no cell can be told from them."""
    return tuple(float(f"{value:.4g}") for value in values.tolist())


ID = "id"
"""What predictions call the ids of nodes whose table has no name for them."""

OUTPUTS = (
    "class",
    "probability",
    "score",
    "low",
    "high",
    "flagged",
    "agreement",
    "set",
)
"""Columns of predictions, which an id cannot be called like; nor `p_<class>`, `score_<class>`."""

Tables = tuple[Any, Any]
"""A nodes table, and an edges table or `OtherTables`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NewNodes:
    """Nodes to predict, in a graph that may hold known nodes before them."""

    tables: TableGraph  # all nodes
    rows: Any  # those to predict, a slice or their indices
    attached: bool = False  # whether there are known nodes before them

    def without(self, labelled: NDArray[np.bool_]) -> NewNodes:
        """The nodes to predict that have no label; `labelled` holds one value for each, (M,)."""
        rows = np.arange(self.tables.graph.num_nodes)[self.rows]
        return replace(self, rows=rows[~labelled])

    @property
    def ids(self) -> NDArray[Any]:
        ids: NDArray[Any] = self.tables.ids[self.rows]
        return ids

    @property
    def id_name(self) -> str:
        """What predictions call the ids: as the nodes table does, so that the two can be joined."""
        name = self.tables.columns.id
        return ID if name is None or name in OUTPUTS or name.startswith(("p_", "score_")) else name

    @property
    def num_isolated(self) -> int:
        """The number of nodes to predict that have no edge, of a model that uses edges."""
        if self.tables.columns.link:
            return 0
        connected = torch.zeros(self.tables.graph.num_nodes, dtype=torch.bool)
        connected[self.tables.graph.edge_index[0]] = True
        return int((~connected[self.rows]).sum())

    @property
    def doubt(self) -> str:
        """A warning of nodes that the known graph cannot help; empty if there is a connection."""
        new = torch.zeros(self.tables.graph.num_nodes, dtype=torch.bool)
        new[self.rows] = True
        ends = new[self.tables.graph.edge_index]
        if not self.attached or new.all() or not ends.all(0).any() or (ends[0] != ends[1]).any():
            return ""
        return (
            "No edge connects the new nodes to the known graph. If they are a graph of their own, "
            "predict them without the known one."
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was done to the tables; labels do not matter, `num_isolated` counts lone nodes."""
        hidden = (NoteKind.NO_LABEL, NoteKind.ISOLATED_NODES)
        return tuple(note for note in self.tables.notes if note.kind not in hidden)


def build_new_nodes(
    new: Tables, known: Tables | None, columns: TableColumns, encoder: FeatureEncoder
) -> NewNodes:
    """Encode new rows with a fitted encoder, below those of a known graph if there is one.

    A known node that is given again is predicted with its new row, and with all edges.
    """
    if known is None:
        return NewNodes(tables=build_graph(*new, columns, encoder), rows=slice(None))
    if not len(new[0]):
        name = table_name(new[0], "nodes")
        raise ValueError(f"{name} has no rows; at least one new node is needed.")
    check_columns(new[0], encoder.input_columns, "nodes")
    # what follows is checked on the new tables alone, so that errors give their rows
    encoder.check_rows(new[0])
    if columns.time in new[0]:
        read_times(new[0][columns.time], table_name(new[0], "nodes"), columns.date_order)
    count, rows = len(known[0]), np.arange(len(new[0]))
    nodes = pd.concat([known[0], _typed_as(known[0], new[0])], ignore_index=True)
    nodes.attrs[ALL_ROWS] = known[0].attrs.get(ALL_ROWS, 0)
    edges = [part for part in (known[1], new[1]) if part is not None]
    rows += count
    if (id := columns.id) is not None:
        for table in (known[0], new[0]):
            check_columns(table, [id], "nodes")
        ids = id_index(new[0][id], table_name(new[0], "nodes"))
        before = pd.Index(canonical_names(known[0][id]))
        before = before.get_indexer(ids) if before.is_unique else np.full(len(ids), -1)
        again, order = before >= 0, np.arange(count)
        order[before[again]] = rows[again]  # where it was, so that it is recognised
        nodes = nodes.iloc[np.append(order, rows[~again])].reset_index(drop=True)
        rows = np.where(again, before, count + np.cumsum(~again) - 1)
        if new[1] is not None and not columns.kinds:
            ids = id_index(nodes[id], table_name(new[0], "nodes"))
            source, target = edge_ends(new[1], columns, Notes())
            edge_rows(new[1][source], new[1][target], ids, table_name(new[1], "edges"))
    if columns.kinds:
        joined = known[1].joined(new[1], [Step(*item) for item in columns.kinds])
    else:
        joined = pd.concat(edges, ignore_index=True) if edges else None
    tables = build_graph(nodes, joined, columns, encoder)
    if encoder.structural or encoder.edges is not None:
        # features that new edges would change stay as in training, so that known nodes are found
        same = np.setdiff1d(np.arange(count), rows)
        tables.graph.x[same] = build_graph(*known, columns, encoder).graph.x[same]
    return NewNodes(tables=tables, rows=rows, attached=True)


def _typed_as(known: Any, new: Any) -> Any:
    """New rows whose numbers are text where those of a file are."""
    table = new.copy()
    for name in new.columns.intersection(known.columns):
        if new[name].dtype.kind in "biuf" and isinstance(known[name].dtype, pd.StringDtype):
            table[name] = pd.Series(canonical_names(new[name]), new.index).where(new[name].notna())
    return table


class Refit(NamedTuple):
    """How many labels a model was fitted to again, after its scores were computed."""

    train: Count
    validation: Count
    train_before: Count

    @classmethod
    def of(cls, task: Task, held_out: Tensor) -> Refit:
        """What refitting after a task uses; folds hold more nodes out, and learn from all."""
        full, val = all_labels(task), int(task.val.sum())
        extra = val if int(held_out.sum()) > val else 0
        return cls(int(full.train.sum()) + extra, val - extra, int(task.train.sum()) + extra)


def all_labels(task: Task) -> Task:
    """A task that trains on every label outside validation; nothing is left to test on.

    The validation nodes stay: early stopping, threshold and calibration need labels that were not
    learnt from, and giving half of them away did not help in trials. Edges that a split by time
    hides are seen.
    """
    train = (task.graph.y >= 0) & ~task.val
    return replace(task, train=train, test=torch.zeros_like(task.test), past=None)


class Threshold(NamedTuple):
    """From which probability of the positive class a node is flagged."""

    positive: Count
    value: float


class TrainedOn(NamedTuple):
    """Where the training graph was: a data set's name or a path, and the columns named by users."""

    data: str
    columns: dict[str, str | bool]


Bins = list[tuple[Share, Share, Size]]  # mean probability, share that came true, nodes


class Reliability(TypedDict):
    """How often probabilities of held-out nodes came true, before and after calibration."""

    before: Bins
    after: Bins


class CalibrationChecks(TypedDict, total=False):
    """What calibration did, in bins and in sentences."""

    reliability: Reliability
    lines: list[str]


class Ranking(TypedDict):
    """Average precision over all held-out nodes, and the ends of its interval."""

    value: Percent
    ends: tuple[Percent, Percent]
    nodes: Count
    positives: Count
    share: Share


class Made(TypedDict, total=False):
    """How a model came about."""

    seed: int
    seeds: list[int]
    splits: Count
    reason: str
    seconds: Size
    interval: list[Percent]
    distinct: Share  # of tested nodes, those that one split tested
    ranking: Ranking | None
    command: str


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What a model needs to predict tables, and what is known about it."""

    encoder: FeatureEncoder | None = None  # None for a model that was trained on a graph
    columns: TableColumns = field(default_factory=TableColumns)  # of the training tables
    calibrator: Calibrator | None = None
    decision: Decision | None = None  # from which calibrated probability a node is flagged
    sets: tuple[tuple[Share, ...], ...] = ()  # quantiles per class, for prediction sets
    apart: Decided | None = None  # where known labels do not vote: fitted to what does
    test: dict[str, Percent | None] = field(default_factory=dict)  # scores in percent
    trained_on: TrainedOn | None = None  # None for objects in memory
    refit: Refit | None = None  # if fitted again to all labels; the scores are from before
    statistics: TrainingStatistics | None = None  # which new nodes are compared with
    integer_labels: bool = False  # in a DataFrame; predictions then are integers as well
    counts: dict[str, Count] = field(default_factory=dict)  # nodes, edges, validation and test
    confusion: list[list[Count]] | None = None  # on the test nodes; rows are true classes
    calibration: CalibrationChecks = field(default_factory=CalibrationChecks)
    made: Made = field(default_factory=Made)

    def check(self, num_features: int, num_classes: int) -> None:
        """Raise ValueError if the parts, read from a file, do not fit the model or one another."""
        if self.statistics is not None:
            self.statistics.check(num_features, num_classes)
        if any(len(step) != len(Step._fields) for step in self.columns.kinds or ()):
            raise SchemaError("must hold steps between tables", "columns.kinds")
        relations = self.columns.relations or ()
        if len(set(relations)) < len(relations):
            raise SchemaError("must be distinct names", "columns.relations")
        if relations and self.columns.type is None:
            raise SchemaError("need the column with the types of edges", "columns.relations")
        sizes = dict[str, Sequence[object]]()
        for place, one in (("", self), ("apart.", self.apart or self)):
            calibrator, decision = one.calibrator or Calibrator(), one.decision or Decision(0, 0)
            if decision.positive >= num_classes:
                raise SchemaError(f"must be below {num_classes}", f"{place}decision.positive")
            if one.sets and not calibrator.counts:
                raise SchemaError("need the counts of a calibrator", f"{place}sets")
            if decision.curve and not decision.curve.counts_nodes:
                raise SchemaError("must have points that count nodes", f"{place}decision.curve")
            sizes |= {
                f"{place}calibrator.shift": calibrator.shift,
                f"{place}calibrator.counts": calibrator.counts,
                f"{place}calibrator.shares": calibrator.shares,
                f"{place}sets": one.sets,
            }
        sizes = {name: part for name, part in sizes.items() if part}
        if len(self.made.get("interval", ())) not in (0, 2):
            raise SchemaError("must have two ends", "made.interval")
        if self.confusion is not None:
            sizes |= {"confusion": self.confusion}
            sizes |= {f"confusion[{row}]": part for row, part in enumerate(self.confusion)}
        for name, part in sizes.items():
            if len(part) != num_classes:
                raise SchemaError(f"must have {num_classes} entries, got {len(part)}", name)

    @property
    def calibrates(self) -> bool:
        """Whether probabilities are calibrated by default; models before version 0.3 are not."""
        return self.calibrator is not None and bool(self.calibrator.counts)

    def headings(self, classes: Sequence[str], calibrated: bool) -> tuple[str, list[str]]:
        """Columns of the predicted class and of every class: of scores where nodes were too few."""
        good = list(self.calibrator.reliable) if calibrated and self.calibrator else []
        good = good or [True] * len(classes)
        each = zip(good, classes, strict=True)
        return (
            "probability" if all(good) else "score",
            [f"{'p' if enough else 'score'}_{name}" for enough, name in each],
        )

    def calibrated(self, raw: Tensor) -> Tensor:
        """What the threshold is on: calibrated probabilities, or those of an older model."""
        return self.calibrator(raw) if self.calibrates and self.calibrator else raw

    def flags(self, raw: Tensor) -> Tensor | None:
        """Which nodes are flagged, (M,), by what the method predicts, (M, C)."""
        if self.decision is None:
            return None
        rows = self.calibrated(raw)
        return flagged(rows[:, self.decision.positive], self.decision.threshold)

    def classes(self, raw: Tensor, flags: Tensor | None) -> Tensor:
        """The class of each node, (M,): of two classes what is flagged, else the largest output.

        Methods that balance classes predict rare ones as readily as common ones. So this is what
        test scores are for, and not always the most probable class.
        """
        if flags is None or self.decision is None or not self.calibrates:
            return raw.argmax(1)
        return (flags.cpu() == bool(self.decision.positive)).long()

    def by(self, rule: Rule) -> ModelInfo:
        """The same with the threshold that another rule chooses."""
        if self.decision is None:
            raise ValueError("A rule for a threshold needs a model of two classes.")
        apart = self.apart
        if apart is not None and apart.decision is not None:
            apart = apart._replace(decision=apart.decision.by(rule))
        return replace(self, decision=self.decision.by(rule), apart=apart)

    def on(self, method: Method, graph: Data) -> ModelInfo:
        """The same for a graph: where known labels do not vote, decisions are by what does."""
        if self.apart is None or method.recognises(graph):
            return self
        return replace(self, **self.apart._asdict())

    def as_dict(self) -> dict[str, Any]:
        """The record as stored, without what is unknown."""
        tested, encoded = self.confusion is not None, self.encoder is not None
        extra = {
            "calibrator": self.calibrator and self.calibrator.as_dict(),
            "test": self.test,
            "trained_on": self.trained_on and self.trained_on._asdict(),
            "refit": self.refit and self.refit._asdict(),
            "statistics": self.statistics and self.statistics.as_dict(),
            "decision": self.decision and self.decision.as_dict(),
            "sets": self.sets or None,
            "apart": self.apart and self.apart.as_dict(),
            "integer_labels": self.integer_labels or None,
            "counts": self.counts if tested else None,
            "confusion": self.confusion,
            "calibration": self.calibration if tested else None,
            "made": self.made or None,
            "columns": asdict(self.columns) if encoded else None,
            "encoder": self.encoder and self.encoder.as_dict(),
        }
        return {name: value for name, value in extra.items() if value is not None}

    @classmethod
    def from_dict(cls, extra: Mapping[str, Any]) -> Self:
        names = {item.name for item in fields(cls)}
        stored = {k: v for k, v in extra.items() if k in names and v is not None}
        if not {"encoder", "columns"} <= set(stored):  # they are somebody's own
            stored = {k: v for k, v in stored.items() if k not in ("encoder", "columns")}
        for part in (stored, apart := dict(stored.get("apart") or {})):
            if isinstance(part.get("decision"), Mapping):
                part["decision"] = {k: v for k, v in part["decision"].items() if k != "options"}
        stored |= {"apart": apart} if apart else {}
        try:
            return read(cls, stored | _former(extra), "extra")
        except (KeyError, TypeError, AttributeError) as error:  # of an earlier version
            raise SchemaError(f"is not that of a model: {error!r}", "extra") from error


def _former(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What version 0.2 saved, in the form of today."""
    found: dict[str, Any] = {}
    calibrator, prior = extra.get("calibrator"), extra.get("prior")
    if prior is not None:  # with shifts, and for these shares
        calibrator = {**prior["calibrator"], "shares": prior["shares"]}
    if isinstance(calibrator, Mapping):
        found["calibrator"] = {k: v for k, v in calibrator.items() if k != "note"}
    if extra.get("flag") is not None:
        found["decision"] = Decision.of_old(extra["flag"], extra.get("cost_curve"))
    if "calibration_error" in (extra.get("calibration") or ()):  # errors alone
        found["calibration"] = {}
    return found


def columns_of_new(info: ModelInfo, columns: Mapping[str, str]) -> TableColumns:
    """The columns of new tables: those of training, but for names that differ."""
    names = {role: getattr(info.columns, role) for role in ("id", "source", "target")}
    return TableColumns(**{**names, **info.columns.edge_options, **columns})


@one_line_errors()
def open_new_nodes(
    info: ModelInfo,
    classes: Sequence[str],
    nodes: Any,
    edges: Any = None,
    *,
    known: Any = None,
    only_unlabelled: bool = False,
    tables: Any = None,
    columns: Mapping[str, str],
) -> NewNodes:
    """Encode new tables as those of training; the arguments are those of `TableModel.open`."""
    if is_graph_file(nodes):
        for name, value in (("edges", edges), ("known", known)):
            if value is not None:
                raise ValueError(f"{nodes} does not take {name}: it holds a whole graph.")
        graph = open_graph_file(Path(nodes), info.columns, info.encoder)
        new = NewNodes(tables=graph, rows=slice(None))
        if (joined := graph.graph.get("new_mask")) is not None:  # of a packed graph
            new = NewNodes(tables=graph, rows=np.flatnonzero(joined.numpy()), attached=True)
        return new.without((graph.graph.y[new.rows] >= 0).numpy()) if only_unlabelled else new
    if info.encoder is None:
        raise ValueError("This model was trained on a graph and cannot encode tables.")
    roles = columns_of_new(info, columns)
    known_tables = None if known is None else read_tables(**as_arguments(known), columns=roles)
    given = read_tables(nodes, edges, tables, columns=roles)
    if roles.kinds:
        steps = [Step(*item) for item in roles.kinds]
        if known_tables is None:
            given[1].check(steps, "the")
        else:  # new rows may lead to known rows alone
            known_tables[1].check(steps, "known")
            if not isinstance(edges, Mapping):
                near = [step._replace(far_key="") for step in steps if not step.near]
                given[1].check(near, "the")
    elif tables is not None:
        text = "The model was trained on one table of nodes, so that it takes none of other kinds."
        raise ArgumentError(text, argument="tables")
    new = build_new_nodes(given, known_tables, roles, info.encoder)
    if not only_unlabelled:
        return new
    if (label := info.columns.label) is None:
        raise ValueError("There is no label column, so it is unknown which nodes are unlabelled.")
    check_columns(given[0], [label], "nodes")
    return new.without(np.isin(canonical_names(given[0][label]).astype(str), list(classes)))


def training_paths(info: ModelInfo) -> dict[str, Any]:
    """The paths of the training tables, as arguments of `read_tables`."""
    trained_on = info.trained_on
    if trained_on is None or trained_on.columns.get("edges") == "":  # in memory
        raise ArgumentError(
            "known must be given: the model was not trained on files.", argument="known"
        )
    parts = {name: trained_on.columns.get(name) for name in ("edges", "tables")}
    listed = [part for part in parts.values() if isinstance(part, str)]
    several = [p for part in listed for p in ([part] if Path(part).exists() else part.split(","))]
    for path in (trained_on.data, *several):
        if not Path(path).exists():
            raise ArgumentError(
                f"{path} no longer exists; known must be the tables that the model was "
                "trained on, a folder or a nodes and an edges table.",
                argument="known",
            )
    return {"data": trained_on.data, **parts}


def as_arguments(known: Any) -> dict[str, Any]:
    """Known tables as arguments of `read_tables`: nodes and edges, or a folder, or a dict."""
    if isinstance(known, dict):
        return dict(known)
    data, edges, *tables = known if isinstance(known, tuple) else (known, None)
    return {"data": data, "edges": edges, "tables": tables[0] if tables else None}


def holds_integers(nodes: Any, label: str | None, classes: Sequence[str]) -> bool:
    """Whether the classes in a DataFrame are integers, or floats because some are missing."""
    kind = getattr(getattr(nodes, "dtypes", {}).get(label), "kind", None)
    return kind in ("i", "u", "f") and all(name.lstrip("-").isdigit() for name in classes)


@one_line_errors()
def load_model(folder: str | Path, *, device: str | torch.device = "cpu") -> Method:
    """Read a method that `save` wrote, ready to predict.

    Its attribute `extra_` holds what `save` was given as `extra`. Nothing in the folder is
    executed: tensors are read from safetensors, everything else from JSON.

    Args:
        folder: The folder of the model.
        device: Where to predict; need not be the kind of device that it was trained on.
    """
    target = pick_device(device)
    about, tensors = read_model(folder)
    try:
        found = Description.of(about)
    except SchemaError as error:
        raise ValueError(f"{folder} is damaged: {error}.") from None
    name, params, version = found.method, found.fields, found.evengraph[:SHOWN]
    if name not in METHODS:
        raise ValueError(
            f"{folder} holds the method {short(name)} of evengraph {version}, which this version "
            f"does not have; it has {', '.join(METHODS)}."
        )
    kind = METHODS[name]
    try:
        params = kind.current_params(params)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    unknown = sorted(set(params) - {item.name for item in fields(kind)})
    if unknown:
        raise ValueError(
            f"{folder} was saved by evengraph {version} with {', '.join(unknown)}, which "
            f"{kind.title} does not have in this version: use that version, or fit again."
        )
    try:
        method = kind(**params)
        with seeded(0):  # networks draw random weights before theirs are loaded
            restore_method(method, found, tensors, target)
    except TensorMismatchError as error:
        raise ValueError(
            f"{folder} was saved by evengraph {version}, and its tensors do not fit {kind.title} "
            "of this version: use that version, or fit again."
        ) from error
    except KeyError as error:
        raise ValueError(f"{folder} is damaged: {error} is missing.") from error
    except MemoryError:
        raise
    except Exception as error:  # what is in the folder may be anything
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    return method


def saved_info(method: Method, folder: str | Path) -> ModelInfo:
    """What was saved beside a method that was read from a folder."""
    try:
        info = ModelInfo.from_dict(method.extra_)
        info.check(method.num_features_, method.num_classes_)
    except ValueError as error:
        raise ValueError(f"{folder} is damaged: {first_line(error)}.") from error
    return info
