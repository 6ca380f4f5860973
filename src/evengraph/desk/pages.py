"""Which page or file a path shows, and what forms do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evengraph.desk.access import Session
from evengraph.desk.desk import Desk
from evengraph.desk.export import csv_bytes, labelled_table
from evengraph.desk.frame import SCRIPT, STYLESHEET, message_page
from evengraph.desk.label_file import DISMISSED, LABEL, UNKNOWN
from evengraph.desk.lists import done_page, queue_page
from evengraph.desk.node_page import CLASS_ANSWER, MAX_NOTE, node_page
from evengraph.desk.side import MAX_CLASS, side
from evengraph.desk.why import why

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

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
