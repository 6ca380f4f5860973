"""The desk's server on 127.0.0.1: who may use it, its routes, and what its forms do.

The address holds a secret, which a cookie replaces. Other users of the machine do not know it.
Pages of other sites can make a browser send requests, but with another `Origin`, without the
cookie, which is `SameSite=Strict`, and without the token of the form. A name that resolves to
127.0.0.1 fails by its `Host`. Browsers send the cookie to all ports of 127.0.0.1: a server of
another user there that is opened in the same browser sees it.
"""

from __future__ import annotations

import secrets
import socket
from asyncio import timeout
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evengraph.core.errors import first_line
from evengraph.core.lazy import import_optional
from evengraph.desk import pages
from evengraph.desk.desk import Desk
from evengraph.desk.label_file import DISMISSED, LABEL, UNKNOWN
from evengraph.desk.nodes import csv_bytes, labelled_table

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
MAX_SESSIONS = 1_000
MAX_FORM = 64 * 1024  # bytes
MAX_CONNECTIONS = 200
PATIENCE = 10.0  # seconds that a request may take to arrive
REFUSED = "Open the address that evengraph desk printed when it started; it holds a secret."
HEADERS = {
    # no inline style or script, nothing from elsewhere, and no page of others around ours
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers hide the origin of forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response."""

Form = dict[str, str]
View = Callable[["Session", int], "str | Response"]
Action = Callable[[Form, "Session"], str]


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass
class Session:
    """One browser: the name that its answers carry, an id for the label file, and a secret."""

    who: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    form_token: str = field(default_factory=_secret)  # must be in every form that it sends


class Access:
    """Checks requests to the server on a port; new sessions have the name `who`."""

    def __init__(self, port: int, who: str) -> None:
        self.hosts = (f"{HOST}:{port}", f"localhost:{port}")
        self.who = who
        self.token = _secret()
        self.cookie = f"evengraph-desk-{port}"  # cookies of one host are shared by all ports
        self._tickets: set[str] = set()
        self._sessions: dict[str, Session] = {}

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"

    def one_time_address(self) -> str:
        """An address for one browser: other users can read what programs are started with."""
        ticket = _secret()
        self._tickets.add(ticket)
        return f"http://{self.hosts[0]}/?token={ticket}"

    def enter(self, token: str) -> str | None:
        """The cookie of a new session; None if the token is wrong."""
        if not compare_digest(token.encode(), self.token.encode()):
            if token not in self._tickets:
                return None
            self._tickets.discard(token)
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = _secret()
        self._sessions[secret] = Session(self.who)
        return secret

    def session(self, cookies: Mapping[str, str]) -> Session | None:
        return self._sessions.get(cookies.get(self.cookie, ""))

    def allows_post(self, session: Session, headers: Mapping[str, str], form_token: str) -> bool:
        """Whether a form came from a page of ours."""
        origin = headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self.hosts:
            return False
        return compare_digest(form_token.encode(), session.form_token.encode())


def import_server() -> Any:
    """Import uvicorn, or raise an error with what to install."""
    import_optional("starlette", "'.[desk]'")
    return import_optional("uvicorn", "'.[desk]'")


def free_socket(port: int, host: str = HOST) -> socket.socket:
    """A socket of this machine; port 0 takes a free one."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # a browser that is quicker than the server waits
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"port {port} cannot be used: {reason}.") from None
    return listener


def serve(desk: Desk, access: Access, listener: socket.socket) -> None:
    """Serve until Ctrl-C."""
    try:
        with suppress(KeyboardInterrupt):  # raised once all pages have been answered
            make_server(desk, access).run(sockets=[listener])
    finally:
        desk.close()


def make_server(desk: Desk, access: Access) -> Any:
    """The server of a desk, not running yet."""
    return impatient_server(_make_app(desk, access))


def impatient_server(app: ASGIApp) -> Any:
    """A server that cuts off slow clients. It writes no log: addresses hold the token."""
    uvicorn = import_server()
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """Ends connections that send no request, and those beyond what files the system gives."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > MAX_CONNECTIONS:
                transport.abort()
            self.loop.call_later(PATIENCE, self.look, None)

        def look(self, last: Any) -> None:
            """Close what was idle at the last look, and has had no new request since."""
            idle = self.cycle is None or self.cycle.response_complete
            if idle and self.cycle is last:
                self.transport.close()
            elif not self.transport.is_closing():
                self.loop.call_later(PATIENCE, self.look, self.cycle if idle else self)

    config = uvicorn.Config(
        secured(app),
        http=Impatient,
        access_log=False,
        log_level="error",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def _make_app(desk: Desk, access: Access) -> ASGIApp:
    """The routes behind their checks."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

    def refused(status: int, text: str) -> Response:
        return HTMLResponse(pages.message_page("Refused", text), status)

    def check(request: Request) -> Session | Response:
        """The session, or the response to who may see nothing."""
        if request.headers.get("host", "").lower() not in access.hosts:
            return refused(421, "This server has another name.")
        session = access.session(request.cookies)
        token = request.query_params.get("token")
        if token is None or request.url.path != "/":
            return refused(403, REFUSED) if session is None else session
        response = RedirectResponse("/", 303)  # the token leaves the address
        if session is None:
            secret = access.enter(token)
            if secret is None:
                return refused(403, REFUSED)
            response.set_cookie(access.cookie, secret, httponly=True, samesite="strict")
        return response

    def get(view: View) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            session = check(request)
            if isinstance(session, Response):
                return session
            try:
                desk.refresh()
                row = _row(desk, request.path_params.get("row", "0"))
                if row is None:
                    none = pages.message_page("Not found", "There is no such node.")
                    return HTMLResponse(none, 404)
                shown = view(session, row)
            except (ValueError, OSError) as error:  # the label file is gone, or the disk is full
                return HTMLResponse(pages.message_page("Not saved", first_line(error)), 503)
            if isinstance(shown, Response):
                return shown
            return HTMLResponse(shown.encode("utf-8", errors="xmlcharrefreplace"))

        return endpoint

    def post(act: Action) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            session = check(request)
            if isinstance(session, Response):
                return session
            try:
                form = _form(await read_body(request, MAX_FORM))
                if not access.allows_post(session, request.headers, form.get("form_token", "")):
                    return refused(403, REFUSED)
                path = await run_in_threadpool(act, form, session)
            except (ValueError, OSError, ClientDisconnect) as error:  # OSError: too slow as well
                return refused(400, first_line(error))
            if "application/json" in request.headers.get("accept", ""):
                return JSONResponse({"next": path})
            return RedirectResponse(path, 303)

        return endpoint

    return Starlette(
        routes=[
            *(Route(path, get(view)) for path, view in _views(desk).items()),
            *(Route(path, post(act), methods=["POST"]) for path, act in _actions(desk).items()),
        ]
    )


def secured(app: ASGIApp) -> ASGIApp:
    """An application with our headers on every response, also those to errors."""
    ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def with_headers(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *ours]}
            await send(message)

        await app(scope, receive, send_more)

    return with_headers


async def read_body(request: Request, most: int) -> bytes | None:
    """The body of a request, read in time; None if it is larger than the limit."""
    body = bytearray()
    async with timeout(PATIENCE):
        async for part in request.stream():
            body += part
            if len(body) > most:
                return None
    return bytes(body)


def _form(body: bytes | None) -> Form:
    """The fields of a form; empty if it is too large or no form."""
    text = (body or b"").decode("utf-8", errors="replace")
    return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=20))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 18 else -1


def _row(desk: Desk, text: str) -> int | None:
    return _number(text) if 0 <= _number(text) < len(desk.nodes.ids) else None


def _views(desk: Desk) -> dict[str, View]:
    from starlette.responses import Response

    def home(session: Session, _: int) -> str:
        row = desk.next_row(session.id)
        if row is None:
            return pages.done_page(desk, session)
        return pages.node_page(desk, session, row)

    def node(session: Session, row: int) -> str:
        desk.file.look(session.id, [desk.nodes.ids[row]])
        return pages.node_page(desk, session, row)

    def export(session: Session, _: int) -> Response:
        content = csv_bytes(labelled_table(desk.nodes, desk.answers))
        name = {"Content-Disposition": 'attachment; filename="labelled.csv"'}
        return Response(content, media_type="text/csv; charset=utf-8", headers=name)

    return {
        "/": home,
        "/node/{row}": node,
        "/node/{row}/why": lambda _, row: pages.why(desk.explanation(row), pages.colours(desk)),
        "/side": lambda session, _: pages.side(desk, session),
        "/queue": lambda session, _: pages.queue_page(desk, session),
        "/done": lambda session, _: pages.done_page(desk, session),
        "/export.csv": export,
        "/desk.css": lambda *_: Response(pages.STYLESHEET, media_type="text/css"),
        "/desk.js": lambda *_: Response(pages.SCRIPT, media_type="text/javascript"),
    }


def _actions(desk: Desk) -> dict[str, Action]:
    """What forms do; each returns the path of the page to show then, or raises ValueError."""

    def page_of(row: int | None) -> str:
        return "/" if row is None else f"/node/{row}"

    def text(form: Form, name: str, limit: int) -> str:
        written = form.get(name, "").strip()
        if len(written) > limit:
            raise ValueError(f"A {name} has at most {limit:,} characters, not {len(written):,}.")
        return written

    def answer(form: Form, session: Session) -> str:
        """Save an answer and go to the next node."""
        row = _row(desk, form.get("row", ""))
        kind, label = _meaning(desk, form.get("answer", ""))
        if row is None or not kind:
            return "/"
        note = text(form, "note", pages.MAX_NOTE)
        desk.answer(row, kind, label, note=note, who=session.who, session=session.id)
        return page_of(desk.next_row(session.id, row))

    def note(form: Form, session: Session) -> str:
        """Save a note and stay."""
        row, written = _row(desk, form.get("row", "")), text(form, "note", pages.MAX_NOTE)
        if row is not None and written:
            desk.note(row, written, who=session.who, session=session.id)
        return page_of(row)

    def undo(form: Form, session: Session) -> str:
        """Undo an event and go back to its node."""
        number = _number(form.get("number", ""))
        return page_of(desk.undo(number, who=session.who, session=session.id))

    def add_class(form: Form, session: Session) -> str:
        name = " ".join(text(form, "class", pages.MAX_CLASS).split())
        if name:
            desk.add_class(name, who=session.who, session=session.id)
        return "/"

    def rename(form: Form, session: Session) -> str:
        """Change the name of the session; an empty one changes nothing."""
        session.who = " ".join(form.get("who", "").split())[: pages.MAX_NAME] or session.who
        return "/"

    def train(form: Form, session: Session) -> str:
        desk.train()
        return "/"

    return {
        "/answer": answer,
        "/note": note,
        "/undo": undo,
        "/class": add_class,
        "/who": rename,
        "/train": train,
    }


def _meaning(desk: Desk, answer: str) -> tuple[str, str]:
    find = desk.find or ""
    if answer == "unknown":
        return UNKNOWN, ""
    if answer == "confirm" and find:
        return LABEL, find
    if answer == "dismiss" and find:
        others = [name for name in desk.classes if name != find]
        return (LABEL, others[0]) if len(others) == 1 else (DISMISSED, find)
    classes = {pages.class_answer(name): name for name in desk.classes}
    return (LABEL, classes.get(answer, "")) if answer.startswith("class-") else ("", "")
