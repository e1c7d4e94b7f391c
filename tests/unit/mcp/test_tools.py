"""Every tool, called by the official client."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import Tool

from everforge import AsyncEverforge
from everforge.mcp import clients
from everforge.mcp.pictures import BEGINNINGS
from everforge.mcp.tools import tools_of
from everforge.mcp.tools.egress import Attempt, _remedy
from kit.mcpserving import data_of, images_of, text_of, until

from .conftest import Connect

PNG = BEGINNINGS["image/png"] + b"rest"
# readOnly, destructive, idempotent, openWorld
HINTS = {
    "run_python": (False, True, False, True), "read_output": (True, False, True, False), "interrupt": (False, True, False, False),
    "install_packages": (False, False, True, True), "list_files": (True, False, True, False), "read_file": (True, False, True, False),
    "write_file": (False, True, True, False), "list_machines": (True, False, True, False), "new_machine": (False, False, False, False),
    "use_machine": (False, False, True, False), "fork_machine": (False, False, False, False), "snapshot_machine": (False, False, False, False),
    "list_snapshots": (True, False, True, False), "rollback_machine": (False, True, False, False), "reset_machine": (False, True, False, False),
    "delete_machine": (False, True, False, False), "show_egress_refusals": (True, False, True, False),
    "create-python-repl": (False, False, False, False), "run-python-in-repl": (False, True, False, True),
}  # fmt: skip


def hints_of(tool: Tool) -> tuple[bool | None, ...]:
    assert tool.annotations is not None
    found = tool.annotations
    return found.read_only_hint, found.destructive_hint, found.idempotent_hint, found.open_world_hint


async def test_the_list_has_them_all_with_their_hints_and_schemas(connect: Connect, user: Path) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions is not None
        assert "run_python" in client.instructions
    assert {name: hints_of(tool) for name, tool in tools.items()} == HINTS
    for name, tool in tools.items():
        assert tool.input_schema.get("additionalProperties") is (None if "-" in name else False)
        assert tool.title
        assert tool.description
        assert "-" in name or (tool.output_schema is not None and "Example" in tool.description)
    assert tools["run_python"].input_schema["required"] == ["code"]
    assert tools["run-python-in-repl"].input_schema["required"] == ["pythonCode", "replId"]


async def test_no_description_names_a_tool_that_is_not_there() -> None:
    known = tools_of(sharing=True)
    for tool in known.values():
        named = set(
            re.findall(r"\b(?:run|read|list|use|new|fork|delete|install|show|write|rollback|reset|snapshot)_\w+\b", tool.listed().description or "")
        )
        assert named - {"read_csv"} <= {*known}, tool.name


async def test_python_runs_and_what_it_defines_stays(connect: Connect, user: Path) -> None:
    async with connect() as client:
        first = await client.call_tool("run_python", {"code": "print('hello')\nx = 6"})
        second = await client.call_tool("run_python", {"code": "x * 7"})
    assert "got a new machine" in data_of(first)["note"]
    assert data_of(first) | {"note": None} == {
        "machine": data_of(second)["machine"], "instruction": 0, "end": "value", "value": None, "stdout": "hello\n", "stderr": "", "shown": [],
        "pictures": 0, "error": None, "traceback": None, "runtime_ms": data_of(first)["runtime_ms"], "note": None,
    }  # fmt: skip
    assert (data_of(second)["value"], data_of(second)["instruction"], data_of(second)["note"]) == ("42", 1, None)
    assert text_of(second).startswith("42\n[machine ")


async def test_an_exception_is_an_error_with_what_was_printed_before_it(client: Client) -> None:
    result = await client.call_tool("run_python", {"code": "print('so far')\n1 / 0"})
    assert result.is_error
    assert text_of(result).startswith("so far\nZeroDivisionError: division by zero\n")
    assert result.structured_content["end"] == "error"


async def test_pictures_come_as_images_and_tables_as_text(connect: Connect, user: Path) -> None:
    encoded = base64.b64encode(PNG).decode()
    async with connect() as client:
        result = await client.call_tool("run_python", {"code": f"show({{'png': {encoded!r}}})\nshow({{'text': 'a b', 'html': '<table>'}})\n'done'"})
    assert [(image.mime_type, base64.b64decode(image.data)) for image in images_of(result)] == [("image/png", PNG)]
    assert (data_of(result)["pictures"], data_of(result)["shown"], data_of(result)["value"]) == (1, ["a b"], "'done'")
    assert "<table>" not in text_of(result)


async def test_long_output_is_cut_and_the_rest_can_be_read_as_it_says(client: Client) -> None:
    result = await client.call_tool("run_python", {"code": "for i in range(20000): print('line', i)"})
    whole = "".join(f"line {i}\n" for i in range(20000))
    data = data_of(result)
    assert len(data["stdout"]) < 16_000
    assert data["stdout"].startswith("line 0\n")
    assert data["stdout"].endswith("line 19999\n")
    offset = int(data["stdout"].split("offset=")[1].split(")")[0])
    assert whole.startswith(data["stdout"][:offset])
    first = data_of(await client.call_tool("read_output", {"instruction": 0, "offset": offset, "characters": 100_000}))
    last = data_of(await client.call_tool("read_output", {"instruction": 0, "offset": first["next_offset"], "characters": 100_000}))
    assert whole[:offset] + first["text"] + last["text"][: len(whole)] == whole[: first["next_offset"] + 100_000]
    assert (first["end"], last["end"]) == ("unknown", "unknown" if last["next_offset"] else "value")
    end = data_of(await client.call_tool("read_output", {"instruction": 0, "offset": len(whole) - 10, "characters": 100}))
    assert (end["text"], end["end"], end["next_offset"]) == (whole[-10:], "value", None)


async def test_a_value_and_an_error_can_be_read_in_full_too(client: Client) -> None:
    result = data_of(await client.call_tool("run_python", {"code": "'v' * 50000"}))
    assert "characters left out" in result["value"]
    value = data_of(await client.call_tool("read_output", {"instruction": 0, "stream": "value", "characters": 100_000}))
    assert value["text"] == repr("v" * 50000)
    await client.call_tool("run_python", {"code": "raise ValueError('why')"})
    error = data_of(await client.call_tool("read_output", {"instruction": 1, "stream": "traceback"}))
    assert (error["text"], error["end"]) == ("ValueError: why", "error")
    missing = await client.call_tool("read_output", {"instruction": 99})
    assert text_of(missing).startswith("InstructionNotFound: ")


async def test_who_does_not_wait_reads_on_later_and_can_interrupt(client: Client) -> None:
    running = data_of(await client.call_tool("run_python", {"code": "tell('begun')\nhang()", "wait_seconds": 0.5}))
    assert (running["end"], running["stdout"]) == ("running", "begun\n")
    read = data_of(await client.call_tool("read_output", {"instruction": 0, "wait_seconds": 0.2}))
    assert (read["text"], read["end"], read["next_offset"]) == ("begun\n", "running", 6)
    assert data_of(await client.call_tool("interrupt", {}))["interrupted"] is True
    ended = await client.call_tool("read_output", {"instruction": 0, "offset": 6, "wait_seconds": 20})
    assert (data_of(ended)["end"], data_of(ended)["next_offset"]) == ("interrupted", None)
    assert data_of(await client.call_tool("interrupt", {}))["interrupted"] is False


async def test_code_that_takes_too_long_says_how_to_give_it_longer(client: Client) -> None:
    result = await client.call_tool("run_python", {"code": "hang()", "timeout_seconds": 0.2})
    assert result.is_error
    assert "timeout_seconds" in text_of(result)


class Pip:
    """In place of the program: what code in a fake machine starts, it starts here."""

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode
        self.words: list[str] = []

    def __call__(self, words: list[str]) -> Pip:
        self.words = words
        return self


async def test_packages_are_given_to_pip_as_words_and_never_as_options(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip(0)
    monkeypatch.setattr("subprocess.run", pip)
    wanted = ["polars", "scipy==1.16.*; python_version > '3'"]
    assert data_of(await client.call_tool("install_packages", {"packages": wanted}))["value"] == "0"
    assert pip.words[1:4] == ["-m", "pip", "install"]
    assert pip.words[pip.words.index("--") + 1 :] == wanted
    refused = await client.call_tool("install_packages", {"packages": ["--index-url=http://evil.example"]})
    assert text_of(refused).startswith("InvalidInput: install_packages did nothing")


async def test_a_package_that_pip_cannot_install_is_an_error_with_a_hint(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", Pip(1))
    result = await client.call_tool("install_packages", {"packages": ["nothing"]})
    assert result.is_error
    assert text_of(result).startswith("pip could not install nothing. ")
    assert "show_egress_refusals" in text_of(result)


async def test_files_go_in_and_out(client: Client) -> None:
    written = data_of(await client.call_tool("write_file", {"path": "data/ünï.txt", "content": "grüße\n" * 100}))
    assert written["size_bytes"] == 800
    read = data_of(await client.call_tool("read_file", {"path": "data/ünï.txt"}))
    assert (read["content"], read["encoding"], read["next_offset"]) == ("grüße\n" * 100, "utf-8", None)
    part = data_of(await client.call_tool("read_file", {"path": "data/ünï.txt", "max_bytes": 3}))
    assert (part["content"], part["next_offset"]) == ("gr", 2)
    rest = data_of(await client.call_tool("read_file", {"path": "data/ünï.txt", "offset": 2}))
    assert part["content"] + rest["content"] == "grüße\n" * 100
    listed = data_of(await client.call_tool("list_files", {"path": "data"}))
    assert [(file["name"], file["kind"]) for file in listed["files"]] == [("ünï.txt", "file")]


async def test_bytes_come_in_base64_and_pictures_as_images(client: Client) -> None:
    raw = bytes(range(256))
    await client.call_tool("write_file", {"path": "raw", "content": base64.b64encode(raw).decode(), "encoding": "base64"})
    read = data_of(await client.call_tool("read_file", {"path": "raw"}))
    assert (read["encoding"], base64.b64decode(read["content"])) == ("base64", raw)
    await client.call_tool("write_file", {"path": "p.png", "content": base64.b64encode(PNG).decode(), "encoding": "base64"})
    shown = await client.call_tool("read_file", {"path": "p.png", "max_bytes": 9})
    assert data_of(shown)["encoding"] == "image"
    assert base64.b64decode(images_of(shown)[0].data) == PNG
    bad = await client.call_tool("write_file", {"path": "x", "content": "?", "encoding": "base64"})
    assert text_of(bad).startswith("InvalidInput: content is not base64")
    gone = await client.call_tool("read_file", {"path": "nowhere"})
    assert text_of(gone).startswith("FileNotFound: ")
    assert "list_files" in text_of(gone)


async def test_machines_are_made_listed_used_forked_and_deleted(client: Client, forge: AsyncEverforge) -> None:
    mine = data_of(await client.call_tool("run_python", {"code": "x = 1"}))["machine"]
    other = data_of(await client.call_tool("new_machine", {"name": "other"}))["machine"]
    assert other == "other"
    copy = data_of(await client.call_tool("fork_machine", {"name": "copy"}))
    assert (copy["machine"], copy["forked_from"]) == ("copy", mine)
    assert data_of(await client.call_tool("run_python", {"code": "x", "machine": "copy"}))["value"] == "1"
    listed = data_of(await client.call_tool("list_machines", {}))["machines"]
    assert {(one["name"], one["mine"]) for one in listed} == {(mine, True), ("other", False), ("copy", False)}
    assert len(data_of(await client.call_tool("list_machines", {"limit": 1}))["machines"]) == 1
    data_of(await client.call_tool("use_machine", {"machine": "copy"}))
    assert data_of(await client.call_tool("run_python", {"code": "x"}))["machine"] == "copy"
    data_of(await client.call_tool("delete_machine", {"machine": mine}))
    assert {found.name async for found in forge.machines()} == {"copy", "other"}
    missing = await client.call_tool("run_python", {"code": "1", "machine": mine})
    assert missing.is_error
    assert text_of(missing).startswith("MachineNotFound: ")
    assert "list_machines" in text_of(missing)


async def test_time_goes_back_and_the_way_back_is_told(client: Client) -> None:
    await client.call_tool("run_python", {"code": "x = 1"})
    taken = data_of(await client.call_tool("snapshot_machine", {"name": "before"}))
    assert taken["snapshot"]["name"] == "before"
    await client.call_tool("run_python", {"code": "x = 2"})
    listed = data_of(await client.call_tool("list_snapshots", {}))["snapshots"]
    assert "before" in [one["name"] for one in listed]
    back = data_of(await client.call_tool("rollback_machine", {"to": "before"}))
    assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == "1"
    data_of(await client.call_tool("rollback_machine", {"to": back["undo"]}))
    assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == "2"
    data_of(await client.call_tool("reset_machine", {}))
    assert (await client.call_tool("run_python", {"code": "x"})).is_error
    unknown = await client.call_tool("rollback_machine", {"to": "never"})
    assert "list_snapshots" in text_of(unknown)


async def test_going_back_to_an_instruction(client: Client, forge: AsyncEverforge) -> None:
    name = data_of(await client.call_tool("run_python", {"code": "x = 1"}))["machine"]
    await forge.machine(name).snapshot("kept")
    await client.call_tool("run_python", {"code": "x = 2"})
    assert data_of(await client.call_tool("rollback_machine", {"instruction": 0}))["snapshot"]["name"] == "kept"
    assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == "1"


async def test_the_way_out_is_shown(client: Client) -> None:
    name = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
    shown = data_of(await client.call_tool("show_egress_refusals", {}))
    assert (shown["machine"], shown["egress"], shown["attempts"], shown["remedy"]) == (name, "packages", [], None)


def test_the_remedy_is_a_command_with_each_host_once() -> None:
    def attempt(host: str, port: int, verdict: str = "refused") -> Attempt:
        return Attempt(time="", host=host, port=port, verdict=verdict, why="")

    found = [attempt("a.example", 443), attempt("a.example", 80), attempt("b.example", 8443), attempt("c.example", 443, "failed")]
    assert _remedy("mine", found) == "everforge egress allow mine a.example b.example:8443"
    assert _remedy("mine", found[3:]) is None


async def test_who_only_looks_makes_no_machine(client: Client, forge: AsyncEverforge) -> None:
    for tool, arguments in (
        ("list_files", {}),
        ("read_output", {"instruction": 0}),
        ("list_snapshots", {}),
        ("show_egress_refusals", {}),
        ("interrupt", {}),
    ):
        refused = await client.call_tool(tool, arguments)
        assert text_of(refused).startswith("MachineNotFound: this conversation has no machine yet")
    assert [found async for found in forge.machines()] == []


# --- ForeverVM's two -----------------------------------------------------------------------------------------------------------------------------


async def test_forevervms_tools_answer_as_forevervm_does(connect: Connect, user: Path) -> None:
    async with connect() as client:
        name = text_of(await client.call_tool("create-python-repl", {}))

        async def run(code: str) -> Any:
            result = await client.call_tool("run-python-in-repl", {"pythonCode": code, "replId": name})
            return result if images_of(result) else (json.loads(text_of(result)), result.is_error, result.structured_content)

        assert await run("print('a')\nprint('b')\n1 + 1") == ({"output": "a\nb", "result": "2", "replId": name}, False, None)
        assert await run("x = 1") == ({"output": "", "result": "The code did not return a value", "replId": name}, False, None)
        assert await run("1 / 0") == ({"output": "", "result": "", "replId": name, "error": "Error: ZeroDivisionError: division by zero"}, True, None)
        pictured = await run(f"show({{'png': {base64.b64encode(PNG).decode()!r}}})")
        assert [type(part).__name__ for part in pictured.content] == ["ImageContent"]
        failed = await run(f"show({{'png': {base64.b64encode(PNG).decode()!r}}})\n1 / 0")
        assert failed[0]["image"] == base64.b64encode(PNG).decode()
        more = await client.call_tool("run-python-in-repl", {"pythonCode": "1", "replId": name, "nobody": "knows this"})
        assert json.loads(text_of(more))["result"] == "1"
        assert not (await client.call_tool("create-python-repl", {"nobody": "knows this"})).is_error
        gone = await client.call_tool("run-python-in-repl", {"pythonCode": "1", "replId": "nobody"})
        assert gone.is_error
        told = json.loads(text_of(gone))
        assert told["error"].startswith("Failed to execute Python code: MachineNotFound: ")
        assert told | {"error": ""} == {"error": "", "output": "", "result": "", "replId": "nobody"}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("run_python", {}, "code: field required"), ("run_python", {"code": 1}, "code: input should be a valid string"),
    ("run_python", {"code": "1", "mashine": "x"}, "mashine: extra inputs"), ("run_python", {"code": "x" * 1_000_001}, "at most 1000000 characters"),
    ("run_python", {"code": "1", "timeout_seconds": -1}, "timeout_seconds"), ("read_output", {"instruction": -1}, "instruction"),
    ("delete_machine", {}, "machine: field required"), ("delete_machine", {"machine": ""}, "machine"),
    ("write_file", {"path": "x", "content": "x" * 6_000_001}, "content"), ("read_file", {"path": "x" * 5000}, "path"),
    ("install_packages", {"packages": ["x"] * 51}, "packages"), ("install_packages", {"packages": []}, "packages"),
    ("list_machines", {"limit": 10**9}, "limit"), ("run_python", {"code": "1", "machine": "../etc"}, "machine"),
]  # fmt: skip


async def test_wrong_arguments_are_answers_that_a_model_can_act_on(client: Client, forge: AsyncEverforge) -> None:
    for tool, arguments, told in WRONG:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert text_of(result).startswith("InvalidInput: ")
        assert told in text_of(result)
        assert len(text_of(result)) < 1500
    assert [found async for found in forge.machines()] == []


async def test_at_most_so_many_calls_at_once(client: Client, forge: AsyncEverforge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CALLS_MAX", 1)
    name = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
    running = asyncio.create_task(client.call_tool("run_python", {"code": "hang()"}))
    await until(lambda: _busy(forge, name))
    assert text_of(await client.call_tool("list_machines", {})).startswith("TooMany: 1 calls of this account")
    running.cancel()


async def _busy(forge: AsyncEverforge, name: str) -> bool:
    return (await forge.machine(name).info()).state == "busy"
