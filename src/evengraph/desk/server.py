"""The server: routes, and the loop that serves them on 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evengraph.core.errors import MissingPackageError, first_line
from evengraph.desk.access import HEADERS, Access, Session
from evengraph.desk.desk import Desk
from evengraph.desk.frame import message_page
from evengraph.desk.pages import DeskPages, Form

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
MAX_FORM = 64 * 1024  # bytes
REFUSED = "Open the address that evengraph desk printed when it started; it holds a secret."


def import_server() -> Any:
    """uvicorn, or an error that says what to install."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingPackageError(
            "The desk needs Starlette and uvicorn: pip install 'evengraph[desk]'."
        ) from None
    return uvicorn


def free_socket(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes a free one."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # a browser that is quicker than the server waits
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"port {port} cannot be used: {reason}.") from None
    return listener


def serve(desk: Desk, access: Access, listener: socket.socket) -> None:
    """Serve until Ctrl-C."""
    server = make_server(desk, access)
    try:
        with suppress(KeyboardInterrupt):  # raised once all pages have been answered
            server.run(sockets=[listener])
    finally:
        desk.close()


def make_server(desk: Desk, access: Access) -> Any:
    """The server, not running yet. It writes no log: addresses hold the token."""
    uvicorn = import_server()
    config = uvicorn.Config(
        make_app(desk, access),
        access_log=False,
        log_level="error",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def make_app(desk: Desk, access: Access) -> ASGIApp:
    """The application."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    pages = DeskPages(desk)

    def refused(status: int, text: str) -> Response:
        return HTMLResponse(message_page("Refused", text), status)

    def check(request: Request) -> Session | Response:
        """The session, or the response to who may see nothing."""
        if not access.knows_host(request.headers.get("host", "")):
            return refused(421, "This server has another name.")
        session = access.session(request.cookies)
        token = request.query_params.get("token")
        if token is not None and request.url.path == "/":  # the token leaves the address
            return enter(token) if session is None else _redirect("/")
        return refused(403, REFUSED) if session is None else session

    def enter(token: str) -> Response:
        secret = access.enter(token)
        if secret is None:
            return refused(403, REFUSED)
        response = _redirect("/")
        response.set_cookie(access.cookie, secret, httponly=True, samesite="strict")
        return response

    def page(handler: Callable[[Request, Session], Response]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            found = check(request)
            return found if isinstance(found, Response) else handler(request, found)

        return endpoint

    def post(handler: Callable[[Form, Session], str]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            session = check(request)
            if isinstance(session, Response):
                return session
            try:
                form = await _read_form(request)
                if not access.allows_post(session, request.headers, form.get("form_token", "")):
                    return refused(403, REFUSED)
                path = await run_in_threadpool(handler, form, session)
            except ValueError as error:
                return refused(400, first_line(error))
            if "application/json" in request.headers.get("accept", ""):
                return JSONResponse({"next": path})
            return _redirect(path)

        return endpoint

    routes = [Route(path, page(handler)) for path, handler in pages.gets().items()]
    routes += [
        Route(path, post(handler), methods=["POST"]) for path, handler in pages.posts().items()
    ]
    return _secured(Starlette(routes=routes))


def _secured(app: ASGIApp) -> ASGIApp:
    """The application with our headers on every response, also those to errors."""
    ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def secured(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *ours]}
            await send(message)

        await app(scope, receive, send_more)

    return secured


def _redirect(path: str) -> Response:
    from starlette.responses import RedirectResponse

    return RedirectResponse(path, 303)


async def _read_form(request: Request) -> Form:
    """The fields of a form; empty if it is too large or no form."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM:
            return {}
    text = body.decode("utf-8", errors="replace")
    return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=20))
