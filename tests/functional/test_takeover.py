"""Must show 2: the server, the warden, and then both are killed in the middle of an instruction that prints a line every 20 ms."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everforge.machines.requests import NewMachine
from everforge.server.bootstrap import close_machines, open_machines
from kit.real import LINGER_SECONDS, TESTED, give_template, sandboxes_of, until_gone
from kit.serverprocess import ServerProcess

pytestmark = pytest.mark.gvisor

LINES = 100
PRINTER = f"import time\nfor i in range({LINES}):\n    print('line', i)\n    time.sleep(0.02)\n'done'"
WANTED = [f"line {i}" for i in range(LINES)]


def lines(tape: list[dict[str, Any]], instruction: int) -> list[str]:
    return [line for e in tape if e["kind"] == "output" and e["instruction"] == instruction for line in e["lines"]]


def ends(tape: list[dict[str, Any]], instruction: int) -> list[dict[str, Any]]:
    return [e for e in tape if e["kind"] == "ended" and e["instruction"] == instruction]


async def printing(server: ServerProcess, name: str) -> int:
    """Starts the printer and returns when some of its lines are on the tape."""
    number, _ = await server.call("exec", name=name, code=PRINTER)
    while len(lines(await server.call("tape", name=name), number)) < 10:
        await asyncio.sleep(0.01)
    return number


async def finish(server: ServerProcess, name: str) -> None:
    await server.call("delete", name=name)
    await server.stop()
    await until_gone(server.data)


async def test_a_killed_server_loses_no_line_and_no_result(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    await server.call("run", name=name, code="x = 1")
    number = await printing(server, name)
    await server.kill()
    await asyncio.sleep(0.3)  # the guest goes on printing while nobody listens
    server = await ServerProcess(data).start()
    ended = await server.call("result", name=name, instruction=number)
    assert (ended["end"], ended["value"]) == ("value", "'done'")
    tape = await server.call("tape", name=name)
    assert lines(tape, number) == WANTED
    assert len(ends(tape, number)) == 1
    assert (await server.call("run", name=name, code="x"))["value"] == "1"
    await finish(server, name)


async def test_a_server_killed_again_and_again_loses_nothing(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    number = await printing(server, name)
    for _ in range(3):
        await server.kill()
        server = await ServerProcess(data).start()
    await server.call("result", name=name, instruction=number)
    assert lines(await server.call("tape", name=name), number) == WANTED
    await finish(server, name)


async def test_a_killed_warden_is_replaced_and_the_machine_goes_on(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    await server.call("run", name=name, code="x = 1")
    number = await printing(server, name)
    before = await server.call("warden")
    os.kill(before, signal.SIGKILL)
    ended = await server.call("result", name=name, instruction=number)
    assert ended["value"] == "'done'"
    assert lines(await server.call("tape", name=name), number) == WANTED
    await server.call("hibernate", name=name)
    assert (await server.call("run", name=name, code="x"))["value"] == "1"
    assert await server.call("warden") != before
    await finish(server, name)


async def test_an_orderly_stop_may_leave_machines_to_the_next_server_and_a_caretaker_hibernates_them_if_none_comes(data: Path) -> None:
    give_template(data)
    settings = replace(TESTED, handover_seconds=1.5)
    machines, folder = await open_machines(data, settings, warden_linger_seconds=LINGER_SECONDS)
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "x = 1")
    await close_machines(machines, folder)
    assert sandboxes_of(data), "the machine was not left awake"
    machines, folder = await open_machines(data, settings, warden_linger_seconds=LINGER_SECONDS)
    assert (await machines.get(name)).state == "ready"
    assert (await machines.run(name, "x")).value == "1"
    await close_machines(machines, folder)
    await until_gone(data, seconds=60)
    machines, folder = await open_machines(data, TESTED, warden_linger_seconds=LINGER_SECONDS)
    assert (await machines.get(name)).state == "asleep"
    assert (await machines.run(name, "x")).value == "1"
    await machines.delete(name)
    await close_machines(machines, folder)
    await until_gone(data)


async def test_with_both_killed_the_machine_is_back_at_its_last_snapshot_and_the_tape_says_what_is_lost(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    await server.call("run", name=name, code="x = 'saved'")
    await server.call("hibernate", name=name)
    await server.call("run", name=name, code="x = 'after the snapshot'")
    number = await printing(server, name)
    told = lines(await server.call("tape", name=name), number)
    warden = await server.call("warden")
    os.kill(warden, signal.SIGKILL)
    await server.kill()
    server = await ServerProcess(data).start()
    tape = await server.call("tape", name=name)
    assert [e["end"] for e in ends(tape, number)] == ["lost"]
    assert lines(tape, number)[: len(told)] == told
    (lost,) = [e for e in tape if e["kind"] == "lost"]
    assert (lost["first_instruction"], lost["last_instruction"]) == (1, 2)
    after = await server.call("run", name=name, code="x")
    assert after["value"] == "'saved'"
    assert "lost" in after["note"]
    await finish(server, name)
