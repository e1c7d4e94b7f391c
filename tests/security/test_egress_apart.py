"""The egress door with a server in a process of its own: killed, and in a network namespace where the addresses of the attacks exist."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.doorway import serving
from kit.outskirts import TOOLS, Web
from kit.real import processes_of, until_gone
from kit.serverprocess import ServerProcess

from .test_egress import CUT, OPEN_STREAM

pytestmark = pytest.mark.gvisor


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ef-"))
    yield folder
    with contextlib.suppress(AssertionError):
        await until_gone(folder)
    left = processes_of(folder)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"{folder.name}.server.log").unlink(missing_ok=True)
    assert left == {}


async def ask(server: ServerProcess, name: str, code: str) -> Any:
    ended = await server.call("run", name=name, code=code)
    assert ended["end"] == "value", ended
    return None if ended["value"] is None else ast.literal_eval(ended["value"])


async def create(server: ServerProcess, *allow: str) -> str:
    name = (await server.call("create", egress="list", egress_allow=list(allow)))["record"]["name"]
    await ask(server, name, TOOLS)
    return name


async def test_streams_of_a_server_that_was_killed_are_cut_and_the_next_server_opens_the_door_again(data: Path) -> None:
    web = Web()
    async with serving(web) as port:
        place = f"host.everforge.internal:{port}"
        opened = f"127.0.0.1:{port}"
        server = await ServerProcess(data, EVERFORGE_TEST_OPENED=opened).start()
        name = await create(server, place)
        await ask(server, name, OPEN_STREAM.replace("example.com", place))
        await server.kill()
        server = await ServerProcess(data, EVERFORGE_TEST_OPENED=opened).start()
        ended, again = await ask(server, name, CUT.replace("example.com", place))
        assert ended in (["b''"], ["ConnectionResetError"])
        assert again == (200, "hello")
        await server.call("delete", name=name)
        await server.stop()


# --- a network of the test's own -----------------------------------------------------------------------------------------------------------------

ADDRESSES = ["169.254.169.254", "10.1.2.3", "93.184.216.34", "fd00:ec2::254"]
NEW_NETWORK = "ip link set lo up; " + "; ".join(f"ip addr add {a}/{128 if ':' in a else 32} dev lo" for a in ADDRESSES) + '; exec "$@"'
CLONE_NEWNET = 0x40000000


def listen_in(pid: int, places: list[tuple[str, int]]) -> list[socket.socket]:
    """Sockets of the network that this process is in; a thread goes there to make them, and ends."""
    made: list[socket.socket] = []

    def make() -> None:
        with open(f"/proc/{pid}/ns/net") as f:
            assert ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) == 0
        made.extend(socket.create_server(place, family=socket.AF_INET6 if ":" in place[0] else socket.AF_INET) for place in places)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert len(made) == len(places)
    return made


@contextlib.contextmanager
def closing(listeners: list[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for listener in listeners:
            listener.close()


@pytest.mark.root
async def test_servers_at_metadata_private_and_our_own_public_addresses_hear_nothing(data: Path) -> None:
    """They are really there, in a network of this test's own, and any packet to them would be seen."""
    prefix = ("unshare", "--net", "--", "sh", "-c", NEW_NETWORK, "sh")
    server = await ServerProcess(data, prefix=prefix, EVERFORGE_TEST_OPENED="127.0.0.1:9000").start()
    canaries = listen_in(server.process.pid, [(a, 80) for a in ADDRESSES])
    [good] = listen_in(server.process.pid, [("127.0.0.1", 9000)])
    web = Web()
    answering = await asyncio.start_server(web, sock=good)
    with closing(canaries):
        hosts = [f"[{a}]" if ":" in a else a for a in ADDRESSES] + ["2852039166", "[::ffff:10.1.2.3]", "0x0a010203"]
        name = await create(server, "127.0.0.1:9000", *(f"{host}:80" for host in hosts))
        said = await ask(server, name, f"[(plain(h).split()[1], tunnel(h + ':80').split()[1]) for h in {hosts!r}]")
        assert said == [("403", "403")] * len(hosts)
        assert (await ask(server, name, "plain('127.0.0.1:9000')")).endswith("hello")
        for canary in canaries:
            canary.setblocking(False)
            with pytest.raises(BlockingIOError):
                canary.accept()
        await server.call("delete", name=name)
        await server.stop()
    answering.close()
