"""trust.md, Limits: whatever code in a machine takes, the machine answers again or says why not, its neighbour hardly notices, and the server's memory
stays flat."""

from __future__ import annotations

import io
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from everforge import Everforge, Machine
from everforge.machines.service import Machines
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Ended, Output
from kit.bombing import SETTINGS, bomb, neighbours
from kit.commandserver import CommandServer
from kit.length import LONG
from kit.real import TESTED

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

LINE_BYTES_MAX = 64 * 1024  # of a piece of a long line
FLAT_MB = 96  # what the server may have more at any moment: a result of 8 MB, the most there is, in all the forms that it has on its way

REAL_FORK_BOMB = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
FORK_BOMB = """
import os, time
made = 0
while True:
    try:
        if os.fork() == 0:
            while True: time.sleep(1)
        made += 1
    except OSError as e:
        print('stopped after', made, e); break
"""
MEMORY_BOMB = "hoard = []\nwhile True: hoard.append(bytearray(16 << 20))"
MEMORY_BOMB_OF_MANY = """
import os, time
for _ in range(12):
    if os.fork() == 0:
        hoard = bytearray(100 << 20)
        for i in range(0, len(hoard), 4096): hoard[i] = 1
        time.sleep(60)
time.sleep(8)
"""
DISK_FILL = "with open('fill', 'wb') as f:\n    while True: f.write(bytes(1 << 20))"
FD_BOMB = "import os\nheld = []\nwhile True: held.append(os.open('/dev/null', os.O_RDONLY))"
FLOOD = "import sys\nline = 'x' * 999 + '\\n'\nfor _ in range(2_000_000): sys.stdout.write(line)\n'printed'"
ONE_LINE = "print('y' * (100 << 20), end='')\n'one line'"
BAD_UTF8 = "import os\nos.write(1, b'caf\\xe9 \\xff\\xfe\\xf0\\x9f\\x98\\n'); os.write(1, b'\\x00\\x1b[31m fine\\n')\n'bytes'"


# --- beside a neighbour whose answers are timed -----------------------------------------------------------------------------------------


async def test_a_fork_bomb_is_stopped_at_its_limit(data: Path) -> None:
    ended = await bomb(data, FORK_BOMB)
    assert ended.end == "value", ended


async def test_a_fork_bomb_that_does_nothing_else_ends_and_the_machine_answers_again(data: Path) -> None:
    ended = await bomb(data, REAL_FORK_BOMB, timeout_seconds=5, memory_mb=1024, processes=TESTED.processes)
    said = {
        "timed_out": "Timed out after 5 s",
        "error": "InterpreterDied",
        "lost": "over its limit of 1024 MB",
    }  # every end that it may have, and why
    assert said[ended.end] in (ended.error or ""), ended


LOOPS = "import os\nfor _ in range(7): os.fork() or exec('while True: pass')\nwhile True: pass"


async def test_a_machine_that_computes_without_a_pause_gives_way_to_its_neighbour(data: Path) -> None:
    """On a computer with few processors it may have all of them, and more processes that want them."""
    ended = await bomb(data, LOOPS, timeout_seconds=6)
    assert ended.end == "timed_out", ended


FLOODS = {
    "long lines": "while True: print('x' * 999)",
    "the smallest pieces": "import sys\nwhile True: print('a'); print('b', file=sys.stderr)",
    "large results": "class Many:\n    def _repr_json_(self): return dict.fromkeys(map(str, range(110_000)))\nwhile True: display(Many())",
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_waits_while_its_neighbour_is_in_use(name: str, data: Path) -> None:
    """It stands still for the most part, and ends at its deadline with all that it had."""
    ended = await bomb(data, FLOODS[name], timeout_seconds=6)
    assert (ended.end, ended.error) == ("timed_out", "Timed out after 6 s"), ended


async def test_a_memory_bomb_raises_memory_error(data: Path) -> None:
    ended = await bomb(data, MEMORY_BOMB)
    assert ended.end == "error", ended
    assert "MemoryError" in (ended.error or "")


async def test_a_memory_bomb_of_many_processes_is_ended_and_said_so(data: Path) -> None:
    ended = await bomb(data, MEMORY_BOMB_OF_MANY, processes=32)  # more than it makes: memory is what it runs out of
    match ended.end:
        case "value":  # the interpreter lives, and with it what it had: its processes were ended
            assert f"{SETTINGS.memory_mb} MB allowed" in (ended.note or ""), ended
        case "error":  # the interpreter was ended itself
            assert "InterpreterDied: the interpreter died: out of memory" in (ended.error or ""), ended
        case _:  # faster than anyone could look
            assert (ended.end, ended.error is not None and f"over its limit of {SETTINGS.memory_mb} MB" in ended.error) == ("lost", True), ended


async def test_a_full_machine_disk_raises_enospc(data: Path) -> None:
    ended = await bomb(data, DISK_FILL)
    assert "No space left" in (ended.error or ""), ended


async def test_a_descriptor_bomb_raises_emfile(data: Path) -> None:
    ended = await bomb(data, FD_BOMB)
    assert "Too many open files" in (ended.error or ""), ended


@pytest.mark.timeout(400)
async def test_two_gigabytes_of_output_are_cut_and_said_so(data: Path) -> None:
    ended = await bomb(data, FLOOD, timeout_seconds=240, long=True)
    assert ended.end == "value", ended
    assert "dropped" in (ended.note or "")


async def test_a_hundred_megabyte_line_comes_in_pieces_and_is_cut_at_the_limit(data: Path) -> None:
    ended = await bomb(data, ONE_LINE, timeout_seconds=60, look=check_one_line, memory_mb=1024)
    assert (ended.end, ended.value) == ("value", "'one line'")


async def check_one_line(machines: Machines, name: str, ended: Ended) -> None:
    """On the tape is as much as the limit lets through, nothing else, and the note counts the rest."""
    outputs = [e async for e in machines.read(name) if isinstance(e, Output) and e.instruction == ended.instruction]
    pieces = [line for e in outputs for line in e.lines]
    assert max(map(len, pieces)) <= LINE_BYTES_MAX
    assert "".join(pieces) == "y" * SETTINGS.output_bytes_max
    assert [e.first_seq for e in outputs] == [sum(e.width for e in outputs[:i]) for i in range(len(outputs))]
    assert all(e.partial for e in outputs), "pieces of one line, and its newline never came"
    dropped = (100 << 20) - SETTINGS.output_bytes_max
    assert f"{dropped} bytes of output past the limit of {SETTINGS.output_bytes_max} were dropped" in (ended.note or ""), ended


async def test_invalid_utf8_is_replaced_and_control_characters_stay(data: Path) -> None:
    async with neighbours(data) as (machines, bombed, _):
        ended = await machines.run(bombed, BAD_UTF8)
        lines = [line async for e in machines.read(bombed) if e.kind == "output" for line in e.lines]  # type: ignore[attr-defined]
    assert ended.value == "'bytes'"
    assert lines[0].startswith("caf\ufffd ")
    assert lines[1] == "\x00\x1b[31m fine"


# --- on a server that is a process of its own, whose memory is watched -------------------------------------------------------------------


@dataclass(frozen=True)
class Bomb:
    code: str
    end: str
    word: str  # of what it is told
    seconds: float = 10
    memory_mb: int = 512
    kept: bool = True  # the interpreter lives, and what it had


QUICK = {
    "threads without end": Bomb(
        """
import threading
over = threading.Event()
try:
    while True: threading.Thread(target=over.wait, daemon=True).start()
finally:
    over.set()
""",
        "error",
        "can't start new thread",
    ),
    "a repr of a gigabyte": Bomb("class R:\n    def __repr__(self): return 'x' * (1 << 30)\nR()", "error", "MemoryError"),
    "a repr of half of its memory": Bomb("class R:\n    def __repr__(self): return 'x' * (100 << 20)\nR()", "value", "cut"),
    "deep recursion": Bomb("def f(): return f()\nf()", "error", "RecursionError"),
    "deep recursion in C": Bomb(
        "import sys\nsys.setrecursionlimit(1 << 30)\na = []\nfor _ in range(200_000): a = [a]\nrepr(a)", "error", "", kept=False
    ),
    "while True": Bomb("while True: pass", "timed_out", "Timed out", seconds=1),
    "signals ignored": Bomb(
        """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
        "timed_out",
        "killed",
        seconds=1,
        kept=False,
    ),
    "every exception caught": Bomb(
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass", "timed_out", "killed", seconds=1, kept=False
    ),
    "output without end": Bomb("while True: print('x' * 999)", "timed_out", "", seconds=3),
    "a line without end": Bomb("import sys\nwhile True: sys.stdout.write('y' * 65536)", "timed_out", "", seconds=3),
    "NUL and ANSI without end": Bomb("import os\nwhile True: os.write(1, b'\\0\\x1b[2J\\xff\\xfe' * 4096)", "timed_out", "", seconds=2),
    "memory outside of the interpreter": Bomb(
        "import os\nheld, block = [], bytes(1 << 20)\nwhile True:\n    held.append(os.memfd_create('b'))\n    for _ in range(16): os.write(held[-1], block)",
        "error",
        "out of memory",
        kept=False,
    ),
    "a disk in memory, in a namespace of its own": Bomb(
        """
import ctypes, os
libc = ctypes.CDLL(None)
if os.fork() == 0:
    libc.unshare(0x10020000); os.makedirs('/tmp/m', exist_ok=True); libc.mount(b'none', b'/tmp/m', b'tmpfs', 0, None)
    with open('/tmp/m/fill', 'wb') as f:
        for _ in range(2048): f.write(bytes(1 << 20))
    os._exit(0)
os.wait()
""",
        "",
        "",
        kept=False,
    ),
    "shared memory": Bomb("with open('/dev/shm/fill', 'wb') as f:\n    while True: f.write(bytes(1 << 20))", "error", "No space left"),
}

SEGMENTS = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.shmat.restype, libc.shmat.argtypes, libc.shmdt.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p, ctypes.c_int), (ctypes.c_void_p,)
def leave(mb):
    at = libc.shmat(libc.shmget(0, mb << 20, 0o1600), None, 0)
    ctypes.memset(at, 1, mb << 20)
    libc.shmdt(at)
"""
QUICK |= {
    "segments of shared memory that nobody holds": Bomb(
        f"{SEGMENTS}for _ in range(9): leave(64)\ntime.sleep(1)", "value", "removed shared memory that no process was attached to"
    ),
    "segments of shared memory without end": Bomb(
        f"{SEGMENTS}while True: leave(16)", "error", "removed shared memory that no process was attached to", kept=False
    ),
}


def peak_mb(server: CommandServer) -> int:
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())
    return int(kilobytes) // 1024


@pytest.fixture
def flat(served: CommandServer) -> Iterator[None]:
    """The server's memory is the same at the end, and was not much more at any time."""
    Path(f"/proc/{served.process.pid}/clear_refs").write_text("5")
    before = peak_mb(served)
    yield
    assert peak_mb(served) - before < FLAT_MB


@pytest.mark.usefixtures("flat")
@pytest.mark.parametrize("name", QUICK)
def test_the_machine_answers_again_and_the_server_stays_as_it_was(name: str, server: Everforge, neighbour: Machine) -> None:
    one = QUICK[name]
    machine = server.create(memory_mb=one.memory_mb, processes=32)
    try:
        assert machine.run("x = 1").ok
        running = machine.exec(one.code, timeout_seconds=one.seconds)
        assert neighbour.run("6 * 7", timeout_seconds=60).value == "42", "the neighbour is served meanwhile"
        result = running.result(wait_seconds=120)
        if one.end:
            assert result.end == one.end, result
        assert one.word in f"{result.error} {result.note}", result
        after = machine.run("x", timeout_seconds=60)
        if one.kept:
            assert after.value == "1", after
        elif after.value != "1":
            assert "new interpreter" in (after.note or ""), after
            assert "InterpreterDied" in f"{result.error}" or result.end == "timed_out", result
    finally:
        machine.delete()


@pytest.mark.usefixtures("flat")
def test_files_without_number_end_with_the_machines_memory_and_it_says_so(server: Everforge) -> None:
    """The sandbox's kernel keeps names in memory. A machine that fills it with them is lost, says why, and can be taken back."""
    machine = server.create(memory_mb=128)
    try:
        assert machine.run("x = 1").ok
        machine.snapshot("before")
        code = "import os\nos.mkdir('many')\nfor n in range(10_000_000): os.close(os.open(f'many/{n:0200}', os.O_CREAT | os.O_WRONLY))"
        result = machine.run(code, timeout_seconds=120)
        assert (result.end, "over its limit of 128 MB" in (result.error or "")) == ("lost", True), result
        assert machine.info().state == "broken"
        with pytest.raises(EverforgeError, match="before"):
            machine.run("x")
        machine.rollback("before")
        assert machine.run("x").value == "1"
    finally:
        machine.delete()


@pytest.mark.skipif(not LONG, reason="make test-long")
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("flat")
def test_ten_gigabytes_of_output_are_cut_and_said_so(server: Everforge) -> None:
    machine = server.create()
    code = "import sys\nline = 'x' * 99_999 + '\\n'\nfor _ in range(100_000): sys.stdout.write(line)\n'printed'"
    result = machine.exec(code, timeout_seconds=1000).result(wait_seconds=1100)
    assert (result.value, "dropped" in (result.note or "")) == ("'printed'", True)
    machine.delete()


# --- archives ------------------------------------------------------------------------------------------------------------------------------


def tar_of(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry, b""


def file(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def device(name: str) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.devmajor, entry.devminor = tarfile.BLKTYPE, 8, 0
    return entry, b""


def zip_of(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def zip_with_link() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo("out")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc")
        archive.writestr("out/planted", "x")
    return packed.getvalue()


ARCHIVES = {
    "dots": ("tar.gz", tar_of(file("../../planted"))),
    "dots in the middle": ("tar.gz", tar_of(file("a/../../../planted"))),
    "a path from the root": ("tar.gz", tar_of(file("/etc/planted"))),
    "through a link": ("tar.gz", tar_of(link("out", "/etc"), file("out/planted"))),
    "through two links": ("tar.gz", tar_of(link("a", ".."), link("b", "a/.."), file("b/planted"))),
    "a hard link out": ("tar.gz", tar_of(link("passwords", "/etc/passwd", tarfile.LNKTYPE))),
    "a disk": ("tar.gz", tar_of(device("disk"))),
    "dots in a zip": ("zip", zip_of(**{"../../planted": b"x"})),
    "a link in a zip": ("zip", zip_with_link()),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_climbs_out_is_refused_and_leaves_nothing(name: str, served: CommandServer, machine: Machine) -> None:
    form, packed = ARCHIVES[name]
    machine.run("import os; os.makedirs('unpacked', exist_ok=True)")
    url = f"{served.url}/v1/machine/{machine.name}/archive?format={form}&path=unpacked"
    answer = httpx2.put(url, content=packed, headers={"Authorization": f"Bearer {served.token}"}, timeout=60)
    found = machine.run(
        "[os.path.join(f, n) for r in ('/etc', '/home', '/tmp') for f, d, ns in os.walk(r) for n in (*d, *ns) if n in ('planted', 'disk')]"
    )
    outside = [path for path in eval(found.value or "['?']") if not path.startswith("/home/user/unpacked/")]
    assert outside == [], answer.text
    assert (answer.status_code, answer.json()["code"]) == (400, "ArchiveRefused"), answer.text
    machine.run("import shutil; shutil.rmtree('unpacked')")


@pytest.mark.usefixtures("flat")
@pytest.mark.parametrize("form", ["zip", "tar.gz"])
def test_an_archive_that_grows_without_end_is_refused_and_the_disk_is_as_it_was(form: str, served: CommandServer, machine: Machine) -> None:
    """A few megabytes that want to be more than the machine's disk. (Small in here: 6 GB of zeros take a while to be written.)"""
    large = bytes(64 << 20)
    packed = zip_of(**{f"zeros-{n}": large for n in range(4)}) if form == "zip" else tar_of(*(file(f"zeros-{n}", large) for n in range(4)))
    assert len(packed) < 2 << 20
    filler = "handle = os.open('filler', os.O_CREAT | os.O_RDWR); os.posix_fallocate(handle, 0, os.statvfs('.').f_bavail * 4096 - (100 << 20)); os.close(handle)"
    assert machine.run(f"import os; {filler}", timeout_seconds=60).ok
    url = f"{served.url}/v1/machine/{machine.name}/archive?format={form}&path=bomb"
    answer = httpx2.put(url, content=packed, headers={"Authorization": f"Bearer {served.token}"}, timeout=120)
    assert answer.status_code >= 400, answer.text
    assert machine.run("os.unlink('filler'); [n for n in os.listdir('.') if n.startswith(('bomb', 'zeros'))]").value == "[]"
