"""The MCP server in a test: in memory, over HTTP on a port of its own, or as the process that a client starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import jsonschema
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, ImageContent, Implementation, TextContent

from everforge.mcp.calls import Link, Settings
from everforge.mcp.http import Place, configuration, listen, make_app, url_of
from kit.newcomer import ELSEWHERE

T = TypeVar("T")
ERAS = ("legacy", "auto")  # the handshake of 2025, and the protocol of 2026 in which each request stands alone
WAIT_SECONDS = 30.0


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def data_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    return cast("dict[str, Any]", result.structured_content)


def images_of(result: CallToolResult) -> list[ImageContent]:
    return [part for part in result.content if isinstance(part, ImageContent)]


def named(name: str) -> Implementation:
    return Implementation(name=name, version="1")


async def until(true: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    """What it gives when it is no longer empty; it may be a coroutine function."""
    async with asyncio.timeout(seconds):
        while True:
            found = true()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
            await asyncio.sleep(0.01)


@asynccontextmanager
async def held(opened: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Entered and left in one task, as clients must be: what a fixture does before a test and after it may be two."""
    made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with opened as value:
            made.set_result(value)
            await over.wait()

    task = asyncio.create_task(hold())
    await asyncio.wait([made, task], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield made.result() if made.done() else await cast("asyncio.Future[T]", task)
    finally:
        over.set()
        await task


# --- every tool ------------------------------------------------------------------------------------------------------------------------------------

STEPS = Path(__file__).parents[1] / "typescript-mcp" / "calls.json"


async def walk(client: Client) -> set[str]:
    """Every call of calls.json that the server has a tool for, each answer as its schema says; which tools there were. As walk.mjs does it."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    kept: dict[str, Any] = {}
    steps = [step for step in json.loads(STEPS.read_text("utf-8")) if step["tool"] in tools]
    for step in steps:
        result = await client.call_tool(step["tool"], _filled(step["arguments"], kept))
        schema = tools[step["tool"]].output_schema
        if result.structured_content is not None:
            jsonschema.validate(result.structured_content, cast("dict[str, Any]", schema))
        assert result.is_error or (result.structured_content is None) == (schema is None), step
        _check(step, result, kept)
    return {step["tool"] for step in steps}


def _check(step: dict[str, Any], result: CallToolResult, kept: dict[str, Any]) -> None:
    text = text_of(result)
    assert (result.is_error or False) == ("fails" in step), f"{step}: {text}"
    assert step.get("fails", "") in text, f"{step}: {text}"
    data = cast("dict[str, Any]", result.structured_content or {})
    for key, wanted in step.get("expect", {}).items():
        assert data[key] == _filled(wanted, kept), f"{step}: {text}"
    kept.update({name: data[key] for key, name in step.get("keep", {}).items()} | ({step["text"]: text} if "text" in step else {}))
    assert "json" not in step or json.loads(text) == _filled(step["json"], kept), f"{step}: {text}"


def _filled(value: Any, kept: dict[str, Any]) -> Any:
    """With what earlier steps have kept, in the place of $name."""
    if isinstance(value, dict):
        return {key: _filled(one, kept) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(one, kept) for one in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    return kept[value[1:]] if value[:1] == "$" and value[1:] in kept else re.sub(r"\$(\w+)", lambda found: str(kept[found[1]]), value)


# --- over HTTP -------------------------------------------------------------------------------------------------------------------------------------


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # they are the tests' own


@asynccontextmanager
async def over_http(base_url: str, settings: Settings | None = None, place: Place | None = None, link: Link | None = None) -> AsyncGenerator[str]:
    """Its address."""
    place = place or Place(port=0)
    listener = listen(place)
    app = make_app(settings or Settings(), place, lambda: base_url, link)
    served = _Quiet(configuration(app, timeout_graceful_shutdown=1))
    task = asyncio.create_task(served.serve(sockets=[listener]))
    try:
        await until(lambda: served.started or task.done())
        yield url_of(place, listener)
    finally:
        served.should_exit = True
        await task


@asynccontextmanager
async def http_client(url: str, token: str, mode: str = "auto", name: str = "tester", **headers: str) -> AsyncGenerator[Client]:
    """The official client; what it is given beyond the token are headers, with _ for -."""
    given = {"Authorization": f"Bearer {token}", **{key.replace("_", "-"): value for key, value in headers.items()}}
    async with (
        httpx2.AsyncClient(headers=given, timeout=WAIT_SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, client_info=named(name)) as client,
    ):
        yield client


# --- as a process ----------------------------------------------------------------------------------------------------------------------------------


def environment(url: str, token: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    return {**ours, "EVERFORGE_URL": url, "EVERFORGE_TOKEN": token}


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "everforge", "mcp", "serve", *options]


def stdio_server(url: str, token: str, *options: str, folder: Path | None = None) -> StdioServerParameters:
    """For the official client, which starts it."""
    program, *words = command(*options)
    return StdioServerParameters(command=program, args=words, env=environment(url, token), cwd=folder)


class Raw:
    """Such a process, spoken to line by line: for what no client would say."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, *lines: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        self.send(line)
        return self.answer()

    def begin(self) -> dict[str, Any]:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        said = self.ask({"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said


@contextmanager
def raw_process(env: dict[str, str], *options: str) -> Generator[Raw]:
    process = subprocess.Popen(command(*options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        yield Raw(process)
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(WAIT_SECONDS)
        process.kill()
        process.wait()
