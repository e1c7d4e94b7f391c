"""A server of TLS 1.3 may ask for another hello. That one, too, must be for the host that was allowed."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from everforge.egress.authority import Authority
from kit.doorway import Doorway, Program, doorway, request

EARLY = b"\x17\x03\x03\0\x20" + bytes(32)  # as if something had been encrypted before the server was heard
SIGN = b"\x14\x03\x03\0\x01\x01"  # "change cipher spec", which clients say for old boxes on the way

ANOTHER = b"\x16\x03\x03\0\x26\x02\0\0\x22\x03\x03" + hashlib.sha256(b"HelloRetryRequest").digest()  # please; the beginning of it


class Client:
    """Of TLS, without a connection."""

    def __init__(self, name: str) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whose server it is matters to nobody here
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name)

    def says(self, heard: bytes = b"") -> bytes:
        self._in.write(heard)
        self.is_through = True
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.is_through = False
        return self._out.read()


class Picky:
    """A real server that takes a kind of key that no client offers at first, so that it asks for another hello. Says what it has heard."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self._context = Authority.in_folder(Path(folder)).context("example.com")  # a new one: contexts are kept
        self._context.set_ecdh_curve("secp384r1")
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65536):
            self.heard += data
            incoming.write(data)
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return
            writer.write(outgoing.read())
            await writer.drain()


async def opened(d: Doorway) -> Program:
    program = await d.connect()
    program.writer.write(request("example.com:443", method="CONNECT", host="example.com:443"))
    async with asyncio.timeout(10):
        assert (await program.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return program


async def test_a_client_that_is_asked_for_another_hello_gets_through() -> None:
    server, client = Picky(), Client("example.com")
    async with doorway("list", "example.com", server=server.serve) as d, await opened(d) as program:
        program.writer.write(first := client.says())
        async with asyncio.timeout(10):
            while not client.is_through:
                program.writer.write(client.says(await program.reader.read(65536)))
            while len(server.heard) < 2 * len(first):  # a second hello of the same size, and the end of the handshake
                await asyncio.sleep(0.01)
    [attempt] = d.notes.attempts
    assert attempt.verdict == "allowed"


Between = Callable[[bytes, bytes], tuple[bytes, bytes]]  # of two hellos what is sent at once, and what when the server has asked for another
WAYS: dict[str, Between] = {
    "when it is asked": lambda one, two: (one, two),
    "behind a sign": lambda one, two: (one, SIGN + two),
    "behind early words": lambda one, two: (one, EARLY + SIGN + two),
    "before it is asked": lambda one, two: (one + two, b""),
    "early words first": lambda one, two: (one + EARLY + two, b""),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_second_hello_for_another_host_is_cut_and_does_not_pass(way: str) -> None:
    server = Picky()
    other = Client("other.example").says()
    at_once, later = WAYS[way](Client("example.com").says(), other)
    async with doorway("list", "example.com", server=server.serve) as d, await opened(d) as program:
        program.writer.write(at_once)
        async with asyncio.timeout(10):
            assert await program.reader.read(65536)
            program.writer.write(later)
            await program.rest()
        [attempt] = await d.notes.until_over()
        assert (attempt.verdict, attempt.why) == ("refused", "TLS for other.example in a connection that was allowed for example.com")
    assert b"other.example" not in server.heard
    assert b"example.com" in server.heard


async def test_a_client_that_goes_on_early_for_ever_is_cut() -> None:
    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ANOTHER)
        while await reader.read(65536):
            pass

    async with doorway("list", "example.com", server=patient) as d, await opened(d) as program:
        program.writer.write(Client("example.com").says())
        async with asyncio.timeout(10):
            assert await program.reader.readexactly(len(ANOTHER)) == ANOTHER
            program.writer.write((b"\x17\x03\x03\x40\0" + bytes(16384)) * 70)
            await program.rest()
        [attempt] = await d.notes.until_over()
        assert attempt.verdict == "refused"


async def test_a_server_that_says_nothing_is_given_up_and_one_that_ends_is_passed_on() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"\x15\x03\x03")  # the beginning of an alert

    for handler, heard in ((silent, b""), (ends, b"\x15\x03\x03")):
        async with doorway("list", "example.com", server=handler, head_seconds=0.5) as d, await opened(d) as program:
            program.writer.write(Client("example.com").says())
            if handler is ends:
                program.writer.write_eof()
            async with asyncio.timeout(10):
                assert await program.rest() == heard


async def test_a_client_that_says_nothing_when_it_is_asked_again_is_cut() -> None:
    async with doorway(server=Picky().serve, head_seconds=0.3) as d, await opened(d) as program:
        program.writer.write(Client("example.com").says())
        async with asyncio.timeout(10):
            assert hashlib.sha256(b"HelloRetryRequest").digest() in await program.rest()
        [attempt] = await d.notes.until_over()
    assert attempt.why == "the second hello of TLS has not come within 0.3 s"
