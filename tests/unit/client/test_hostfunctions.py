"""Code in a machine calls functions of this program: by both clients, against a whole server on the fake engine."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

import everforge
from kit.service import Running

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
