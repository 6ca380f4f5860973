"""The server: routes, and the loop that serves them on 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evengraph.core.errors import MissingPackageError
from evengraph.desk.access import HEADERS, Access, Session
from evengraph.desk.desk import Desk
from evengraph.desk.frame import message_page
from evengraph.desk.pages import DeskPages, Form

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

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


def make_app(desk: Desk, access: Access) -> Starlette:
    """The application."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    pages = DeskPages(desk)

    def secured(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    def refused(status: int, text: str) -> Response:
        return secured(HTMLResponse(message_page("Refused", text), status))

    def page(handler: Callable[[Request, Session], Response]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            if not access.knows_host(request.headers.get("host", "")):
                return refused(421, "This server has another name.")
            session = access.session(request.cookies)
            token = request.query_params.get("token")
            if token is not None and request.url.path == "/":  # the token leaves the address
                return _enter(token) if session is None else secured(_redirect("/"))
            if session is None:
                return refused(403, REFUSED)
            return secured(handler(request, session))

        return endpoint

    def _enter(token: str) -> Response:
        secret = access.enter(token)
        if secret is None:
            return refused(403, REFUSED)
        response = secured(_redirect("/"))
        response.set_cookie(access.cookie, secret, httponly=True, samesite="strict")
        return response

    def post(handler: Callable[[Form, Session], str]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool
            from starlette.responses import JSONResponse

            form = await _read_form(request)

            def work(request: Request, session: Session) -> Response:
                if not access.allows_post(session, request.headers, form.get("form_token", "")):
                    return HTMLResponse(message_page("Refused", REFUSED), 403)
                path = handler(form, session)
                if "application/json" in request.headers.get("accept", ""):
                    return JSONResponse({"next": path})
                return _redirect(path)

            return await run_in_threadpool(page(work), request)

        return endpoint

    routes = [Route(path, page(handler)) for path, handler in pages.gets().items()]
    routes += [
        Route(path, post(handler), methods=["POST"]) for path, handler in pages.posts().items()
    ]
    return Starlette(routes=routes)


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
