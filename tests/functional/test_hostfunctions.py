"""Code in a real machine waits for an answer: asleep, through the death of the server, and in a fork."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.real import until_gone
from kit.serverprocess import ServerProcess

pytestmark = pytest.mark.gvisor

CODE = """
import threading, time
kept, ticks = [1, 2, 3], 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
print("before")
def inner():
    return ask("what?", n=len(kept))
found = inner()
print("after")
time.sleep(0.1)
(found, kept, ask("more?"))
"""


async def until(server: ServerProcess, name: str, what: str, count: int = 1) -> list[dict[str, Any]]:
    """Entries of this kind, once there are as many."""
    async with asyncio.timeout(60):
        while True:
            found = [e for e in await server.call("tape", name=name) if what in (e["kind"], e.get("event"))]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)


async def test_a_function_asleep_while_it_waits_is_answered_after_the_sleep_and_after_kills(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    number, _ = await server.call("exec", name=name, code=CODE, functions=["ask"], timeout_seconds=5)
    (called,) = await until(server, name, "called")
    assert (called["function"], called["args"], called["kwargs"]) == ("ask", ["what?"], {"n": 3})
    await server.kill()  # awake, and waiting
    server = await ServerProcess(data).start()
    await server.call("hibernate", name=name)
    await server.call("fork", name=name, names=["copy"])
    await server.kill()  # asleep, and waiting
    server = await ServerProcess(data).start()
    await asyncio.sleep(0.2)
    await server.call("answer", name=name, instruction=number, call=0, value={"deep": ["thought", 42]})
    await until(server, name, "called", 2)
    await server.kill()  # awake again, and waiting for the second answer
    server = await ServerProcess(data).start()
    await server.call("answer", name=name, instruction=number, call=1, value="enough")
    ended = await server.call("result", name=name, instruction=number)
    assert (ended["end"], ended["value"]) == ("value", "({'deep': ['thought', 42]}, [1, 2, 3], 'enough')"), ended
    assert ended["runtime_ms"] < 5000
    tape = await server.call("tape", name=name)
    assert [line for e in tape if e["kind"] == "output" for line in e["lines"]] == ["before", "after"]
    assert (await server.call("run", name=name, code="before = ticks; time.sleep(0.2); ticks > before"))["value"] == "True"
    copied = await server.call("result", name="copy", instruction=number)
    assert copied["end"] == "cancelled"
    assert (await server.call("run", name="copy", code="kept"))["value"] == "[1, 2, 3]"
    for machine in (name, "copy"):
        await server.call("delete", name=machine)
    await server.stop()
    await until_gone(data)


async def test_an_interrupt_of_a_sleeping_instruction_frees_its_interpreter(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    number, _ = await server.call("exec", name=name, code="kept = 5\nask()", functions=["ask"])
    await until(server, name, "called")
    await server.call("hibernate", name=name)
    await server.call("interrupt", name=name)
    assert (await server.call("result", name=name, instruction=number))["end"] == "interrupted"
    assert (await server.call("run", name=name, code="kept"))["value"] == "5"
    await server.call("delete", name=name)
    await server.stop()
    await until_gone(data)


MANY = """
import asyncio, concurrent.futures, os
def call(n):
    return len(ask(n))
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    lengths = list(pool.map(call, range(24)))
if (pid := os.fork()) == 0:
    try: ask("child")
    except RuntimeError: os._exit(7)
(set(lengths), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


async def test_many_large_answers_reach_threads_and_an_interrupt_of_a_loop_keeps_the_interpreter(data: Path) -> None:
    server = await ServerProcess(data).start()
    name = (await server.call("create"))["record"]["name"]
    number, _ = await server.call("exec", name=name, code=MANY, functions=["ask"])
    answered: set[int] = set()
    while len(answered) < 24:
        for called in await until(server, name, "called", len(answered) + 1):
            if called["call"] not in answered:
                answered.add(called["call"])
                await server.call("answer", name=name, instruction=number, call=called["call"], value="x" * 900_000)
    ended = await server.call("result", name=name, instruction=number)
    assert ended["value"] == "({900000}, 7)", ended
    number, _ = await server.call("exec", name=name, code="async def main(): return ask()\nasyncio.run(main())", functions=["ask"])
    await until(server, name, "called", 25)
    await server.call("interrupt", name=name)
    assert (await server.call("result", name=name, instruction=number))["end"] == "interrupted"
    assert (await server.call("run", name=name, code="len(lengths)"))["value"] == "24"
    await server.call("delete", name=name)
    await server.stop()
    await until_gone(data)
