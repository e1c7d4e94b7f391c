"""The OpenAPI document, made from the routes and the wire's types: it cannot say anything that the server does not do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from everforge import __version__
from everforge.wire import api
from everforge.wire.errors import EverforgeError, Forbidden, InvalidInput, RouteNotFound, Stopping, TooLarge, TooMany, TooSlow, Unauthenticated

from .bodies import adapter
from .bounds import IDEMPOTENCY_KEY, PATH_PARAMETERS, Bounds, apply
from .routes import Route, Routes, SocketRoute

REF = "#/components/schemas/{model}"
_PARAMETER = re.compile(r"\{(\w+)(?::file)?\}")
REQUESTS = frozenset(cls.__name__ for cls in api.Request.__subclasses__())
REQUEST_ID = {"description": "To be found in the server's log.", "required": True, "schema": {"type": "string"}}
RETRY_AFTER = {"description": "Seconds.", "required": True, "schema": {"type": "integer", "minimum": 0}}
BYTES = {"schema": {"type": "string", "format": "binary"}}


def document(doors: Sequence[Routes], sockets: Sequence[SocketRoute], bounds: Bounds) -> dict[str, Any]:
    schemas = _Schemas(bounds)
    error = schemas.of(api.Error)
    paths: dict[str, dict[str, Any]] = {}
    for door in doors:
        for route in door.routes:
            path = _PARAMETER.sub(r"{\1}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = _operation(door.tag, route, schemas, error)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Everforge", "version": __version__, "description": "Python machines that never forget."},
        "paths": paths,
        "x-websockets": {
            socket.path: {"summary": socket.summary, "x-scopes": list(socket.scopes)} for socket in sockets
        },  # OpenAPI has no word for them
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "An API token, `id.secret`."}},
        },
    }


class _Schemas:
    def __init__(self, bounds: Bounds) -> None:
        self.components: dict[str, Any] = {}
        self._bounds = bounds

    def of(self, cls: type) -> dict[str, Any]:
        if cls.__name__ not in self.components:
            schema = adapter(cls).json_schema(ref_template=REF)
            for name, found in {**schema.pop("$defs", {}), cls.__name__: schema}.items():
                if name in REQUESTS:
                    apply(self._bounds, name, found["properties"])
                self.components[name] = found
        return {"$ref": REF.format(model=cls.__name__)}

    def of_query(self, cls: type) -> dict[str, Any]:
        properties = adapter(cls).json_schema()["properties"]
        apply(self._bounds, cls.__name__, properties)
        return properties


def _operation(tag: str, route: Route, schemas: _Schemas, error: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": [tag],
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": _parameters(route, schemas),
        "responses": _responses(route, schemas, error),
        "security": [] if route.scope is None else [{"token": []}],
    }
    if route.scope is not None:
        operation["x-scope"] = route.scope
        operation["x-owner-only"] = route.owner_only
    if route.body is not None:
        content = {"schema": schemas.of(route.body)} | ({"example": route.example} if route.example is not None else {})
        operation["requestBody"] = {"required": route.body_required, "content": {"application/json": content}}
    elif route.upload:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": BYTES}}
    return operation


def _parameters(route: Route, schemas: _Schemas) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS.get(name, {"type": "string", "minLength": 1})}
        for name in _PARAMETER.findall(route.path)
    ]
    if route.query is not None:
        properties = schemas.of_query(route.query)
        found += [{"name": f.name, "in": "query", "required": False, "schema": properties[f.name]} for f in fields(route.query)]
    if route.keyed:
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": IDEMPOTENCY_KEY})
    return found


def _responses(route: Route, schemas: _Schemas, error: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"200": {"description": "Done.", "content": _content(route, schemas)}}
    if "files" in route.path and route.method == "GET" and route.answer is None:
        found["206"] = {"description": "The range that was asked for.", "content": _content(route, schemas)}
    by_status: dict[int, list[type[EverforgeError]]] = {}
    for kind in _errors(route):
        by_status.setdefault(kind.http_status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        codes = ", ".join(sorted({kind.code for kind in kinds}))
        found[str(status)] = {"description": codes, "content": {"application/json": {"schema": error}}}
    for status, response in found.items():
        response["headers"] = {"X-Request-Id": REQUEST_ID} | ({"Retry-After": RETRY_AFTER} if status in ("429", "503") else {})
    return found


def _errors(route: Route) -> list[type[EverforgeError]]:
    found: list[type[EverforgeError]] = [InvalidInput, Stopping, *route.errors]
    if route.scope is not None:
        found += [Unauthenticated, Forbidden]
    if route.body is not None or route.upload:
        found += [TooLarge, TooSlow]
    if route.body is not None or route.scope is not None:
        found.append(TooMany)  # bodies and answers under way
    if "{" in route.path:
        found.append(RouteNotFound)  # a name with a slash in it is another path
    return found


def _content(route: Route, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for media in route.media:
        as_json = media == "application/json" and route.answer is not None
        found[media] = {"schema": schemas.of(route.answer)} if as_json and route.answer else BYTES if media != "application/json" else {"schema": {}}
    return found
