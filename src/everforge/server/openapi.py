"""The OpenAPI document, made from the routes and the wire's types: it cannot say anything that the server does not do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from everforge import __version__
from everforge.wire import api
from everforge.wire.errors import EverforgeError, Forbidden, InvalidInput, TooLarge, TooSlow, Unauthenticated

from .bodies import adapter
from .routes import Route, Routes, SocketRoute

REF = "#/components/schemas/{model}"
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
BYTES = {"schema": {"type": "string", "format": "binary"}}


def document(doors: Sequence[Routes], sockets: Sequence[SocketRoute]) -> dict[str, Any]:
    schemas = _Schemas()
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
        "x-websockets": {socket.path: {"summary": socket.summary, "x-scope": socket.scope} for socket in sockets},  # OpenAPI has no word for them
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "An API token, `id.secret`."}},
        },
    }


class _Schemas:
    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def of(self, cls: type) -> dict[str, Any]:
        if cls.__name__ not in self.components:
            self.components |= _flattened(adapter(cls), cls.__name__)
        return {"$ref": REF.format(model=cls.__name__)}


def _flattened(of: TypeAdapter[Any], name: str) -> dict[str, Any]:
    schema = of.json_schema(ref_template=REF)
    return {**schema.pop("$defs", {}), name: schema}


def _operation(tag: str, route: Route, schemas: _Schemas, error: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": [tag],
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": _parameters(route),
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


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name)} for name in _PARAMETER.findall(route.path)
    ]  # fmt: skip
    if route.query is not None:
        properties = adapter(route.query).json_schema()["properties"]
        found += [{"name": f.name, "in": "query", "required": False, "schema": properties[f.name]} for f in fields(route.query)]
    if route.keyed:
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "minLength": 1, "maxLength": 255}})
    return found


def _path_schema(name: str) -> dict[str, Any]:
    if name in ("seq", "call"):
        return {"type": "integer", "minimum": 0, "maximum": 10**17}
    return {"type": "string", "minLength": 1}


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
    found["default"] = {"description": "Any other error, in the same form.", "content": {"application/json": {"schema": error}}}
    return found


def _errors(route: Route) -> list[type[EverforgeError]]:
    found: list[type[EverforgeError]] = [InvalidInput, *route.errors]
    if route.scope is not None:
        found += [Unauthenticated, Forbidden]
    if route.body is not None:
        found += [TooLarge, TooSlow]
    return found


def _content(route: Route, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for media in route.media:
        as_json = media == "application/json" and route.answer is not None
        found[media] = {"schema": schemas.of(route.answer)} if as_json and route.answer else BYTES if media != "application/json" else {"schema": {}}
    return found
