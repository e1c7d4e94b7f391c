"""ForeverVM's Python client as published, against `everforge serve` on the real engine."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from forevervm_sdk import ForeverVM
from httpx_ws import WebSocketUpgradeError

from kit.commandserver import CommandServer, command_server

pytestmark = [
    pytest.mark.gvisor,
    # The client leaves its connections to the garbage collector, and closes a REPL that was closed already.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CLIENT_PATIENCE_SECONDS = 5.0
PLOT = "import matplotlib.pyplot as plt; plt.plot([0, 1, 2]); plt.show()"
GIGABYTE = "import os\nheld, block = bytearray(1 << 30), os.urandom(1 << 20)\nfor i in range(0, 1 << 30, 1 << 20): held[i : i + (1 << 20)] = block\nlen(held)"


@pytest.fixture(scope="module")
def served() -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


@pytest.fixture
def client(served: CommandServer) -> Any:
    return connect(served)


def connect(served: CommandServer) -> Any:
    """Any: its types say that a result may always be the other kind."""
    return ForeverVM(served.token, base_url=served.url)


def run(client: Any, machine: str, code: str, **options: Any) -> Any:
    accepted = client.exec(code, machine, **options)
    return client.exec_result(machine, accepted["instruction_seq"])["result"]


def lines(execution: Any) -> list[str]:
    return [chunk["data"] for chunk in execution.output]


def test_whoami_create_and_list_with_tags(client: Any) -> None:
    assert client.whoami()["account"]
    name = client.create_machine(tags={"colour": "blau"}, memory_mb=512)["machine_name"]
    found = next(m for m in client.list_machines()["machines"] if m["name"] == name)
    assert (found["tags"], found["expires_at"], found["has_pending_instructions"]) == ({"colour": "blau"}, None, False)


def test_exec_creates_a_machine_when_none_is_named_and_results_are_values_or_errors(client: Any) -> None:
    accepted = client.exec("print(123) or 567")
    name = accepted["machine"]
    assert (accepted["instruction_seq"], accepted["interrupted"]) == (0, False)
    answer = client.exec_result(name, 0)
    assert (answer["instruction_id"], answer["result"]["value"], answer["result"]["data"]) == (0, "567", None)
    assert "ZeroDivisionError: division by zero" in run(client, name, "1 / 0")["error"]
    assert run(client, name, "x = 'kept'")["value"] is None
    assert run(client, name, "x")["value"] == "'kept'"


def test_a_timed_out_instruction_says_so_and_the_state_survives(client: Any) -> None:
    name = client.create_machine()["machine_name"]
    run(client, name, "x = 41")
    ended = run(client, name, "import time; time.sleep(60)", timeout_seconds=1)
    assert "Timed out" in ended["error"]
    assert 900 <= ended["runtime_ms"] < 60_000
    assert run(client, name, "x + 1")["value"] == "42"


def test_interrupt_makes_way(client: Any) -> None:
    name = client.create_machine()["machine_name"]
    with client.repl(name) as repl:
        endless = repl.exec("print('begun')\nwhile True: pass", timeout_seconds=600)
        assert next(endless.output)["data"] == "begun"
        accepted = client.exec("'at once'", name, interrupt=True)
        assert accepted["interrupted"] is True
        assert client.exec_result(name, accepted["instruction_seq"])["result"]["value"] == "'at once'"
        assert "KeyboardInterrupt" in endless.result["error"]


def test_a_repl_tells_output_values_errors_and_timeouts(client: Any) -> None:
    with client.repl() as repl:
        counting = repl.exec("import sys, time\nfor i in range(200): print(i)\nprint('end', end='')\ntime.sleep(0.3)\nprint('ed')")
        assert lines(counting) == [*map(str, range(200)), "ended"]
        assert counting.result["value"] is None
        complaint = repl.exec("print('complaint', file=sys.stderr)\n1 / 0")
        assert [(c["stream"], c["data"]) for c in complaint.output] == [("stderr", "complaint")]
        assert "ZeroDivisionError" in complaint.result["error"]
        assert "Timed out" in repl.exec("time.sleep(60)", timeout_seconds=1).result["error"]
        assert repl.exec("i + 1").result["value"] == "200"


def test_a_plot_comes_within_ten_seconds_of_a_new_machine(client: Any) -> None:
    with client.repl() as repl:
        picture = repl.exec(PLOT, timeout_seconds=10).result["data"]["png"]
    assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_several_clients_share_a_machine_and_each_hears_its_own(served: CommandServer) -> None:
    name = connect(served).create_machine()["machine_name"]
    heard: dict[int, Any] = {}

    def work(number: int) -> None:
        client = connect(served)
        with client.repl(name) as repl:
            told = [lines(repl.exec(f"v{number} = {turn}\nfor i in range(10): print({number}, i)")) for turn in range(5)]
            heard[number] = told, run(client, name, f"v{number}")["value"]

    threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert heard == {number: ([[f"{number} {i}" for i in range(10)]] * 5, "4") for number in range(3)}


async def test_the_async_calls_do_the_same(served: CommandServer) -> None:
    client = connect(served)
    assert (await client.whoami_async())["account"]
    name = (await client.create_machine_async(tags={"kind": "async"}))["machine_name"]
    assert name in [m["name"] for m in (await client.list_machines_async())["machines"]]
    accepted = [await client.exec_async(f"{number} ** 2", name) for number in range(5)]
    ends = await asyncio.gather(*(client.exec_result_async(name, a["instruction_seq"]) for a in accepted))
    assert [e["result"]["value"] for e in ends] == ["0", "1", "4", "9", "16"]
    fresh = await client.exec_async("'fresh'")
    assert (await client.exec_result_async(fresh["machine"], 0))["result"]["value"] == "'fresh'"


def test_a_wrong_token_or_machine_is_refused_also_in_the_handshake(served: CommandServer, client: Any) -> None:
    stranger = ForeverVM("wrong.wrong", base_url=served.url)
    with pytest.raises(httpx.HTTPStatusError) as refused:
        stranger.whoami()
    assert refused.value.response.status_code == 401
    with pytest.raises(httpx.HTTPStatusError) as refused:
        client.exec("1", "nobody")
    assert (refused.value.response.status_code, refused.value.response.json()["code"]) == (404, "MachineNotFound")
    for owner, machine, status in ((stranger, "new", 401), (client, "nobody", 404)):
        with pytest.raises((WebSocketUpgradeError, AttributeError)) as upgrade:
            owner.repl(machine)
        assert isinstance(upgrade.value, WebSocketUpgradeError)
        assert upgrade.value.response.status_code == status


def test_the_example_in_the_documents_runs(served: CommandServer) -> None:
    text = (Path(__file__).parents[2] / "docs/forevervm.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    example = example.replace("http://127.0.0.1:8787", served.url)
    env = {**os.environ, "FOREVERVM_TOKEN": served.token}
    done = subprocess.run([sys.executable, "-c", example], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "42\n", done.stderr


@pytest.mark.slow
def test_five_seconds_of_patience_are_enough_for_a_sleeping_machine_with_a_gigabyte(served: CommandServer, client: Any) -> None:
    name = client.create_machine(memory_mb=2048)["machine_name"]
    assert run(client, name, GIGABYTE, timeout_seconds=120)["value"] == str(1 << 30)
    sleep(served, name)
    accepted, took = timed(lambda: client.exec("len(held)", name))
    assert took < CLIENT_PATIENCE_SECONDS  # else the client itself would have given up
    assert client.exec_result(name, accepted["instruction_seq"])["result"]["value"] == str(1 << 30)
    sleep(served, name)
    with client.repl(name) as repl:
        assert repl.exec("held[-1] == held[(1 << 20) - 1]").result["value"] == "True"


def sleep(served: CommandServer, name: str) -> None:
    answer = httpx.post(f"{served.url}/v1/machine/{name}/hibernate", headers={"authorization": f"Bearer {served.token}"}, timeout=120)
    assert answer.status_code == 200, answer.text


def timed(work: Any) -> tuple[Any, float]:
    begun = time.monotonic()
    return work(), time.monotonic() - begun
