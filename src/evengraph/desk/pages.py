"""The desk's pages: a node to label, the queue, what is done, and the side with the progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from evengraph.desk.curve import SCORED, TOO_FEW_LABELS, can_judge
from evengraph.desk.desk import Desk, Triage
from evengraph.desk.label_file import DISMISSED, LABEL, NOTE, Event
from evengraph.desk.training import is_enough
from evengraph.pipeline.explanation import Explanation
from evengraph.report.charts import percent
from evengraph.report.markup import Attribute, Markup, plural, tag
from evengraph.report.node_pictures import (
    COLOURS,
    RARE,
    class_colours,
    class_names,
    draw_explanation,
    neighbour_words,
    verdict,
)
from evengraph.report.page import STYLE, definitions, read_asset, scroll, section, table, table_row

if TYPE_CHECKING:
    from evengraph.desk.server import Session

STYLESHEET = STYLE + read_asset(__package__, "desk.css")
SCRIPT = read_asset(__package__, "desk.js")
PAGES = {"/": "Label", "/queue": "Queue", "/done": "Done", "/export.csv": "Export"}
LISTS = {
    "/queue": ("Nodes to label next", "node", "reason", "model's guess"),
    "/done": ("Answers, the last first", "node", "answer", "by", "when (UTC)"),
}
OTHER_KEYS = {"d": "don't know", "u": "undo", "n": "note", "← →": "other nodes"}
KEYS = {"1–9": "class", **OTHER_KEYS}
TRIAGE_KEYS = {"1": "confirm", "2": "dismiss", **OTHER_KEYS}
MAX_NAME, MAX_CLASS, MAX_NOTE = 60, 200, 2_000  # characters
MAX_CELLS = 60  # of a row that are shown
NUM_KEYS = 9  # classes that have a key
NEXT, LISTED = 6, 200  # nodes that the side and the lists show
WHY = "Why the model predicts this"
MOST = 20  # neighbours that are listed


def node_page(desk: Desk, session: Session, row: int) -> str:
    explanation = tag("p", "Explanations come with the first trained model.")
    source = None
    if desk.hides(row):
        explanation = tag("p", "Shown once you have answered: open the node again.")
    elif desk.method is not None:  # loaded later: it may take a moment
        source = f"/node/{row}/why"
        explanation = tag("p", tag("a", "Show", href=source))
    return _frame(
        desk,
        session,
        _question(desk, session, row),
        _cells(desk, row),
        _near(desk, row),
        tag("section", tag("h2", WHY), explanation, data_source=source),
    )


def queue_page(desk: Desk, session: Session) -> str:
    """The nodes to label next, with reasons."""
    rows = []
    for row in desk.waiting()[:LISTED]:
        guess = desk.guess(row)
        text = f"{guess[0]} {guess[1]:.0%}" if guess else "–"
        rows.append(table_row(_node_link(desk, row), (desk.reason(row), text)))
    notes = [tag("p", note) for note in desk.ranking.notes]
    return _list_page(desk, session, "/queue", rows, *notes)


def done_page(desk: Desk, session: Session) -> str:
    """What was answered, the last first; every node can be opened and answered again."""
    rows = []
    for event in desk.answers.all()[::-1][:LISTED]:
        if event.node in desk.nodes.rows:
            link = _node_link(desk, desk.nodes.rows[event.node])
            rows.append(table_row(link, (describe(event), event.who, _minute(event))))
    return _list_page(desk, session, "/done", rows)


def _list_page(
    desk: Desk, session: Session, here: str, rows: Sequence[Markup], *notes: Markup
) -> str:
    caption, *heads = LISTS[here]
    part = table(caption, heads, rows, "list") if rows else tag("p", "Nothing yet.")
    listed = tag("section", tag("h1", PAGES[here]), *notes, part, data_list=here)
    return _frame(desk, session, listed, here=here)


def _node_link(desk: Desk, row: int) -> Markup:
    return tag("a", desk.nodes.ids[row], href=f"/node/{row}")


def class_answer(name: str) -> str:
    """What a form sends for a class: a hash, since browsers change what a name may hold."""
    return f"class-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def message_page(title: str, text: str) -> str:
    return _document(title, tag("main", tag("h1", title), tag("p", text, class_="lead")))


def describe(event: Event) -> str:
    """An event in a few words."""
    words = {LABEL: event.label, DISMISSED: f"not {event.label}", NOTE: "note"}
    text = words.get(event.kind, "don't know")
    return f"{text} ({event.note})" if event.note else text


def _minute(event: Event) -> str:
    return event.created[:16].replace("T", " ")


# The frame, and forms that only our own pages can send.


def _frame(desk: Desk, session: Session, *main: Markup, here: str = "/") -> str:
    title = f"{desk.nodes.name}: {desk.nodes.column}"
    links = [
        tag("a", text, href=path, aria_current="page" if path == here else None)
        for path, text in PAGES.items()
    ]
    who = _form(
        session,
        "/who",
        tag("label", "You are", for_="who"),
        _field("who", value=session.who, maxlength=MAX_NAME),
        tag("button", "Save", class_="quiet-button"),
        class_="who",
    )
    top = tag("header", tag("p", title, class_="name"), tag("nav", *links), who, class_="desk-top")
    said = tag("p", id="said", role="status", class_="said")
    work = tag("div", *main, class_="work")
    return _document(title, top, tag("main", said, work, side(desk, session), class_="desk"))


def _document(title: str, *body: Markup) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/desk.css"),
        tag("title", f"{title} · evengraph desk"),
        tag("script", src="/desk.js", defer=True),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"


def _form(session: Session, action: str, *parts: Markup, **attributes: Attribute) -> Markup:
    token = _hidden("form_token", session.form_token)
    return tag("form", token, *parts, action=action, method="post", **attributes)


def _hidden(name: str, value: object) -> Markup:
    return tag("input", type="hidden", name_=name, value=str(value))


def _field(name: str, **attributes: Attribute) -> Markup:
    return tag("input", type="text", name_=name, id=name, autocomplete="off", **attributes)


def _undo(session: Session, event: Event, words: str, key: str | None, kind: str) -> Markup:
    hint = [" ", tag("kbd", key)] if key else []
    button = tag("button", "Undo", *hint, data_key=key, class_="quiet-button")
    number = _hidden("number", event.number)
    return _form(session, "/undo", tag("span", words), number, button, class_=kind)


# The node: the question with its answers, its row, its neighbourhood.


def _question(desk: Desk, session: Session, row: int) -> Markup:
    reason, id = desk.reason(row), desk.nodes.ids[row]
    last = desk.answers.last_of(session.id)
    if last is None:
        asked = f"What is its {desk.nodes.column}?" if desk.find is None else f"{desk.find}?"
        before = tag("p", f"{asked} Every answer is saved at once.", class_="last")
    else:
        words = f"{last.node}: {describe(last)}"
        if desk.options.hide_guess and last.thought:
            name, share = max(last.thought.items(), key=lambda item: item[1])
            words += f"; the model: {name} {share:.0%}"
        before = _undo(session, last, words, "u", "last")
    history = []
    if desk.nodes.labels[row] >= 0:
        label = desk.nodes.classes[int(desk.nodes.labels[row])]
        history.append(tag("p", f"In the table: {label}."))
    for event in desk.answers.history(id):
        words = f"{describe(event)}, by {event.who}, {_minute(event)} UTC"
        history.append(_undo(session, event, words, None, "past"))
    # Enter in the note presses the first button of a form, which must be no answer
    note = tag(
        "div",
        tag("label", "Note", for_="note"),
        _field("note", maxlength=MAX_NOTE, data_key="n"),
        tag("button", "Save note", formaction="/note", class_="quiet-button"),
        class_="note-line",
    )
    answers = tag("div", *_buttons(desk, row), class_="answers")
    following = desk.following(row)
    skip = Markup("")
    if following is not None:
        skip = tag("a", "Skip ", tag("kbd", "→"), href=f"/node/{following}", data_move="next")
    meanings = TRIAGE_KEYS if desk.find else KEYS
    keys = [tag("li", tag("kbd", key), " ", meaning) for key, meaning in meanings.items()]
    return tag(
        "section",
        before,
        tag("h1", id),
        tag("p", reason, class_="reason") if reason else "",
        *history,
        _form(session, "/answer", _hidden("row", row), note, answers, class_="question"),
        tag("p", skip, class_="skip"),
        tag("ul", *keys, class_="keys"),
        class_="node",
    )


def _buttons(desk: Desk, row: int) -> list[Markup]:
    thought = {} if desk.hides(row) else desk.thought(row)
    answers: list[tuple[str, str, str, str | None]] = [
        (str(number + 1), name, class_answer(name), name)
        for number, name in enumerate(desk.classes)
    ]
    if desk.find is not None:
        answers = [
            ("1", f"Confirm: {desk.find}", "confirm", desk.find),
            ("2", "Dismiss", "dismiss", None),
        ]
    buttons, looks = [], colours(desk)
    for letter, text, value, name in [*answers, ("d", "Don't know", "unknown", None)]:
        parts = [tag("kbd", letter), tag("span", text, class_="answer-name")]
        if name is not None and name in thought:
            parts.append(tag("span", f"{thought[name]:.0%}", class_="share"))
            parts.append(_bar(thought[name]))
        number = None if name is None else desk.classes.index(name)
        key = letter if number is None or number < NUM_KEYS else None
        kind = "answer" if name is None else f"answer {_colour_class(looks[name])}"
        buttons.append(
            tag("button", *parts, name_="answer", value=value, data_key=key, class_=kind)
        )
    return buttons


def _bar(share: float) -> Markup:
    rect = tag("rect", width=percent(100 * share), height="100%")
    return tag("svg", rect, class_="bar", aria_hidden="true")


def _cells(desk: Desk, row: int) -> Markup:
    cells = desk.nodes.cells(row)
    heading = "Row" if desk.nodes.table is not None else "Features"
    if not cells:
        return section(heading, tag("p", "Nothing but the id."))
    more = len(cells) - MAX_CELLS
    rest = [tag("p", f"And {more:,} more.")] if more > 0 else []
    shown = definitions(dict(cells[:MAX_CELLS]))
    return section(heading, scroll(shown, heading, kind="cells"), *rest)


def _near(desk: Desk, row: int) -> Markup:
    near = neighbours(desk, row)
    if not near:
        return section("Neighbourhood", tag("p", "This node has no edges."))
    items = [tag("li", _node_link(desk, other), tag("span", words)) for other, words in near[:MOST]]
    more = f", {MOST} of them listed" if len(near) > MOST else ""
    text = f"{plural(len(near), 'neighbour')}{more}."
    return section("Neighbourhood", tag("p", text), tag("ul", *items, class_="next-list"))


def neighbours(desk: Desk, row: int) -> list[tuple[int, str]]:
    """The neighbours of a node, labelled ones first, each with what is known of its class."""
    labels, found = desk.labels(), []
    others = {int(other) for other in desk.nodes.adjacency[[row]].indices} - {row}
    for other in sorted(others, key=lambda other: (int(labels[other]) < 0, other)):
        words = "not known"
        if (label := int(labels[other])) >= 0:
            words = f"labelled {desk.classes[label]}"
        elif (guess := desk.guess(other)) is not None:
            words = f"{guess[0]} {guess[1]:.0%}"
        found.append((other, words))
    return found


def colours(desk: Desk) -> dict[str, str]:
    """The colour of every class by the labels so far, in buttons, counts and drawings alike."""
    counts = desk.counts()
    return dict(zip(counts, class_colours([*counts.values()]), strict=True))


def _colour_class(colour: str) -> str:
    return "colour-rare" if colour == RARE else f"colour-{COLOURS.index(colour)}"


def why(explanation: Explanation | None, drawn: Mapping[str, str] | None = None) -> Markup:
    """The neighbourhood with what it contributes, columns as bars, and labelled nodes."""
    if explanation is None:
        return section(WHY, tag("p", "There is no trained model yet."))
    content, about, items = explanation.as_dict(), explanation.name(explanation.about), []
    for one in explanation.labelled:
        steps = "no path" if one.distance is None else f"{one.distance} away"
        side = "supports" if one.contribution > 0 else "opposes"
        text = f"{explanation.name(one.label)}, {steps}; {side} {about}"
        items.append(tag("li", tag("a", one.id, href=f"/node/{one.node}"), tag("span", text)))
    labelled = [tag("h3", "Labelled nodes"), tag("ul", *items, class_="next-list")] if items else []
    facts = tag("p", f"{verdict(content)} {neighbour_words(content)}")
    of_class = [drawn.get(name, COLOURS[0]) for name in class_names(content)] if drawn else ()
    drawing = draw_explanation(content, explanation.ids, of_class)
    picture = tag("div", Markup(drawing), class_="near")
    return section(WHY, facts, picture, *labelled)


# The side: what has been done, how good the model is, and what comes next.


def side(desk: Desk, session: Session) -> Markup:
    """The progress, which the page asks for again and again."""
    if isinstance(desk, Triage):
        confirmed, decided, expected = desk.precision()
        lines = [tag("p", "Nothing confirmed or dismissed yet.")]
        if decided:
            text = f"{confirmed:,} of {decided:,} confirmed; the model expected {expected:.1f}."
            share = tag("b", f"{confirmed / decided:.0%}")
            lines = [tag("p", share, class_="figure"), tag("p", text)]
        parts = [section("Precision so far", *lines)]
    else:
        parts = [_progress(desk, session), _model(desk, session), *more_labels(desk)]
    waiting = [
        tag("li", _node_link(desk, row), tag("span", desk.reason(row)))
        for row in desk.waiting()[:NEXT]
    ]
    text = tag("ol", *waiting, class_="next-list") if waiting else tag("p", "Nothing is left.")
    notes = [tag("p", note) for note in desk.ranking.notes]
    parts.append(section("Next", *notes, text))
    busy = "true" if desk.trainer.running else None
    return tag("aside", *parts, id="side", data_version=desk.version, data_busy=busy)


def _progress(desk: Desk, session: Session) -> Markup:
    counts = desk.counts()
    largest, looks = max([*counts.values(), 1]), colours(desk)
    rows = [
        tag(
            "li",
            tag("span", name, class_="class-name", title=name),
            tag("span", f"{count:,}", class_="value"),
            _bar(count / largest),
            class_=_colour_class(looks[name]),
        )
        for name, count in counts.items()
    ]
    answers = desk.answers.all()
    unsure = sum(event.kind != LABEL for event in answers)
    text = f"{len(answers) - unsure:,} labelled here, {unsure:,} not known."
    new = _form(
        session,
        "/class",
        tag("label", "New class", for_="class"),
        _field("class", maxlength=MAX_CLASS),
        tag("button", "Add", class_="quiet-button"),
        class_="new-class",
    )
    return section("Labels", tag("p", text), tag("ul", *rows, class_="counts-list"), new)


def _model(desk: Desk, session: Session) -> Markup:
    every, enough = desk.options.retrain_every, is_enough(desk.labels())
    if desk.trainer.running:
        state = f"Training {desk.options.method} on {desk.trained_labels:,} labels."
    elif desk.method is None:
        state = "A quick model ranks the queue." if desk.model else "No model yet."
        state += f" Training begins after {every} labels." if every else ""
    else:
        state, score = desk.model, desk.method.extra_.get("score")
        if isinstance(score, float):
            state += f", balanced accuracy {score:.0f} on those held out in training"
        state += "."
        state += f" It is trained again after {desk.labels_to_go()} more." if every else ""
    lines = [tag("p", state)]
    if desk.problem:
        lines.append(tag("p", desk.problem, class_="problem"))
    guesses = [
        max(event.thought, key=lambda name: event.thought[name]) == event.label
        for event in desk.answers.all()
        if event.kind == LABEL and event.thought
    ]
    if guesses:
        text = f"Its guess was right for {sum(guesses):,} of {len(guesses):,} labels."
        lines.append(tag("p", text))
    if not desk.trainer.running and enough:
        lines.append(_form(session, "/train", tag("button", "Train now", class_="quiet-button")))
    return section("Model", *lines)


def more_labels(desk: Desk) -> list[Markup]:
    """What more labels would bring, and what is not known of it; nothing until it is measured."""
    curve = desk.curve
    if curve is None:
        can = can_judge(list(desk.counts().values()))
        return [] if can else [section("More labels", tag("p", TOO_FEW_LABELS))]
    rows = [
        table_row(f"{p.labels:,}", (f"{p.score:.0f}%", f"{p.low:.0f} to {p.high:.0f}"))
        for p in (curve.now, *curve.expected)
    ]
    heads = ("labels", "balanced accuracy", "80% interval")
    advice = tag("p", curve.advice, class_="advice")
    unknown = [tag("p", sentence) for sentence in curve.unknown]
    drawn = table("More labels", heads, rows, "list")
    return [section("More labels", drawn, advice, *unknown, tag("p", SCORED))]
