"""The page of one node: its row, its neighbourhood, and the buttons."""

from __future__ import annotations

from evengraph.desk.access import Session
from evengraph.desk.desk import Desk
from evengraph.desk.drawing import colour, draw, key
from evengraph.desk.frame import KEYS, TRIAGE_KEYS, field, form, frame, hidden, keys
from evengraph.desk.label_file import DISMISSED, LABEL, NOTE, Event
from evengraph.desk.neighbourhood import neighbourhood
from evengraph.desk.side import side
from evengraph.report.page import definitions, scroll, section
from evengraph.report.svg.charts import percent
from evengraph.report.svg.markup import Markup, tag

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
