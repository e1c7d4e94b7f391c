"""The server, the warden, and then both are killed in the middle of an instruction that prints a line every 20 ms."""

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
from everforge.wire.events import Output
from kit.real import LINGER_SECONDS, TESTED, give_template, sandboxes_of, until_gone
from kit.serverprocess import ServerProcess

pytestmark = pytest.mark.gvisor

LINES = 100
KILLS = 3
ENDLESS = "import itertools, time\nfor i in itertools.count():\n    print('line', i)\n    time.sleep(0.02)"


def printer(lines: int) -> str:
    return f"import time\nfor i in range({lines}):\n    print('line', i)\n    time.sleep(0.02)\n'done'"


def lines(tape: list[dict[str, Any]], instruction: int) -> list[str]:
    return [line for e in tape if e["kind"] == "output" and e["instruction"] == instruction for line in e["lines"]]


def ends(tape: list[dict[str, Any]], instruction: int) -> list[dict[str, Any]]:
    return [e for e in tape if e["kind"] == "ended" and e["instruction"] == instruction]


async def printing(server: ServerProcess, name: str, code: str = printer(LINES)) -> int:
    """Starts the printer and returns when some of its lines are on the tape."""
    number, _ = await server.call("exec", name=name, code=code, timeout_seconds=600)
    await more_lines(server, name, number)
    return number


async def more_lines(server: ServerProcess, name: str, number: int, more: int = 10) -> None:
    """Returns in the middle of it: lines have come, and its end has not."""
    before = len(lines(await server.call("tape", name=name), number))
    async with asyncio.timeout(30):
        while len(lines(tape := await server.call("tape", name=name), number)) < before + more:
            assert not ends(tape, number), "it ended before anything was killed"
            await asyncio.sleep(0.01)


def check_every_line_once(tape: list[dict[str, Any]], number: int, count: int = LINES, how: tuple[str, str | None] = ("value", "'done'")) -> None:
    """And its one end, after them; numbered without a gap."""
    assert lines(tape, number) == [f"line {i}" for i in range(count)]
    outputs = [e for e in tape if e["kind"] == "output" and e["instruction"] == number]
    assert [n for e in outputs for n in range(e["first_seq"], e["first_seq"] + len(e["lines"]))] == list(range(count))
    (end,) = ends(tape, number)
    assert (end["end"], end["value"]) == how
    assert end["position"] > outputs[-1]["position"]
    positions = [e["position"] for e in tape]
    assert positions == sorted(set(positions))


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
    await server.call("result", name=name, instruction=number)
    check_every_line_once(await server.call("tape", name=name), number)
    assert (await server.call("run", name=name, code="x"))["value"] == "1"
    await finish(server, name)


async def test_a_server_killed_again_and_again_loses_nothing(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    number = await printing(server, name, ENDLESS)
    for _ in range(KILLS):
        await server.kill()
        server = await ServerProcess(data).start()
        await more_lines(server, name, number)
    await server.call("interrupt", name=name)
    await server.call("result", name=name, instruction=number)
    tape = await server.call("tape", name=name)
    printed = int((await server.call("run", name=name, code="i"))["value"])  # the last line, or the one that it was about to print
    assert len(lines(tape, number)) in (printed, printed + 1)
    check_every_line_once(tape, number, len(lines(tape, number)), ("interrupted", None))
    await finish(server, name)


async def test_a_killed_warden_is_replaced_and_the_machine_goes_on(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    await server.call("run", name=name, code="x = 1")
    number = await printing(server, name)
    before = await server.call("warden")
    os.kill(before, signal.SIGKILL)
    await more_lines(server, name, number)
    await server.call("result", name=name, instruction=number)
    check_every_line_once(await server.call("tape", name=name), number)
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


async def test_an_orderly_stop_ends_nothing_that_runs_and_a_caretaker_hibernates_the_machine_when_it_has_ended(data: Path) -> None:
    give_template(data)
    settings = replace(TESTED, stop_grace_seconds=0.2, save_retry_seconds=1.0)
    machines, folder = await open_machines(data, settings, warden_linger_seconds=LINGER_SECONDS)
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "import time; x = 0")
    number, _ = await machines.exec(name, "for x in range(1, 41): print(x); time.sleep(0.1)", timeout_seconds=60)
    async for event in machines.read(name, follow=True):
        if isinstance(event, Output):
            break
    await close_machines(machines, folder)
    assert sandboxes_of(data), "the machine was not left awake"
    await until_gone(data, seconds=90)
    machines, folder = await open_machines(data, TESTED, warden_linger_seconds=LINGER_SECONDS)
    assert (await machines.get(name)).state == "asleep"
    assert (await machines.result(name, number)).end == "value"
    assert [line async for e in machines.read(name) if isinstance(e, Output) for line in e.lines] == [str(n) for n in range(1, 41)]
    assert (await machines.run(name, "x")).value == "40"
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
    sandbox = (await server.call("get", name=name))["record"]["sandbox"]
    warden = await server.call("warden")
    await server.kill()  # first: it would put another warden in the place of a dead one
    os.kill(warden, signal.SIGKILL)
    server = await ServerProcess(data).start()
    tape = await server.call("tape", name=name)
    assert [e["end"] for e in ends(tape, number)] == ["lost"]
    assert lines(tape, number)[: len(told)] == told
    (lost,) = [e for e in tape if e["kind"] == "lost"]
    assert (lost["first_instruction"], lost["last_instruction"]) == (1, 2)
    assert lost["snapshot"] == (await server.call("get", name=name))["record"]["head"]
    assert not [c for c in sandboxes_of(data).values() if sandbox in c], "what is lost still runs"
    after = await server.call("run", name=name, code="x")
    assert after["value"] == "'saved'"
    assert "lost" in after["note"]
    await finish(server, name)
