"""CONNECT and SOCKS5: what is asked for, what is spoken over it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from dataclasses import replace

import pytest

from everforge.egress import addresses
from everforge.egress.outside import Closed, Outside
from everforge.egress.packages import PipSettings
from everforge.egress.policy import Word
from kit.doorway import Canned, Doorway, Far, Program, doorway, index_page, request, serving


def hello(name: str | None) -> bytes:
    """The first words of a real client."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def opened(d: Doorway, target: str = "example.com:443", *, behind: bytes = b"") -> Program:
    program = await d.connect()
    program.writer.write(request(target, method="CONNECT", host=target, body=behind))
    async with asyncio.timeout(10):
        head = await program.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return program


async def heard(program: Program, size: int) -> bytes:
    async with asyncio.timeout(10):
        return await program.reader.readexactly(size)


@pytest.mark.parametrize("pipelined", [False, True])
async def test_tls_for_the_name_that_was_allowed_passes_both_ways(pipelined: bool) -> None:
    said = hello("example.com")
    async with doorway(server=echo) as d, await opened(d, behind=said if pipelined else b"") as program:
        if not pipelined:
            program.writer.write(said)
        assert await heard(program, len(said)) == said
        program.writer.write(b"and then anything")
        program.writer.write_eof()
        assert await program.rest() == b"and then anything"
        [attempt] = await d.notes.until_over()
        assert (attempt.verdict, attempt.speech, attempt.sent_bytes, attempt.received_bytes) == ("allowed", "tls", len(said) + 17, len(said) + 17)


async def test_tls_that_comes_byte_by_byte_and_in_many_records_passes_as_it_is() -> None:
    whole = hello("example.com")
    body = whole[5:]
    said = b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in (body[n : n + 40] for n in range(0, len(body), 40)))
    async with doorway(server=echo) as d, await opened(d) as program:
        for n in range(0, len(said), 7):
            program.writer.write(said[n : n + 7])
            await program.writer.drain()
        assert await heard(program, len(said)) == said


BAD = {
    "TLS for another name": hello("other.example"),
    "TLS for a name below": hello("www.example.com"),
    "TLS for no name": hello(None),
    "HTTP": request("/", host="example.com"),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "SMTP": b"EHLO example.com\r\n",
    "an old SSL hello": b"\x80\x2e\x01\x00\x02" + bytes(60),
    "a hello without end": b"\x16\x03\x01\x40\x00\x01\x00\x40\x00" + bytes(17_000),
    "nothing": b"",
}


@pytest.mark.parametrize("what", BAD)
async def test_what_is_not_tls_for_the_allowed_name_is_cut_and_not_a_byte_passes(what: str) -> None:
    passed: list[bytes] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed.append(await reader.read(65536))

    async with doorway(server=server) as d, await opened(d) as program:
        program.writer.write(BAD[what])
        program.writer.write_eof()
        assert await program.rest() == b""
        [attempt] = await d.notes.until_over()
        assert attempt.verdict == "refused"
        assert "example.com" in attempt.why
        assert attempt.sent_bytes == 0
    assert b"".join(passed) == b""


async def test_tls_for_an_address_names_no_server() -> None:
    async with doorway("list", "93.184.216.34", server=echo) as d, await opened(d, "93.184.216.34:443") as program:
        said = hello(None)
        program.writer.write(said)
        assert await heard(program, len(said)) == said


async def test_a_tcp_rule_lets_anything_pass_and_each_end_may_stop_first() -> None:
    """What was sent last arrives though the server had ended its side long before."""
    got = asyncio.get_running_loop().create_future()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello")
        writer.write_eof()
        got.set_result(await reader.read(-1))

    async with doorway("list", "tcp://example.com:2525", server=server) as d, await opened(d, "example.com:2525") as program:
        assert await program.rest() == b"220 hello"
        program.writer.write(b"x" * 1_000_000)
        program.writer.write_eof()
        async with asyncio.timeout(10):
            assert len(await got) == 1_000_000


async def test_a_program_that_is_gone_before_it_is_connected_leaves_no_connection_open() -> None:
    opened_now = asyncio.Event()
    ended = asyncio.Event()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened_now.set()
        await reader.read()
        ended.set()

    async with doorway("list", "tcp://example.com:99", server=server) as d:
        gone = asyncio.Event()
        dial = d.far.dial

        async def slowly(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            made = await dial(address, port)
            await gone.wait()
            return made

        object.__setattr__(d.door._world.outside, "dial", slowly)
        async with await d.connect() as program:
            program.writer.write(request("example.com:99", method="CONNECT"))
            await opened_now.wait()
            d.door._mux._drop_all()
        gone.set()
        await asyncio.wait_for(ended.wait(), 10)
        await d.notes.until_over()


async def test_a_program_that_hangs_up_has_not_failed_but_a_server_that_cuts_it_off_has() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(3) == b"cut":
            reset(writer)
            writer.transport.abort()
        else:
            await reader.read()

    def reset(writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    for said, verdict in ((b"cut", "failed"), (b"say", "allowed")):
        async with doorway("list", "tcp://example.com:99", server=server) as d:
            async with await opened(d, "example.com:99") as program:
                program.writer.write(said)
                if verdict == "failed":
                    assert await program.rest() == b""
                else:
                    reset(program.writer)
            [attempt] = await d.notes.until_over()
            assert attempt.verdict == verdict


CLOSED = [
    "127.0.0.1:443",
    "2130706433:443",
    "0x7f.1:443",
    "[::1]:443",
    "[::ffff:127.0.0.1]:443",
    "169.254.169.254:443",
    "0251.0376.0251.0376:80",
    "10.0.0.1:443",
]


@pytest.mark.parametrize("target", CLOSED)
async def test_a_closed_address_is_refused_before_it_is_dialled_whatever_the_policy(target: str) -> None:
    for word, rules in (("public", ()), ("list", (target,))):
        async with doorway(word, *rules) as d:
            said = await d.ask(request(target, method="CONNECT", host=target))
            assert said.startswith(b"HTTP/1.1 403")
            assert b"closed to machines whatever their policy; the owner of this server can restart it with everforge serve --allow-host" in said
            assert b", and the machine needs a rule for it, too" in said
            assert d.far.dialled == []
            assert d.notes.over[0].verdict == "refused"


@pytest.mark.parametrize("port", [22, 25, 465, 587])
async def test_mail_and_shells_are_not_the_web(port: int) -> None:
    async with doorway() as d:
        said = await d.ask(request(f"example.com:{port}", method="CONNECT"))
        assert said.startswith(b"HTTP/1.1 403 the egress policy `public` of this machine is for the web")
        assert (d.far.looked_up, d.far.dialled) == ([], [])


@pytest.mark.parametrize("found", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:169.254.169.254"], ["fe80::1%eth0"], ["0.0.0.0"]])
async def test_a_name_that_leads_to_a_closed_address_is_refused_though_another_is_good(found: list[str]) -> None:
    async with doorway(names={"example.com": found}) as d:
        assert (await d.ask(request("example.com:443", method="CONNECT"))).startswith(b"HTTP/1.1 403")
        assert d.far.dialled == []


async def test_the_address_that_was_checked_is_the_one_dialled_though_the_name_moves() -> None:
    """DNS rebinding: a name is looked up once for every attempt."""
    answers = [["93.184.216.34"], ["127.0.0.1"]]

    class Moving(dict[str, list[str]]):
        def __contains__(self, key: object) -> bool:
            return True

        def __getitem__(self, key: str) -> list[str]:
            return answers.pop(0)

    async with doorway(server=echo, names=Moving()) as d:
        async with await opened(d) as program:
            program.writer.write(said := hello("example.com"))
            assert await heard(program, len(said)) == said
        assert (await d.ask(request("example.com:443", method="CONNECT"))).startswith(b"HTTP/1.1 403")
        assert d.far.dialled == [("93.184.216.34", 443)]
        assert answers == []


async def test_an_opened_name_opens_wherever_it_leads_but_never_to_metadata() -> None:
    opened_name = frozenset({("example.com", 443)})
    for address, status in (("10.0.0.1", b"200"), ("169.254.169.254", b"403"), ("::ffff:a9fe:a9fe", b"403")):
        where = {"example.com": [address]}
        async with doorway("list", "example.com", server=echo, names=where, opened=opened_name) as d, await d.connect() as program:
            program.writer.write(request("example.com:443", method="CONNECT"))
            async with asyncio.timeout(10):
                assert (await program.reader.readuntil(b"\r\n\r\n")).split()[1] == status


async def test_a_place_opened_by_its_owner_still_needs_a_policy_and_is_that_port_alone() -> None:
    place = frozenset({("127.0.0.1", 9000)})
    async with doorway("packages", server=echo, opened=place) as d:
        assert b"`packages`" in await d.ask(request("127.0.0.1:9000", method="CONNECT"))
        d.set("list", "127.0.0.1:*")
        assert b"whatever their policy" in await d.ask(request("127.0.0.1:9001", method="CONNECT"))
        async with await opened(d, "127.0.0.1:9000"):
            assert d.far.dialled == [("127.0.0.1", 9000)]


async def test_a_policy_that_is_changed_cuts_what_it_no_longer_allows_and_nothing_else() -> None:
    names = {"example.com": ["93.184.216.34"], "other.example": ["93.184.216.35"]}
    async with doorway("list", "tcp://example.com:443", "tcp://other.example:443", server=echo, names=names) as d:
        async with await opened(d, "example.com:443") as first, await opened(d, "other.example:443") as second:
            d.set("list", "tcp://other.example:443")
            d.door.reconsider()
            async with asyncio.timeout(10):
                assert await first.rest() == b""
            second.writer.write(b"still here")
            assert await second.reader.readexactly(10) == b"still here"
        assert [a.host for a in d.notes.attempts if a.verdict == "failed"] == ["example.com"]


async def test_a_rule_for_tcp_that_becomes_one_for_the_web_cuts_what_is_spoken_without_tls() -> None:
    async with doorway("list", "tcp://example.com:443", server=echo) as d, await opened(d, "example.com:443") as program:
        d.set("list", "example.com")
        d.door.reconsider()
        async with asyncio.timeout(10):
            assert await program.rest() == b""
        [attempt] = await d.notes.until_over()
        assert attempt.why == "cut when the policy was changed: it allows less than before"


async def test_a_policy_that_is_changed_counts_at_once_though_the_package_index_does_not_answer() -> None:
    silent = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent.wait()

    async with (
        serving(never) as port,
        doorway("list", "tcp://example.com:443", server=echo, index=PipSettings(index_url=f"http://127.0.0.1:{port}/simple")) as d,
        await opened(d, "example.com:443") as program,
    ):
        d.set("packages")
        d.door.reconsider()  # nothing here could wait
        async with asyncio.timeout(10):
            assert await program.rest() == b""
        silent.set()


@pytest.mark.parametrize(
    ("widest", "word", "place", "remedy"),
    [
        ("public", "none", "index.example:443", b"everforge egress set tested packages"),
        ("packages", "none", "index.example:443", b"everforge egress set tested packages"),
        ("packages", "packages", "example.com:443", b"no machine have more than `packages` (the setting egress_max)"),
        ("none", "none", "index.example:443", b"no machine have more than `none` (the setting egress_max)"),
        ("list", "packages", "example.com:8443", b"everforge egress allow tested example.com:8443"),
    ],
)
async def test_a_refusal_says_what_would_help_on_this_server(widest: Word, word: str, place: str, remedy: bytes) -> None:
    async with doorway(word, index=PipSettings(index_url="https://index.example/simple")) as d:
        d.door._world = replace(d.door._world, widest=widest)
        assert remedy in await d.ask(request(place, method="CONNECT"))


async def test_what_is_not_tls_is_on_the_record_with_the_rule_that_it_needs() -> None:
    async with doorway("list", "example.com:5432", server=echo) as d, await opened(d, "example.com:5432") as program:
        program.writer.write(b"SSH-2.0-anything")
        async with asyncio.timeout(10):
            await program.rest()
        [attempt] = await d.notes.until_over()
        assert attempt.why == "what the machine sends to example.com:5432 is not TLS; anything else needs the rule tcp://example.com:5432"


async def test_a_machine_is_not_told_where_a_name_of_the_servers_network_leads_and_its_owner_is() -> None:
    async with doorway(server=echo, names={"wiki.corp.example": ["10.20.30.40"]}) as d:
        said = await d.ask(request("wiki.corp.example:443", method="CONNECT"))
        assert said.startswith(b"HTTP/1.1 403 wiki.corp.example leads to a private address")
        assert b"10.20.30.40" not in said
        [attempt] = await d.notes.until_over()
        assert (attempt.verdict, attempt.address) == ("refused", "10.20.30.40")


async def test_public_is_everything_that_is_not_closed_so_also_what_the_owner_opened() -> None:
    async with doorway("public", server=echo, opened=frozenset({("127.0.0.1", 9000)})) as d, await opened(d, "127.0.0.1:9000"):
        assert d.far.dialled == [("127.0.0.1", 9000)]


@pytest.mark.parametrize(
    ("address", "closed"), [("10.1.2.3", False), ("203.0.113.80", False), ("127.0.0.1", True), ("169.254.169.254", True), ("::1", True)]
)
async def test_files_of_the_index_may_lie_at_a_private_address_and_never_on_this_computer(address: str, closed: bool) -> None:
    outside = Outside(lookup=Far({"files.example": [address]}).lookup)
    with pytest.raises(Closed) if closed else contextlib.nullcontext():
        assert [str(found) for found in await outside.check("files.example", 443, index=True)] == [address]


@pytest.mark.parametrize("address", ["93.184.216.34", "10.1.2.3"])
async def test_an_address_of_this_computer_is_closed_to_all_and_to_files_of_the_index_too(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a public or a private one: what listens there is not meant for machines."""
    monkeypatch.setattr(addresses, "is_of_this_computer", lambda one: str(one) == address)
    names = {"files.example": [address], "example.com": [address]}
    async with (
        serving(Canned(index_page("https://files.example/a.whl"))) as port,
        doorway("packages", server=echo, names=names, index=PipSettings(index_url=f"http://127.0.0.1:{port}/simple")) as d,
    ):
        said = await d.ask(request("files.example:443", method="CONNECT"))
        assert said.startswith(b"HTTP/1.1 403 files.example leads to this computer itself")
        d.set("public")
        assert (await d.ask(request("example.com:443", method="CONNECT"))).startswith(b"HTTP/1.1 403 example.com leads to")
        assert d.far.dialled == []


async def test_what_is_not_there_is_a_bad_gateway_and_says_why() -> None:
    async with doorway(names={}) as d:
        assert b"502 no address is known for example.com" in await d.ask(request("example.com:443", method="CONNECT"))
    async with doorway() as d:  # nobody listens where it is dialled
        assert b"502 example.com:443 cannot be reached" in await d.ask(request("example.com:443", method="CONNECT"))
        assert d.notes.over[0].verdict == "failed"


@pytest.mark.parametrize(
    "target",
    ["example.com", "example.com:", "example.com:0", "example.com:99999", "a@example.com:443", "example.com:443/x", ":443", "//example.com:443"],
)
async def test_connect_to_no_place_is_refused(target: str) -> None:
    async with doorway() as d:
        assert (await d.ask(request(target, method="CONNECT"))).startswith(b"HTTP/1.1 400")
        assert d.far.looked_up == []


async def test_connect_with_a_body_is_refused() -> None:
    async with doorway(server=echo) as d:
        assert (await d.ask(request("example.com:443", "Content-Length: 3", method="CONNECT", body=b"abc"))).startswith(b"HTTP/1.1 400")
        assert d.far.dialled == []


# --- SOCKS5 ------------------------------------------------------------------------------------------------------------------------------------


def socks_ask(command: int, kind: int, host: bytes, port: int) -> bytes:
    return bytes((5, command, 0, kind)) + (bytes((len(host),)) if kind == 3 else b"") + host + port.to_bytes(2, "big")


async def test_socks_reaches_a_name_by_a_tcp_rule_and_loses_nothing_sent_ahead() -> None:
    async with doorway("list", "tcp://example.com:5432", server=echo) as d, await d.connect() as program:
        program.writer.write(b"\x05\x02\x02\x00" + socks_ask(1, 3, b"Example.com", 5432) + b"ahead")
        assert await heard(program, 2) == b"\x05\x00"
        assert (await heard(program, 10))[1] == 0
        assert await heard(program, 5) == b"ahead"
        [attempt] = d.notes.attempts
        assert (attempt.host, attempt.port, attempt.method) == ("example.com", 5432, "SOCKS")


async def test_socks_without_a_tcp_rule_is_for_tls_alone() -> None:
    async with doorway(server=echo) as d, await d.connect() as program:
        program.writer.write(b"\x05\x01\x00" + socks_ask(1, 3, b"example.com", 443) + b"SSH-2.0-x\r\n")
        assert len(await program.rest()) == 12
        assert (await d.notes.until_over())[0].verdict == "refused"


ASKED = {
    "an IPv4 address": (socks_ask(1, 1, socket.inet_aton("127.0.0.1"), 443), 2),
    "an IPv6 address": (socks_ask(1, 4, ipaddress.IPv6Address("::ffff:127.0.0.1").packed, 443), 2),
    "an address as a name": (socks_ask(1, 3, b"0x7f000001", 443), 2),
    "a name that is not allowed": (socks_ask(1, 3, b"example.com", 25), 2),
    "no name": (socks_ask(1, 3, b"\xff\x00", 443), 2),
    "an empty name": (socks_ask(1, 3, b"", 443), 2),
    "a name that is not known": (socks_ask(1, 3, b"unknown.example", 443), 4),
    "BIND": (socks_ask(2, 3, b"example.com", 443), 7),
    "UDP": (socks_ask(3, 1, bytes(4), 0), 7),
    "an address of no kind": (bytes((5, 1, 0, 9, 0, 0)), 8),
    "another version": (b"\x04" + socks_ask(1, 3, b"example.com", 443)[1:], 7),
}


@pytest.mark.parametrize("what", ASKED)
async def test_socks_refuses_with_its_own_words_and_dials_nobody(what: str) -> None:
    asked, code = ASKED[what]
    async with doorway() as d:
        said = await d.ask(b"\x05\x01\x00" + asked)
        assert said == b"\x05\x00" + bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0))
        assert d.far.dialled == []
        [attempt] = await d.notes.until_over()
        assert (attempt.verdict, attempt.method) == ("failed" if code == 4 else "refused", "SOCKS")


@pytest.mark.parametrize("data", [b"\x05", b"\x05\x00", b"\x05\x01\x02", b"\x05\xff", b"\x05\x01\x00\x05\x01", b"\x05\x01\x00" + b"\x05" * 7])
async def test_socks_garbage_ends_the_connection_and_nothing_else(data: bytes) -> None:
    async with doorway(server=echo) as d:
        async with await d.connect() as program:
            program.writer.write(data)
            program.writer.write_eof()
            async with asyncio.timeout(10):
                assert len(await program.rest()) <= 12
        assert d.far.dialled == []
        async with await opened(d):
            pass
