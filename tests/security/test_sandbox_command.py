"""`everforge sandbox test` as a worried person runs it: on a computer where nothing runs yet, and on one where a server does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from everforge import Everforge
from everforge.cli.sandbox.attacks import GROUPS
from everforge.cli.sandbox.bait import MARK, VARIABLE
from everforge.cli.sandbox.minder import FOLDER
from kit.commandserver import CommandServer
from kit.real import sandboxes_of, until_gone
from kit.terminal import Terminal, plain, terminal

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

NAMES = [attack.name for group in GROUPS for attack in group.attacks]


def sandbox_test(temporary: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "everforge", "sandbox", "test", *words]
    return subprocess.run(argv, env=_environment(temporary, **env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)


def _environment(temporary: Path, **env: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_TOKEN", "EVERFORGE_URL", "FOREVERVM_"))}
    return {**ours, "TMPDIR": str(temporary), "XDG_CONFIG_HOME": str(temporary / "config"), **env}


@pytest.fixture
def temporary() -> Path:
    """With a short name, since sockets lie in it."""
    return Path(tempfile.mkdtemp(prefix="ef-"))


def test_with_no_server_one_is_started_every_attack_fails_and_nothing_stays_behind(temporary: Path) -> None:
    done = sandbox_test(temporary, "--json", EVERFORGE_DATA=str(temporary / "none"))
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert [one["name"] for one in told["attacks"]] == NAMES
    assert [one for one in told["attacks"] if not (one["held"] and one["made"])] == []
    assert told["held"] is True
    assert told["own_server"] is True
    happened = {one["name"]: one["happened"] for one in told["attacks"]}
    assert "though the machine's policy allows the whole web" in happened["door"]
    assert "the server's own among them" in happened["engine-sockets"]
    given = {row["what"]: row["inside"] for row in told["views"]}
    assert f"of the {given['Memory'].replace(',', '')}" in happened["memory-bomb"], "both are the limit that the server gave"
    assert given["Disk"] in happened["disk-fill"]
    assert f"it may have {given['Most programs at once']}" in happened["fork-bomb"]
    inside, outside = ({row["what"]: row[side] for row in told["views"]} for side in ("inside", "outside"))
    assert inside["Kernel (the core of the system)"] != outside["Kernel (the core of the system)"] == f"Linux {os.uname().release}"
    assert os.listdir(temporary) == []
    temporary.rmdir()
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and str(temporary) in _command(pid)]


def test_where_the_server_allows_machines_less_the_door_says_what_was_tried(temporary: Path) -> None:
    done = sandbox_test(temporary, "--json", EVERFORGE_DATA=str(temporary / "none"), EVERFORGE_EGRESS_MAX="packages")
    assert done.returncode == 0, done.stdout + done.stderr
    [door] = [one["happened"] for one in json.loads(done.stdout)["attacks"] if one["name"] == "door"]
    assert "it lets no machine ask for more" in door
    temporary.rmdir()


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _belonging_to(temporary: Path) -> list[str]:
    """Commands of all processes that were told of this folder: each that was started for it has it in its environment."""

    def told(pid: str) -> bool:
        try:
            return str(temporary).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    return [_command(pid) for pid in os.listdir("/proc") if pid.isdigit() and told(pid)]


async def _ends(person: Terminal) -> int | None:
    """As a shell tells it. `python -m`, interrupted while it made a dataclass (by `exec`), ends by the signal, whoever caught it since: 130, too."""
    code = await person.ends()
    return 128 + person.child.signalstatus if code is None and person.child.signalstatus == signal.SIGINT else code


@pytest.mark.parametrize("moment", ["starting a server", "Can it see my files", "Can it break the system"])
async def test_ctrl_c_ends_it_without_a_trace_whenever_it_comes(moment: str, temporary: Path) -> None:
    with terminal(_environment(temporary, EVERFORGE_DATA=str(temporary / "none"), TERM="xterm"), "sandbox", "test") as person:
        await person.sees(moment)
        person.types("\x03")
        assert await _ends(person) == 130
        said = plain(person.shown)
    assert [word for word in ("Traceback", "KeyboardInterrupt", "File ", "Nothing got out") if word in said] == [], said
    assert _belonging_to(temporary) == []
    assert os.listdir(temporary) == []
    temporary.rmdir()


@pytest.mark.parametrize("moment", ["starting a server", "Can it see my files", "Can it break the system"])
async def test_killed_whenever_it_is_it_leaves_nothing_behind(moment: str, temporary: Path) -> None:
    """What it started for itself ends by itself: it cannot put anything away any more."""
    with terminal(_environment(temporary, EVERFORGE_DATA=str(temporary / "none"), TERM="xterm"), "sandbox", "test") as person:
        await person.sees(moment)
        async with asyncio.timeout(60):
            while not (found := list(temporary.glob(f"{FOLDER}*"))):
                await asyncio.sleep(0.01)
        [data] = found
        if moment != "starting a server":
            assert sandboxes_of(data)
        person.child.kill(signal.SIGKILL)
        await person.ends()
    async with asyncio.timeout(90):
        while _belonging_to(temporary) or os.listdir(temporary):
            await asyncio.sleep(0.05)
    await until_gone(data)
    temporary.rmdir()


async def test_killed_it_leaves_machines_on_a_server_that_runs_for_an_hour(served: CommandServer, server: Everforge, temporary: Path) -> None:
    with terminal(_environment(temporary, EVERFORGE_DATA=str(served.data), TERM="xterm"), "sandbox", "test") as person:
        await person.sees("Can it see my files")
        person.child.kill(signal.SIGKILL)
        await person.ends()
    left = list(server.machines(tags={"made-by": "sandbox-test"}))
    assert len(left) == 2
    for one in left:
        server.machine(one.name).delete()
        assert one.expires_at is not None
        assert datetime.fromisoformat(one.expires_at) - datetime.fromisoformat(one.created_at) == timedelta(hours=1)
    async with asyncio.timeout(30):
        while os.listdir(temporary):
            await asyncio.sleep(0.05)
    temporary.rmdir()


async def test_ctrl_c_leaves_no_machine_on_a_server_that_runs(served: CommandServer, server: Everforge, temporary: Path) -> None:
    with terminal(_environment(temporary, EVERFORGE_DATA=str(served.data), TERM="xterm"), "sandbox", "test") as person:
        await person.sees("Can it see my files")
        assert len(list(server.machines(tags={"made-by": "sandbox-test"}))) == 2
        person.types("\x03\x03\x03")
        assert await _ends(person) == 130
        assert "Traceback" not in person.shown
    assert list(server.machines(tags={"made-by": "sandbox-test"})) == []
    assert _belonging_to(temporary) == []
    temporary.rmdir()


def test_a_server_that_runs_is_used_and_keeps_no_machine_of_it(served: CommandServer, temporary: Path) -> None:
    done = sandbox_test(temporary, EVERFORGE_DATA=str(served.data))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Nothing got out: {len(NAMES)} attacks" in done.stdout
    assert f"on the server at {served.url}" in done.stdout
    assert done.stderr == f"everforge: testing the server at {served.url}\n"
    for group in GROUPS:
        assert f"{group.question} {group.answer[:20]}" in done.stdout
    assert "\x1b" not in done.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "everforge", "machine", "list", "--json"],
        env={**os.environ, "EVERFORGE_DATA": str(served.data)},
        capture_output=True,
        text=True,
    )
    assert "sandbox-test" not in listed.stdout
    assert (MARK in done.stdout, VARIABLE in done.stdout) == (False, False)
    temporary.rmdir()
