"""What can be read without a call: the list of machines, their files and their tapes."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp.types import INVALID_PARAMS, BlobResourceContents, TextResourceContents

from everforge import AsyncEverforge
from everforge.wire.errors import EverforgeError, Refused, TooLarge
from everforge.wire.events import START

from .answers import refusal
from .limits import COMPLETIONS_MAX, LISTED_MAX, READ_BYTES_MAX, RESOURCES_MAX, TAPE_CHARACTERS_MAX, TAPE_ENTRIES
from .reading import closing, read_part
from .visible import visible

Contents = TextResourceContents | BlobResourceContents
MACHINES = "everforge://machines"
FILES = UriTemplate.parse("everforge://machine/{name}/files/{+path}")
TAPE = UriTemplate.parse("everforge://machine/{name}/tape{?after}")
FILES_TEXT, TAPE_TEXT = "everforge://machine/{name}/files/{+path}", "everforge://machine/{name}/tape{?after}"
NDJSON, JSON = "application/x-ndjson", "application/json"
URI_CHARACTERS = 200  # of one, when it is said what is wrong with it
SERVER_ERROR = -32000  # of this implementation, in the range that the protocol leaves for that

TEMPLATES = [
    types.ResourceTemplate(
        name="file",
        title="A file of a machine",
        uri_template=FILES_TEXT,
        description="Relative to the machine's home folder; with %2F in front of it from the root. Up to 1 MB.",
    ),
    types.ResourceTemplate(
        name="tape",
        title="The tape of a machine",
        uri_template=TAPE_TEXT,
        mime_type=NDJSON,
        description="What it was given, what it said and how that ended: the last entries, or those behind a position.",
    ),
]


async def list_resources(client: AsyncEverforge) -> list[types.Resource]:
    """The list of machines, and the tapes of the newest."""
    found = [types.Resource(uri=MACHINES, name="machines", title="All machines", mime_type=JSON, description="Names, states, times, tags.")]
    async with closing(client.machines()) as machines:
        async for machine in machines:
            if len(found) == RESOURCES_MAX:
                break
            uri = TAPE.expand({"name": machine.name})
            found.append(types.Resource(uri=uri, name=f"tape of {machine.name}", title=f"Tape of {machine.name}", mime_type=NDJSON))
    return found


async def read_resource(client: AsyncEverforge, uri: str) -> Contents:
    """MCPError that says what is wrong."""
    read = _reader(uri)
    if read is None:
        raise MCPError(
            INVALID_PARAMS,
            f"there is no resource {uri[:URI_CHARACTERS]}: read {MACHINES}, {FILES_TEXT} or {TAPE_TEXT}",
            {"uri": uri[:URI_CHARACTERS]},
        )
    try:
        return await read(client)
    except EverforgeError as e:
        raise protocol_error(e, {"uri": uri[:URI_CHARACTERS]}) from e


def protocol_error(error: EverforgeError, data: dict[str, Any] | None = None) -> MCPError:
    code = INVALID_PARAMS if isinstance(error, Refused) and error.retry == "never" else SERVER_ERROR
    return MCPError(code, visible(refusal(error).text), {**(data or {}), "code": error.code, "retry": error.retry})


def _reader(uri: str) -> Callable[[AsyncEverforge], Awaitable[Contents]] | None:
    if uri == MACHINES:
        return lambda client: _machines(client, uri)
    if (found := _matched(TAPE, uri)) is not None:
        return lambda client: _tape(client, uri, found["name"], found.get("after", ""))
    if (found := _matched(FILES, uri)) is not None:
        return lambda client: _file(client, uri, found["name"], found["path"])
    return None


def _matched(template: UriTemplate, uri: str) -> dict[str, str] | None:
    found = template.match(uri)
    return {key: value for key, value in found.items() if isinstance(value, str)} if found is not None else None


async def _machines(client: AsyncEverforge, uri: str) -> Contents:
    listed: list[dict[str, Any]] = []
    async with closing(client.machines()) as machines:
        async for one in machines:
            if len(listed) == LISTED_MAX:
                break
            times = {"created_at": one.created_at, "last_used_at": one.last_used_at, "expires_at": one.expires_at}
            listed.append({"name": one.name, "state": one.state, **times, "tags": one.tags, "image": one.image})
    return TextResourceContents(uri=uri, mime_type=JSON, text=json.dumps(listed, indent=1))


async def _tape(client: AsyncEverforge, uri: str, name: str, after: str) -> Contents:
    """The last entries, or those behind a position; each has its own, so that a reader can go on."""
    if after and not (after.isascii() and after.isdigit() and len(after) < 19):
        raise MCPError(INVALID_PARAMS, f"after={after[:50]} is no position: give the `cursor` of an entry", {"uri": uri[:URI_CHARACTERS]})
    machine = client.machine(name)
    start = int(after) if after else max((await machine.info()).position - TAPE_ENTRIES, START)
    lines: list[str] = []
    room = TAPE_CHARACTERS_MAX
    async with closing(machine.tape(after=start)) as entries:
        async for entry in entries:
            line = json.dumps(entry)
            room -= len(line)
            if len(lines) == TAPE_ENTRIES or (room < 0 and lines):
                break
            lines.append(line[:TAPE_CHARACTERS_MAX])
    return TextResourceContents(uri=uri, mime_type=NDJSON, text="".join(f"{line}\n" for line in lines))


async def _file(client: AsyncEverforge, uri: str, name: str, path: str) -> Contents:
    part = await read_part(client.machine(name), path, 0, READ_BYTES_MAX)
    if part.more:
        raise TooLarge(f"{path} has more than {READ_BYTES_MAX} bytes: read it in parts with the tool read_file")
    text = part.text()
    kind = mimetypes.guess_type(path)[0] or ("text/plain" if text is not None else "application/octet-stream")
    if text is not None:
        return TextResourceContents(uri=uri, mime_type=kind, text=text[0])
    return BlobResourceContents(uri=uri, mime_type=kind, blob=part.base64())


async def complete_name(client: AsyncEverforge, beginning: str) -> list[str]:
    """Names of machines."""
    names: list[str] = []
    async with closing(client.machines(prefix=beginning or None)) as machines:
        async for one in machines:
            if len(names) == COMPLETIONS_MAX:
                break
            names.append(one.name)
    return names
