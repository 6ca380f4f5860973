"""The scoring service: a `Scorer` asked by HTTP on this machine, with JSON in and out.

One thread scores; requests that would wait too long are refused. A model that is replaced in its
folder is loaded beside the old one, which answers until the new one is ready: every answer is of
one model, whose version it names.
"""

from __future__ import annotations

import json
from asyncio import get_running_loop, timeout, wrap_future
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from html import escape
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import models_json_schema

from evengraph.core.errors import first_line
from evengraph.desk import server
from evengraph.methods.bases.saving import MAIN
from evengraph.pipeline.scorer import Scorer
from evengraph.tables import UnknownNodeError
from evengraph.tables.cells import canonical_name
from evengraph.tables.encoders import Date, Items, Number, Vector

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

LOOK_EVERY = 1.0  # seconds between looks at the model folder
MOST_REASONS = 20
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
OPEN = ConfigDict(extra="ignore", allow_inf_nan=False)  # columns that the model does not know
Id = Annotated[str, Field(max_length=1_000)] | int
Cell = str | float | bool | None
EDGE_CELLS: dict[str, Any] = {
    **{"number": float | None, "time": float | None, "date": str | None},
    **{"boolean": bool | str | float | None, "category": Cell},
}
STATUSES = {
    "400": "no JSON",
    "401": "no token",
    "413": "too many bytes",
    "422": "a wrong field",
    "503": "too many requests wait, or it took too long; try again after Retry-After",
}
ANSWER = {"id": "string", "class": "string", "probability": "number", "flagged": "boolean"}
ANSWER |= {"probabilities": "object", "reasons": "array"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may hold, and how many may wait."""

    rows: int = 1_000  # also of a batch together, and so are edges
    edges: int = 20_000
    bytes: int = 4 * 2**20
    queue: int = 32
    seconds: float = 30.0


class Refusal(Exception):
    """An answer to a request that is not scored: its status, why, and the path of the field."""

    def __init__(self, status: int, error: str, path: Sequence[str | int] = ()) -> None:
        super().__init__(error)
        self.status, self.content = status, {"error": error, "path": list(path)}


def request_models(scorer: Scorer, limits: Limits) -> tuple[type[BaseModel], type[BaseModel]]:
    """Models of a request and of a batch, with the columns of a model."""
    encoder, columns = scorer.model.info.encoder, scorer.columns
    assert encoder is not None
    kinds = {item.column: _cell_of(item) for item in encoder.columns}
    cells: dict[str, Any] = dict.fromkeys(scorer.roles, str | float | None)
    cells |= {} if columns.id is None else {columns.id: Id}
    cells |= {name: kinds.get(name, float | None) for name in encoder.input_columns}
    ends: dict[str, Any] = dict.fromkeys(scorer.ends, Id)
    for item in () if encoder.edges is None else encoder.edges.columns:
        ends[item.column] = EDGE_CELLS[item.kind]
    ends |= {name: Cell for name in (columns.type, columns.edge_time) if name and name not in ends}
    if columns.weight is not None:
        ends[columns.weight] = Annotated[float, Field(ge=0)]

    def some(kind: Any, least: int, most: int) -> Any:
        return list[kind], Field(... if least else [], min_length=least, max_length=most)

    parts: dict[str, Any] = {"rows": some(_model("Row", cells), 1, limits.rows)}
    parts["edges"] = some(_model("Edge", ends), 0, limits.edges if ends else 0)
    parts["reasons"] = int, Field(0, ge=0, le=MOST_REASONS)
    request = create_model("Request", __config__=STRICT, **parts)
    batch: dict[str, Any] = {"requests": some(request, 1, limits.rows)}
    return request, create_model("Batch", __config__=STRICT, **batch)


def _cell_of(item: Any) -> Any:
    if isinstance(item, Items | Vector):
        return list[str | float] | str | None
    if isinstance(item, Date):
        return str | None
    return float | None if isinstance(item, Number) else Cell


def _model(name: str, columns: dict[str, Any]) -> type[BaseModel]:
    fields = {f"column_{i}": (columns[key], Field(alias=key)) for i, key in enumerate(columns)}
    return create_model(name, __config__=OPEN, **fields)  # type: ignore[call-overload, no-any-return]


def openapi(scorer: Scorer, version: str, models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """The description of the service by OpenAPI 3.1, with the columns of its model."""
    template = "#/components/schemas/{model}"
    listed: Any = [(model, "validation") for model in models]
    schemas = models_json_schema(listed, ref_template=template)[1]["$defs"]
    schemas["Answer"] = {"properties": {name: {"type": kind} for name, kind in ANSWER.items()}}
    paths: dict[str, Any] = {"/health": {"get": {"responses": {"200": {"description": "ready"}}}}}
    texts = "rows that are new to the known graph", "requests, each as if it came alone"
    for path, model, text in zip(("/score", "/batch"), models, texts, strict=True):
        schema = {"$ref": template.format(model=model.__name__)}
        found: dict[str, Any] = {code: {"description": why} for code, why in STATUSES.items()}
        found["200"] = {"description": "model, its version, and results: an Answer for each row"}
        body = {"content": {"application/json": {"schema": schema}}, "required": True}
        about = {"summary": f"Score {text}", "requestBody": body, "responses": found}
        paths[path] = {"post": about}
    title = f"{scorer.model.method_.full_title}: {', '.join(scorer.model.classes_)}"
    secure = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas, **secure},
        "security": [{"token": []}],
    }


class Served(NamedTuple):
    """A model with all that belongs to it, replaced as a whole."""

    version: str
    scorer: Scorer
    models: tuple[type[BaseModel], type[BaseModel]]
    described: dict[str, Any]


class Service:
    """A model folder, which is looked at again while it is served; `known` is as in `Scorer`."""

    def __init__(self, folder: Path, known: Any, limits: Limits | None = None) -> None:
        self.folder, self.known, self.limits = folder, known, limits or Limits()
        self.pool, self.waiting, self.problem = ThreadPoolExecutor(1), 0, ""
        self.served = self._load(self.version())

    def version(self) -> str:
        """That of the model in the folder."""
        return sha256((self.folder / MAIN).read_bytes()).hexdigest()[:12]

    def _load(self, version: str) -> Served:
        scorer = Scorer(self.folder, self.known)
        if scorer.columns.kinds:
            raise ValueError(f"{self.folder} takes several tables; use Scorer.")
        models = request_models(scorer, self.limits)
        return Served(version, scorer, models, openapi(scorer, version, models))

    def refresh(self) -> None:
        """Take the model of the folder if it is another one and can be read."""
        try:
            if (version := self.version()) != self.served.version:
                found = self._load(version)
                if self.version() == version:  # otherwise it was replaced meanwhile
                    self.served = found
            self.problem = ""
        except Exception as error:  # the old model goes on
            self.problem = first_line(error)

    def watch(self, stop: Event) -> None:
        """Look for a new model until the event is set."""
        while not stop.wait(LOOK_EVERY):
            self.refresh()

    def answer(self, body: bytes, batch: bool = False) -> bytes:
        """The answer to a request as JSON; raises `Refusal` for one that is wrong."""
        served, results = self.served, []  # the same model for all of this request
        try:
            given = served.models[batch].model_validate_json(body).model_dump(by_alias=True)
        except ValidationError as error:
            raise _refusal(error) from None
        parts = given["requests"] if batch else [given]
        for name, most in (("rows", self.limits.rows), ("edges", self.limits.edges)):
            if sum(len(part[name]) for part in parts) > most:
                raise Refusal(422, f"A batch has at most {most:,} {name}.", ["requests"])
        for place, part in enumerate(parts):
            try:
                results.append(served.scorer.score(**part))
            except ValueError as error:
                where: list[str | int] = ["requests", place] if batch else []
                path = _path(error, part["edges"])
                raise Refusal(422, first_line(error), where + path) from None
        found = {"model": served.version, "results": results if batch else results[0]}
        return json.dumps(found, allow_nan=False).encode()

    def health(self) -> dict[str, Any]:
        """What is served, and what waits."""
        content = {"status": "ready", "model": self.served.version, "waiting": self.waiting}
        return content | ({"reload": self.problem} if self.problem else {})


def _refusal(error: ValidationError) -> Refusal:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = [part[:80] if isinstance(part, str) else part for part in first["loc"]]
    text = ": ".join(filter(None, (".".join(map(str, path)), first["msg"])))
    return Refusal(400 if first["type"] == "json_invalid" else 422, text, path)


def _path(error: ValueError, edges: list[dict[str, Any]]) -> list[str | int]:
    """Where edges name a node that there is none of; empty for other errors."""
    node = error.node if isinstance(error, UnknownNodeError) else None
    cells = ((i, name, cell) for i, edge in enumerate(edges) for name, cell in edge.items())
    return next((["edges", i, name] for i, name, cell in cells if canonical_name(cell) == node), [])


def make_app(service: Service, token: str, hosts: Sequence[str] = ()) -> ASGIApp:
    """The routes; with `hosts`, requests to other names are refused."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    limits = service.limits

    def check(request: Request) -> None:
        if hosts and request.headers.get("host", "").lower() not in hosts:
            raise Refusal(421, "This server has another name.")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.method == "GET":  # a browser has no header to set
            given = request.query_params.get("token", given)
        if not compare_digest(given.encode(), token.encode()):
            raise Refusal(401, "Authorization must be Bearer and the token of the service.")

    async def read(request: Request) -> bytes:
        try:
            body = await server.read_body(request, limits.bytes)
        except TimeoutError:
            raise Refusal(408, "The request took too long to arrive.") from None
        if body is None:
            raise Refusal(413, f"A request has at most {limits.bytes:,} bytes.")
        return body

    async def work(body: bytes, batch: bool) -> bytes:
        if service.waiting >= limits.queue:
            raise Refusal(503, "Too many requests wait.")
        future, loop = service.pool.submit(service.answer, body, batch), get_running_loop()
        service.waiting += 1

        def done() -> None:
            service.waiting -= 1

        def tell(_: Future[bytes]) -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(done)

        future.add_done_callback(tell)
        try:
            async with timeout(limits.seconds):
                return await wrap_future(future)
        except TimeoutError:
            raise Refusal(503, f"No answer within {limits.seconds:g} s.") from None

    def post(batch: bool) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            check(request)
            try:
                found = await work(await read(request), batch)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            return Response(found, media_type="application/json")

        return endpoint

    def get(make: Callable[[], Response], *, checked: bool = True) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            if checked:
                check(request)
            return make()

        return endpoint

    def on_error(_: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            error = Refusal(error.status_code, error.detail)
        refusal = error if isinstance(error, Refusal) else Refusal(500, "The service has failed.")
        headers = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
        return JSONResponse(refusal.content, refusal.status, headers.get(refusal.status))

    routes = [
        Route("/score", post(False), methods=["POST"]),
        Route("/batch", post(True), methods=["POST"]),
        Route("/health", get(lambda: JSONResponse(service.health()), checked=False)),
        Route("/openapi.json", get(lambda: JSONResponse(service.served.described))),
        Route("/", get(lambda: HTMLResponse(page(service.served.described)))),
    ]
    handlers: Any = dict.fromkeys((HTTPException, Refusal, 500), on_error)
    return Starlette(routes=routes, exception_handlers=handlers)


def page(described: dict[str, Any]) -> str:
    """A page that shows the description of the service."""
    title, text = escape(described["info"]["title"]), escape(json.dumps(described, indent=1))
    head = f'<meta charset="utf-8"><title>{title}</title>'
    rest = f"<main><h1>{title}</h1><p>openapi.json:</p><pre>{text}</pre></main>"
    return f'<!doctype html><html lang="en">{head}{rest}</html>'
