"""Code in a machine calls functions of this program: by both clients, against a whole server on the fake engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

import everforge
from everforge.wire.errors import InvalidInput, Uncertain, Unreachable
from kit.proxy import Proxy
from kit.service import Running
from kit.twins import KINDS, connected

Client = everforge.AsyncEverforge


async def test_code_calls_functions_of_this_program(client: Client) -> None:
    machine = await client.create("m")
    asked: list[object] = []

    def ask(*args: object, **kwargs: object) -> object:
        asked.append((args, kwargs))
        return {"n": len(asked)}

    result = await machine.run("x = ask('a', key=[1])\ny = ask()\n(x, y)", functions={"ask": ask})
    assert result.value == "({'n': 1}, {'n': 2})"
    assert asked == [(("a",), {"key": [1]}), ((), {})]


async def test_what_a_function_raises_or_cannot_send_is_raised_in_the_machine(client: Client) -> None:
    machine = await client.create("m")
    failed = await machine.run("ask()", functions={"ask": lambda: 1 / 0})
    assert failed.error == "HostFunctionError: ZeroDivisionError: division by zero"
    unsendable = await machine.run("ask()", functions={"ask": lambda: object()})
    assert "HostFunctionError: ask returned what cannot be sent" in (unsendable.error or "")


@pytest.mark.parametrize(
    ("functions", "told"),
    [
        ({"1x": print}, "'1x' cannot be the name of a function"),
        ({"class": print}, "'class' cannot be the name"),
        ({3: print}, "3 cannot be the name"),
        ({"ask": 5}, "ask is 5, which cannot be called: give a function"),
        ([print], "give a dict of names and functions"),
        ("ask", "give a dict"),
    ],
)
async def test_what_cannot_be_called_is_said_before_anything_is_run(client: Client, functions: Any, told: str) -> None:
    machine = await client.create("m")
    with pytest.raises(InvalidInput, match=told):
        await machine.run("ran = 1", functions=functions)
    async with machine.repl() as repl:
        with pytest.raises(InvalidInput, match=told):
            await repl.run("ran = 1", functions=functions)
    first = await machine.exec("'nothing was run before'")
    assert first.number == 0
    with pytest.raises(InvalidInput, match=told):
        await first.result(functions=functions)


def test_the_plain_client_takes_no_async_functions(server: Running) -> None:
    async def ask() -> None: ...

    with everforge.Everforge("a.b", server.url) as client, pytest.raises(InvalidInput, match="ask is an async function: use the async client"):
        client.machine("m").exec("ask()", functions={"ask": ask})


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda: float("nan"), "ask returned what cannot be sent: it is not JSON"),
        (lambda: {1j: 2}, "ask returned what cannot be sent: it is not JSON"),
        (lambda: b"bytes", "ask returned what cannot be sent: it is not JSON"),
        (lambda: "x" * 2_000_000, "write long data to a file of the machine"),
        (lambda: _raise(ValueError("\ud800")), "ValueError: \\ud800"),
        (lambda: _raise(Unspeakable()), "Unspeakable: its message cannot be shown"),
        (lambda needed: needed, "TypeError"),
    ],
)
async def test_an_answer_that_cannot_be_given_is_an_error_of_the_call(client: Client, function: Any, told: str) -> None:
    machine = await client.create("m")
    result = await machine.run("ask()", functions={"ask": function}, wait_seconds=20)
    assert (result.error or "").startswith("HostFunctionError: ")
    assert told in (result.error or "")


@pytest.mark.parametrize("size", [2_000_000, 9_000_000])
async def test_an_answer_that_the_server_refuses_is_an_error_of_the_call(client: Client, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.client.functions.CALL_BYTES_MAX", 1 << 30)  # of a client that knows nothing of it
    machine = await client.create("m")
    result = await machine.run("ask()", functions={"ask": lambda: "x" * size}, wait_seconds=20)
    assert "HostFunctionError: ask returned what cannot be sent: " in (result.error or "")


async def test_a_function_may_have_arguments_of_any_name(client: Client) -> None:
    machine = await client.create("m")
    result = await machine.run("ask(function=1, self=2)", functions={"ask": lambda **named: named})
    assert result.value == "{'function': 1, 'self': 2}"


async def test_a_function_that_waits_for_its_own_machine_is_told_so(client: Client, server: Running, wire: Proxy) -> None:
    machine = await client.create("m")
    await machine.run("'before'")
    with everforge.Everforge(server.token, wire.url) as inner:
        ways: list[Callable[[], object]] = [
            lambda: inner.machine("m").run("1"),
            lambda: list(inner.machine("m").stream("1")),
            lambda: inner.machine("m").repl().run("1"),
            lambda: inner.machine("m").instruction(4).result(),
        ]
        for number, way in enumerate(ways, start=1):
            result = await machine.run("ask()", functions={"ask": way}, wait_seconds=20)
            assert f"WrongState: instruction {number} of m waits for the answer of this function" in (result.error or "")
            assert result.instruction == number, "nothing was run beside it"


async def test_a_function_may_run_something_on_another_machine_or_look_at_what_has_ended(server: Running) -> None:
    async with everforge.AsyncEverforge(server.token, server.url) as client:
        machine, other = await client.create("m"), await client.create("other")
        await machine.run("'before'")

        async def ask() -> list[str | None]:
            later = await machine.exec("'later'")
            return [(await other.run("1 + 1")).value, (await machine.instruction(0).result()).value, str(later.number)]

        assert (await machine.run("ask()", functions={"ask": ask})).value == "['2', \"'before'\", '2']"
        assert (await machine.instruction(2).result()).value == "'later'"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_function_is_called_once_though_its_answer_needs_a_second_try(kind: str, server: Running, wire: Proxy) -> None:
    async with connected(kind, wire.url, server.token, retry_seconds=0.2) as client:
        machine = await client.create("m")
        loop, called = asyncio.get_running_loop(), 0

        def cut() -> None:
            wire.refusing = True
            wire.cut()

        def ask() -> int:
            nonlocal called
            called += 1
            cut() if kind == "async" else asyncio.run_coroutine_threadsafe(_now(cut), loop).result()
            return called

        instruction = await machine.exec("ask()", functions={"ask": ask})
        with pytest.raises((Uncertain, Unreachable)):
            await instruction.result()
        wire.refusing = False
        assert (await instruction.result()).value == "1"
        assert called == 1


async def _now(act: Callable[[], None]) -> None:
    act()


async def test_a_machine_sleeps_while_it_waits_and_goes_on_where_it_was(client: Client) -> None:
    machine = await client.create("m")
    instruction = await machine.exec("kept = 1\nx = ask()\n(kept, x)", functions={"ask": lambda: "yes"})
    await _until_called(machine)
    assert (await machine.hibernate()).state == "asleep"
    assert (await instruction.info()).state == "waiting"
    assert (await instruction.result()).value == "(1, 'yes')"


async def test_another_program_answers_what_is_still_open(client: Client) -> None:
    machine = await client.create("m")
    instruction = await machine.exec("x = ask(1)\ny = ask(2)\nx + y", functions={"ask": lambda n: n})
    await _until_called(machine)
    again = client.machine("m").instruction(instruction.number)
    assert (await again.result(functions={"ask": lambda n: n * 10})).value == "30"


async def test_a_repl_answers_too(client: Client) -> None:
    await client.create("m")
    async with client.machine("m").repl() as repl:
        assert (await repl.run("x = ask()\nx", functions={"ask": lambda: [1, None]})).value == "[1, None]"


async def _until_called(machine: everforge.AsyncMachine) -> None:
    async with asyncio.timeout(5):
        async for entry in machine.tape(follow=True):
            if entry["type"] == "called":
                return


async def test_over_the_wire_a_call_is_answered_once_and_its_value_is_not_shown(server: Running) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers=server.headers) as http:
        await http.post("/v1/machine/new", json={"name": "m"})
        async with connect(f"{server.ws}/v1/machine/m/connect", additional_headers=server.headers) as socket:
            await socket.send(json.dumps({"type": "exec", "request_id": 1, "instruction": {"code": "ask(5)", "functions": ["ask"]}, "key": "k"}))
            seen = await _until(socket, "called")
            assert seen[-1]["args"] == [5]
            await socket.send(json.dumps({"type": "answer", "request_id": 2, "call": 0, "value": "secret"}))
            seen = await _until(socket, "ended")
            assert {"type": "reply", "request_id": 2} in seen
            answered = next(m for m in seen if m["type"] == "answered")
            assert set(answered) == {"type", "position", "cursor", "time", "instruction", "call"}
            assert seen[-1]["value"] == "'secret'"
            await socket.send(json.dumps({"type": "answer", "request_id": 3, "call": 0, "value": 1}))
            assert (await _until(socket, "error"))[-1]["error"]["code"] == "WrongState"
        for path, body, code in (
            ("0/calls/0", {"value": 1}, "WrongState"),
            ("7/calls/0", {"value": 1}, "InstructionNotFound"),
            ("0/calls/x", {"value": 1}, "InvalidInput"),
            ("0/calls/0", {"value": 1, "error": "both"}, "InvalidInput"),
        ):
            assert (await http.post(f"/v1/machine/m/exec/{path}", json=body)).json()["code"] == code


async def _until(socket: object, kind: str) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(5):
        while not seen or seen[-1]["type"] != kind:
            seen.append(json.loads(await socket.recv()))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    return seen


@pytest.mark.parametrize("scope", ["read", "manage"])
async def test_an_answer_needs_the_scope_to_execute(server: Running, scope: str) -> None:
    headers = {"Authorization": f"Bearer {await server.scoped(scope)}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as http:
        assert (await http.post("/v1/machine/m/exec/0/calls/0", json={"value": 1})).status_code == 403
