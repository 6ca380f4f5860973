"""Which page or file a path shows, and what forms do."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evengraph.core.files import write_atomic
from evengraph.desk.access import Session
from evengraph.desk.curve import TOO_FEW_LABELS, can_judge, curve_chart
from evengraph.desk.desk import Desk, DeskOptions, Queued, Ranking
from evengraph.desk.frame import (
    INNER,
    KEYS,
    OUTER,
    SCRIPT,
    STYLESHEET,
    TRIAGE_KEYS,
    Dot,
    colour,
    draw,
    field,
    form,
    frame,
    hidden,
    key,
    keys,
    message_page,
)
from evengraph.desk.label_file import (
    DISMISSED,
    LABEL,
    NOTE,
    UNKNOWN,
    Answers,
    Event,
    Fit,
    LabelFile,
)
from evengraph.desk.nodes import DeskNodes
from evengraph.desk.training import is_enough
from evengraph.methods import Method
from evengraph.pipeline.explanation import Explanation, Influence, column_words
from evengraph.report.charts import percent
from evengraph.report.markup import Markup, join, tag
from evengraph.report.page import definitions, scroll, section, table
from evengraph.tables.cells import canonical_name, import_pandas

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


SUFFIXES = (".csv", ".parquet")


def labelled_table(nodes: DeskNodes, answers: Answers) -> Any:
    """The nodes table with a label wherever there is one, of the table or of an answer.

    A graph without a nodes table gives its ids and labels.
    """
    pandas = import_pandas()
    if nodes.table is None:
        table = pandas.DataFrame({"id": list(nodes.ids)})
        names = [nodes.classes[label] if label >= 0 else None for label in nodes.labels.tolist()]
        table[nodes.column] = pandas.Series(names, dtype=object)
    else:
        table = nodes.table.copy()
        if nodes.column not in table.columns:
            table[nodes.column] = None
    column = table[nodes.column].astype(object)
    rows = {nodes.rows[id]: name for id, name in answers.labels().items() if id in nodes.rows}
    column.iloc[list(rows)] = list(rows.values())
    if column.dropna().map(lambda cell: isinstance(cell, str)).nunique() > 1:
        # a Parquet column has one type; 1.0 beside an empty cell is the class 1
        column = column.where(column.isna(), column.map(canonical_name))
    table[nodes.column] = column
    return table


def csv_bytes(table: Any) -> bytes:
    """A table as CSV."""
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", errors="replace")


def write_table(table: Any, path: Path) -> None:
    """Write a table atomically as CSV or Parquet."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"The table must end in {' or '.join(SUFFIXES)}, got {path}.")
    if path.suffix.lower() == ".csv":
        write_atomic(csv_bytes(table), path)
        return
    content = io.BytesIO()
    table.to_parquet(content, index=False)
    write_atomic(content.getvalue(), path)


class Triage(Desk):
    """A desk for a trained model: the most likely nodes of one class, to confirm or dismiss.

    Args:
        nodes: As in `Desk`, and so are `file` and `options`, whose folder holds the model.
        method: The fitted method.
        find: The class.
        rows: The nodes to go through.
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
        queue = tuple(Queued(row, f"{self.find} {values[row]:.0%}") for row in rows)
        self.ranking = Ranking(queue, probabilities, classes)
        self.version += 1

    def learn(self) -> None:
        """Nothing: the model is given."""

    def precision(self) -> tuple[int, int, float]:
        """Confirmed nodes, decided nodes, and how many of these the model expected to confirm.

        Answers that were given to other models do not count.
        """
        mine = (event for event in self.answers.all() if event.model == self.model)
        decided = [event for event in mine if event.kind in (LABEL, DISMISSED)]
        confirmed = sum(e.kind == LABEL and e.label == self.find for e in decided)
        expected = sum(event.thought.get(self.find or "", 0.0) for event in decided)
        return confirmed, len(decided), expected


MAX_CLASS = 200  # characters
NEXT = 6  # nodes of the queue that are listed


def side(desk: Desk, session: Session) -> Markup:
    """What has been done, how good the model is, and what comes next."""
    parts = [_precision(desk)] if isinstance(desk, Triage) else [_progress(desk, session)]
    if not isinstance(desk, Triage):
        parts += [_model(desk, session), *_curve(desk)]
    parts.append(_next(desk))
    busy = "true" if desk.trainer.running else None
    return tag("aside", *parts, id="side", data_version=desk.version, data_busy=busy)


def _progress(desk: Desk, session: Session) -> Markup:
    counts = desk.counts()
    largest = max([*counts.values(), 1])
    rows = [
        tag(
            "li",
            tag("span", name, class_="class-name", title=name),
            tag("span", f"{count:,}", class_="value"),
            _bar(count / largest),
            class_=colour(number),
        )
        for number, (name, count) in enumerate(counts.items())
    ]
    answers = desk.answers.all()
    unsure = sum(event.kind != LABEL for event in answers)
    text = f"{len(answers) - unsure:,} labelled here, {unsure:,} not known."
    new = form(
        session,
        "/class",
        tag("label", "New class", for_="class"),
        field("class", maxlength=MAX_CLASS, autocomplete="off"),
        tag("button", "Add", class_="quiet-button"),
        class_="new-class",
    )
    return section("Labels", tag("p", text), tag("ul", *rows, class_="counts-list"), new)


def _bar(share: float) -> Markup:
    rect = tag("rect", width=percent(100 * share), height="100%")
    return tag("svg", rect, class_="bar", aria_hidden="true")


def _model(desk: Desk, session: Session) -> Markup:
    """Which model ranks, how good it is, and when it learns again."""
    fits = desk.file.fits()
    lines = [tag("p", _state(desk, fits))]
    if desk.problem:
        lines.append(tag("p", desk.problem, class_="problem"))
    right, guessed = agreement(desk)
    if guessed:
        lines.append(tag("p", f"Its guess was right for {right:,} of {guessed:,} labels."))
    if not desk.trainer.running and is_enough(desk.labels()):
        now = tag("button", "Train now", class_="quiet-button")
        lines.append(form(session, "/train", now))
    return section("Model", *lines)


def _state(desk: Desk, fits: list[Fit]) -> str:
    every = desk.options.retrain_every
    if desk.trainer.running:
        return f"Training {desk.options.method} on {desk.trained_labels:,} labels."
    if desk.method is None:
        learns = f" Training begins after {every} labels." if every else ""
        ranks = "A quick model ranks the queue." if desk.model else "No model yet."
        return f"{ranks}{learns if not is_enough(desk.labels()) or every else ''}"
    left = desk.labels_to_go()
    again = f" It learns again after {left} more." if every else ""
    last = fits[-1] if fits else None
    if last is None:
        return f"The saved model.{again}"
    score = "" if last.score is None else f", balanced accuracy {last.score:.0f} on held-out ones"
    return f"{last.method}, trained on {last.labels:,} labels{score}.{again}"


def agreement(desk: Desk) -> tuple[int, int]:
    """For how many labels the model's guess was right, and how many there are with a guess."""
    guesses = [
        (max(event.thought, key=lambda name: event.thought[name]), event.label)
        for event in desk.answers.all()
        if event.kind == LABEL and event.thought
    ]
    return sum(guess == label for guess, label in guesses), len(guesses)


def _curve(desk: Desk) -> list[Markup]:
    """What more labels would bring, and what is not known of it; nothing until it is measured."""
    curve = desk.curve
    if curve is None and can_judge(list(desk.counts().values())):
        return []
    if curve is None:
        return [section("More labels", tag("p", TOO_FEW_LABELS))]
    text = (
        "Balanced accuracy of a quick model over the number of labels; shaded: four of five cases."
    )
    advice = tag("p", curve.advice, class_="advice")
    unknown = [tag("p", sentence) for sentence in curve.unknown]
    return [section("More labels", curve_chart(curve), advice, *unknown, tag("p", text))]


def _precision(desk: Triage) -> Markup:
    confirmed, decided, expected = desk.precision()
    if not decided:
        return section("Precision so far", tag("p", "Nothing confirmed or dismissed yet."))
    number = tag("p", tag("b", f"{confirmed / decided:.0%}"), class_="figure")
    text = f"{confirmed:,} of {decided:,} confirmed; the model expected {expected:.1f}."
    return section("Precision so far", number, tag("p", text))


def _next(desk: Desk) -> Markup:
    waiting = desk.waiting()[:NEXT]
    lines = []
    for one in waiting:
        link = tag("a", desk.nodes.ids[one.row], href=f"/node/{one.row}")
        lines.append(tag("li", link, tag("span", one.reason)))
    text = tag("ol", *lines, class_="next-list") if lines else tag("p", "Nothing is left.")
    notes = [tag("p", note) for note in desk.ranking.notes]
    return section("Next", *notes, text)


Part = tuple[str, float, int | None]
"""A name, a contribution, and the row that a name links to."""


def why(explanation: Explanation | None) -> Markup:
    """The largest contributions as bars, for the class and against it."""
    heading = tag("h2", "Why the model thinks so")
    if explanation is None:
        return tag("section", heading, tag("p", "There is no trained model yet."))
    names = explanation.class_names or tuple(map(str, range(len(explanation.probabilities))))
    text = f"{names[explanation.predicted]} {explanation.probability:.0%}"
    if explanation.runner_up is not None:
        text += f", then {names[explanation.runner_up]}"
    columns: list[Part] = [
        (column_words(part), part.contribution, None) for part in explanation.columns
    ]
    labelled: list[Part] = [
        (_influence(one, names), one.contribution, one.node) for one in explanation.labelled
    ]
    return tag(
        "section",
        heading,
        tag("p", f"{text}. Bars to the right speak for it, to the left against it."),
        _bars("Columns", columns),
        _bars("Labelled nodes", labelled),
    )


def _influence(one: Influence, names: Sequence[str]) -> str:
    steps = "no path" if one.distance is None else f"{one.distance} away"
    return f"{one.id} ({names[one.label]}, {steps})"


def _bars(heading: str, parts: Sequence[Part]) -> Markup:
    largest = max((abs(value) for _, value, _ in parts), default=0.0)
    if not largest:
        return Markup("")
    lines = []
    for name, value, row in parts:
        width = 50 * abs(value) / largest
        left = 50 - width if value < 0 else 50
        kind = "against" if value < 0 else "for"
        bar = tag("rect", x=percent(left), width=percent(width), height="100%", class_=kind)
        axis = tag("line", x1="50%", x2="50%", y2="100%", class_="axis")
        picture = tag("svg", bar, axis, class_="bar", aria_hidden="true")
        text = tag("a", name, href=f"/node/{row}") if row is not None else tag("span", name)
        lines.append(tag("li", text, picture, tag("span", f"{value:+.2f}", class_="value")))
    return tag("div", tag("h3", heading), tag("ul", *lines, class_="parts"))


def neighbourhood(desk: Desk, row: int) -> tuple[list[Dot], list[tuple[int, int]], int]:
    """Dots and edges around a node, and how many neighbours there are in all.

    Labelled nodes come first where there is no room for all.
    """
    matrix, labels = desk.nodes.adjacency, desk.labels()

    def first(rows: Iterable[int], count: int) -> list[int]:
        return sorted(rows, key=lambda other: (int(labels[other]) < 0, other))[:count]

    neighbours = {int(other) for other in matrix[[row]].indices} - {row}
    inner = first(neighbours, INNER)
    beyond = {int(other) for other in matrix[inner].indices} if inner else set()
    outer = first(beyond - neighbours - {row}, OUTER)
    places = {other: place for place, other in enumerate(inner)}
    # beside the neighbour that they hang on, so that few edges cross
    outer.sort(key=lambda other: min(places.get(int(o), INNER) for o in matrix[[other]].indices))
    rows = [row, *inner, *outer]
    rings = [0, *(1 for _ in inner), *(2 for _ in outer)]
    numbers = {name: number for number, name in enumerate(desk.classes)}
    dots = [
        _dot(desk, other, ring, int(labels[other]), numbers)
        for other, ring in zip(rows, rings, strict=True)
    ]
    part = matrix[rows][:, rows].tocoo()
    ends = zip(np.asarray(part.row).tolist(), np.asarray(part.col).tolist(), strict=True)
    return dots, sorted({(a, b) for a, b in ends if a < b}), len(neighbours)


def _dot(desk: Desk, row: int, ring: int, label: int, numbers: dict[str, int]) -> Dot:
    id = desk.nodes.ids[row]
    if label >= 0:
        return Dot(row=row, id=id, ring=ring, number=label, name=desk.classes[label])
    guess = desk.guess(row)
    if guess is None:
        return Dot(row=row, id=id, ring=ring)
    name, probability = guess
    return Dot(row=row, id=id, ring=ring, number=numbers[name], name=name, probability=probability)


MAX_NOTE = 2_000  # characters
MAX_CELLS = 60  # of a row that are shown
NUM_KEYS = 9  # classes that have a key
CLASS_ANSWER = "class-"  # before the name of a class, which may be any text


def node_page(desk: Desk, session: Session, row: int, following: int | None) -> str:
    """A node to label; `following` is where the right arrow leads."""
    return frame(
        f"{desk.nodes.name}: {desk.nodes.column}",
        session,
        _question(desk, session, row, following),
        _row(desk, row),
        _near(desk, row),
        _why(desk, row),
        side=side(desk, session),
    )


def _question(desk: Desk, session: Session, row: int, following: int | None) -> Markup:
    """What the node is, with a button for every answer."""
    reason, id = desk.reason(row), desk.nodes.ids[row]
    before = desk.answers.last_of(session.id)
    # Enter in the note presses the first button of a form, which must be no answer
    save = tag("button", "Save note", formaction="/note", class_="quiet-button")
    note = tag("div", tag("label", "Note", for_="note"), _note_field(), save, class_="note-line")
    answers = tag("div", *_buttons(desk, row), class_="answers")
    links = [] if following is None else [_link("Skip", f"/node/{following}", "next", "→")]
    return tag(
        "section",
        _last(desk, session, before),
        tag("h1", id),
        tag("p", reason, class_="reason") if reason else "",
        *_history(desk, session, row),
        form(session, "/answer", hidden("row", row), note, answers, class_="question"),
        tag("p", *links, class_="skip"),
        keys(TRIAGE_KEYS if desk.find else KEYS),
        class_="node",
    )


def _note_field() -> Markup:
    return field("note", maxlength=MAX_NOTE, autocomplete="off", data_key="n")


def _buttons(desk: Desk, row: int) -> list[Markup]:
    thought = desk.thought(row)
    if desk.find is not None:
        probability = thought.get(desk.find)
        number = desk.classes.index(desk.find)
        rows = [
            _button("1", f"Confirm: {desk.find}", "confirm", probability, number),
            _button("2", "Dismiss", "dismiss", None, None),
        ]
    else:
        rows = [
            _button(str(number + 1), name, CLASS_ANSWER + name, thought.get(name), number)
            for number, name in enumerate(desk.classes)
        ]
    return [*rows, _button("d", "Don't know", "unknown", None, None)]


def _button(
    letter: str, text: str, value: str, probability: float | None, number: int | None
) -> Markup:
    """A button with its key and, as a bar, what the model thinks."""
    parts = [tag("kbd", letter), tag("span", text, class_="answer-name")]
    if probability is not None:
        width = percent(100 * probability)
        bar = tag("svg", tag("rect", width=width, height="100%"), aria_hidden="true", class_="bar")
        share = tag("span", f"{probability:.0%}", class_="share")
        parts += [share, bar]
    return tag(
        "button",
        *parts,
        name_="answer",
        value=value,
        data_key=letter if number is None or number < NUM_KEYS else None,
        class_=" ".join(["answer", *([colour(number)] if number is not None else [])]),
    )


def _last(desk: Desk, session: Session, event: Event | None) -> Markup:
    """The last thing that this browser did, and its undo."""
    if event is None:
        question = f"What is its {desk.nodes.column}?" if desk.find is None else f"{desk.find}?"
        return tag("p", f"{question} Every answer is saved at once.", class_="last")
    words = f"{event.node}: {describe(event)}"
    undo = tag("button", "Undo ", tag("kbd", "u"), data_key="u", class_="quiet-button")
    parts = (tag("span", words), hidden("number", event.number), undo)
    return form(session, "/undo", *parts, class_="last")


def describe(event: Event) -> str:
    """An event in a few words."""
    words = {LABEL: event.label, DISMISSED: f"not {event.label}", NOTE: "note"}
    text = words.get(event.kind, "don't know")
    return f"{text} ({event.note})" if event.note else text


def _history(desk: Desk, session: Session, row: int) -> list[Markup]:
    """What has been said about the node before."""
    lines = []
    if desk.nodes.labels[row] >= 0:
        lines.append(tag("p", f"In the table: {desk.nodes.classes[int(desk.nodes.labels[row])]}."))
    for event in desk.answers.history(desk.nodes.ids[row]):
        words = f"{describe(event)}, by {event.who}, {event.created[:16].replace('T', ' ')} UTC"
        undo = tag("button", "Undo", class_="quiet-button")
        parts = (tag("span", words), hidden("number", event.number), undo)
        lines.append(form(session, "/undo", *parts, class_="past"))
    return lines


def _row(desk: Desk, row: int) -> Markup:
    cells = desk.nodes.cells(row)
    heading = "Row" if desk.nodes.table is not None else "Features"
    if not cells:
        return section(heading, tag("p", "Nothing but the id."))
    more = len(cells) - MAX_CELLS
    rest = [tag("p", f"And {more:,} more.")] if more > 0 else []
    shown = definitions(dict(cells[:MAX_CELLS]))
    return section(heading, scroll(shown, heading, kind="cells"), *rest)


def _near(desk: Desk, row: int) -> Markup:
    dots, edges, count = neighbourhood(desk, row)
    if len(dots) == 1:
        return section("Neighbourhood", tag("p", "This node has no edges."))
    shown = sum(dot.ring == 1 for dot in dots)
    word = "neighbour" if count == 1 else "neighbours"
    text = f"{count:,} {word}" + (f", {shown} of them drawn" if shown < count else "")
    return section("Neighbourhood", tag("p", f"{text}."), draw(dots, edges), key(dots))


def _why(desk: Desk, row: int) -> Markup:
    """A place for the explanation, which may take a moment."""
    if desk.method is None:
        text = "Explanations come with the first trained model."
        return section("Why the model thinks so", tag("p", text))
    source = f"/node/{row}/why"
    link = tag("p", tag("a", "Show", href=source))
    return tag("section", tag("h2", "Why the model thinks so"), link, data_source=source)


def _link(text: str, path: str, kind: str, letter: str) -> Markup:
    return tag("a", text, " ", tag("kbd", letter), href=path, data_move=kind)


SHOWN = 200


def queue_page(desk: Desk, session: Session) -> str:
    """The nodes to label next, with reasons."""
    waiting = desk.waiting()[:SHOWN]
    rows = [
        _row_of_lists(_node(desk, one.row), one.reason, _guess(desk, one.row)) for one in waiting
    ]
    heads = ("node", "reason", "model's guess")
    part = _table("Nodes to label next", heads, rows)
    part = join([*(tag("p", note) for note in desk.ranking.notes), part])
    return _page(desk, session, "Queue", part, "/queue")


def done_page(desk: Desk, session: Session) -> str:
    """What was answered, the last first; every node can be opened and answered again."""
    events = desk.answers.all()[::-1][:SHOWN]
    rows = [
        _row_of_lists(
            _node(desk, desk.nodes.rows[event.node]),
            describe(event),
            event.who,
            event.created[:16].replace("T", " "),
        )
        for event in events
        if event.node in desk.nodes.rows
    ]
    part = _table("Answers, the last first", ("node", "answer", "by", "when (UTC)"), rows)
    return _page(desk, session, "Done", part, "/done")


def _page(desk: Desk, session: Session, heading: str, part: Markup, here: str) -> str:
    title = f"{desk.nodes.name}: {desk.nodes.column}"
    return frame(
        title,
        session,
        tag("section", tag("h1", heading), part, data_list=here),
        side=side(desk, session),
        here=here,
    )


def _node(desk: Desk, row: int) -> Markup:
    return tag("a", desk.nodes.ids[row], href=f"/node/{row}")


def _guess(desk: Desk, row: int) -> str:
    guess = desk.guess(row)
    return f"{guess[0]} {guess[1]:.0%}" if guess else "–"


def _row_of_lists(first: Markup, *cells: str) -> Markup:
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in cells))


def _table(caption: str, heads: tuple[str, ...], rows: list[Markup]) -> Markup:
    if not rows:
        return tag("p", "Nothing yet.")
    return table(caption, [tag("th", head, scope="col") for head in heads], rows, "list")


Form = dict[str, str]


class DeskPages:
    """The pages of a desk by their paths, and what forms do."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def gets(self) -> dict[str, Callable[[Request, Session], Response]]:
        """Handlers of pages and files."""
        from starlette.responses import HTMLResponse, Response

        desk = self.desk

        def html(text: str, status: int = 200) -> Response:
            content = text.encode("utf-8", errors="xmlcharrefreplace")
            return HTMLResponse(content, status)

        def home(request: Request, session: Session) -> Response:
            desk.refresh()
            row = desk.next_row(session.id)
            if row is None:
                return html(done_page(desk, session))
            return html(node_page(desk, session, row, self.following(row)))

        def node(request: Request, session: Session) -> Response:
            desk.refresh()
            row = self.row(str(request.path_params["row"]))
            if row is None:
                return html(message_page("Not found", "There is no such node."), 404)
            desk.file.look(session.id, [desk.nodes.ids[row]])
            return html(node_page(desk, session, row, self.following(row)))

        def explanation(request: Request, session: Session) -> Response:
            row = self.row(str(request.path_params["row"]))
            if row is None:
                return html("", 404)
            return html(str(why(desk.explanation(row))))

        def aside(request: Request, session: Session) -> Response:
            desk.refresh()
            return html(str(side(desk, session)))

        def listed(page: Callable[[Desk, Session], str]) -> Callable[..., Response]:
            def handler(request: Request, session: Session) -> Response:
                desk.refresh()
                return html(page(desk, session))

            return handler

        def export(request: Request, session: Session) -> Response:
            desk.refresh()
            content = csv_bytes(labelled_table(desk.nodes, desk.answers))
            name = {"Content-Disposition": 'attachment; filename="labelled.csv"'}
            return Response(content, media_type="text/csv; charset=utf-8", headers=name)

        return {
            "/": home,
            "/node/{row}": node,
            "/node/{row}/why": explanation,
            "/side": aside,
            "/queue": listed(queue_page),
            "/done": listed(done_page),
            "/export.csv": export,
            "/desk.css": lambda request, session: Response(STYLESHEET, media_type="text/css"),
            "/desk.js": lambda request, session: Response(SCRIPT, media_type="text/javascript"),
        }

    def posts(self) -> dict[str, Callable[[Form, Session], str]]:
        """What forms do; each returns the path of the page to show then, or raises ValueError."""
        return {
            "/answer": self.answer,
            "/note": self.note,
            "/undo": self.undo,
            "/class": self.add_class,
            "/who": self.rename,
            "/train": self.train,
        }

    def answer(self, form: Form, session: Session) -> str:
        """Write an answer down and go to the next node."""
        row = self.row(form.get("row", ""))
        kind, label = self._meaning(form.get("answer", ""))
        if row is None or not kind:
            return "/"
        note = self._text(form, "note", MAX_NOTE)
        self.desk.answer(row, kind, label, note=note, who=session.who, session=session.id)
        following = self.desk.next_row(session.id, row)
        return "/" if following is None else f"/node/{following}"

    def _meaning(self, answer: str) -> tuple[str, str]:
        """Kind and class of an answer; empty if it is none."""
        desk, find = self.desk, self.desk.find or ""
        if answer == "unknown":
            return UNKNOWN, ""
        if answer == "confirm" and find:
            return LABEL, find
        if answer == "dismiss" and find:
            others = [name for name in desk.classes if name != find]
            return (LABEL, others[0]) if len(others) == 1 else (DISMISSED, find)
        if not answer.startswith(CLASS_ANSWER):
            return "", ""
        name = _one_newline(answer.removeprefix(CLASS_ANSWER))
        return LABEL, {_one_newline(known): known for known in desk.classes}.get(name, name)

    def _text(self, form: Form, name: str, limit: int) -> str:
        """What somebody wrote, if it is not too long."""
        text = form.get(name, "").strip()
        if len(text) > limit:
            raise ValueError(f"A {name} has at most {limit:,} characters, not {len(text):,}.")
        return text

    def note(self, form: Form, session: Session) -> str:
        """Write a note down and stay."""
        row, text = self.row(form.get("row", "")), self._text(form, "note", MAX_NOTE)
        if row is not None and text:
            self.desk.note(row, text, who=session.who, session=session.id)
        return "/" if row is None else f"/node/{row}"

    def undo(self, form: Form, session: Session) -> str:
        """Undo an event and go back to its node."""
        number = form.get("number", "")
        row = None
        if number.isdecimal() and number.isascii() and len(number) < 18:
            row = self.desk.undo(int(number), who=session.who, session=session.id)
        return "/" if row is None else f"/node/{row}"

    def add_class(self, form: Form, session: Session) -> str:
        """Add a class."""
        name = " ".join(self._text(form, "class", MAX_CLASS).split())
        if name:
            self.desk.add_class(name, who=session.who, session=session.id)
        return "/"

    def rename(self, form: Form, session: Session) -> str:
        """Change the name of the session."""
        session.rename(form.get("who", ""))
        return "/"

    def train(self, form: Form, session: Session) -> str:
        """Train now."""
        self.desk.train()
        return "/"

    def row(self, text: str) -> int | None:
        """The row of a node from a path or form."""
        if not (text.isdecimal() and text.isascii() and len(text) < 18):
            return None
        return int(text) if int(text) < len(self.desk.nodes.ids) else None

    def following(self, row: int) -> int | None:
        """The row that comes after a node in the queue."""
        rows = [one.row for one in self.desk.waiting() if one.row != row]
        order = [one.row for one in self.desk.queue]
        if row not in order:
            return rows[0] if rows else None
        behind = [other for other in rows if order.index(other) > order.index(row)]
        return next(iter(behind or rows), None)


def _one_newline(text: str) -> str:
    """A text as before a browser sent it: forms turn a newline into two characters."""
    return text.replace("\r\n", "\n")
