"""trust.md's Egress, line by line: the attacks run inside a machine on the real engine, and their failure is the assertion."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from everforge.machines.requests import NewMachine
from everforge.store.quotas import Quota
from everforge.wire.ids import AccountId
from kit.outskirts import Outskirts, outskirts

pytestmark = [pytest.mark.gvisor, pytest.mark.asyncio(loop_scope="module")]

PATIENCE_SECONDS = 20.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def out() -> AsyncIterator[Outskirts]:
    async with outskirts() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def name(out: Outskirts) -> str:
    """One machine for all attacks that leave it as it was; each sets its policy first."""
    return await out.create()


@pytest.fixture(autouse=True)
def forgotten(out: Outskirts) -> None:
    """What earlier tests have dialled."""
    out.dialled.clear()
    out.web.heard.clear()
    out.names.clear()
    out.names.update({"example.com": ["93.184.216.34"], "other.example": ["93.184.216.34"]})


def hello(name: str) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


async def until(true: Any) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not true():
            await asyncio.sleep(0.01)


# --- policies ----------------------------------------------------------------------------------------------------------------------------------


async def test_none_reaches_nothing_and_says_so(out: Outskirts, name: str) -> None:
    await out.set(name, "none")
    status, said = await out.ask(name, "get('http://example.com/')")
    assert (status, out.dialled) == (403, [])
    assert "the egress policy of this machine is `none`" in said
    assert f"everforge egress allow {name} example.com" in said


async def test_an_allowlist_opens_what_it_names_and_a_change_counts_for_the_next_request(out: Outskirts, name: str) -> None:
    await out.set(name, "list", "example.com")
    assert await out.ask(name, "get('http://example.com/'), get('http://other.example/')[0]") == ((200, "hello"), 403)
    await out.set(name, "list", "*.example")
    assert await out.ask(name, "get('http://example.com/')[0], get('http://other.example/')") == (403, (200, "hello"))
    assert out.dialled == [("93.184.216.34", 80)] * 2


async def test_public_is_the_web_and_not_mail(out: Outskirts, name: str) -> None:
    await out.set(name, "public")
    assert await out.ask(name, "get('http://example.com/')") == (200, "hello")
    for port in (22, 25, 587):
        assert "403 the egress policy `public`" in await out.ask(name, f"tunnel('example.com:{port}')")
    assert out.dialled == [("93.184.216.34", 80)]


# --- closed addresses --------------------------------------------------------------------------------------------------------------------------

SPELLINGS = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001", "0x7f.1", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0.0.0.0", "0", "[::]", "localhost", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fe80::1]", "[fd00::1]",
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "168.63.129.16", "224.0.0.1",
]  # fmt: skip


async def test_this_computer_private_networks_and_metadata_are_closed_in_every_spelling_whatever_the_policy(out: Outskirts, name: str) -> None:
    out.names["localhost"] = ["127.0.0.1", "::1"]
    rules = [f"{host}:*" for host in SPELLINGS]
    for word, allow in (("public", []), ("list", rules)):
        await out.set(name, word, *allow)
        said = await out.ask(name, f"[(plain(h).split()[1], tunnel(f'{{h}}:443').split()[1]) for h in {SPELLINGS!r}]")
        assert said == [("403", "403")] * len(SPELLINGS), [pair for pair in zip(SPELLINGS, said, strict=True) if pair[1] != ("403", "403")]
    assert out.dialled == []


async def test_what_the_owner_of_the_server_opened_is_open_exactly(out: Outskirts, name: str) -> None:
    await out.set(name, "list", "127.0.0.1:*", "host.everforge.internal:*")
    for host in ("127.0.0.1", "host.everforge.internal"):
        # no_proxy keeps 127.0.0.1 for the machine's own servers: the door is asked by hand
        opened, shut = (f"plain('{host}:{port}')" for port in (out.web_port, out.shut_port))
        assert (await out.ask(name, opened)).endswith("hello")
        assert "closed to machines whatever their policy" in await out.ask(name, shut)
    assert out.shut.heard == []
    await out.set(name, "list", "example.com")
    assert await out.ask(name, f"get('http://host.everforge.internal:{out.web_port}/')[0]") == 403


async def test_a_name_that_moves_to_a_closed_address_after_its_check_gains_nothing(out: Outskirts, name: str) -> None:
    """DNS rebinding, with a resolver of the test's own that changes its answer."""
    await out.set(name, "public")
    assert await out.ask(name, "get('http://example.com/')") == (200, "hello")
    for answer in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]):
        out.names["example.com"] = answer
        status, said = await out.ask(name, "get('http://example.com/')")
        assert status == 403
        assert "closed to machines" in said
    assert out.dialled == [("93.184.216.34", 80)]


async def test_a_redirect_is_a_new_request_and_into_closed_addresses_it_is_refused(out: Outskirts, name: str) -> None:
    await out.set(name, "public")
    goals = [
        f"http://host.everforge.internal:{out.shut_port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
    ]
    for goal in goals:
        assert (await out.ask(name, f"get('http://example.com/redirect?to={goal}')"))[0] == 403
    assert out.dialled == [("93.184.216.34", 80)] * len(goals)
    assert out.shut.heard == []
    assert [a.verdict for a in await out.log(name)][: 2 * len(goals)] == ["refused", "allowed"] * len(goals)


# --- what is spoken ----------------------------------------------------------------------------------------------------------------------------


async def test_tls_for_another_name_than_connect_was_allowed_for_is_cut(out: Outskirts, name: str) -> None:
    await out.set(name, "list", "example.com")
    heard = len(out.web.heard)
    said = await out.ask(name, f"tunnel('example.com:443', {hello('other.example')!r})")
    assert said.partition("\r\n\r\n")[2] == ""
    assert len(out.web.heard) == heard
    [last, *_] = await out.log(name)
    assert (last.verdict, last.sent_bytes) == ("refused", 0)
    assert "other.example" in last.why


async def test_a_host_header_that_differs_from_the_address_is_refused(out: Outskirts, name: str) -> None:
    await out.set(name, "list", "example.com")
    said = await out.ask(name, "raw(b'GET http://example.com/ HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n')")
    assert said.startswith("HTTP/1.1 400")
    assert (out.dialled, out.web.heard) == ([], [])
    assert (await out.log(name))[0].verdict == "refused"


SMUGGLED = [
    b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
    b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET /evil HTTP/1.1\r\nHost: other.example\r\n\r\n",
    b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
    b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nX: a\rGET /evil HTTP/1.1\r\n\r\n",
]


async def test_smuggled_requests_reach_nobody(out: Outskirts, name: str) -> None:
    await out.set(name, "list", "example.com")
    for attack in SMUGGLED:
        assert (await out.ask(name, f"raw({attack!r})")).split()[1] in ("400", "501")
    # One behind another is a request of its own, and decided by itself.
    pair = b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\nGET http://other.example/evil HTTP/1.1\r\nHost: other.example\r\n\r\n"
    said = await out.ask(name, f"raw({pair!r})")
    assert "HTTP/1.1 200" in said
    assert "HTTP/1.1 403" in said
    assert not any("evil" in head for head in out.web.heard)


# --- around the door ---------------------------------------------------------------------------------------------------------------------------


async def test_there_is_no_way_around_the_door(out: Outskirts, name: str) -> None:
    """No route, no resolver, no raw sockets: though everything public is allowed."""
    await out.set(name, "public")
    told = await out.ask(
        name,
        """
tried = {
    "tcp": failing(lambda: socket.create_connection(("93.184.216.34", 80), 3)),
    "tcp6": failing(lambda: socket.create_connection(("2606:4700::1111", 80), 3)),
    "udp": failing(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53))),
    "dns": failing(lambda: socket.getaddrinfo("example.com", 80)),
    "raw": failing(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
    "packet": failing(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
    "vsock": failing(lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1))),
    "metadata": failing(lambda: socket.create_connection(("169.254.169.254", 80), 3)),
}
tried, [n for _, n in socket.if_nameindex()], open("/proc/net/route").read().count("\\n")
""",
    )
    tried, interfaces, routes = told
    assert None not in tried.values(), tried
    assert interfaces == ["lo"]
    assert routes <= 1  # the head of the table


async def test_two_machines_reach_neither_each_other_nor_the_server(out: Outskirts, name: str) -> None:
    await out.set(name, "public")
    other = await out.create("public")
    await out.ask(other, "listening = socket.create_server(('0.0.0.0', 8000)); where = socket.gethostname()")
    host = await out.ask(other, "where")
    own = [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    out.names.update({socket.gethostname(): own, "localhost": ["127.0.0.1"]})
    for place in ("127.0.0.1", "localhost", host, *own, socket.gethostname(), "host.everforge.internal"):
        for port in (8000, out.shut_port):
            said = await out.ask(name, f"tunnel('{place}:{port}').split()[1]")
            assert said == "403", (place, port)
    await out.set(name, "list", "127.0.0.1:*", *(f"{address}:*" for address in own))
    for place in ("127.0.0.1", *own):
        assert await out.ask(name, f"tunnel('{place}:{out.shut_port}').split()[1]") == "403"
    assert await out.ask(name, "failing(lambda: socket.create_connection(('127.0.0.1', 8000), 3))") == "ConnectionRefusedError"
    assert (out.dialled, out.shut.heard, out.shut.open) == ([], [], 0)
    await out.machines.delete(other)


async def test_the_porter_and_its_way_out_are_beyond_a_users_reach(out: Outskirts, name: str) -> None:
    await out.set(name, "public")
    told = await out.ask(
        name,
        """
import ctypes, signal
libc = ctypes.CDLL(None)
get("http://example.com/")
porters = [int(p) for p in os.listdir("/proc") if p.isdigit() and os.stat(f"/proc/{p}").st_uid == 999]
result = [os.getuid(), len(porters)]
for pid in [1, *porters]:
    result.append([
        failing(lambda: os.kill(pid, 9)), failing(lambda: os.listdir(f"/proc/{pid}/fd")), failing(lambda: os.listdir(f"/proc/{pid}/fd")),
        failing(lambda: open(f"/proc/{pid}/fd/2", "wb")), failing(lambda: open(f"/proc/{pid}/mem", "r+b")),
        failing(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9)), libc.syscall(438, os.pidfd_open(pid), 2, 0),  # pidfd_getfd
    ])
result, get("http://example.com/")
""",
    )
    (uid, porters, *attempts), after = told
    assert uid not in (0, 999)
    assert porters == 1
    assert all(error in ("PermissionError", "FileNotFoundError", "OSError") for tried in attempts for error in tried[:5]), attempts
    # Whoever sees a process may hold on to it, here as on Linux; that gives neither a signal nor a descriptor of its own.
    assert [tried[5:] for tried in attempts] == [["PermissionError", -1]] * 2
    assert after == (200, "hello")


async def test_fd_2_of_a_users_process_is_not_the_door(out: Outskirts, name: str) -> None:
    """What a program writes there are words for people, and nothing that the door hears."""
    await out.set(name, "public")
    told = await out.ask(
        name,
        "os.write(2, bytes(range(256)) * 64) and [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n == '2'], get('http://example.com/')",
    )
    [link] = told[0]
    assert link.startswith("pipe:["), link  # of the machine's own; the door is a socket of the host's
    assert told[1] == (200, "hello")


async def test_a_porter_that_dies_is_followed_by_another(out: Outskirts, name: str) -> None:
    await out.set(name, "public")
    assert await out.ask(name, "get('http://example.com/')") == (200, "hello")
    door: Any = door_of(out, name)
    door._mux.send(b"\xff" * 64)  # what no porter understands
    assert await out.ask(name, "[s for _ in range(5) if (s := get('http://example.com/')) == (200, 'hello')][:1]") == [(200, "hello")]


def door_of(out: Outskirts, name: str) -> Any:
    keeper: Any = out.machines.forge.keepers.named(out.machines.account, name)
    return keeper.residency.housing.incarnation._door


# --- sleep, forks, time travel -----------------------------------------------------------------------------------------------------------------

TRY_ALWAYS = """
seen = []
def always():
    while True:
        seen.append(get("http://example.com/")[0])
        time.sleep(0.01)
threading.Thread(target=always, daemon=True).start()
"""


async def test_after_a_wake_the_policy_holds_before_the_first_instruction(out: Outskirts) -> None:
    """A thread of the machine tries all the time, from the first instant of its new life."""
    name = await out.create("list", "example.com")
    await out.ask(name, TRY_ALWAYS)
    await until(lambda: len(out.web.heard) >= 3)
    await out.machines.hibernate(name)
    await out.set(name, "none")
    dialled = len(out.dialled)
    await out.machines.wake(name)
    seen = await out.ask(name, "mark = len(seen)\nwhile seen.count(403) < 5: time.sleep(0.01)\nseen")
    assert out.dialled[dialled:] == []
    assert set(seen[seen.index(403) :]) == {403}
    await out.machines.delete(name)


async def test_a_fork_has_its_sources_policy_and_a_rollback_brings_no_old_one_back(out: Outskirts) -> None:
    name = await out.create("list", "example.com")
    point = await out.machines.snapshot(name, "open")
    [copy] = await out.machines.fork(name)
    copied = str(copy.record.name)
    assert await out.ask(copied, "get('http://example.com/')[0], get('http://other.example/')[0]") == (200, 403)
    await out.set(name, "none")
    assert await out.ask(name, "get('http://example.com/')[0]") == 403
    assert await out.ask(copied, "get('http://example.com/')[0]") == 200
    await out.machines.rollback(name, snapshot=point.name)
    assert await out.ask(name, "get('http://example.com/')[0]") == 403
    for one in (name, copied):
        await out.machines.delete(one)


OPEN_STREAM = """
slow = socket.create_connection(("127.0.0.1", 3128))
slow.sendall(b"GET http://example.com/slow HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n")
got = b""
while not got.endswith(b"drop"): got += slow.recv(65536)
ended = []
def listen():
    try: ended.append(repr(slow.recv(65536)))
    except Exception as e: ended.append(type(e).__name__)
threading.Thread(target=listen, daemon=True).start()
"""
CUT = "began = time.monotonic()\nwhile not ended and time.monotonic() < began + 5: time.sleep(0.005)\nended, get('http://example.com/')"


async def test_streams_open_at_a_save_go_on_in_the_source_and_are_cut_in_copies_and_after_a_wake(out: Outskirts) -> None:
    name = await out.create("list", "example.com")
    await out.ask(name, OPEN_STREAM)
    [copy] = await out.machines.fork(name)
    copied = str(copy.record.name)
    await check_cut(out, copied)
    assert await out.ask(name, "ended") == []
    assert out.web.open == 1
    await out.machines.hibernate(name)
    await until(lambda: out.web.open == 0)
    await check_cut(out, name)
    for one in (name, copied):
        await out.machines.delete(one)


async def check_cut(out: Outskirts, name: str) -> None:
    """Whoever waited knows it at once, and the way out is open again."""
    ended, again = await out.ask(name, CUT)
    assert ended in (["b''"], ["ConnectionResetError"])
    assert again == (200, "hello")


# --- the record, and the caps --------------------------------------------------------------------------------------------------------------------


async def test_every_attempt_is_on_the_record_allowed_or_not(out: Outskirts) -> None:
    name = await out.create("list", "example.com")
    await out.ask(name, "get('http://example.com/a?token=x'), get('http://other.example/b'), tunnel('127.0.0.1:22'), get('http://unknown.example/')")
    await out.set(name, "list", "example.com", "127.0.0.1:22", "unknown.example")
    await out.ask(name, "tunnel('127.0.0.1:22'), get('http://unknown.example/'), raw(b'GET http://example.com/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')")
    told = [(a.host, a.port, a.method, a.path, a.verdict) for a in reversed(await out.log(name))]
    assert told == [
        ("example.com", 80, "GET", "/a", "allowed"),
        ("other.example", 80, "GET", "/b", "refused"),
        ("127.0.0.1", 22, "CONNECT", "", "refused"),
        ("unknown.example", 80, "GET", "/", "refused"),
        ("127.0.0.1", 22, "CONNECT", "", "refused"),
        ("unknown.example", 80, "GET", "/", "failed"),
        ("http://example.com/", 0, "GET", "", "refused"),
    ]
    await out.machines.delete(name)


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"bytes_per_day": 2000}, "bytes a day"), ({"connections_burst": 8, "connections_per_second": 1}, "connections a second")],
    ids=["bytes", "connections"],
)
async def test_bytes_and_connections_have_caps_that_say_so(limits: dict[str, int], words: str, out: Outskirts) -> None:
    out.limit(**limits)
    try:
        name = await out.create("list", "example.com")
        said = await out.ask(name, "[get('http://example.com/') for _ in range(20)]")
    finally:
        out.limit()
    assert said[0] == (200, "hello")
    refused = [why for status, why in said if status == 429]
    assert refused
    assert all(words in why for why in refused)
    await out.machines.delete(name)


async def test_the_machines_of_an_account_have_a_day_of_bytes_together(out: Outskirts) -> None:
    class Quotas:
        async def of(self, account: AccountId) -> Quota:
            return Quota(egress_bytes_per_day=1000)

    allowances: Any = out.machines.forge.doors.allowances  # pyright: ignore[reportAttributeAccessIssue]
    before, allowances.quotas = allowances.quotas, Quotas()
    try:
        first, second = await out.create("list", "example.com"), await out.create("list", "example.com")
        said = await out.ask(first, "[get('http://example.com/') for _ in range(12)]")
        other = await out.ask(second, "get('http://example.com/')")
    finally:
        allowances.quotas = before
    for status, words in (said[-1], other):
        assert (status, "machines of this account" in words) == (429, True), words
    for name in (first, second):
        await out.machines.delete(name)


async def test_a_new_machine_has_the_servers_default_and_no_more(out: Outskirts) -> None:
    made = await out.machines.create(NewMachine())
    assert made.record.egress == {"policy": "none", "allow": []}
    await out.machines.delete(str(made.record.name))
