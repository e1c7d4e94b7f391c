"""Each conversation keeps its machine, and what is remembered of that is at the server alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from everforge import AsyncEverforge
from everforge.mcp.conversations import TAG, Conversations
from kit.mcpserving import ERAS, data_of, text_of

from .conftest import Connect, connector


@pytest.fixture
def connect(home: Path) -> Connect:
    """One era will do for all but the first test."""
    return connector("auto")


async def machine_of(connect: Connect, **settings: object) -> str:
    async with connect(**settings) as client:
        return data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]


@pytest.mark.parametrize("era", ERAS)
async def test_who_comes_back_finds_the_machine_and_another_client_gets_its_own(era: str, user: Path) -> None:
    connect = connector(era)
    first = await machine_of(connect)
    assert await machine_of(connect) == first
    assert await machine_of(connect, name="another client") != first


async def test_another_folder_is_another_conversation(connect: Connect, user: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = await machine_of(connect)
    monkeypatch.chdir(tmp_path)
    assert await machine_of(connect) != first


async def test_a_conversation_with_a_name_is_the_same_for_all(connect: Connect, user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await machine_of(connect, conversation="thesis")
    monkeypatch.chdir(tmp_path)
    assert await machine_of(connect, name="another client", conversation="thesis") == first


async def test_calls_that_come_at_once_make_one_machine(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    async with connect() as client:
        results = await asyncio.gather(*(client.call_tool("run_python", {"code": "1"}) for _ in range(5)))
    assert len({data_of(result)["machine"] for result in results}) == 1
    assert len([found async for found in forge.machines()]) == 1


async def test_of_several_machines_with_its_tag_the_oldest_is_the_conversations(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    """As when two programs made one at the same time: from then on both must find the same."""
    async with connect() as client:
        oldest = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
        tags = (await forge.machine(oldest).info()).tags
        for name in ("zzz", "aaa"):  # so that neither end of the alphabet is right by chance
            await forge.create(name, tags=tags)
        assert data_of(await client.call_tool("run_python", {"code": "2"}))["machine"] == oldest
        assert data_of(await client.call_tool("list_files", {}))["machine"] == oldest, "who only looks finds it, too"
    assert await machine_of(connect) == oldest
    await forge.machine(oldest).delete()
    assert await machine_of(connect) == "zzz"


async def test_the_tag_is_a_hash_that_tells_nobody_the_folder(user: Path, forge: AsyncEverforge) -> None:
    name = await machine_of(connector("auto"))
    tag = (await forge.machine(name).info()).tags[TAG]
    assert len(tag) == 24
    assert int(tag, 16) >= 0


async def test_a_machine_that_was_deleted_is_replaced_and_that_is_said(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    async with connect() as client:
        gone = data_of(await client.call_tool("run_python", {"code": "x = 1"}))["machine"]
        await forge.machine(gone).delete()
        result = await client.call_tool("run_python", {"code": "2"})
    assert f"The machine {gone} of this conversation was deleted: its variables and files are gone" in text_of(result)
    assert data_of(result)["machine"] != gone


async def test_a_pinned_machine_is_used_made_and_made_again(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    async with connect(machine="pinned") as client:
        assert data_of(await client.call_tool("run_python", {"code": "x = 1"}))["machine"] == "pinned"
        assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == "1"
        await forge.machine("pinned").delete()
        again = await client.call_tool("run_python", {"code": "1"})
        assert (data_of(again)["machine"], "was deleted" in text_of(again)) == ("pinned", True)
        await client.call_tool("new_machine", {"name": "other"})
        await client.call_tool("use_machine", {"machine": "other"})
        assert data_of(await client.call_tool("run_python", {"code": "1"}))["machine"] == "other"


async def test_using_another_machine_holds_for_the_next_connection_and_keeps_other_tags(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    await forge.create("other", tags={"project": "x"})
    async with connect() as client:
        first = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
        data_of(await client.call_tool("use_machine", {"machine": "other"}))
        missing = await client.call_tool("use_machine", {"machine": "nobody"})
        assert text_of(missing).startswith("MachineNotFound: ")
    assert await machine_of(connect) == "other"
    assert TAG not in (await forge.machine(first).info()).tags
    assert (await forge.machine("other").info()).tags["project"] == "x"


async def test_a_fork_is_not_taken_for_the_conversations_machine(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    async with connect() as client:
        first = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
        await client.call_tool("fork_machine", {"name": "copy"})
        await forge.machine(first).delete()
        assert data_of(await client.call_tool("run_python", {"code": "1"}))["machine"] not in (first, "copy")


async def test_without_a_server_the_tools_say_what_to_do(home: Path, connect: Connect) -> None:
    async with connect() as client:
        assert len((await client.list_tools()).tools) > 10
        result = await client.call_tool("run_python", {"code": "1"})
    assert result.is_error
    assert text_of(result).startswith("ServerUnknown: ")
    assert "`everforge serve` starts a server" in text_of(result)


async def test_a_server_that_is_gone_and_a_token_that_is_none_are_told_apart(
    home: Path, user: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERFORGE_TOKEN", "ef-nobody")
    async with connect() as client:
        assert text_of(await client.call_tool("run_python", {"code": "1"})).startswith("Unauthenticated: ")
        monkeypatch.setenv("EVERFORGE_URL", "http://127.0.0.1:9")
        gone = await client.call_tool("run_python", {"code": "1"})
    assert text_of(gone).startswith("Unreachable: ")
    assert "Trying again in a while may help." in text_of(gone)


@pytest.mark.parametrize("said", [b"<html>another program</html>", b'{"name": 5}', b"[" * 100_000, b"\xff"], ids=["page", "other", "deep", "bytes"])
async def test_something_else_at_the_servers_address_is_for_a_person_to_mend(
    said: bytes, home: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        monkeypatch.setenv("EVERFORGE_URL", f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}")
        monkeypatch.setenv("EVERFORGE_TOKEN", "ef-any")
        async with connect() as client:
            result = await client.call_tool("run_python", {"code": "1"})
    assert result.is_error
    assert text_of(result).startswith("VersionMismatch: ")
    assert "tell the person you work for" in text_of(result)


async def test_a_server_that_came_later_is_found(server: object, home: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connect() as client:
        assert (await client.call_tool("run_python", {"code": "1"})).is_error
        folder = home / "config" / "everforge"
        folder.mkdir(parents=True)
        config = folder / "config.json"
        config.write_text(json.dumps({"token": server.token, "server_url": server.url}))  # pyright: ignore[reportAttributeAccessIssue]
        config.chmod(0o600)
        assert data_of(await client.call_tool("run_python", {"code": "1"}))["value"] == "1"


def test_what_is_forgotten_here_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.conversations.CONVERSATIONS_MAX", 2)
    known = Conversations()
    first = known.of("me", "1")
    assert known.of("me", "1") is first
    assert known.of("you", "1") is not first
    known.of("me", "1")
    known.of("me", "2")
    assert known.of("me", "1") is first
    assert len(known._known) == 2
