"""An instruction that is sent again is accepted once and executed at most once, wherever the server died; and a machine lives at most once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.real import sandboxes_of, until_gone
from kit.serverprocess import Died, ServerProcess, check_nothing_leaked

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

NAME = "once"
STEPS = ["1:after record accept", "1:after run", "1:before record end", "1:after record end"]


async def send(server: ServerProcess, number: int) -> Any:
    """As a client does that was cut off: the same again, under the same key."""
    code = f"done = [*globals().get('done', []), {number}]"
    instruction, _ = await server.call("exec", name=NAME, code=code, key=f"key-{number}")
    return await server.call("result", name=NAME, instruction=instruction)


async def test_an_instruction_that_is_sent_again_after_the_server_died_at_any_step_of_it_is_executed_once(data: Path) -> None:
    server, following = await ServerProcess(data).start(), await ServerProcess(data).spawn()
    await server.call("create", name=NAME)
    await server.call("run", name=NAME, code="1")
    for number, step in enumerate(STEPS):
        await server.call("kill_at", step=step, seconds=0.0, whom="server")
        with pytest.raises(Died):
            await send(server, number)
        await server.wait_dead()
        server, following = await following.start(), await ServerProcess(data).spawn()
        first, second = await send(server, number), await send(server, number)
        assert first == second, step
        assert first["end"] == "value"
        assert (await server.call("run", name=NAME, code="done"))["value"] == repr(list(range(number + 1))), step
    keys = [e["key"] for e in await server.call("tape", name=NAME) if e["kind"] == "accepted" and e["key"]]
    assert keys == [f"key-{number}" for number in range(len(STEPS))]
    await following.kill()
    await end(server, data)


async def test_a_second_server_is_refused_the_folder_of_the_first_and_takes_nothing_from_it(data: Path) -> None:
    server = await ServerProcess(data).start()
    await server.call("create", name=NAME)
    await server.call("run", name=NAME, code="x = 1")
    living = sandboxes_of(data)
    with pytest.raises(Died, match="DataFolderBusy"):
        await ServerProcess(data).start()
    assert living.items() <= sandboxes_of(data).items()  # others may have been made ahead meanwhile
    assert (await server.call("run", name=NAME, code="x"))["value"] == "1"
    await end(server, data)


async def end(server: ServerProcess, data: Path) -> None:
    await check_nothing_leaked(server)
    await server.call("delete", name=NAME)
    await server.stop()
    await until_gone(data)
