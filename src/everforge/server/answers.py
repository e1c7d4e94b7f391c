"""What clients get: JSON in ASCII (no reader stumbles over it), and one form of error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from starlette.responses import Response

from everforge import __version__
from everforge.wire.errors import EverforgeError

RETRY_LATER_SECONDS = 5
VERSION_HEADER = "X-Everforge-Version"  # with every answer
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def to_json(value: Any) -> bytes:
    return _ENCODER.encode(plain(value)).encode("ascii")


def plain(value: Any) -> Any:
    """Dataclasses as the objects that they are on the wire."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    return value


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, "application/json")


def error_body(error: EverforgeError, request_id: str) -> dict[str, Any]:
    details = {name: value for name, value in error.details.items() if value is not None}
    return {"code": error.code, "message": error.message, "retry": error.retry, "id": request_id, "details": _safe(details)}


def refusal(error: EverforgeError, request_id: str) -> Response:
    headers: dict[str, str] = {"X-Request-Id": request_id, VERSION_HEADER: __version__}
    if error.http_status in (429, 503):
        headers["Retry-After"] = str(error.details.get("retry_after_seconds", RETRY_LATER_SECONDS))
    if error.http_status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="everforge"'
    return answer(error_body(error, request_id), error.http_status, headers)


def _safe(details: dict[str, Any]) -> dict[str, Any]:
    """An error's details are ours, but must never be the reason that it cannot be told."""
    return json.loads(json.dumps(details, default=str))
