"""trust.md, Forks: forks of a live machine, new machines of one template, and a plain wake. Nothing random comes twice, but what a wake goes on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from everforge import Everforge, Machine, Result
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from kit.commandserver import CommandServer
from kit.forking import FRESH, fork_and_compare
from kit.length import TIMEOUT_FACTOR, length
from kit.real import real_machines, until_gone
from kit.stepclock import StepClock

pytestmark = pytest.mark.gvisor

NEW = length(6, 40)


@pytest.mark.slow
@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
async def test_forks_of_a_live_machine_share_its_state_and_none_of_its_randomness(data: Path) -> None:
    clock = StepClock()
    async with real_machines(data, steps=clock.steps) as machines:
        await fork_and_compare(machines, clock)
    await until_gone(data)


async def test_a_wake_keeps_its_generators_and_new_machines_have_their_own(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "import random, numpy as np; random.seed(1); np.random.seed(1)")
    await machines.hibernate(name)
    woken = (await machines.run(name, "random.random(), float(np.random.random())")).value
    other = (await machines.create(NewMachine())).record.name
    fresh = (await machines.run(other, "import random, numpy as np; random.random(), float(np.random.random())")).value
    again = (await machines.run(other, "random.seed(1); np.random.seed(1); random.random(), float(np.random.random())")).value
    assert woken == again != fresh


def test_new_machines_of_one_template_have_nothing_random_in_common(server: Everforge) -> None:
    made = [server.create() for _ in range(NEW)]
    try:
        seen = [json.loads(machine.run(FRESH, timeout_seconds=60).raise_for_error().stdout) for machine in made]
    finally:
        for machine in made:
            machine.delete()
    same = {what: [one[what] for one in seen] for what in seen[0] if len({str(one[what]) for one in seen}) < NEW}
    assert set(same) <= {"hash"}, same  # the template's interpreter is everybody's, and so is the seed of its str hashes: see docs/limits.md


# --- connections -----------------------------------------------------------------------------------------------------------------------------

CONNECT = """
import socket
line = socket.create_connection(("127.0.0.1", 3128), 10)
line.sendall(b"CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n")
assert b" 200 " in line.recv(4096)
line.settimeout(20)
def say(text):
    line.sendall(text); return line.recv(100)
say(b"before")
"""


@pytest.fixture
def talking(server: Everforge, served: CommandServer, echo: tuple[str, int]) -> Iterator[Machine]:
    """A machine in the middle of a conversation with a program outside."""
    place = f"{echo[0]}:{echo[1]}"
    headers = {"Authorization": f"Bearer {served.token}"}
    made = httpx2.post(f"{served.url}/v1/machine/new", headers=headers, json={"egress": "list", "egress_allow": [f"tcp://{place}"]}, timeout=60)
    assert made.status_code == 200, made.text
    machine = server.machine(made.json()["machine_name"])
    assert machine.run(CONNECT.replace("{place}", place)).value == "b'before'"
    yield machine
    machine.delete()


DEAD = ("ConnectionResetError", "ConnectionAbortedError", "BrokenPipeError")


def dead(result: Result) -> None:
    """The end of what the other side says, or an error that says that it is gone: nothing else, and above all no wait."""
    assert result.value == "b''" or (result.error or "").partition(":")[0] in DEAD, result


def test_in_a_fork_the_connections_of_its_source_are_dead_and_say_so_while_the_source_goes_on(talking: Machine) -> None:
    fork = talking.fork()
    try:
        assert talking.run("say(b'after')").value == "b'after'"
        dead(fork.run("say(b'from the fork')"))
    finally:
        fork.delete()
    assert talking.run("say(b'again')").value == "b'again'"


def test_after_a_sleep_connections_are_dead_and_say_so_and_new_ones_can_be_made(talking: Machine, echo: tuple[str, int]) -> None:
    talking.hibernate()
    dead(talking.run("say(b'after')"))
    assert talking.run(CONNECT.replace("{place}", f"{echo[0]}:{echo[1]}")).value == "b'before'"
