"""Over standard input and output: the process that a client starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from everforge import Everforge, Machine, cli
from everforge.mcp.limits import MESSAGE_BYTES_MAX
from kit.background import in_background
from kit.mcpserving import ERAS, WAIT_SECONDS, Raw, command, data_of, environment, images_of, named, raw_process, stdio_server
from kit.service import Running


@pytest.fixture(scope="module")
def running() -> Generator[Running]:
    with in_background() as found:
        yield found


@pytest.fixture(scope="module")
def env(running: Running) -> dict[str, str]:
    return environment(running.url, running.token)


def call(id: object, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def test_the_official_client_starts_it_and_comes_back_to_its_machine(running: Running, tmp_path: Path) -> None:
    names = []
    for era in ERAS:
        async with Client(stdio_server(running.url, running.token, folder=tmp_path), mode=era, client_info=named("stdio")) as client:
            result = await client.call_tool("run_python", {"code": "show({'png': 'iVBORw0KGgo='})\nprint('out')"})
            assert [image.mime_type for image in images_of(result)] == ["image/png"]
            names.append(data_of(result)["machine"])
    assert names[0] == names[1]


def test_what_is_no_message_or_comes_too_early_is_answered_by_errors_and_the_rest_works(env: dict[str, str]) -> None:
    with raw_process(env) as raw:
        assert raw.ask(b"{ this is no json")["error"]["code"] == -32700
        assert raw.ask(b"\xff\xfe\x00")["error"]["code"] == -32700
        assert raw.ask(b"[1, 2]")["error"]["code"] == -32600
        assert raw.ask(b"[" * 50_000)["error"]["code"] == -32700
        early = raw.ask(call(1, "run_python", code="1"))
        assert (early["id"], early["error"]["code"]) == (1, -32602)
        assert raw.ask({"jsonrpc": "2.0", "id": 2, "method": "no/such/method"})["error"]["code"] == -32601
        assert raw.begin()["result"]["serverInfo"]["name"] == "everforge"
        _wrong_calls(raw)
        assert raw.ask(call(9, "run_python", code="1 + 1"))["result"]["structuredContent"]["value"] == "2"


def _wrong_calls(raw: Raw) -> None:
    unknown = raw.ask(call(3, "no_such_tool"))
    assert (unknown["id"], unknown["error"]["code"]) == (3, -32602)
    assert "tools/list" in unknown["error"]["message"]
    shape = raw.ask({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": 5}})
    assert (shape["id"], shape["error"]["code"]) == (4, -32602)
    listed = raw.ask({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "run_python", "arguments": ["code"]}})
    assert listed["error"]["code"] == -32602
    huge = raw.ask(call(6, "run_python", code="x" * 2_000_000))
    assert huge["result"]["isError"] is True
    raw.send(b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": "' + b"y" * MESSAGE_BYTES_MAX + b'"}}')
    too_long = raw.answer()
    assert (too_long["id"], too_long["error"]["code"]) == (None, -32600)
    assert "more than" in too_long["error"]["message"]
    raw.send({"jsonrpc": "2.0", "method": "notifications/nothing"}, {"jsonrpc": "2.0", "id": "gone", "result": {}}, b"")  # nobody answers these
    again = raw.ask({"jsonrpc": "2.0", "id": 8, "method": "initialize", "params": "none"})
    assert again["error"]["code"] in (-32602, -32600)


def test_cancelling_interrupts_and_going_away_leaves_the_code_running(env: dict[str, str], running: Running) -> None:
    with Everforge(running.token, running.url) as forge, raw_process(env, "--conversation", "leaving") as raw:
        raw.begin()
        name = raw.ask(call(1, "run_python", code="x = 1"))["result"]["structuredContent"]["machine"]
        machine = forge.machine(name)
        asked = call(2, "run_python", code="tell('begun')\nhang()")
        asked["params"]["_meta"] = {"progressToken": "t"}
        raw.send(asked)
        told = raw.answer()
        assert (told["method"], told["params"]["progressToken"], told["params"]["message"]) == ("notifications/progress", "t", "begun")
        raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "enough"}})
        assert machine.instruction(1).result(wait_seconds=WAIT_SECONDS).end == "interrupted"
        raw.send(call(3, "run_python", code="tell('on')\nhang()"))
        until_said(machine, 2)
        assert raw.process.stdin is not None
        raw.process.stdin.close()
        assert raw.process.wait(WAIT_SECONDS) == 0
        assert machine.instruction(2).info().state == "running"
        machine.interrupt()


def until_said(machine: Machine, number: int) -> None:
    """Until an instruction has written something."""
    entries = machine.tape(follow=True, wait_seconds=WAIT_SECONDS)
    assert any(entry.get("instruction") == number and entry["type"] == "output" for entry in entries)


def test_it_ends_at_once_when_it_is_told_to(env: dict[str, str]) -> None:
    with raw_process(env) as raw:
        raw.begin()
        raw.process.send_signal(signal.SIGINT)
        assert raw.process.wait(WAIT_SECONDS) == 0
        assert raw.process.stderr is not None
        assert raw.process.stderr.read() == b""


def test_whoever_starts_it_by_hand_is_told_what_it_is_and_a_program_is_not(env: dict[str, str]) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(command(), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
    os.close(theirs)
    try:
        assert process.stderr is not None
        told = process.stderr.readline() + process.stderr.readline()
        assert "this is an MCP server" in told
        assert "`everforge mcp install CLIENT`" in told
        os.close(ours)  # the terminal is closed
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.wait()


def test_nothing_but_the_protocol_comes_out_and_a_reader_that_goes_is_no_accident(env: dict[str, str]) -> None:
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
        },
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    process = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(given)
    process.stdin.flush()
    assert [json.loads(process.stdout.readline())["id"] for _ in lines] == [1, 2]
    process.stdout.close()
    process.stdin.write(given[:-1] + "\n")
    process.stdin.flush()
    assert process.wait(WAIT_SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "1"], "are for --http"), (["--http", "--share", "/"], "no files of this computer"), (["--http", "--conversation", "x"], "Everforge-Conversation"),
        (["--share", "/no/such/folder"], "is not a folder"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["mcp", "serve", *options]) == 2
    assert told in capsys.readouterr().err
