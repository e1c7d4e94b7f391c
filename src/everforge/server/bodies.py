"""What clients send: read within limits and deadlines, and decoded into the wire's types with errors that say what is wrong where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request

from everforge.wire.errors import InvalidInput, TooLarge, TooSlow

from .arrivals import Arrival
from .settings import ServerSettings
from .weight import is_too_heavy

PROBLEMS_MAX = 3  # told of at once
COUNTED_MAX = 100  # more are only counted: to name each takes a hundred times as long as to find it
TOO_HEAVY = "there are too many values in it"


@cache
def adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def decode(cls: type, body: bytes) -> Any:
    if is_too_heavy(body):
        raise InvalidInput(f"the body cannot be read: {TOO_HEAVY}")
    try:
        return adapter(cls).validate_json(body)
    except ValidationError as e:
        raise InvalidInput(_sentence(e)) from None


def decode_query(cls: type, values: Mapping[str, Any]) -> Any:
    try:
        return adapter(cls).validate_python(values)
    except ValidationError as e:
        raise InvalidInput(_sentence(e)) from None


def _sentence(error: ValidationError) -> str:
    if error.error_count() > COUNTED_MAX:
        return f"{error.error_count()} values or fields are not as they should be"
    problems: list[str] = []
    for problem in error.errors(include_url=False, include_input=False)[:PROBLEMS_MAX]:
        place = ".".join(str(part) for part in problem["loc"])
        match problem["type"]:
            case "json_invalid":
                problems.append(f"the body is not JSON: {problem['msg'].removeprefix('Invalid JSON: ')}")
            case "missing":
                problems.append(f"{place} is missing")
            case "unexpected_keyword_argument" | "extra_forbidden":
                problems.append(f"there is no field {place[:80]}")
            case _:
                problems.append(f"{place or 'the body'}: {problem['msg'][0].lower()}{problem['msg'][1:]}")
    return "; ".join(problems)


async def read_body(request: Request, settings: ServerSettings, arrival: Arrival, bytes_max: int) -> bytes:
    """A small one, whole. Raises TooMany when too much else is under way."""
    if (coding := request.headers.get("content-encoding", "identity")) != "identity":
        raise InvalidInput(f"bodies are taken as they are, not with Content-Encoding: {coding[:40]}")
    _check_length(request, bytes_max)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > bytes_max:
                    raise TooLarge(f"the body may have {bytes_max} bytes")
                arrival.hold(size)
                parts.append(part)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {settings.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise TooSlow("the client went away before its body had arrived") from None
    return b"".join(parts)


async def read_upload(request: Request, settings: ServerSettings) -> AsyncGenerator[bytes]:
    """A large one, piece by piece as it comes."""
    _check_length(request, settings.upload_bytes_max)
    pieces = request.stream()
    size = 0
    while True:
        try:
            async with asyncio.timeout(settings.upload_idle_seconds):
                piece = await anext(pieces, None)
        except TimeoutError:
            raise TooSlow(f"the upload stood still for {settings.upload_idle_seconds:g} seconds") from None
        except ClientDisconnect:
            raise TooSlow("the client went away in the middle of its upload") from None
        if piece is None:
            return
        size += len(piece)
        if size > settings.upload_bytes_max:
            raise TooLarge(f"an upload may have {settings.upload_bytes_max} bytes")
        if piece:
            yield piece


def _check_length(request: Request, limit: int) -> None:
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and int(told[:20]) > limit:
        raise TooLarge(f"the body has {told[:20]} bytes; {limit} are the limit")


def query_values(request: Request) -> dict[str, Any]:
    """The last of each, but all of the tags."""
    values: dict[str, Any] = dict(request.query_params)
    if "tag" in values:
        values["tag"] = request.query_params.getlist("tag")
    return values
