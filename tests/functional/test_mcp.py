"""The official MCP clients of Python and TypeScript, and the Inspector, against `everforge mcp serve` in front of a server on the real engine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from everforge import AsyncEverforge
from everforge.mcp.tools import tools_of
from kit import nodemodules
from kit.commandserver import CommandServer, command_server
from kit.mcpserving import ERAS, command, data_of, environment, http_client, images_of, named, stdio_server, text_of, until, walk

pytestmark = [pytest.mark.gvisor, pytest.mark.timeout(900)]

TYPESCRIPT = Path(__file__).parents[1] / "typescript-mcp"
JUDGE_SECONDS = 300.0
PNG = "iVBORw0KGgo"  # as every PNG begins, in base64
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"
TABLE = "import pandas as pd\npd.DataFrame({'day': [1, 2], 'price': [3.5, 4.0]})"


@pytest.fixture(scope="module")
def served() -> Iterator[CommandServer]:
    with command_server() as found:
        yield found


@pytest.fixture(scope="module")
def http(served: CommandServer) -> Iterator[str]:
    """The address of the MCP server over HTTP, which has no token of its own."""
    env = environment(served.url, "")
    process = subprocess.Popen(command("--http", "--port", "0"), stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("ready ").strip()
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def converse(client: Client, forge: AsyncEverforge) -> str:
    """What a model would do, and what a person does who has had enough of it. The name of its machine."""
    first = await client.call_tool("run_python", {"code": "x = globals().get('x', 0) + 1\nx"})
    figure = await client.call_tool("run_python", {"code": FIGURE})
    assert [(image.mime_type, image.data[:11]) for image in images_of(figure)] == [("image/png", PNG)]
    table = await client.call_tool("run_python", {"code": TABLE})
    assert "price" in text_of(table)
    assert "<table" not in text_of(table)
    wrong = await client.call_tool("run_python", {"code": "1 / 0"})
    assert wrong.is_error
    assert "Traceback" in text_of(wrong)
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "run_python", {"code": "print('begun', flush=True)\nwhile True: pass"}, None, hear)
            await until(lambda: "begun" in told)
            scope.cancel()
    machine = forge.machine(data_of(first)["machine"])
    assert (await machine.instruction(data_of(first)["instruction"] + 4).result(wait_seconds=30)).end == "interrupted"
    assert data_of(await client.call_tool("run_python", {"code": "x"}))["value"] == data_of(first)["value"]
    return data_of(first)["machine"]


async def test_the_python_client_over_standard_input_comes_back_to_its_machine(served: CommandServer, tmp_path: Path) -> None:
    names: list[str] = []
    async with AsyncEverforge(served.token, served.url) as forge:
        for era in ERAS:
            async with Client(stdio_server(served.url, served.token, folder=tmp_path), mode=era, client_info=named("python")) as client:
                names.append(await converse(client, forge))
    assert names[0] == names[1]


async def test_the_python_client_over_http_comes_back_to_its_machine(served: CommandServer, http: str) -> None:
    names: list[str] = []
    async with AsyncEverforge(served.token, served.url) as forge:
        for era in ERAS:
            async with http_client(http, served.token, era, Everforge_Conversation="python") as client:
                names.append(await converse(client, forge))
    assert names[0] == names[1]


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "in.txt").write_text("hello")
    return folder


async def test_the_python_client_calls_each_tool_over_standard_input(served: CommandServer, share: Path) -> None:
    parameters = stdio_server(served.url, served.token, "--share", str(share))
    async with Client(parameters, mode="legacy", client_info=named("each")) as client:
        assert await walk(client) == {*tools_of(sharing=True)}
    assert [file.read_text() for file in (share / "out").iterdir()] == ["hello"]


async def test_the_python_client_calls_each_tool_over_http(served: CommandServer, http: str) -> None:
    async with http_client(http, served.token, "auto", name="each") as client:
        assert await walk(client) == {*tools_of(sharing=False)}


async def test_packages_that_cannot_be_had_and_hosts_that_may_not_be_reached_are_explained(served: CommandServer, http: str) -> None:
    async with http_client(http, served.token, "auto", name="network") as client:
        name = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
        failed = await client.call_tool(
            "run_python", {"code": "import urllib.request\nurllib.request.urlopen('http://forbidden.example', timeout=20)"}
        )
        assert "show_egress_refusals" in text_of(failed)
        shown = data_of(await client.call_tool("show_egress_refusals", {}))
        assert [attempt["host"] for attempt in shown["attempts"]] == ["forbidden.example"]
        assert shown["remedy"] == f"everforge egress allow {name} forbidden.example"
        pip = await client.call_tool("install_packages", {"packages": ["pip"]})
        assert "Requirement already satisfied" in data_of(pip)["stdout"]


# --- TypeScript, and the Inspector ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules() -> Path:
    return nodemodules.install(TYPESCRIPT).parent


def node(*words: str, home: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    given = {**(env or os.environ), "HOME": str(home)}
    return subprocess.run([nodemodules.node(), *words], capture_output=True, text=True, timeout=JUDGE_SECONDS, env=given, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_finds_everything_in_order(
    transport: str, served: CommandServer, http: str, modules: Path, share: Path, tmp_path: Path
) -> None:
    program, *args = command("--share", str(share))
    local = {"command": program, "args": args, "env": environment(served.url, served.token)}
    given: dict[str, Any] = {"url": http, "token": served.token} if transport == "http" else local
    thorough = "legacy" if transport == "http" else "auto"
    done = node(str(TYPESCRIPT / "judge.mjs"), str(modules), json.dumps({**given, "thorough": thorough}), home=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for era in ERAS:
        found = said[era]
        assert {*found["tools"]} == {*tools_of(sharing=transport == "stdio")}
        assert found["images"] == [["image/png", PNG]]
        assert "begun" in found["cancelled"]["heard"]
        assert found["cancelled"]["value"] == found["value"]
        assert "everforge://machines" in found["resources"]
        assert (found["read"], found["unknown"]) == ("application/json", -32602)
    assert (said["legacy"]["value"], said["auto"]["value"]) == ("1", "2")  # the same machine, and it remembers
    assert said["legacy"]["machine"] == said["auto"]["machine"]
    assert {*said[thorough]["called"]} == {*said[thorough]["tools"]}


async def test_the_inspector_finds_nothing_wrong(served: CommandServer, http: str, modules: Path, tmp_path: Path) -> None:
    inspector = str(modules / "node_modules" / ".bin" / "mcp-inspector")
    remote = [http, "--transport", "http", "--header", f"Authorization: Bearer {served.token}"]

    async def inspect(*words: str) -> Any:
        done = await asyncio.to_thread(node, inspector, "--cli", *words, home=tmp_path, env=environment(served.url, served.token))
        assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.stdout} {done.stderr}"
        return json.loads(done.stdout)

    env = [word for name in ("EVERFORGE_URL", "EVERFORGE_TOKEN") for word in ("-e", f"{name}={environment(served.url, served.token)[name]}")]
    tools, ran, listed = await asyncio.gather(
        inspect(*env, "--method", "tools/list", "--strict", "--", *command()),
        inspect(*remote, "--method", "tools/call", "--tool-name", "run_python", "--tool-arg", "code=6*7"),
        inspect(*remote, "--method", "resources/list"),
    )
    assert len(tools["tools"]) >= 19
    assert ran["structuredContent"]["value"] == "42"
    assert "everforge://machines" in [found["uri"] for found in listed["resources"]]
