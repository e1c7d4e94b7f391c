"""How fast a download through the egress door is, against the same program on the host's own loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from kit.length import length
from kit.outskirts import outskirts

pytestmark = pytest.mark.gvisor

SIZE_MB = length(32, 512)
ROUNDS = 3
LEAST = 0.01  # of the host's own loopback: a fifth of what two busy cores show, and far above a door that stands still between frames

SERVER = f"""
import asyncio
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % ({SIZE_MB} << 20))
    for _ in range({SIZE_MB} * 4):
        writer.write(bytes(1 << 18))
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
DOWNLOAD = """
import time, urllib.request
def mb_per_second(url):
    began, size = time.monotonic(), 0
    with urllib.request.urlopen(url) as answer:
        while data := answer.read(1 << 18): size += len(data)
    return size, (size >> 20) / (time.monotonic() - began)
"""


@pytest.fixture
def port() -> Iterator[int]:
    """A server in a process of its own: it shall not share the door's processor time."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


async def test_a_download_through_the_door_is_not_slowed_beyond_reason(port: int, record_property: Callable[[str, object], None]) -> None:
    host = [sys.executable, "-c", f"{DOWNLOAD}\nprint(mb_per_second('http://127.0.0.1:{port}/')[1])"]
    ours: list[float] = []
    theirs: list[float] = []
    async with outskirts() as out:
        out.ports = {80: port}
        out.limit(bytes_per_second=0)
        name = await out.create("list", "example.com")
        await out.ask(name, DOWNLOAD)
        for _ in range(ROUNDS):
            size, speed = await out.ask(name, "mb_per_second('http://example.com/')", 120)
            assert size == SIZE_MB << 20
            ours.append(speed)
            told = await asyncio.to_thread(subprocess.run, host, capture_output=True, text=True, check=True)
            theirs.append(float(told.stdout))
    record_property("door_mb_per_second", max(ours))
    record_property("loopback_mb_per_second", max(theirs))
    print(f"\nthrough the door {max(ours):.0f} MB/s, on the host's loopback {max(theirs):.0f} MB/s")
    assert max(ours) > LEAST * max(theirs)
