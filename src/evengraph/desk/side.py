"""The side of the desk: progress, the model, the next nodes."""

from __future__ import annotations

from evengraph.desk.access import Session
from evengraph.desk.curve import curve_chart
from evengraph.desk.desk import Desk
from evengraph.desk.drawing import colour
from evengraph.desk.frame import field, form
from evengraph.desk.label_file import LABEL, Fit
from evengraph.desk.training import is_enough
from evengraph.desk.triage import Triage
from evengraph.labelling.learning_curve import TOO_FEW_LABELS, can_judge
from evengraph.report.page import section
from evengraph.report.svg.charts import percent
from evengraph.report.svg.markup import Markup, tag

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
