"""Pages of many nodes: the queue, and what has been done."""

from __future__ import annotations

from evengraph.desk.access import Session
from evengraph.desk.desk import Desk
from evengraph.desk.frame import frame
from evengraph.desk.node_page import describe
from evengraph.desk.side import side
from evengraph.report.page import table
from evengraph.report.svg.markup import Markup, join, tag

SHOWN = 200


def queue_page(desk: Desk, session: Session) -> str:
    """The nodes to label next, with reasons."""
    waiting = desk.waiting()[:SHOWN]
    rows = [_row(_node(desk, one.row), one.reason, _guess(desk, one.row)) for one in waiting]
    heads = ("node", "reason", "model's guess")
    part = _table("Nodes to label next", heads, rows)
    part = join([*(tag("p", note) for note in desk.ranking.notes), part])
    return _page(desk, session, "Queue", part, "/queue")


def done_page(desk: Desk, session: Session) -> str:
    """What was answered, the last first; every node can be opened and answered again."""
    events = desk.answers.all()[::-1][:SHOWN]
    rows = [
        _row(
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


def _row(first: Markup, *cells: str) -> Markup:
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in cells))


def _table(caption: str, heads: tuple[str, ...], rows: list[Markup]) -> Markup:
    if not rows:
        return tag("p", "Nothing yet.")
    return table(caption, [tag("th", head, scope="col") for head in heads], rows, "list")
