from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import BlobResourceContents, ResourceTemplateReference, TextResourceContents

from everforge import AsyncEverforge

from .conftest import Connect


async def text(client: Client, uri: str) -> TextResourceContents:
    [found] = (await client.read_resource(uri)).contents
    assert isinstance(found, TextResourceContents)
    return found


async def test_machines_their_files_and_their_tapes_can_be_read(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    machine = await forge.create("one", tags={"project": "x"})
    await machine.run("print('hello')")
    await machine.files.write("data/a b.csv", "a,b\n")
    await machine.files.write("raw.bin", bytes(range(256)))
    async with connect() as client:
        listed = {str(found.uri) for found in (await client.list_resources()).resources}
        assert listed == {"everforge://machines", "everforge://machine/one/tape"}
        templates = [found.uri_template for found in (await client.list_resource_templates()).resource_templates]
        assert templates == ["everforge://machine/{name}/files/{+path}", "everforge://machine/{name}/tape{?after}"]
        machines = json.loads((await text(client, "everforge://machines")).text)
        assert [(found["name"], found["tags"]) for found in machines] == [("one", {"project": "x"})]
        file = await text(client, "everforge://machine/one/files/data/a%20b.csv")
        assert (file.text, file.mime_type) == ("a,b\n", "text/csv")
        [raw] = (await client.read_resource("everforge://machine/one/files/raw.bin")).contents
        assert isinstance(raw, BlobResourceContents)
        tape = [json.loads(line) for line in (await text(client, "everforge://machine/one/tape")).text.splitlines()]
        assert ["hello"] in [entry.get("lines") for entry in tape]
        rest = await text(client, f"everforge://machine/one/tape?after={tape[0]['cursor']}")
        assert [json.loads(line) for line in rest.text.splitlines()] == tape[1:]


async def test_a_long_tape_gives_its_last_entries(client: Client, forge: AsyncEverforge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.resources.TAPE_ENTRIES", 3)
    machine = await forge.create("one")
    for number in range(10):
        await machine.run(str(number))
    tape = [json.loads(line) for line in (await text(client, "everforge://machine/one/tape")).text.splitlines()]
    assert len(tape) == 3
    assert tape[-1]["value"] == "9"


async def test_what_cannot_be_read_is_an_error_of_the_protocol_that_says_why(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    machine = await forge.create("one")
    await machine.files.write("large", b"x" * 1_000_001)
    async with connect() as client:
        for uri, told in (
            ("everforge://machine/nobody/tape", "MachineNotFound"),
            ("everforge://machine/one/files/nothing", "FileNotFound"),
            ("everforge://machine/one/files/large", "TooLarge"),
            ("everforge://machine/one/tape?after=x", "no position"),
            ("everforge://machine/..%2f..%2faccount/tape", "InvalidInput"),
            ("everforge://elsewhere", "there is no resource"),
            ("file:///etc/passwd", "there is no resource"),
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert told in refused.value.error.message, uri
            assert refused.value.error.code == -32602


async def test_names_of_machines_are_completed(connect: Connect, user: Path, forge: AsyncEverforge) -> None:
    for name in ("alpha", "alps", "beta"):
        await forge.create(name)
    template = ResourceTemplateReference(type="ref/resource", uri="everforge://machine/{name}/tape{?after}")
    async with connect() as client:
        found = await client.complete(template, {"name": "name", "value": "al"})
        assert sorted(found.completion.values) == ["alpha", "alps"]
        assert (await client.complete(template, {"name": "after", "value": "1"})).completion.values == []


async def test_without_a_server_it_is_said_and_a_cursor_is_refused(home: Path, connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError, match="ServerUnknown") as refused:
            await client.list_resources()
        assert refused.value.error.code == -32000
        with pytest.raises(MCPError, match="one page only"):
            await client.list_tools(cursor="2")
