"""What a program does with machines, by both clients against a whole server on the fake engine."""

from __future__ import annotations

import asyncio
import math

import httpx
import pytest
from websockets.asyncio.client import connect

import everforge
from everforge.wire.errors import (
    ConfigurationBad,
    Forbidden,
    InstructionFailed,
    InstructionNotFound,
    InvalidInput,
    MachineNotFound,
    NameTaken,
    RouteNotFound,
    StillRunning,
    Unauthenticated,
    Unreachable,
    VersionMismatch,
)
from kit.service import Running
from kit.twins import KINDS, connected

Client = everforge.AsyncEverforge


async def test_a_machine_is_created_runs_code_and_remembers(client: Client) -> None:
    machine = await client.create("first", tags={"kind": "test"})
    assert (await machine.run("x = 20")).value is None
    result = await machine.run("print('hello'); tell('oh', stream='stderr'); x + 22")
    assert (result.value, result.stdout, result.stderr, result.end, result.ok) == ("42", "hello\n", "oh\n", "value", True)
    assert (await client.machine("first").info()).tags == {"kind": "test"}
    assert await client.whoami() == (await client.account()).account


async def test_the_codes_own_exception_is_a_result(client: Client) -> None:
    machine = await client.create()
    result = await machine.run("1/0")
    assert (result.end, result.ok, result.value) == ("error", False, None)
    assert "ZeroDivisionError" in (result.error or "")
    with pytest.raises(InstructionFailed, match="ZeroDivisionError"):
        result.raise_for_error()


async def test_lines_and_displays_are_told_as_they_come(client: Client) -> None:
    machine = await client.create()
    out: list[everforge.Line] = []
    err: list[everforge.Line] = []
    shown: list[everforge.Display] = []
    code = "print('a'); tell('b', stream='stderr'); tell('50%', partial=True); show({'text': 'a picture', 'png': 'aGk='})"
    result = await machine.run(code, on_stdout=out.append, on_stderr=err.append, on_display=shown.append)
    assert (out, err) == (["a", "50%"], ["b"])
    assert [line.end for line in out] == ["\n", ""]
    assert [display.png for display in shown] == [b"hi"]
    assert [display.data for display in result.displays] == [shown[0].data]


async def test_a_stream_gives_lines_and_raises_at_a_bad_end(client: Client) -> None:
    machine = await client.create()
    assert [line async for line in machine.stream("print(1); print(2)")] == ["1", "2"]
    lines: list[str] = []
    with pytest.raises(InstructionFailed):
        async for line in machine.stream("print(3); 1/0"):
            lines.append(line)
    assert lines == ["3"]


async def test_an_instruction_can_be_left_and_found_again(client: Client) -> None:
    machine = await client.create()
    first = await machine.exec("print('mine'); 7")
    assert (await first.result()).value == "7"
    again = client.machine(machine.name).instruction(first.number)
    assert (await again.result()).stdout == "mine\n"
    assert (await again.info()).state == "ended"
    assert [line async for line in again.stream()] == ["mine"]


async def test_an_instruction_that_takes_longer_than_the_caller_has_goes_on(client: Client) -> None:
    machine = await client.create()
    instruction = await machine.exec("hang()", timeout_seconds=60)
    with pytest.raises(StillRunning, match="goes on"):
        await instruction.result(wait_seconds=0.2)
    with pytest.raises(TimeoutError):
        await instruction.result(wait_seconds=0.05)
    assert await instruction.interrupt()
    assert (await instruction.result()).end == "interrupted"
    assert not await instruction.interrupt()


async def test_one_instruction_is_interrupted_and_no_other(client: Client) -> None:
    machine = await client.create()
    running, waiting, last = [await machine.exec(code, timeout_seconds=60) for code in ("hang()", "2", "3")]
    assert await waiting.interrupt()
    assert (await running.info()).state != "ended"
    assert await running.interrupt()
    assert [(await one.result()).end for one in (running, waiting, last)] == ["interrupted", "interrupted", "value"]
    assert not await last.interrupt()
    with pytest.raises(InstructionNotFound):
        await machine.instruction(7).interrupt()


async def test_who_interrupts_twice_insists(client: Client) -> None:
    machine = await client.create()
    await machine.run("x = 1")
    instruction = await machine.exec("endure()", timeout_seconds=60)
    assert await instruction.interrupt()
    with pytest.raises(StillRunning):
        await instruction.result(wait_seconds=0.3)
    assert await instruction.interrupt()
    assert (await instruction.result()).end == "interrupted"
    assert "NameError" in ((await machine.run("x")).error or "")


async def test_interrupting_a_machine_ends_what_runs(client: Client) -> None:
    machine = await client.create()
    running, waiting = await machine.exec("hang()", timeout_seconds=60), await machine.exec("2")
    assert await machine.interrupt(pending=True)
    assert [(await one.result()).end for one in (running, waiting)] == ["interrupted", "interrupted"]
    assert not await machine.interrupt()


async def test_machines_are_listed_page_by_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"everforge.client.{module}.client.MACHINES_A_PAGE", 2)
    for i in range(5):
        await client.create(f"m{i}", tags={"odd": str(i % 2)})
    assert [found.name async for found in client.machines()] == ["m4", "m3", "m2", "m1", "m0"]
    assert [found.name async for found in client.machines(tags={"odd": "1"})] == ["m3", "m1"]
    assert [found.name async for found in client.machines(prefix="m4")] == ["m4"]


async def test_instructions_and_the_tape_are_read_page_by_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"everforge.client.{module}.machine.INSTRUCTIONS_A_PAGE", 2)
    machine = await client.create()
    for i in range(5):
        await machine.run(f"print({i})")
    assert [found.instruction_seq async for found in machine.instructions()] == [0, 1, 2, 3, 4]
    entries = [entry async for entry in machine.tape()]
    assert [line for entry in entries if entry["type"] == "output" for line in entry["lines"]] == ["0", "1", "2", "3", "4"]
    assert [entry["position"] for entry in entries] == sorted({entry["position"] for entry in entries})
    middle = entries[len(entries) // 2]["cursor"]
    assert [entry async for entry in machine.tape(after=middle)] == [entry for entry in entries if entry["position"] > middle]


async def test_a_followed_tape_ends_with_its_machine(client: Client) -> None:
    machine = await client.create()
    await machine.run("print('last words')")
    kinds: list[str] = []
    async for entry in machine.tape(follow=True):
        kinds.append(entry["type"])
        if entry["type"] == "ended":
            await machine.delete()
    assert {"accepted", "output", "ended"} <= set(kinds)
    with pytest.raises(MachineNotFound):
        await machine.info()


async def test_a_machine_sleeps_wakes_forks_and_goes_back(client: Client) -> None:
    machine = await client.create(history="each")
    await machine.run("x = 1")
    point = await machine.snapshot("good")
    assert (await machine.hibernate()).state == "asleep"
    assert (await machine.wake()).state == "ready"
    fork = await machine.fork("copy")
    await machine.run("x = 2")
    assert (await fork.run("x")).value == "1"
    assert [one.name for one in await machine.forks(names=["a", "b"])] == ["a", "b"]
    back = await machine.rollback("good")
    assert back.snapshot.id == point.id
    assert (await machine.run("x")).value == "1"
    await machine.rollback(back.undo)
    assert (await machine.run("x")).value == "2"
    assert "good" in [found.name for found in await machine.snapshots()]
    assert await machine.reset() is not None
    assert (await machine.rollback("good", discard=True)).undo is None
    assert await machine.reset(discard=True) is None
    assert (await machine.run("x")).end == "error"


async def test_a_machine_can_be_changed(client: Client) -> None:
    machine = await client.create(expires_at="2999-01-01T00:00:00Z")
    assert ((await machine.info()).expires_at or "").startswith("2999-01-01T00:00:00")
    changed = await machine.update(tags={"a": "b"}, idle_seconds=7, metadata={"n": 1}, expires_at="never")
    assert (changed.tags, changed.idle_seconds, changed.metadata, changed.expires_at) == ({"a": "b"}, 7, {"n": 1}, None)


async def test_tokens_are_made_listed_and_revoked(client: Client, server: Running) -> None:
    made = await client.tokens.create("robot", scopes=["read"])
    assert made.id in [token.id for token in await client.tokens.list()]
    async with connected("async", server.url, made.token) as robot:
        assert await robot.whoami() == await client.whoami()
        with pytest.raises(Forbidden):
            await robot.create()
        await client.tokens.revoke(made.id)
        with pytest.raises(Unauthenticated, match="does not know this token"):
            await robot.whoami()


async def test_an_account_knows_what_it_uses(client: Client) -> None:
    machine = await client.create()
    await machine.run("1")
    used = await client.usage()
    assert (used.machines, used.instructions) == (1, 1)


async def test_a_machine_can_begin_as_a_point_of_another(client: Client) -> None:
    source = await client.create()
    await source.run("x = 1")
    await source.snapshot("early")
    await source.run("x = 2")
    made = await client.create(from_snapshot=(source.name, "early"))
    assert (await made.run("x")).value == "1"


async def test_refusals_are_errors_of_the_one_tree(client: Client) -> None:
    await client.create("taken")
    with pytest.raises(NameTaken):
        await client.create("taken")
    with pytest.raises(InvalidInput, match="Not A Name"):
        await client.create("Not A Name")
    with pytest.raises(MachineNotFound):
        await client.machine("nobody").run("1")
    with pytest.raises(InvalidInput, match="JSON"):
        await client.create(metadata={"x": object()})


@pytest.mark.parametrize("name", ["..", "", ".", "a/b", "list", "a?b", "A", "ü", 3, None])
async def test_what_is_no_machines_name_goes_into_no_address(client: Client, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a machine name"):
        client.machine(name)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_is_not_there_is_said_in_one_sentence(kind: str) -> None:
    listener = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    listener.close()
    await listener.wait_closed()
    async with connected(kind, url, "a.b") as client:
        for attempt in (client.whoami(), client.machine("x").run("1"), client.machine("x").repl().ping()):
            with pytest.raises(Unreachable, match=f"no server answers at {url}.*everforge serve"):
                await attempt


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", [".".join(["nowhere" * 8] * 5), "nowhere..invalid", "n" * 64])
async def test_a_name_that_can_be_none_is_nobodys(kind: str, host: str) -> None:
    """Nobody is asked for such a name."""
    async with connected(kind, f"http://{host}", "a.b") as client:
        for attempt in (client.whoami(), client.machine("x").run("1"), client.machine("x").repl().ping()):
            with pytest.raises(Unreachable, match=f"no server answers at http://{host} .there is no computer of that name"):
                await attempt


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["404 Not Found", "200 OK", "301 Moved", "500 Oh"])
@pytest.mark.parametrize("body", [b"<html>", b"{}", b"", b'{"account": "me"}'])
async def test_what_is_no_server_of_ours_is_told_apart(kind: str, status: str, body: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status.encode(), len(body), body))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        async with connected(kind, url, "a.b") as client:
            for attempt in (client.whoami(), client.machine("x").info(), client.machine("x").repl().ping()):
                with pytest.raises(VersionMismatch, match=f"{url} is not an Everforge server.*: check the address"):
                    await attempt


async def test_every_answer_of_a_server_says_what_it_is(server: Running) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers=server.headers) as http:
        made = (await http.post("/v1/machine/new", json={})).json()["machine_name"]
        number = (await http.post(f"/v1/machine/{made}/exec", json={"instruction": {"code": "1"}})).json()["instruction_seq"]
        exec_path = f"/v1/machine/{made}/exec/{number}"
        for path in (
            "/v1/whoami",
            "/v1/machine/list",
            f"{exec_path}/result",
            f"{exec_path}/stream-result",
            "/healthz",
            "/metrics",
            "/openapi.json",
            "/no",
        ):
            assert (await http.get(path)).headers.get("x-everforge-version") == everforge.__version__, path
    async with connect(f"{server.ws}/v1/machine/{made}/repl", additional_headers=server.headers) as socket:
        assert socket.response is not None
        assert socket.response.headers.get("x-everforge-version") == everforge.__version__


@pytest.mark.parametrize("cpus", [math.inf, -math.inf, math.nan])
async def test_a_number_that_is_none_is_refused_by_its_name(client: Client, cpus: float) -> None:
    with pytest.raises(InvalidInput, match=f"cpus must be a number that can be written out, not {cpus}"):
        await client.create(cpus=cpus)


async def test_a_request_that_a_server_of_this_very_version_does_not_know_is_just_that(client: Client, server: Running) -> None:
    with pytest.raises(RouteNotFound):
        await client.tokens.revoke("a/b")


def test_without_a_server_or_a_token_the_client_says_so_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in ("EVERFORGE_TOKEN", "EVERFORGE_URL", "FOREVERVM_TOKEN", "FOREVERVM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/config")
    monkeypatch.setenv("EVERFORGE_DATA", f"{tmp_path}/data")
    for cls in (everforge.Everforge, everforge.AsyncEverforge):
        with pytest.raises(ConfigurationBad, match="everforge serve"):
            cls()
