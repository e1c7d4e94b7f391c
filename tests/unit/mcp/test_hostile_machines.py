"""What a machine says is the work of whoever wrote its code: none of it breaks a message, a terminal or a model's memory."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcp import Client

from everforge import AsyncEverforge
from everforge.mcp.answers import Answer
from everforge.mcp.limits import OUTPUT_CHARACTERS, VALUE_CHARACTERS
from everforge.mcp.messages import encoded
from everforge.mcp.tools.egress import Attempt, _remedy
from everforge.mcp.tools.machines import OneMachine
from kit.mcpserving import data_of, text_of

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m"


async def run(client: Client, code: str, **more: Any) -> Any:
    return await client.call_tool("run_python", {"code": code, **more})


async def test_what_a_terminal_would_obey_is_shown_in_the_text_and_kept_in_the_data(client: Client) -> None:
    result = await run(client, f"print({ESCAPES!r})")
    assert "␛]0;title␇␛[2J�31m" in text_of(result)
    assert data_of(result)["stdout"] == ESCAPES + "\n"
    failed = await run(client, f"raise ValueError({ESCAPES!r})")
    assert "\x1b" not in text_of(failed)
    read = await client.call_tool("read_output", {"instruction": 0})
    assert (data_of(read)["text"], "\x1b" in text_of(read)) == (ESCAPES + "\n", False)


def test_halves_of_characters_spoil_no_message() -> None:
    """This server's machines say none; another server may."""
    answer = Answer("a\ud800b", OneMachine(machine="\udc00", note="\ud83d\ude00"))
    said = json.loads(encoded(answer.result()))
    assert said["content"] == [{"type": "text", "text": "a\ufffdb"}]
    assert said["structuredContent"] == {"machine": "\ufffd", "note": "\ufffd\ufffd"}


async def test_a_name_of_a_file_is_one_line_whatever_is_in_it(client: Client) -> None:
    await client.call_tool("write_file", {"path": "a\nforged  0 bytes", "content": ""})
    listed = await client.call_tool("list_files", {})
    assert text_of(listed).startswith("a␊forged  0 bytes  0 bytes")
    assert [file["name"] for file in data_of(listed)["files"]] == ["a\nforged  0 bytes"]


async def test_nothing_that_code_says_makes_an_answer_huge(client: Client) -> None:
    code = "\n".join(["for _ in range(20): print('o' * 100_000)", *["show({'text': 's' * 100_000})"] * 20, "raise ValueError('x' * 500_000)"])
    for tool, arguments in (("run_python", {"code": code}), ("run_python", {"code": "'v' * 500_000"})):
        result = await client.call_tool(tool, arguments)
        assert len(text_of(result)) < OUTPUT_CHARACTERS + 4 * VALUE_CHARACTERS
        assert len(json.dumps(result.structured_content)) < OUTPUT_CHARACTERS + 6 * VALUE_CHARACTERS
    name = text_of(await client.call_tool("create-python-repl", {}))
    for code in ("'v' * 500_000", "print('o' * 500_000)", "raise ValueError('x' * 500_000)"):
        old = await client.call_tool("run-python-in-repl", {"pythonCode": code, "replId": name})
        assert len(text_of(old)) < OUTPUT_CHARACTERS + 2 * VALUE_CHARACTERS
        assert "characters left out" in text_of(old)


def test_what_a_person_is_to_run_has_nothing_of_a_machines_making_but_hosts() -> None:
    def attempt(host: str, port: int = 443) -> Attempt:
        return Attempt(time="", host=host, port=port, verdict="refused", why="")

    wrong = [attempt(host) for host in ("$(id)", "a;b", "a b", "`id`", "-x", "--all", "(unreadable)", "a\nb", "é.example", "'", "a" * 254, "")]
    assert _remedy("mine", wrong) is None
    good = [attempt("a_b.example"), attempt("::1"), attempt("::1", 8443), attempt("10.0.0.1", 22)]
    assert _remedy("mine", [*wrong, *good]) == "everforge egress allow mine a_b.example ::1 '[::1]:8443' 10.0.0.1:22"


async def test_progress_is_one_line_that_a_terminal_can_take(client: Client) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    await client.call_tool("run_python", {"code": f"tell({(ESCAPES + 'x' * 5000)!r})\nhang()", "timeout_seconds": 1.0}, progress_callback=hear)
    assert told
    assert all(message is None or (len(message) <= 200 and "\x1b" not in message) for message in told)


async def test_a_machine_that_is_deleted_while_its_code_runs_is_told(client: Client, forge: AsyncEverforge) -> None:
    name = data_of(await run(client, "1"))["machine"]
    running = asyncio.create_task(run(client, "tell('x')\nhang()"))
    async with asyncio.timeout(20):
        while (await forge.machine(name).info()).state != "busy":
            await asyncio.sleep(0.01)
    await forge.machine(name).delete()
    async with asyncio.timeout(20):
        result = await running
    assert result.is_error
    assert name in text_of(result) or "machine" in text_of(result).lower()
    again = await run(client, "2")
    assert "was deleted" in text_of(again)
