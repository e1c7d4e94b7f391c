"""trust.md, Isolation: each promise, and somebody who tries to break it from inside a real machine."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from everforge import Everforge, Machine
from everforge.cli.sandbox.attacks import GROUPS
from everforge.cli.sandbox.bait import Bait
from everforge.cli.sandbox.ground import an_open_machine
from everforge.cli.sandbox.inside import attempt, call, heard, opened, pids, read, status
from everforge.cli.sandbox.trial import in_machine, look, outcome
from everforge.images.catalogue import Catalogue
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from kit.commandserver import CommandServer
from kit.real import sandboxes_of

from .conftest import PASSWORD, Saw

pytestmark = pytest.mark.gvisor

ATTACKS = {attack.name: attack for group in GROUPS for attack in group.attacks}
DEVICES = {
    "char", "fd", "full", "fuse", "net", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}  # fmt: skip
USER = 1000


def fails(name: str, machine: Machine, bait: Bait) -> None:
    """An attack of `everforge sandbox test`, judged from outside."""
    found = outcome(ATTACKS[name], in_machine(machine), bait)
    assert found.held, found


# --- nothing of the host is visible ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["file-by-name", "file-by-search", "file-by-side-doors", "file-by-link"])
def test_no_path_of_the_host_is_visible(way: str, machine: Machine, bait: Bait) -> None:
    fails(way, machine, bait)


def test_folders_of_the_server_itself_are_not_visible(saw: Saw, served: CommandServer) -> None:
    def listings(told: dict[str, Any]) -> dict[str, Any]:
        return {path: attempt(lambda path=path: os.listdir(path)) for path in told["paths"]}

    image = str(Catalogue.here().find("minimal").image.root)
    paths = [str(served.data), str(served.data / "snapshots"), image, str(Path(__file__).parents[2]), os.path.expanduser("~/.cache")]
    assert all(os.path.isdir(path) for path in paths), "they are there, outside"
    assert saw(listings, paths=paths) == dict.fromkeys(paths, "ENOENT")


def test_no_device_of_the_host_is_visible(saw: Saw, machine: Machine, bait: Bait) -> None:
    def devices(told: dict[str, Any]) -> dict[str, Any]:
        return {
            "names": os.listdir("/dev"),
            "block": os.listdir("/sys/block") + os.listdir("/sys/class/block") if os.path.isdir("/sys/class/block") else [],
        }

    seen = saw(devices)
    assert set(seen["names"]) <= DEVICES
    assert seen["block"] == []
    fails("raw-disks", machine, bait)


def test_no_socket_of_the_host_can_be_reached(machine: Machine, bait: Bait) -> None:
    fails("this-computer", machine, bait)
    assert bait.warden in bait.sockets, "it is there, outside"
    fails("engine-sockets", machine, bait)


def test_no_environment_variable_of_the_host_is_visible(machine: Machine, bait: Bait, saw: Saw) -> None:
    def variables(told: dict[str, Any]) -> dict[str, Any]:
        return dict(os.environ)

    fails("environment", machine, bait)
    seen = saw(variables)
    assert "HOME" in seen
    assert "PASSWORD_OF_THE_HOST" not in seen
    assert PASSWORD not in seen.values(), "it is in the environment of the server that made the machine"


def test_no_process_of_the_host_is_visible(machine: Machine, bait: Bait, saw: Saw) -> None:
    def commands(told: dict[str, Any]) -> dict[str, Any]:
        return {"count": len(pids()), "commands": [read(f"/proc/{pid}/cmdline") for pid in pids()], "own": os.getpid()}

    fails("processes", machine, bait)
    fails("kill", machine, bait)
    seen = saw(commands)
    assert seen["count"] < 8, "the agent, the interpreter, what they started"
    assert not [command for command in seen["commands"] if "runsc" in command or "warden" in command]


# --- the image is never written ----------------------------------------------------------------------------------------------------------


def stamps(root: Path) -> dict[str, tuple[int, int, int]]:
    """Of every file: size, time and time of the last change of anything about it, which no program can set back."""
    found: dict[str, tuple[int, int, int]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def test_what_a_machine_writes_is_its_own_and_the_image_stays_as_it_was(server: Everforge) -> None:
    def write(told: dict[str, Any]) -> dict[str, Any]:
        append = os.O_WRONLY | os.O_APPEND
        refused = [
            path for path in ("/usr/bin/env", "/etc/passwd", "/etc/hosts", "/usr/lib/everforge/_everforge/guest/agent.py") if os.path.exists(path)
        ]
        for path in ("/home/user/planted", "/tmp/planted", "/var/tmp/planted", "/dev/shm/planted"):
            opened(path, os.O_WRONLY | os.O_CREAT)
        return {
            "refused": {path: opened(path, append) for path in refused},
            "made": [p for p in ("/home/user/planted", "/tmp/planted") if os.path.exists(p)],
        }

    def planted(told: dict[str, Any]) -> dict[str, Any]:
        return {"found": [p for p in ("/home/user/planted", "/tmp/planted", "/var/tmp/planted", "/dev/shm/planted") if os.path.exists(p)]}

    root = Path(Catalogue.here().find("minimal").image.root)
    before = stamps(root)
    assert len(before) > 10_000
    one, other = server.create(), server.create()
    try:
        wrote = look(write, in_machine(one), {}, 30).fact
        assert set(wrote["refused"].values()) == {"EACCES"}, wrote
        assert wrote["made"] == ["/home/user/planted", "/tmp/planted"]
        assert look(planted, in_machine(other), {}, 30).fact == {"found": []}
    finally:
        one.delete()
        other.delete()
    assert stamps(root) == before


# --- no network but the egress door ----------------------------------------------------------------------------------------------------


def test_there_is_no_network_card_but_the_machines_own_loopback_and_no_route(machine: Machine, bait: Bait) -> None:
    fails("network-cards", machine, bait)


def test_raw_sockets_are_refused(machine: Machine, bait: Bait) -> None:
    fails("raw-packets", machine, bait)


def test_a_card_or_a_route_cannot_be_added(saw: Saw) -> None:
    """With requests that are good: in a network of its own, over which it has the right, each of them is done."""

    def add(told: dict[str, Any]) -> dict[str, Any]:
        import struct

        def attribute(kind: int, value: bytes) -> bytes:
            return struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)

        address, network, loopback = socket.inet_aton("192.0.2.9"), socket.inet_aton("198.51.100.0"), 1
        asked = {
            "a pair of cards": (16, struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + attribute(3, b"pair\0") + attribute(18, attribute(1, b"veth\0"))),
            "a bridge": (16, struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + attribute(3, b"bridge\0") + attribute(18, attribute(1, b"bridge\0"))),
            "an address": (20, struct.pack("4Bi", 2, 24, 0, 0, loopback) + attribute(2, address) + attribute(1, address)),
            "a route": (24, struct.pack("8BI", 2, 24, 0, 0, 254, 4, 253, 1, 0) + attribute(1, network) + attribute(4, struct.pack("i", loopback))),
        }

        def ask(kind: int, body: bytes) -> int:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
                link.settimeout(5)
                link.send(struct.pack("IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)  # NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL | NLM_F_CREATE
                return struct.unpack("i", link.recv(4096)[16:20])[0]

        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                made = call("unshare", 0x50000000)  # CLONE_NEWUSER | CLONE_NEWNET
                os.write(writing, json.dumps({"made": made, **{name: ask(*one) for name, one in asked.items()}}).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            return {"there": json.loads(said.read()), "here": {name: ask(*one) for name, one in asked.items()}}

    seen = saw(add)
    assert seen["there"] == {"made": "done", **dict.fromkeys(seen["here"], 0)}
    assert set(seen["here"].values()) == {-errno.EPERM}
    assert len(seen["here"]) == 4


def test_the_door_refuses_what_is_closed_though_the_machines_own_policy_allows_it(server: Everforge, bait: Bait) -> None:
    """All of it, and by the wall: a refusal by the policy would say nothing of that."""
    with an_open_machine(server, bait) as machine:
        assert bait.open_policy
        fails("door", machine, bait)
        said = look(ATTACKS["door"].inside, in_machine(machine), bait.told(), 30).fact
    assert len(said) >= 11
    assert [answer for answer in said.values() if "closed to machines whatever their policy" not in answer or "the egress policy" in answer] == []
    assert bait.came == 0


@pytest.mark.parametrize("kind", ["TCP", "UDP"])
@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "192.168.1.1", "192.0.2.1", "fd00:ec2::254", "2001:db8::1"])
def test_no_address_beyond_the_machine_can_be_reached_past_the_door(kind: str, address: str, saw: Saw) -> None:
    def reach(told: dict[str, Any]) -> dict[str, Any]:
        family = socket.AF_INET6 if ":" in told["address"] else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM if told["kind"] == "TCP" else socket.SOCK_DGRAM) as out:
            out.settimeout(5)
            return {"why": attempt(lambda: (out.connect((told["address"], 80)), out.send(b"hello")))}

    assert saw(reach, kind=kind, address=address)["why"] in ("ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EINVAL")


def test_no_name_is_resolved_inside(machine: Machine, bait: Bait) -> None:
    fails("names", machine, bait)


# --- an ordinary user without rights -----------------------------------------------------------------------------------------------------


def test_code_is_an_ordinary_user_without_capabilities_and_locked_against_new_ones(machine: Machine, bait: Bait, saw: Saw) -> None:
    def ids(told: dict[str, Any]) -> dict[str, Any]:
        return {"uids": os.getresuid(), "gids": os.getresgid(), "groups": os.getgroups(), "no_new_privs": status()["NoNewPrivs"]}

    assert saw(ids) == {"uids": [USER] * 3, "gids": [USER] * 3, "groups": [], "no_new_privs": "1"}
    fails("rights", machine, bait)
    fails("become-root", machine, bait)


def test_what_code_starts_has_no_more_rights_than_it(saw: Saw) -> None:
    def child(told: dict[str, Any]) -> dict[str, Any]:
        import subprocess

        said = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
        fields = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        return {name: fields[name].split() for name in ("Uid", "CapEff", "CapPrm", "NoNewPrivs")}

    seen = saw(child)
    assert (set(seen["Uid"]), set(seen["CapEff"]), set(seen["CapPrm"]), seen["NoNewPrivs"]) == ({"1000"}, {"0" * 16}, {"0" * 16}, ["1"])


def test_a_setuid_program_gives_nothing(machine: Machine, bait: Bait, saw: Saw) -> None:
    def own(told: dict[str, Any]) -> dict[str, Any]:
        import shutil
        import subprocess

        shutil.copy("/usr/bin/id", "/tmp/id")
        os.chmod("/tmp/id", 0o6755)
        chowned = attempt(lambda: os.chown("/tmp/id", 0, 0))
        said = subprocess.run(["/tmp/id", "-u"], capture_output=True, text=True).stdout.strip()
        os.unlink("/tmp/id")
        return {"chown": chowned, "uid": said}

    assert saw(own) == {"chown": "EPERM", "uid": str(USER)}
    fails("setuid", machine, bait)


# --- machines, each other, and the server ------------------------------------------------------------------------------------------------


def test_machines_cannot_reach_each_other_by_network(machine: Machine, bait: Bait, neighbour: Machine) -> None:
    fails("another-machine", machine, bait)
    host, port = bait.neighbour[0]
    assert neighbour.run(f"import socket; socket.create_connection(({host!r}, {port})).recv(100).decode()").value == repr(bait.secret), (
        "it is there to be reached"
    )


def test_machines_cannot_reach_each_other_by_shared_memory_or_names(machine: Machine, neighbour: Machine, saw: Saw) -> None:
    plant = """
import socket, ctypes
held = socket.socket(socket.AF_UNIX); held.bind("\\0between-machines"); held.listen(1)
open("/dev/shm/between-machines", "w").write("x"); open("/tmp/between-machines", "w").write("x")
ctypes.CDLL(None).shmget(4711, 4096, 0o1666)
"""
    assert neighbour.run(plant).ok

    def look_for(told: dict[str, Any]) -> dict[str, Any]:
        import ctypes

        return {
            "socket": heard("\0between-machines")["why"],
            "files": [path for path in ("/dev/shm/between-machines", "/tmp/between-machines") if os.path.exists(path)],
            "memory": ctypes.CDLL(None).shmget(4711, 4096, 0),
        }

    assert saw(look_for) == {"socket": "ECONNREFUSED", "files": [], "memory": -1}
    assert neighbour.run("ctypes.CDLL(None).shmget(4711, 4096, 0) >= 0").value == "True", "it is there to be found"


def test_a_machine_cannot_reach_the_servers_api(machine: Machine, bait: Bait, served: CommandServer, saw: Saw) -> None:
    def reach(told: dict[str, Any]) -> dict[str, Any]:
        return {host: heard((host, told["port"]))["why"] for host in told["hosts"]}

    fails("own-server", machine, bait)
    hosts = ["127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "127.1.2.3"]
    seen = saw(reach, port=bait.server[1], hosts=hosts)
    assert "done" not in seen.values(), seen
    with socket.create_connection(bait.server, 5):
        pass  # it is there to be reached


def test_a_listener_in_a_machine_is_not_one_of_the_host(machine: Machine) -> None:
    port = int(machine.run("import socket\nlistener = socket.create_server(('0.0.0.0', 0)); listener.getsockname()[1]").value or 0)
    with socket.socket() as asking:
        asking.settimeout(5)
        assert asking.connect_ex(("127.0.0.1", port)) != 0
    assert machine.run("listener.close()").ok


# --- the second wall: the process that is the machine's kernel ------------------------------------------------------------------------


async def test_who_broke_out_of_the_machines_kernel_would_find_no_network_no_folder_and_few_system_calls(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "1")
    id = (await machines.get(name)).record.sandbox
    [pid] = [pid for pid, command in sandboxes_of(data).items() if " boot " in command and command.split()[-1] == id]
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    assert (fields["Seccomp"].strip(), fields["NoNewPrivs"].strip()) == ("2", "1")
    cards = [line.split(":")[0].strip() for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]]
    assert set(cards) <= {"lo"}
    for namespace in ("net", "mnt", "pid", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{namespace}") != os.readlink(f"/proc/self/ns/{namespace}"), namespace
    files = {os.path.join(folder, name) for folder, _, files in os.walk(f"/proc/{pid}/root/etc") for name in files}
    assert (set(os.listdir(f"/proc/{pid}/root")), files) == ({"etc", "proc"}, {f"/proc/{pid}/root/etc/localtime"})
