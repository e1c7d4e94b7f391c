"""The vectors that public escape checklists try (deepce, amicontained, CDK), each as an assertion of our own, made inside a real machine."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from everforge import Everforge, Machine
from everforge.cli.sandbox.attack import REFUSED
from everforge.cli.sandbox.inside import attempt, call, call_apart, heard, opened, pids, read, status
from everforge.cli.sandbox.trial import in_machine, look
from everforge.wire.errors import FileRefused
from kit.commandserver import CommandServer

from .conftest import Saw

pytestmark = pytest.mark.gvisor

REFUSALS = set(REFUSED) | {"EINVAL", "ESRCH"}  # of calls that the machine's kernel does not have in this form, and of processes that are not there


def all_refused(found: dict[str, Any]) -> None:
    assert found
    assert {name: why for name, why in found.items() if why not in REFUSALS} == {}


@pytest.fixture
def fresh(server: Everforge) -> Iterator[Machine]:
    machine = server.create()
    yield machine
    machine.delete()


# --- mounts ----------------------------------------------------------------------------------------------------------------------------------


def test_nothing_of_the_host_is_mounted(saw: Saw) -> None:
    def mounts(told: dict[str, Any]) -> dict[str, Any]:
        return {line.split()[1]: line.split()[2] for line in read("/proc/self/mounts").splitlines()}

    assert saw(mounts) == {
        "/": "overlay", "/dev": "dev", "/dev/pts": "devpts", "/dev/shm": "tmpfs", "/proc": "proc", "/sys": "sysfs", "/tmp/.X11-unix": "tmpfs",
    }  # fmt: skip


def test_mounting_pivoting_and_changing_root_are_refused(saw: Saw) -> None:
    def try_all(told: dict[str, Any]) -> dict[str, Any]:
        os.makedirs("/dev/shm/old", exist_ok=True)
        return {
            "bind": call("mount", b"/", b"/tmp", None, 4096, None),
            "tmpfs": call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
            "proc": call("mount", b"none", b"/tmp", b"proc", 0, None),
            "cgroup": call("mount", b"none", b"/tmp", b"cgroup", 0, None),
            "remount": call("mount", b"none", b"/sys", None, 32, None),
            "umount": call("umount2", b"/proc", 2),
            "pivot_root": call("pivot_root", b"/dev/shm", b"/dev/shm/old"),
            "chroot": call_apart("chroot", b"/tmp"),
            "fsopen": call("fsopen", b"tmpfs", 0),
        }

    def with_the_right(told: dict[str, Any]) -> dict[str, Any]:
        """In a world of its own anybody may, over what was made in there: so it is not for their arguments that these are refused outside of it."""
        import json

        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                found = {"made": call("unshare", told["flags"])}
                found["tmpfs"] = call("mount", b"none", b"/dev/shm", b"tmpfs", 0, None)
                os.mkdir("/dev/shm/old")
                found["pivot_root"] = call("pivot_root", b"/dev/shm", b"/dev/shm/old")
                os.write(writing, json.dumps(found).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            return json.loads(said.read())

    found = saw(try_all)
    assert set(found.values()) == {"EPERM"}, found
    assert saw(with_the_right, flags=NAMESPACES["user and mount"]) == {"made": "done", "tmpfs": "done", "pivot_root": "done"}


def test_a_file_cannot_be_opened_by_its_handle(saw: Saw) -> None:
    """The way out of containers that was called shocker."""

    def by_handle(told: dict[str, Any]) -> dict[str, Any]:
        import struct

        handle = struct.pack("IiII", 8, 1, 2, 0)  # inode 2: the root folder of most disks
        root = os.open("/", os.O_RDONLY)
        try:
            return {"open": call("open_by_handle_at", root, handle, 0)}
        finally:
            os.close(root)

    all_refused(saw(by_handle))


# --- capabilities, seccomp, namespaces ---------------------------------------------------------------------------------------------------------


def test_no_capability_is_held_and_the_bounding_set_has_but_what_the_agent_needs(saw: Saw) -> None:
    def sets(told: dict[str, Any]) -> dict[str, Any]:
        return {name: int(value, 16) for name, value in status().items() if name.startswith("Cap")}

    kill_setgid_setuid = 1 << 5 | 1 << 6 | 1 << 7
    assert saw(sets) == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": kill_setgid_setuid, "CapAmb": 0}


def in_a_namespace(told: dict[str, Any]) -> dict[str, Any]:
    """Each with arguments that are good: who is told that they are bad was not refused."""
    import json
    import struct

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made = call("unshare", told["flags"])
            found = {
                "kill the agent": attempt(lambda: os.kill(1, 9)),
                "trace the agent": call("ptrace", 0x4206, 1, 0, 0),
                "the agent's memory": opened("/proc/1/mem", os.O_RDONLY),
                "the agent's pipe": opened("/proc/1/fd/1", os.O_WRONLY),
                "a program of the image": opened("/usr/bin/env", os.O_WRONLY | os.O_APPEND),
                "a module": call("finit_module", -1, b"", 0),
                "reboot": call("reboot", 0xFEE1DEAD, 672274793, 0, 0),  # turns Ctrl-Alt-Del off, for whoever may
                "a disk": attempt(lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0))),
                "bpf": call("bpf", 0, struct.pack("5I", 2, 4, 4, 1, 0), 20),  # a small array
                "sysrq": opened("/proc/sysrq-trigger", os.O_WRONLY),
            }
            os.write(writing, json.dumps({"made": made, "found": found}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 8192)
    os.close(reading)
    return json.loads(said)


NAMESPACES = {"user": 0x10000000, "user and mount": 0x10020000, "user and network": 0x50000000, "user and pid": 0x30000000}


@pytest.mark.parametrize("kind", NAMESPACES)
def test_in_a_namespace_of_its_own_code_is_no_more_than_before(kind: str, saw: Saw) -> None:
    """gVisor lets anybody have a user namespace, as Linux does: its administrator has rights in there, over what was made in there."""
    seen = saw(in_a_namespace, flags=NAMESPACES[kind])
    assert seen["made"] == "done"
    assert len(seen["found"]) == 10
    assert {name: why for name, why in seen["found"].items() if why not in ("EPERM", "EACCES")} == {}


def test_no_namespace_without_a_user_namespace(saw: Saw) -> None:
    def try_all(told: dict[str, Any]) -> dict[str, Any]:
        kinds = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "network": 0x40000000}
        return {name: call_apart("unshare", flag) for name, flag in kinds.items()}

    all_refused(saw(try_all))


def test_namespaces_of_the_agent_cannot_be_joined(saw: Saw) -> None:
    def join(told: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind in ("mnt", "net", "pid", "user", "uts", "ipc"):
            try:
                handle = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
            except OSError:
                found[kind] = "EACCES"
                continue
            found[kind] = call_apart("setns", handle, 0)
            os.close(handle)
        return found

    all_refused(saw(join))


# --- devices ---------------------------------------------------------------------------------------------------------------------------------


def test_no_device_can_be_made(saw: Saw) -> None:
    def make(told: dict[str, Any]) -> dict[str, Any]:
        kinds = {"disk": (0o60600, 8, 0), "memory": (0o20600, 1, 1), "kvm": (0o20600, 10, 232), "tun": (0o20600, 10, 200), "fuse": (0o20600, 10, 229)}
        return {name: attempt(lambda k=k: os.mknod("/tmp/device", k[0], os.makedev(k[1], k[2]))) for name, k in kinds.items()}

    all_refused(saw(make))


def test_devices_that_lead_to_hardware_are_not_there(saw: Saw) -> None:
    def open_all(told: dict[str, Any]) -> dict[str, Any]:
        names = "mem kmem port kmsg kvm sda vda nvme0n1 loop-control mapper/control vhost-net uinput input/event0 snd nvidia0 dri/card0 tty0 console"
        return {name: opened(f"/dev/{name}") for name in names.split()}

    all_refused({name: why if why != "ENXIO" else "ENODEV" for name, why in saw(open_all).items()})


def test_a_network_card_cannot_be_made_with_tun(saw: Saw) -> None:
    """The device is not there: its card could not be saved, and would keep the machine from sleeping for good."""

    def find(told: dict[str, Any]) -> dict[str, Any]:
        return {path: opened(path) for path in ("/dev/net/tun", "/dev/char/10:200", "/dev/fuse", "/dev/char/10:229")}

    assert set(saw(find).values()) == {"ENOENT"}


def test_a_network_card_cannot_be_made_in_a_namespace_of_its_own_and_the_machine_sleeps(fresh: Machine) -> None:
    """There everybody has the right that a card takes, and may mount a devtmpfs. What does it lives on while the machine is saved."""

    def stay(told: dict[str, Any]) -> dict[str, Any]:
        import fcntl
        import json
        import struct
        import time

        def card(path: str) -> str:
            def make() -> None:
                fcntl.ioctl(os.open(path, os.O_RDWR), 0x400454CA, struct.pack("16sH22s", b"tun0", 0x1001, b""))  # TUNSETIFF

            return attempt(make)

        reading, writing = os.pipe()
        os.makedirs("/tmp/dev", exist_ok=True)
        if os.fork() == 0:
            try:
                found = {"made": call("unshare", told["flags"])}
                if told["root"]:
                    for name, line in {"setgroups": "deny", "uid_map": "0 1000 1", "gid_map": "0 1000 1"}.items():
                        with open(f"/proc/self/{name}", "w") as file:
                            file.write(line)
                found["of /dev"] = card("/dev/net/tun")
                found["made in /dev"] = attempt(lambda: os.mknod("/dev/own", 0o20666, os.makedev(10, 200)))
                found["devtmpfs"] = call("mount", b"none", b"/tmp/dev", b"devtmpfs", 0, None)
                found["null"] = opened("/tmp/dev/null")
                found["of devtmpfs"] = card("/tmp/dev/net/tun")
                found["fuse of devtmpfs"] = opened("/tmp/dev/fuse")
                found["made in devtmpfs"] = attempt(lambda: os.mknod("/tmp/dev/own", 0o20666, os.makedev(10, 200)))
                found["tmpfs"] = call("mount", b"none", b"/tmp/dev", b"tmpfs", 0, None)
                found["made in tmpfs"] = attempt(lambda: os.mknod("/tmp/dev/own", 0o20666, os.makedev(10, 200)))
                os.write(writing, json.dumps(found).encode())
                while True:
                    time.sleep(1)
            finally:
                os._exit(0)
        os.close(writing)
        said = os.read(reading, 8192)
        os.close(reading)
        return json.loads(said)

    done = dict.fromkeys(("made", "devtmpfs", "null", "tmpfs"), "done")
    gone = dict.fromkeys(("of /dev", "of devtmpfs", "fuse of devtmpfs"), "ENOENT")
    refused = dict.fromkeys(("made in /dev", "made in devtmpfs", "made in tmpfs"), "EPERM")
    for root in (False, True, True):  # the last time in a machine that has slept
        seen = look(stay, in_machine(fresh), {"flags": 0x50020000, "root": root}, 30)  # user, mount and network
        assert seen.fact == done | gone | refused, seen
        assert fresh.hibernate().state == "asleep"


def test_fuse_gives_no_file_system(saw: Saw) -> None:
    """The device is not there, and to mount with it is refused like any mount."""

    def mount(told: dict[str, Any]) -> dict[str, Any]:
        return {"mount": call("mount", b"fuse", b"/tmp", b"fuse", 0, b"fd=0,rootmode=40000,user_id=0,group_id=0")}

    all_refused(saw(mount))


# --- cgroups, core_pattern, /proc and /sys ---------------------------------------------------------------------------------------------------


def test_no_cgroup_can_be_written(saw: Saw) -> None:
    def look_around(told: dict[str, Any]) -> dict[str, Any]:
        found = [os.path.join(folder, name) for folder, _, names in os.walk("/sys/fs/cgroup") for name in names]
        usual = [
            "/sys/fs/cgroup/release_agent",
            "/sys/fs/cgroup/memory/release_agent",
            "/sys/fs/cgroup/cgroup.procs",
            "/sys/fs/cgroup/rdma/release_agent",
        ]
        return {path: opened(path, os.O_WRONLY) for path in (*found, *usual)} | {"made": attempt(lambda: os.mkdir("/sys/fs/cgroup/x"))}

    all_refused(saw(look_around))


def test_control_groups_that_are_mounted_in_a_namespace_of_its_own_open_nothing(fresh: Machine) -> None:
    """The way out of containers by a release_agent: a group is made, and the host is to start a program when it is empty."""

    def mount(told: dict[str, Any]) -> dict[str, Any]:
        import json

        os.mkdir("/tmp/groups")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                made, mounted = call("unshare", told["flags"]), dict[str, Any]()
                for kind, which in told["kinds"]:
                    if call("mount", b"none", b"/tmp/groups", kind.encode(), 0, which.encode()) != "done":
                        continue
                    agent = os.O_WRONLY | os.O_CREAT
                    limits = [name for name in os.listdir("/tmp/groups") if name.startswith(("memory.", "pids.", "cpu."))]
                    mounted[which] = {
                        "a group": attempt(lambda: os.mkdir("/tmp/groups/group")),
                        "its agent": opened("/tmp/groups/release_agent", agent),
                        "its notice": opened("/tmp/groups/notify_on_release", agent),
                        **{name: opened(f"/tmp/groups/{name}", os.O_WRONLY) for name in limits},
                    }
                    call("umount2", b"/tmp/groups", 2)
                os.write(writing, json.dumps({"made": made, "mounted": mounted}).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            return json.loads(said.read())

    names = ("memory", "pids", "cpu", "devices", "rdma", "all", "none,name=own")
    kinds = [("cgroup", name) for name in names] + [("cgroup2", "")]
    seen = look(mount, in_machine(fresh), {"flags": NAMESPACES["user and mount"], "kinds": kinds}, 30)
    assert seen.fact["made"] == "done", seen
    assert {"memory", "pids", "none,name=own"} <= set(seen.fact["mounted"]), "some can be, and so there is something to look at"
    through = {(which, name): why for which, found in seen.fact["mounted"].items() for name, why in found.items() if why not in REFUSED}
    assert through == {}


SWITCHES = [
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/1/oom_score_adj",
    "/proc/1/attr/current",
    "/proc/1/setgroups",
    "/proc/1/uid_map",
    "/proc/1/clear_refs",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/power/state",
    "/sys/module/kvm/parameters/nx_huge_pages",
]


@pytest.mark.parametrize("path", SWITCHES)
def test_switches_of_the_system_cannot_be_opened_for_writing(path: str, saw: Saw) -> None:
    def open_it(told: dict[str, Any]) -> dict[str, Any]:
        return {told["path"]: opened(told["path"], os.O_WRONLY)}

    all_refused(saw(open_it, path=path))


def test_nothing_can_be_made_in_folders_of_the_system(saw: Saw) -> None:
    def make(told: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for folder in [root for top in ("/proc/sys", "/sys") for root, _, _ in os.walk(top)]:
            found[f"{folder}, a folder"] = attempt(lambda folder=folder: os.mkdir(f"{folder}/everforge"))
            found[f"{folder}, a file"] = opened(f"{folder}/everforge", os.O_WRONLY | os.O_CREAT)
        return found

    found = saw(make)
    assert {"/proc/sys/kernel, a file", "/sys/class, a folder"} <= set(found)
    all_refused(found)


def test_every_file_of_proc_and_sys_that_can_be_written_is_the_processs_own_or_the_machines_loopback(saw: Saw) -> None:
    """Not a list of what is known to be bad, but of all there is: what opens for writing is named here, and why."""

    def writable(told: dict[str, Any]) -> dict[str, Any]:
        import stat

        walked, found = list[str](), list[str]()
        for root in ("/proc", "/sys"):
            for folder, folders, names in os.walk(root):
                if folder == "/proc":
                    folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
                for name in names:
                    path = f"{folder}/{name}"
                    walked.append(path)
                    if not stat.S_ISLNK(os.lstat(path).st_mode) and opened(path, os.O_WRONLY) == "done":
                        found.append(path)
        return {"walked": walked, "found": found}

    seen = saw(writable)
    assert len(seen["walked"]) > 50
    assert {"/proc/meminfo", "/proc/sys/kernel/hostname"} <= set(seen["walked"])
    assert seen["found"] == []


def test_memory_and_addresses_of_the_kernel_cannot_be_read(saw: Saw) -> None:
    def read_all(told: dict[str, Any]) -> dict[str, Any]:
        paths = [
            "/proc/kcore",
            "/dev/mem",
            "/proc/kallsyms",
            "/proc/kmsg",
            "/proc/iomem",
            "/proc/vmallocinfo",
            "/proc/slabinfo",
            "/proc/keys",
            "/proc/timer_list",
        ]
        return {path: opened(path, os.O_RDONLY) for path in paths}

    all_refused(saw(read_all))


# --- sockets of engines --------------------------------------------------------------------------------------------------------------------------


def test_no_socket_or_credential_of_a_container_engine_or_cluster_is_there(saw: Saw) -> None:
    def look_for(told: dict[str, Any]) -> dict[str, Any]:
        sockets = [
            "/var/run/docker.sock",
            "/run/containerd/containerd.sock",
            "/run/podman/podman.sock",
            "/run/crio/crio.sock",
            "/run/systemd/private",
        ]
        files = [
            "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "/.dockerenv",
            "/run/.containerenv",
            "/root/.ssh",
            "/root/.aws",
            "/etc/kubernetes",
        ]
        return {path: heard(path)["why"] for path in sockets} | {path: attempt(lambda path=path: os.stat(path)) for path in files}

    all_refused(saw(look_for))


def test_no_unix_socket_file_is_in_the_image(saw: Saw) -> None:
    def search(told: dict[str, Any]) -> dict[str, Any]:
        import stat

        found = list[str]()
        for folder, folders, names in os.walk("/"):
            folders[:] = [name for name in folders if folder != "/" or name not in ("proc", "sys")]
            found += [f"{folder}/{name}" for name in names if stat.S_ISSOCK(os.lstat(f"{folder}/{name}").st_mode)]
        return {"found": found}

    assert saw(search) == {"found": []}


# --- the parts of a kernel that break-outs went through ------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Any, ...]] = {
    "init_module": (None, 0, b""),
    "finit_module": (-1, b"", 0),
    "bpf": (0, None, 0),
    "userfaultfd": (0,),
    "io_uring_setup": (1, None),
    "perf_event_open": (None, 0, -1, -1, 0),
    "kexec_load": (0, 0, None, 0xFFFF),
    "reboot": (0, 0, 0, 0),
    "clock_settime": (0, None),
    "adjtimex": (b"\x01" + b"\0" * 207,),
    "sethostname": (b"x", 1),
    "swapon": (b"/tmp/swap", 0),
    "acct": (b"/tmp/acct",),
    "iopl": (3,),
    "add_key": (b"user", b"x", b"y", 1, -2),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_system_call_is_refused(name: str, saw: Saw) -> None:
    def make(told: dict[str, Any]) -> dict[str, Any]:
        given = [one.encode("latin-1") if isinstance(one, str) else one for one in told["given"]]
        return {told["name"]: call_apart(told["name"], *given)}

    given = [one.decode("latin-1") if isinstance(one, bytes) else one for one in CALLS[name]]
    found = saw(make, name=name, given=given)
    assert found[name] in REFUSED, found


def test_keys_of_the_kernel_are_the_processs_own(saw: Saw) -> None:
    """A session keyring can be asked for, and holds nothing; what others keep there cannot be."""

    def keys(told: dict[str, Any]) -> dict[str, Any]:
        return {
            "read": call("keyctl", 11, -3, None, 0),
            "search": call("keyctl", 10, -3, b"user", b"x", 0),
            "user keyring": call("keyctl", 11, -4, None, 0),
        }

    all_refused(saw(keys))


def test_a_personality_changes_nothing_but_the_process_that_takes_it(saw: Saw) -> None:
    def take(told: dict[str, Any]) -> dict[str, Any]:
        import ctypes

        before = ctypes.CDLL(None).personality(0xFFFFFFFF)
        took = attempt(
            lambda: None if ctypes.CDLL(None, use_errno=True).personality(0x0040000) >= 0 else (_ for _ in ()).throw(OSError(1, "refused"))
        )
        return {"before": before, "took": took, "after": ctypes.CDLL(None).personality(0xFFFFFFFF)}

    found = saw(take)
    assert found["after"] == found["before"] == 0


# --- pid 1 ---------------------------------------------------------------------------------------------------------------------------------------


def test_an_end_that_code_only_prints_is_none(fresh: Machine) -> None:
    """What it wrote looks like a good end, and then its interpreter is gone: the agent tells what became of it."""
    pretended = json.dumps({"type": "result", "instruction": 0, "result": {"end": "value", "value": "42"}})
    told = fresh.run(f"import os\nos.write(1, {pretended!r}.encode() + b'\\n')\nos._exit(0)")
    assert (told.end, told.value) == ("error", None)
    assert "InterpreterDied" in (told.error or "")
    assert pretended in told.stdout
    assert fresh.run("6 * 7").value == "42"


def test_the_agent_cannot_be_traced_read_written_or_signalled(saw: Saw) -> None:
    def take_over(told: dict[str, Any]) -> dict[str, Any]:
        import ctypes

        buffer = ctypes.create_string_buffer(8)
        here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
        there = (ctypes.c_size_t * 2)(0x400000, 8)
        found = {
            "attach": call_apart("ptrace", 16, 1, 0, 0),
            "seize": call_apart("ptrace", 0x4206, 1, 0, 0),
            "read": call_apart("process_vm_readv", 1, here, 1, there, 1, 0),
            "write": call_apart("process_vm_writev", 1, here, 1, there, 1, 0),
            "take a descriptor": call_apart("pidfd_getfd", os.pidfd_open(1), 0, 0)
            if attempt(lambda: os.close(os.pidfd_open(1))) == "done"
            else "EPERM",
        }
        found |= {f"signal {number}": attempt(lambda number=number: os.kill(1, number)) for number in (0, 1, 2, 9, 11, 15, 19)}
        found |= {f"/proc/1/{name}": opened(f"/proc/1/{name}", os.O_RDONLY) for name in ("mem", "environ", "maps", "auxv", "fd/0", "fd/1", "fd/2")}
        found |= {f"/proc/1/{name}": attempt(lambda name=name: os.listdir(f"/proc/1/{name}")) for name in ("root", "cwd", "fd", "map_files")}
        return found | {"nice": attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))}

    all_refused(saw(take_over))


# --- descriptors that leaked ---------------------------------------------------------------------------------------------------------------------


def test_no_descriptor_of_the_engine_or_the_agent_is_open_in_code_or_in_what_it_starts(machine: Machine, saw: Saw) -> None:
    """The way out of runc that had a folder of the host left open. Here every descriptor is named."""

    def mine(told: dict[str, Any]) -> dict[str, Any]:
        import subprocess

        def describe(lines: list[str]) -> list[str]:
            return sorted({line.split(":")[0].split(" ")[0] for line in lines})

        own = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]
        code = "import os; print(*[os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + n)], sep='\\n')"
        child = subprocess.run(["python3", "-c", code], capture_output=True, text=True, close_fds=False).stdout.splitlines()
        return {"own": describe(own), "child": describe(child), "folders": [path for path in own if os.path.isdir(path)]}

    found = saw(mine)
    assert set(found["own"]) <= {"/dev/null", "pipe", "socket", "/memfd", "anon_inode", "/proc/self/fd"}, found
    assert set(found["child"]) <= {"/dev/null", "pipe"}, found
    assert found["folders"] == []


def test_no_process_that_code_can_see_holds_a_descriptor_of_the_host(saw: Saw) -> None:
    def everybodys(told: dict[str, Any]) -> dict[str, Any]:
        return {pid: attempt(lambda pid=pid: os.listdir(f"/proc/{pid}/fd")) for pid in pids() if status(pid).get("Uid", "1000").split()[0] != "1000"}

    all_refused(saw(everybodys))


# --- files and archives that come in -----------------------------------------------------------------------------------------------------------


SWAPPING = """
import os, threading
os.makedirs("own", exist_ok=True)
os.symlink("own", "target")
over, turns = threading.Event(), 0
def swap():
    global turns
    while not over.is_set():
        for place in ("/etc", "own"):
            os.symlink(place, "next")
            os.rename("next", "target")  # at once: there is always one of the two
        turns += 1
swapping = threading.Thread(target=swap, daemon=True)
swapping.start()
"""
UPLOADS_MAX = 400  # far more than it takes until some went each way


def test_an_upload_through_a_link_that_changes_meanwhile_has_no_more_rights_than_the_code(fresh: Machine) -> None:
    """It follows links, as a program of the user does. Whoever looked first and wrote then, with the agent's rights, would write into /etc, which is
    root's alone."""
    assert fresh.run(SWAPPING).ok
    outcomes = {"done": 0, "refused": 0}
    for number in range(UPLOADS_MAX):
        try:
            fresh.files.write(f"target/planted-{number}", "x")
            outcomes["done"] += 1
        except FileRefused:
            outcomes["refused"] += 1
        if min(outcomes.values()) >= 10:
            break
    assert min(outcomes.values()) >= 10, outcomes
    assert fresh.run("over.set(); swapping.join(); turns > 100").value == "True", "there was a race"
    assert fresh.run("len(os.listdir('own'))").value == str(outcomes["done"]), "what was done is where the user may write"
    assert fresh.run("[n for n in os.listdir('/etc') if n.startswith('planted')]").value == "[]"
    assert fresh.run("os.access('/etc', os.W_OK), os.stat('/etc').st_uid").value == "(False, 0)"
    assert not [name for name in os.listdir("/etc") if name.startswith("planted")], "and this computer's own"


def test_a_file_that_is_uploaded_belongs_to_the_user_and_is_never_setuid(fresh: Machine, served: CommandServer) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("rooted")
        entry.mode, entry.uid, entry.gid, entry.size = 0o6755, 0, 0, 2
        archive.addfile(entry, io.BytesIO(b"hi"))
    url = f"{served.url}/v1/machine/{fresh.name}/archive?format=tar.gz"
    answer = httpx2.put(url, content=packed.getvalue(), headers={"Authorization": f"Bearer {served.token}"})
    assert answer.status_code == 200, answer.text
    fresh.files.write("plain", b"hi")
    found = fresh.run("import os; [(os.stat(n).st_uid, oct(os.stat(n).st_mode & 0o6000)) for n in ('rooted', 'plain')]").value
    assert found == "[(1000, '0o0'), (1000, '0o0')]"
