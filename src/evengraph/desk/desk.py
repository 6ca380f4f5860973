"""The desk: the queue of nodes to label, the answers, and the model trained on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Lock, RLock
from typing import NamedTuple

import torch
from torch import Tensor

from evengraph.core.errors import first_line
from evengraph.core.task import bare_graph
from evengraph.desk import LearningCurve, Pool, learning_curve, suggest
from evengraph.desk.label_file import (
    CLASS,
    DISMISSED,
    LABEL,
    NOTE,
    UNDO,
    Answers,
    Event,
    LabelFile,
)
from evengraph.desk.nodes import DeskNodes
from evengraph.desk.training import DeskOptions, Trainer, TrainingJob, is_enough
from evengraph.methods import Method
from evengraph.methods.bases.saving import MAIN
from evengraph.pipeline.explanation import Explanation, explain
from evengraph.pipeline.model_info import load_model

QUEUE = 30  # nodes ranked at a time
SHORT = 5  # so few left that the next are ranked
RERANK_EVERY = 5  # answers, as long as the quick model learns within a second
QUICK = "quick model"
KEPT = ("rows", "clusters", "operator")  # of a pool: they depend on the graph alone


class Ranking(NamedTuple):
    """The queue and the model's predictions: replaced as a whole, so that its parts always fit."""

    queue: Mapping[int, str] = {}  # rows to label next, in order, and why each is there
    probabilities: Tensor | None = None  # (N, C)
    classes: tuple[str, ...] = ()  # of the probabilities
    notes: tuple[str, ...] = ()  # on the queue as a whole


class Desk:
    """What the pages show and change. Several threads may call it.

    Answers go to `file`, and those of others come from there. `classes` are further ones, beside
    those that have labels; the file keeps them.
    """

    find: str | None = None  # the class that a triage looks for

    def __init__(
        self, nodes: DeskNodes, file: LabelFile, options: DeskOptions, classes: Sequence[str] = ()
    ) -> None:
        self.nodes, self.file, self.options = nodes, file, options
        self.answers = Answers()
        self.method: Method | None = None
        self.model = ""  # name of the model behind the probabilities
        self.ranking = Ranking()
        self.curve: LearningCurve | None = None
        self.problem = ""  # of the last training
        self.version = 0  # counts what a page should show again
        self._declared = tuple(dict.fromkeys((*nodes.classes, *classes)))
        self.trained_labels = 0
        self._lock, self._explaining = RLock(), Lock()
        self._thread = ThreadPoolExecutor(1)
        self._ranking: Future[None] | None = None
        self._last_pool: Pool | None = None
        self.trainer = Trainer(self._trained)
        self.refresh()
        new = set(self._declared) - {*nodes.classes, *self.answers.classes}
        self.file.add(*(Event(kind=CLASS, label=name) for name in self._declared if name in new))
        self.refresh()

    # What there is.

    def refresh(self) -> None:
        """Take in what others have written."""
        with self._lock:
            events = self.file.events(self.answers.last)
            self.answers.add(events)
            self.version += bool(events)

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes: of table and command, those added or used, those only the model knows."""
        known = (*self._declared, *self.answers.classes, *self.ranking.classes)
        return tuple(dict.fromkeys(known))

    @property
    def queue(self) -> Mapping[int, str]:
        """Rows to label next and why, also those that have been answered since."""
        return self.ranking.queue

    def labels(self, classes: Sequence[str] = ()) -> Tensor:
        """The number of every node's class among `classes`, by default all, or -1, (N,)."""
        with self._lock:
            answers, names = self.answers.labels(), classes or self.classes
        numbers = {name: number for number, name in enumerate(names)}
        given = torch.tensor([*(numbers[name] for name in self.nodes.classes), -1])
        labels: Tensor = given[self.nodes.labels]
        for id, name in answers.items():
            if id in self.nodes.rows:
                labels[self.nodes.rows[id]] = numbers[name]
        return labels

    def counts(self) -> dict[str, int]:
        with self._lock:
            classes, labels = self.classes, self.labels()
        counts = torch.bincount(labels[labels >= 0], minlength=len(classes)).tolist()
        return dict(zip(classes, counts, strict=True))

    def thought(self, row: int) -> dict[str, float]:
        """The probability of each class of a node; empty without a model."""
        ranking = self.ranking
        if ranking.probabilities is None:
            return {}
        return dict(zip(ranking.classes, ranking.probabilities[row].tolist(), strict=True))

    def hides(self, row: int) -> bool:
        """Whether what the model thinks of a node is not to be seen yet."""
        return self.options.hide_guess and self.is_open(row)

    def guess(self, row: int) -> tuple[str, float] | None:
        """The most probable class of a node and its probability, unless it is hidden."""
        thought = {} if self.hides(row) else self.thought(row)
        return max(thought.items(), key=lambda item: item[1]) if thought else None

    def reason(self, row: int) -> str:
        """Why to label a node; it may name the guess, and is hidden with it."""
        return "" if self.hides(row) else self.queue.get(row, "")

    def is_open(self, row: int) -> bool:
        """Whether a node has neither a label in the table nor an answer."""
        return bool(self.nodes.labels[row] < 0) and self.answers.of(self.nodes.ids[row]) is None

    def waiting(self) -> list[int]:
        """The rows of the queue without what has been answered."""
        return [row for row in self.queue if self.is_open(row)]

    def following(self, row: int) -> int | None:
        """The row that comes after a node in the queue."""
        return next((other for other in self._from(row) if other != row), None)

    # What people do.

    def next_row(self, session: str, after: int | None = None) -> int | None:
        """The next node for somebody, that nobody else looks at; None if nothing is left."""
        for attempt in range(2):
            ids = {self.nodes.ids[row]: row for row in self._from(after)}
            id = self.file.look(session, ids)
            if id is not None:
                return ids[id]
            if attempt == 0:
                self.rank()
        return None

    def _from(self, after: int | None) -> Iterator[int]:
        rows = list(self.queue)
        start = rows.index(after) + 1 if after in rows else 0
        return (row for row in (*rows[start:], *rows[:start]) if self.is_open(row))

    def answer(
        self, row: int, kind: str, label: str = "", *, note: str = "", who: str, session: str
    ) -> None:
        """Save an answer, with what the model predicted; train if it is time to."""
        if kind in (LABEL, DISMISSED) and label not in self.classes:
            raise ValueError(f"There is no class {label!r}.")
        thought = {name: value for name, value in self.thought(row).items() if value}
        event = Event(node=self.nodes.ids[row], kind=kind, label=label, note=note, who=who)
        self.file.add(replace(event, session=session, thought=thought, model=self.model))
        self.refresh()
        self.learn()

    def note(self, row: int, text: str, *, who: str, session: str) -> None:
        id = self.nodes.ids[row]
        self.file.add(Event(node=id, kind=NOTE, note=text, who=who, session=session))
        self.refresh()

    def undo(self, number: int, *, who: str, session: str) -> int | None:
        """Undo an answer or note; returns the row of its node."""
        event = self.answers.event(number)
        if event is None:
            return None
        self.file.add(Event(node=event.node, kind=UNDO, undoes=number, who=who, session=session))
        self.refresh()
        return self.nodes.rows.get(event.node)

    def add_class(self, name: str, *, who: str, session: str) -> None:
        if name not in self.classes:
            self.file.add(Event(kind=CLASS, label=name, who=who, session=session))
            self.refresh()

    # What the model does.

    def start(self) -> None:
        """Rank for the first time, with the saved model if there is one that fits."""
        folder = self.options.folder
        if (folder / MAIN).is_file():
            try:
                self._take(load_model(folder))
            except (ValueError, OSError) as error:
                self.problem = f"The saved model cannot be used: {first_line(error)}."
        self.rank()
        self.learn()

    def learn(self) -> None:
        """Train again if there are enough new labels; until there is a model, rank anew."""
        if self.options.retrain_every and not self.labels_to_go():
            self.train()
        quick = self.method is None and len(self.answers.all()) % RERANK_EVERY == 0
        idle = self._ranking is None or self._ranking.done()
        if idle and (quick or len(self.waiting()) < SHORT):
            self._ranking = self._thread.submit(self.rank)  # in the background

    def labels_to_go(self) -> int:
        """How many labels are missing until the next training."""
        count = int((self.labels() >= 0).sum())
        return max(self.options.retrain_every - (count - self.trained_labels), 0)

    def train(self) -> None:
        """Train now, unless a training is running or there are too few labels."""
        labels = self.labels()
        if self.trainer.running or not is_enough(labels):
            return
        self.trained_labels, self.problem = int((labels >= 0).sum()), ""
        self.version += 1
        graph = bare_graph(self.nodes.graph)
        self.trainer.start(
            TrainingJob(graph=graph, labels=labels, classes=self.classes, options=self.options)
        )

    def _trained(self, job: TrainingJob, problem: str) -> None:
        """Take over a model that was trained, rank with it, and train on if labels came in."""
        method = None
        if not problem:
            try:
                method = load_model(job.options.folder)
            except (ValueError, OSError) as error:  # someone moved the model
                problem = str(error).rstrip(".")
        self.problem = f"Training failed: {problem}." if problem else ""
        if method is not None:
            self._take(method)
            self.rank()
            self.learn()
        self.version += 1

    def _take(self, method: Method) -> None:
        if method.num_features_ != self.nodes.graph.num_features:
            raise ValueError("it was trained on other columns")
        with self._lock:
            self.method = method
            self.trained_labels = int(method.extra_.get("labels", 0))
            self.model = f"{method.full_title}, trained on {self.trained_labels:,} labels"

    def rank(self) -> None:
        """Choose the next nodes, and predict all."""
        with self._lock:
            pool, ranking = self._pool(), self.ranking
            labels = self.labels(pool.class_names)
            undecided = [event.node for event in self.answers.all() if event.kind != LABEL]
        exclude = [self.nodes.rows[id] for id in undecided if id in self.nodes.rows]
        free = labels < 0
        free[exclude] = False
        if free.any():
            found = suggest(pool, QUEUE, labels=labels, exclude=exclude, seed=self.options.seed)
            queue = {node.row: node.reason for node in found.nodes}
            ranking = Ranking(queue, found.probabilities, pool.class_names, found.notes)
        else:
            ranking = ranking._replace(queue={}, notes=())
        with self._lock:
            if self.method is not pool.method:  # a newer model ranks by itself
                return
            self.ranking = ranking
            if not self.model and ranking.probabilities is not None:
                self.model = QUICK
            self.version += 1

        def measure() -> None:
            self.curve = learning_curve(pool, labels=labels, seed=self.options.seed)
            self.version += 1

        with suppress(RuntimeError):  # the desk is being closed
            self._thread.submit(measure)

    def _pool(self) -> Pool:
        first = self.method.class_names_ if self.method is not None else ()
        known = tuple(dict.fromkeys((*first, *self.classes)))
        before = self._last_pool
        if before is not None and before.class_names == known and before.method is self.method:
            return before
        pool = Pool(
            graph=bare_graph(self.nodes.graph),
            labels=torch.full((len(self.nodes.ids),), -1),
            class_names=known,
            ids=self.nodes.ids,
            method=self.method,
        )
        if before is not None:
            vars(pool).update({k: v for k, v in vars(before).items() if k in KEPT})
        self._last_pool = pool
        return pool

    def explanation(self, row: int) -> Explanation | None:
        """Why the model predicts what it does for a node; None without a model."""
        nodes, method = self.nodes, self.method
        if method is None:
            return None
        names, encoder = nodes.feature_names, nodes.encoder
        with self._explaining:
            return explain(
                method, nodes.graph, row, ids=nodes.ids, feature_names=names, encoder=encoder, top=6
            )

    def close(self) -> None:
        self.trainer.stop()
        self._thread.shutdown(wait=False, cancel_futures=True)


class Triage(Desk):
    """A desk for a trained model: the most likely nodes of one class, to confirm or dismiss.

    The folder of `options` holds the model, `rows` are the nodes to go through.
    """

    def __init__(
        self,
        nodes: DeskNodes,
        file: LabelFile,
        options: DeskOptions,
        method: Method,
        find: str,
        rows: Sequence[int],
    ) -> None:
        self.find, self._rows = find, rows
        super().__init__(nodes, file, replace(options, retrain_every=0))
        self.method, self.model = method, str(options.folder)

    def start(self) -> None:
        """Rank; the model stays as it is."""
        self.rank()

    def rank(self) -> None:
        """All nodes without a label by their probability of the class."""
        probabilities, classes = self.ranking.probabilities, self.nodes.classes
        if probabilities is None:
            assert self.method is not None
            probabilities = self.method.predict_proba(self.nodes.graph).cpu()
        values = probabilities[:, classes.index(self.find or "")]
        rows = sorted(self._rows, key=lambda row: -float(values[row]))
        queue = {row: f"{self.find} {values[row]:.0%}" for row in rows}
        self.ranking = Ranking(queue, probabilities, classes)
        self.version += 1

    def learn(self) -> None:
        """Nothing: the model is given."""

    def precision(self) -> tuple[int, int, float]:
        """Confirmed nodes, decided nodes, and how many of these the model expected to confirm."""
        mine = (event for event in self.answers.all() if event.model == self.model)
        decided = [event for event in mine if event.kind in (LABEL, DISMISSED)]
        confirmed = sum(e.kind == LABEL and e.label == self.find for e in decided)
        expected = sum(event.thought.get(self.find or "", 0.0) for event in decided)
        return confirmed, len(decided), expected
