"""What a program gives by mistake is said in a sentence, below EverforgeError, and does nothing."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest

import everforge
from everforge.wire.errors import ClientError, InvalidInput
from kit.service import Running
from kit.twins import KINDS, connected

Client = everforge.AsyncEverforge


@pytest.mark.parametrize("content", [3, None, ["a"], {"a": 1}, object()])
async def test_what_is_no_content_is_not_written(client: Client, content: Any) -> None:
    files = (await client.create()).files
    with pytest.raises(InvalidInput, match="give a string, bytes, or a file"):
        await files.write("x", content)
    assert not await files.exists("x")


async def test_strings_bytes_and_open_files_are_written(client: Client) -> None:
    files = (await client.create()).files
    for content in ("é", "é".encode(), bytearray("é".encode()), memoryview("é".encode()), io.BytesIO("é".encode()), io.StringIO("é")):
        await files.write("x", content)  # pyright: ignore[reportArgumentType]
        assert await files.read_text("x") == "é"
    with pytest.raises(InvalidInput, match="surrogate"):
        await files.write("x", "a\udc80")


@pytest.mark.parametrize(
    ("code", "told"), [("a = '\ud800'", "code has half of a surrogate pair at character 5"), (3, "code is 3"), (b"1", "as a string")]
)
async def test_what_is_no_code_is_not_run(client: Client, code: Any, told: str) -> None:
    machine = await client.create()
    for way in (machine, machine.repl()):
        with pytest.raises(InvalidInput, match=told):
            await way.run(code)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1, "5", True])
async def test_what_is_no_time_is_not_waited_for(client: Client, seconds: Any) -> None:
    machine = await client.create()
    with pytest.raises(InvalidInput, match=r"timeout_seconds is .*: give a number of seconds above 0, or leave it out"):
        await machine.exec("1", timeout_seconds=seconds)
    with pytest.raises(InvalidInput, match=r"wait_seconds is .*: give a number of seconds, 0 or more, or leave it out"):
        await machine.run("1", wait_seconds=seconds)
    with pytest.raises(InvalidInput, match="retry_seconds"):
        everforge.Everforge("a.b", "http://127.0.0.1:1", retry_seconds=seconds)
    assert (await machine.exec("1")).number == 0, "nothing was run"


@pytest.mark.parametrize("number", ["a", "3", -1, 1.5, None, True])
async def test_what_is_no_number_of_an_instruction_is_said_at_once(client: Client, number: Any) -> None:
    with pytest.raises(InvalidInput, match="is not the number of an instruction"):
        client.machine("m").instruction(number)


@pytest.mark.parametrize("env", ["A=b", {"A": 1}, {1: "b"}, 3])
async def test_what_is_no_environment_is_said(client: Client, env: Any) -> None:
    with pytest.raises(InvalidInput, match="give a dict of strings"):
        await client.machine("m").exec("1", env=env)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_closed_client_says_that_it_is_closed(kind: str, server: Running) -> None:
    async with connected(kind, server.url, server.token) as client:
        machine = await client.create()
    for attempt in (machine.run("1"), client.whoami(), machine.files.read("x"), machine.repl().ping()):
        with pytest.raises(ClientError, match="this client is closed: make a new one"):
            await attempt
