"""Lines and the messages in them. What is none is answered, with the id that it has, if it has one. No I/O."""

from __future__ import annotations

import codecs
import json
from typing import Any, cast

from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, jsonrpc_message_adapter
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from .visible import whole


class Lines:
    """Bytes as they come, into lines. One that is too long is dropped as it comes, and stands as None among the others."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._dropping = False

    def take(self, chunk: bytes) -> list[bytes | None]:
        lines: list[bytes | None] = []
        *ended, last = chunk.split(b"\n")
        for part in ended:
            lines.append(self._end(part))
        self._rest += last
        if len(self._rest) > self._bytes_max:
            self._rest.clear()
            self._dropping = True
        elif self._dropping:
            self._rest.clear()
        return lines

    def _end(self, part: bytes) -> bytes | None:
        line, dropped = bytes(self._rest) + part, self._dropping
        self._rest.clear()
        self._dropping = False
        return None if dropped or len(line) > self._bytes_max else line


def parse(line: bytes) -> SessionMessage | JSONRPCError:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _wrong(line)
    # Its model knows no id: a request whose id is none would be taken for a notification, and never be answered.
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        return _wrong(line)
    return SessionMessage(message)


def _wrong(line: bytes) -> JSONRPCError:
    try:
        found = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return error(PARSE_ERROR, "this line is no JSON: send one JSON-RPC message a line, in UTF-8")
    id = cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None
    known = id if (isinstance(id, int) and not isinstance(id, bool)) or (isinstance(id, str) and id == whole(id)) else None
    return error(INVALID_REQUEST, _why(line, found), known)


def _why(line: bytes, found: Any) -> str:
    if line.startswith(codecs.BOM_UTF8):
        return "this line begins with a byte order mark: send UTF-8 without one"
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "this message has half of a surrogate pair, such as \\ud83d without its other half: send whole characters"
    except RecursionError:
        pass
    return "this is JSON, but no JSON-RPC 2.0 message: send one object with jsonrpc, method and, for a request, an id"


def encoded(message: BaseModel) -> bytes:
    """A line of it, whatever it holds: one answer that cannot be written must not end all the others."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except PydanticSerializationError:
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True), default=str).encode() + b"\n"


def error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
