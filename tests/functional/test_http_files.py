"""Files through the whole of it: a client, `everforge serve`, a machine on the real engine."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from kit.commandserver import CommandServer, command_server

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]
MB = 1024 * 1024
FILE_MB = 200
DISK_MB = 512  # of a machine: a bomb need not be larger
FLAT_MB = 48  # what the server may hold of it at any time


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERFORGE_DISK_MB", str(DISK_MB))
        with command_server("minimal") as served:
            yield served


@pytest.fixture
def machine(server: CommandServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=300) as client:
        name = client.post("/v1/machine/new").json()["machine_name"]
        client.base_url = f"{server.url}/v1/machine/{name}/"
        yield client
        client.delete(f"{server.url}/v1/machine/{name}")


def peak_mb(server: CommandServer) -> int:
    """The most memory that the server has had at any time."""
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())
    return int(kilobytes) // 1024


def forget_peak(server: CommandServer) -> None:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


def test_a_large_file_goes_up_and_down_with_flat_server_memory(server: CommandServer, machine: httpx2.Client) -> None:
    piece = os.urandom(MB)
    wanted = hashlib.sha256(piece * FILE_MB).hexdigest()
    machine.put("files/small", content=b"wakes everything that must be awake")
    forget_peak(server)
    before = peak_mb(server)
    assert machine.put("files/large", content=(piece for _ in range(FILE_MB))).json()["size_bytes"] == FILE_MB * MB
    found = hashlib.sha256()
    with machine.stream("GET", "files/large") as answer:
        for part in answer.iter_bytes():
            found.update(part)
    assert found.hexdigest() == wanted
    assert peak_mb(server) - before < FLAT_MB


def test_a_zip_bomb_is_refused_and_leaves_nothing(machine: httpx2.Client) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped, zipped.open("zeros", "w", force_zip64=True) as inside:
        for _ in range(2 * DISK_MB):
            inside.write(bytes(MB))
    before = machine.get("files").json()["files"]
    put = machine.put("archive", params={"path": "in", "format": "zip"}, content=made.getvalue())
    assert put.status_code in (400, 413, 507)
    assert put.json()["code"] in ("ArchiveRefused", "TooLarge", "DiskFull")
    assert machine.get("files").json()["files"] == before


def test_links_and_dots_are_the_machines_own(machine: httpx2.Client) -> None:
    given = machine.post(
        "exec", json={"instruction": {"code": "import os; os.symlink('/etc/hostname', 'link'); open('/etc/hostname').read()"}}
    ).json()
    inside = machine.get(f"exec/{given['instruction_seq']}/result").json()["result"]["value"]
    assert repr(machine.get("files/link").text) == inside
    assert machine.get("files/%2Fetc%2Fhostname").text == machine.get("files/x/..%2F..%2F..%2F..%2Fetc%2Fhostname").text
    [shown] = [f for f in machine.get("files").json()["files"] if f["name"] == "link"]
    assert (shown["kind"], shown["target"]) == ("link", "/etc/hostname")
