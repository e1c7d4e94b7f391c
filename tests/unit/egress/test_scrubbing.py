"""The value of a secret is made unreadable in what comes back, wherever it appears literally."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from everforge.egress import broker
from everforge.egress.secrets import Scrubber, Secret
from kit.brokered import HOST, PLACEHOLDER, VALUE, Api, answering, api_behind_the_door, asking, get, secret, tls, upgrade
from kit.doorway import doorway


async def test_a_location_that_gives_the_value_away_is_scrubbed() -> None:
    async with api_behind_the_door() as (d, api):
        api.extra = [(b"location", b"https://evil.example.com/?" + VALUE)]
        async with tls(d, api) as program:
            assert VALUE not in await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))


async def test_a_value_in_a_provisional_answer_and_in_a_headers_name_is_scrubbed() -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(api.authority.context(HOST))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early\r\nlink: " + VALUE + b"\r\n\r\nHTTP/1.1 200 OK\r\nx-" + VALUE + b": 1\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    api = Api()
    async with (
        doorway("list", HOST, server=early, names={HOST: ["93.184.216.34"]}, secrets=[secret()], trust=api.trust) as d,
        tls(d, api) as program,
    ):
        program.writer.write(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(10):
            told = await program.reader.readuntil(b"\r\n\r\n") + await program.reader.readuntil(b"\r\n\r\n")
    assert b"103" in told
    assert VALUE not in told


async def test_a_value_in_the_words_beside_the_status_is_scrubbed() -> None:
    api, say = answering(b"HTTP/1.1 103 " + VALUE + b"\r\n\r\nHTTP/1.1 200 you sent " + VALUE + b"\r\ncontent-length: 0\r\n\r\n")
    async with asking(api, say) as (_, program):
        program.writer.write(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(10):
            early, told = await program.reader.readuntil(b"\r\n\r\n"), await program.reader.readuntil(b"\r\n\r\n")
    assert VALUE not in early
    assert told.startswith(b"HTTP/1.1 200 you sent " + b"*" * len(VALUE) + b"\r\n")


async def test_an_answer_is_asked_for_as_it_can_be_read_whatever_the_program_would_take() -> None:
    """A value in one that is compressed would not be found."""
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    async with asking(api, say) as (_, program):
        await program.ask(get(b"/", b"Accept-Encoding: gzip, br"))
    [head] = api.heads
    assert [line for line in head.lower().split(b"\r\n") if line.startswith(b"accept-encoding")] == [b"accept-encoding: identity"]


async def test_what_a_websocket_says_back_is_scrubbed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a value of which some came with the last words of HTTP."""
    monkeypatch.setattr(broker, "HELD_SECONDS", 10.0)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(api.authority.context(HOST))
        head = await reader.readuntil(b"\r\n\r\n")
        assert VALUE in head
        assert b"deflate" not in head
        writer.write(
            b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: " + VALUE + b"\r\n\r\n" + VALUE[:7]
        )
        await writer.drain()
        while data := await reader.read(100):
            writer.write(VALUE[7:] + data)

    api = Api()
    async with (
        doorway("list", HOST, server=echo, names={HOST: ["93.184.216.34"]}, secrets=[secret()], trust=api.trust) as d,
        tls(d, api) as program,
    ):
        program.writer.write(upgrade(b"Sec-WebSocket-Extensions: permessage-deflate", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(30):
            head = await program.reader.readuntil(b"\r\n\r\n")
            program.writer.write(b"hello" * 20)
            told = await program.reader.readexactly(len(VALUE) + 5)
    assert VALUE not in head + told
    assert told == b"*" * len(VALUE) + b"hello"


@pytest.mark.parametrize("said", [b"yes", VALUE[:1], VALUE[:-1]])
async def test_what_may_be_the_beginning_of_a_value_is_told_over_a_websocket_when_nothing_more_comes(said: bytes) -> None:
    api, say = answering(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n" + said)
    async with asking(api, say) as (_, program):
        program.writer.write(upgrade())
        async with asyncio.timeout(10):
            await program.reader.readuntil(b"\r\n\r\n")
            assert await program.reader.readexactly(len(said)) == said


@pytest.mark.parametrize("said", [b"data: yes\n\n", b"data: " + VALUE[:1] + b"\n\n", VALUE[:-1] + b"\r\n", VALUE[:-1] + b"\0"])
async def test_a_line_of_an_answer_without_an_end_is_told_at_once(said: bytes) -> None:
    """And whatever else ends with what is in no value."""
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + said)
    async with asking(api, say) as (_, program):
        program.writer.write(get())
        async with asyncio.timeout(10):
            head = await program.reader.readuntil(b"\r\n\r\n")
            chunked = b"chunked" in head
            told = await program.reader.readexactly(len(said) + (len(b"%x\r\n\r\n" % len(said)) if chunked else 0))
    assert said in told


SAID = b"{you sent %s}" % VALUE


FRAMINGS = {
    "of a known length": b"content-length: %d" % len(SAID),
    "in chunks": b"transfer-encoding: chunked",
    "until the host closes": b"connection: close",
}


@pytest.mark.parametrize("at", [1, 9, len(VALUE) - 1])
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_a_value_that_comes_in_two_parts_with_a_pause_between_is_scrubbed(framing: str, at: int) -> None:
    """However long it is: who reads slowly makes hosts pause where they like."""
    api, told, cut = Api(), b"", SAID.index(VALUE) + at
    header, chunked = FRAMINGS[framing], framing == "in chunks"

    def packed(part: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(part), part) if chunked else part

    async def pause(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(api.authority.context(HOST))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n" + packed(SAID[:cut]))
        await writer.drain()
        await asyncio.sleep(6 * broker.HELD_SECONDS)
        writer.write(packed(SAID[cut:]) + (b"0\r\n\r\n" if chunked else b""))
        await writer.drain()
        writer.close()

    async with asking(api, pause) as (_, program):
        program.writer.write(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(10):
            while b"}" not in told:
                told += await program.reader.read(65536)
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", told.partition(b"\r\n\r\n")[2])  # the door makes chunks of its own
    assert b"{you sent %s}" % (b"*" * len(VALUE)) in body


@pytest.mark.parametrize(
    "answer",
    [
        b"you sent " + VALUE + b"\r\n\r\n",
        b"-ERR unknown command 'Authorization: Bearer " + VALUE + b"'\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nyou sent " + VALUE + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + VALUE + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + VALUE + b"\r\n",
    ],
)
async def test_a_value_in_an_answer_that_is_no_http_is_told_to_nobody(answer: bytes) -> None:
    api, say = answering(answer)
    async with asking(api, say) as (d, program):
        program.writer.write(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError, ssl.SSLError):
                while told := await program.reader.read(65536):
                    assert VALUE not in told
        attempts = await d.notes.until_over()
    assert any("does not speak HTTP as it should" in a.why for a in attempts)
    assert not any(VALUE.decode() in str(a) for a in d.notes.attempts)


async def test_a_length_that_looks_like_a_value_is_a_length() -> None:
    """What frames an answer has been read as numbers and words, and is passed on as such."""
    held = Secret("DIGITS", PLACEHOLDER, b"00000005", frozenset({(HOST, 443)}))
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 00000005\r\n\r\nhello")
    async with asking(api, say, held) as (_, program):
        assert (await program.ask(get())).endswith(b"hello")


async def test_credentials_that_another_connection_has_sent_are_not_told_by_an_answer() -> None:
    login = b64encode(b"user:" + VALUE)
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nx-seen: %s\r\n\r\n%s" % (len(login), login, login))
    async with asking(api, say) as (_, program):
        told = await program.ask(get())
    assert told.count(b64encode(b"user:")[:5]) == 2
    assert VALUE not in b64decode(told[-len(login) :].replace(b"*", b"A"))
    assert b64encode(VALUE[:6]) not in told


@given(
    st.binary(max_size=7), st.binary(max_size=7), st.sampled_from([VALUE, VALUE[:8], VALUE[:9], VALUE[:10]]), st.lists(st.integers(0, 30), max_size=8)
)
def test_in_base64_every_character_with_a_bit_of_a_value_is_unreadable_and_no_other(
    before: bytes, after: bytes, value: bytes, sizes: list[int]
) -> None:
    data = b64encode(before + value + after)
    first, last = len(before) * 8 // 6, ((len(before) + len(value)) * 8 - 1) // 6
    expected = data[:first] + b"*" * (last + 1 - first) + data[last + 1 :]
    assert b"".join(_in_pieces(Scrubber([value]), data, [*sizes, len(data)])) == Scrubber([value]).whole(data) == expected


def test_no_choice_of_values_makes_looking_for_them_long() -> None:
    """Both in one run, and the quicker of three: the computer has other things to do."""

    def seconds(value: bytes) -> float:
        def once() -> float:
            began = time.process_time()
            assert Scrubber([value]).whole((value + b"a" * len(value)) * 32).count(b"*") >= 32 * len(value)
            return time.process_time() - began

        return min(once() for _ in range(3))

    assert seconds(b"a" * 1999 + b"b" + b"a" * 2000) < 20 * seconds(b"0123" * 1000)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(0, len(VALUE) - 1), st.binary(max_size=3))
def test_how_much_is_held_back_tells_nothing_of_a_value(sizes: list[int], right: int, before: bytes) -> None:
    """Or it could be guessed letter by letter, from the sizes and times of what comes."""
    guess, other = before + VALUE[:right], before + b"~" * right
    for data in (guess * 3, other * 3):
        assume(VALUE not in data)
    told = [[len(told) for told in _in_pieces(Scrubber([VALUE, b"another-value-of-the-host"]), data * 3, sizes)] for data in (guess, other)]
    assert told[0] == told[1]


def _in_pieces(scrubber: Scrubber, data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield scrubber.piece(data[at : at + size])
        at += size
    yield scrubber.rest()


SEVERAL = [b"secret12", b"secret12-long-suffix", b"12-long-", b"xxxxxxxx"]


@given(
    st.lists(st.sampled_from([*SEVERAL, b"secret", b"12", b"-long", b"x", b"-suffix", b"s"]), max_size=10), st.lists(st.integers(0, 9), max_size=20)
)
def test_values_that_begin_or_overlap_like_others_are_scrubbed_however_they_are_cut(words: list[bytes], sizes: list[int]) -> None:
    data = b"".join(words)
    pieces = _in_pieces(Scrubber(SEVERAL), data, [*sizes, len(data)])
    expected = bytearray(data)
    for value in SEVERAL:
        for at in range(len(data)):
            if data.startswith(value, at):
                expected[at : at + len(value)] = b"*" * len(value)
    assert b"".join(pieces) == Scrubber(SEVERAL).whole(data) == expected


def test_a_value_that_begins_within_another_is_not_told_from_where_that_one_ends() -> None:
    """Whoever may set secrets would read those of others with a value that ends where they begin."""
    scrubber = Scrubber([b"Bearer s", b"sk-live-0123456789"])
    assert scrubber.whole(b"Authorization: Bearer sk-live-0123456789.") == b"Authorization: " + b"*" * 25 + b"."


async def test_a_value_for_reading_alone_is_scrubbed_from_the_answer_to_a_write_too() -> None:
    """The host knows it, and may tell it though it was not sent."""
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(VALUE) + VALUE)
    async with asking(api, say, secret(only_reads=True)) as (_, program):
        told = await program.ask(get().replace(b"GET", b"POST"))
    assert told.endswith(b"\r\n\r\n" + b"*" * len(VALUE))


@given(st.lists(st.sampled_from([VALUE, VALUE[:5], VALUE[3:], b"x", b"s", VALUE + VALUE, b""]), max_size=12))
def test_a_value_is_scrubbed_however_it_is_cut_into_pieces(pieces: list[bytes]) -> None:
    scrubber = Scrubber([VALUE])
    told = b"".join(map(scrubber.piece, pieces)) + scrubber.rest()
    whole = b"".join(pieces)
    assert len(told) == len(whole)
    assert told == whole.replace(VALUE, b"*" * len(VALUE))


def test_a_value_with_the_end_of_a_line_in_it_is_held_back_over_that() -> None:
    scrubber = Scrubber([b"pass\nword\xff", VALUE])
    assert scrubber.piece(b"pass\n") + scrubber.piece(b"word\xff") + scrubber.rest() == b"*" * 10
