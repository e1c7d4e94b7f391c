"""HTTP through the door: what passes, and that nothing passes which two parsers could understand in two ways."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from everforge.egress.http import HEADERS_MAX, onward
from everforge.egress.turns import TURN_SECONDS, Turns
from kit.doorway import Canned, doorway, request


async def test_a_request_is_written_anew_and_its_answer_comes_back() -> None:
    server = Canned()
    async with doorway(server=server) as d:
        asked = request("http://Example.com.:80/a/b?c=d#e", "Proxy-Connection: keep-alive", "X-Mine: 1", host="EXAMPLE.com")
        async with await d.connect() as program:
            program.writer.write(asked)
            said = await program.answer()
        assert said.startswith(b"HTTP/1.1 200 OK\r\n")
        assert said.endswith(b"\r\n\r\nhello")
        assert server.heard == [b"GET /a/b?c=d HTTP/1.1\r\nhost: example.com\r\nx-mine: 1\r\nconnection: close\r\n\r\n"]
        [attempt] = await d.notes.until_over()
        told = (attempt.host, attempt.port, attempt.speech, attempt.method, attempt.path, attempt.verdict, attempt.by, attempt.address)
        assert told == ("example.com", 80, "http", "GET", "/a/b", "allowed", "public", "93.184.216.34")
        assert attempt.sent_bytes == len(server.heard[0])
        assert attempt.received_bytes == len(server.answer)


async def test_one_connection_carries_many_requests_each_decided_anew() -> None:
    server = Canned()
    async with doorway("list", "example.com", server=server) as d, await d.connect() as program:
        for _ in range(3):
            program.writer.write(request())
            assert (await program.answer()).endswith(b"hello")
        d.set("none")
        assert b"403" in await program.ask(request())
        assert len(server.heard) == 3
        assert [a.verdict for a in d.notes.attempts] == ["allowed"] * 3 + ["refused"]


async def test_requests_that_come_in_one_piece_are_answered_one_by_one() -> None:
    server = Canned()
    async with doorway(server=server) as d, await d.connect() as program:
        program.writer.write(request("http://example.com/1") + request("http://example.com/2"))
        assert [await program.answer() for _ in "12"] == [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"] * 2
        assert [head.split()[1] for head in server.heard] == [b"/1", b"/2"]


async def test_a_refusal_names_the_policy_and_the_remedy_and_nothing_was_looked_up() -> None:
    server = Canned()
    async with doorway("list", "other.example", server=server) as d:
        said = await d.ask(request("http://example.com:8080/", host="example.com:8080"))
        head, _, body = said.partition(b"\r\n\r\n")
        assert head.startswith(
            b"HTTP/1.1 403 the egress policy `list` of this machine allows only the hosts on its list, and example.com:8080 is not"
        )
        assert b"To allow it: everforge egress allow tested example.com:8080" in body
        assert (d.far.looked_up, d.far.dialled, server.heard) == ([], [], [])
        [attempt] = await d.notes.until_over()
        assert attempt.verdict == "refused"
        assert "`list`" in attempt.why


async def test_no_rule_is_offered_as_a_remedy_where_none_would_help() -> None:
    async with doorway("list", "other.example") as d:
        said = await d.ask(request("http://169.254.169.254/", host="169.254.169.254"))
        assert said.startswith(b"HTTP/1.1 403 the egress policy `list`")
        assert b"And it is a cloud's metadata service: closed to machines whatever their policy" in said
        assert b"egress allow" not in said


async def test_what_is_no_request_is_on_the_record_too() -> None:
    async with doorway() as d:
        assert (await d.ask(request("http://169.254.169.254/", "Content-Length: 3", "Content-Length: 4"))).startswith(b"HTTP/1.1 400")
        [attempt] = await d.notes.until_over()
        assert (attempt.host, attempt.verdict) == ("(unreadable)", "refused")


async def test_a_policy_that_is_changed_while_a_request_is_on_its_way_to_its_server_stops_it() -> None:
    server, asked, answered = Canned(), asyncio.Event(), asyncio.Event()
    async with doorway(server=server) as d, await d.connect() as program:
        real = d.far.names

        async def slow(host: str, port: int) -> Sequence[str]:
            asked.set()
            await answered.wait()
            return real[host]

        d.door._outside = replace(d.door._outside, lookup=slow)  # pyright: ignore[reportPrivateUsage]
        program.writer.write(request())
        async with asyncio.timeout(10):
            await asked.wait()
            d.set("none")
            d.door.reconsider()
            answered.set()
            assert b"200" not in await program.rest()
            [attempt] = await d.notes.until_over()
        assert (server.heard, attempt.verdict) == ([], "failed")
        assert "cut when the policy was changed" in attempt.why


@pytest.mark.parametrize("share", [1 / 50, 1.0, 20.0])
async def test_the_work_of_one_machine_leaves_others_their_turn(share: float) -> None:
    """All its connections together have so much time in a turn of the loop, however many they are; what takes longer is alone in it."""
    now = 0.0
    turns = Turns(lambda: now)
    took, over = list[int](), asyncio.Event()

    def work() -> None:
        nonlocal now
        now += share * TURN_SECONDS
        took[-1] += 1

    async def greedy() -> None:
        while not over.is_set():
            await turns.do(work)

    greedy_ones = [asyncio.ensure_future(greedy()) for _ in range(100)]
    for _ in range(20):
        took.append(0)
        await asyncio.sleep(0)
    over.set()
    seen = list(took)
    await asyncio.gather(*greedy_ones)
    assert max(seen) <= 2 * max(1, 1 / share + 1)  # a turn of the loop may begin between two of ours
    assert sum(seen) >= 10


async def test_work_that_fails_has_taken_its_time_too() -> None:
    now = 0.0
    turns = Turns(lambda: now)

    def work() -> None:
        nonlocal now
        now += TURN_SECONDS
        raise ValueError

    with pytest.raises(ValueError):
        await turns.do(work)
    again = turns.do(lambda: None)
    assert again.send(None) is not None, "it waits"
    again.close()


@pytest.mark.parametrize("headers", [b"a:\r\n" * 16_000, b"a:\n" * (HEADERS_MAX + 1)])
async def test_more_headers_than_any_program_has_are_not_read_at_all(headers: bytes) -> None:
    head = b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n" + headers
    async with doorway(server=Canned()) as d:
        said = await d.ask(head + b"\r\n")
        assert said.startswith(b"HTTP/1.1 400")
        assert b"more than 256 headers" in said
        assert b"more than 256 headers" in await d.ask(head)  # without an end
        assert d.far.dialled == []


async def test_an_answer_of_more_headers_than_any_server_has_is_not_read_at_all() -> None:
    async with doorway(server=Canned(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 10_000 + b"\r\n")) as d:
        said = await d.ask(request())
    assert said.startswith(b"HTTP/1.1 502")
    assert b"more than 256 headers" in said


async def test_bodies_may_have_as_many_lines_as_they_like() -> None:
    lines = b"a:\n" * 5000
    async with doorway(server=Canned(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(lines) + lines)) as d:
        assert (await d.ask(request("http://example.com/", "Connection: close"))).endswith(lines)


def test_a_header_that_is_said_to_be_for_this_hop_stays_here_and_what_frames_a_message_does_not() -> None:
    headers = [(b"connection", b"X-Mine, host, content-length"), (b"x-mine", b"1"), (b"host", b"h"), (b"content-length", b"0"), (b"y", b"2")]
    assert onward(headers) == [(b"host", b"h"), (b"content-length", b"0"), (b"y", b"2")]


SMUGGLED = {
    "a length and chunks": request("http://example.com/", "Content-Length: 3", "Transfer-Encoding: chunked", method="POST", body=b"0\r\n\r\nGET"),
    "two lengths": request("http://example.com/", "Content-Length: 3", "Content-Length: 4", method="POST", body=b"abcd"),
    "two lengths in one": request("http://example.com/", "Content-Length: 3, 4", method="POST", body=b"abcd"),
    "a length with a sign": request("http://example.com/", "Content-Length: +3", method="POST", body=b"abc"),
    "another transfer encoding": request("http://example.com/", "Transfer-Encoding: xchunked", method="POST", body=b"0\r\n\r\n"),
    "two transfer encodings": request("http://example.com/", "Transfer-Encoding: gzip, chunked", method="POST", body=b"0\r\n\r\n"),
    "a space before the colon": request("http://example.com/", "Content-Length : 3", method="POST", body=b"abc"),
    "two hosts": request("http://example.com/", "Host: other.example"),
    "another host": request("http://example.com/", host="127.0.0.1"),
    "another port": request("http://example.com/", host="example.com:8080"),
    "no host": request("http://example.com/", host=None),
    "a password": request("http://example.com@127.0.0.1/", host="127.0.0.1"),
    "a backslash": request("http://example.com\\@127.0.0.1/"),
    "another scheme": request("ftp://example.com/"),
    "https in plain": request("https://example.com/"),
    "no scheme": request("example.com/"),
    "port 0": request("http://example.com:0/", host="example.com:0"),
    "port 65616, which is 80 to who counts in 16 bits": request("http://example.com:65616/", host="example.com:65616"),
    "an upgrade": request("http://example.com/", "Connection: upgrade", "Upgrade: h2c"),
    "a NUL in a header": request("http://example.com/", "X: a\0b"),
    "a bare CR in a header": request("http://example.com/", "X: a\rHost: 127.0.0.1"),
    "a space in the address": request("http://example.com/ HTTP/1.1 x"),
    "a header without end": request("http://example.com/", "X: " + "a" * 200_000),
    "headers without end": request("http://example.com/", *(f"X{n}: {n}" for n in range(20_000))),
}


@pytest.mark.parametrize("attack", SMUGGLED)
async def test_what_could_be_understood_in_two_ways_reaches_nobody(attack: str) -> None:
    server = Canned()
    async with doorway(server=server, names={"example.com": ["93.184.216.34"], "other.example": ["93.184.216.34"]}) as d:
        said = await d.ask(SMUGGLED[attack])
        assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), said[:200]
        assert (d.far.dialled, server.heard) == ([], [])
        assert all(a.verdict == "refused" for a in d.notes.attempts)


async def test_what_names_no_place_is_on_the_record_too() -> None:
    async with doorway() as d:
        await d.ask(request("http://example.com/", host="127.0.0.1"))
        await d.ask(request("example.com", method="CONNECT"))
        assert [(a.host, a.method, a.verdict) for a in await d.notes.until_over(2)] == [
            ("http://example.com/", "GET", "refused"),
            ("example.com", "CONNECT", "refused"),
        ]


async def test_a_body_is_cut_where_its_chunks_are_wrong() -> None:
    """What was sent on until then does not look like a whole request."""
    whole = asyncio.Event()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"0\r\n\r\n")
        whole.set()

    async with doorway(server=server) as d:
        asked = request("http://example.com/", "Transfer-Encoding: chunked", method="POST", body=b"3\r\nabc\r\nzz\r\n")
        assert (await d.ask(asked)).startswith(b"HTTP/1.1 400")
        assert not whole.is_set()
        assert "the machine does not speak HTTP" in (await d.notes.until_over())[0].why


async def test_chunks_are_cut_anew_and_their_extensions_and_trailers_left_out() -> None:
    server = Canned(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX-Secret: 1\r\n\r\n")
    async with doorway(server=server) as d:
        body = b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nContent-Length: 7\r\n\r\n"
        said = await d.ask(request("http://example.com/", "Transfer-Encoding: chunked", "Connection: close", method="POST", body=body))
        assert server.heard[0].partition(b"\r\n\r\n")[2] == b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        assert said.endswith(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")


async def test_folded_headers_and_bare_line_feeds_become_plain_ones() -> None:
    server = Canned()
    async with doorway(server=server) as d, await d.connect() as program:
        program.writer.write(b"GET http://example.com/ HTTP/1.1\nHost: example.com\nX: a\n  b\n\n")
        assert (await program.answer()).endswith(b"hello")
        assert server.heard == [b"GET / HTTP/1.1\r\nhost: example.com\r\nx: a b\r\nconnection: close\r\n\r\n"]


async def test_headers_named_as_hop_by_hop_stay_here_but_never_those_that_frame() -> None:
    server = Canned()
    async with doorway(server=server) as d:
        asked = request(
            "http://example.com/", "Connection: close, x-mine, content-length", "X-Mine: 1", "Content-Length: 3", method="POST", body=b"abc"
        )
        await d.ask(asked)
        assert b"x-mine" not in server.heard[0].lower()
        assert server.heard[0].endswith(b"\r\n\r\nabc")


ANSWERS = {
    "HEAD": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"),
    "204": ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 999\r\n\r\n"),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_an_answer_without_a_body_leaves_the_connection_open(kind: str) -> None:
    method, told = ANSWERS[kind]
    server = Canned(told)
    async with doorway(server=server) as d, await d.connect() as program:
        for _ in "12":
            program.writer.write(request(method=method))
            async with asyncio.timeout(10):
                assert (await program.reader.readuntil(b"\r\n\r\n")).split()[1] == told.split()[1]
        assert len(server.heard) == 2


async def test_an_answer_that_ends_with_its_connection_is_given_an_end() -> None:
    server = Canned(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
    async with doorway(server=server) as d, await d.connect() as program:
        program.writer.write(request())
        async with asyncio.timeout(10):
            assert (await program.reader.readuntil(b"0\r\n\r\n")).endswith(b"d\r\nuntil the end\r\n0\r\n\r\n")


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
async def test_a_server_cut_in_the_middle_of_its_answer_is_seen_as_such(version: str) -> None:
    server = Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")
    async with doorway(server=server) as d:
        said = await d.ask(request().replace(b"HTTP/1.1", version.encode()))
        assert said.endswith(b"half of it")
        assert b"content-length: 100" in said
        assert (await d.notes.until_over())[0].verdict == "failed"


@pytest.mark.parametrize("answer", [b"", b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"])
async def test_a_server_that_says_nothing_or_nonsense_is_a_bad_gateway(answer: bytes) -> None:
    async with doorway(server=Canned(answer)) as d:
        said = await d.ask(request())
        assert said.startswith(b"HTTP/1.1 502"), said
        assert (await d.notes.until_over())[0].verdict == "failed"


async def test_a_program_that_waits_for_continue_is_told_so_by_its_server() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"expect: 100-continue" in (await reader.readuntil(b"\r\n\r\n")).lower()
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + await reader.readexactly(3))

    async with doorway(server=server) as d, await d.connect() as program:
        program.writer.write(request("http://example.com/", "Content-Length: 3", "Expect: 100-continue", method="PUT"))
        async with asyncio.timeout(10):
            assert (await program.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        program.writer.write(b"abc")
        assert (await program.answer()).endswith(b"abc")


async def test_an_answer_that_comes_before_the_body_is_passed_on_at_once() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")

    async with doorway(server=server) as d, await d.connect() as program:
        program.writer.write(request("http://example.com/", "Content-Length: 1000000", method="PUT", body=b"x" * 1000))
        assert (await program.answer()).endswith(b"no")


async def test_a_switch_of_protocols_that_nobody_asked_for_is_refused() -> None:
    async with doorway(server=Canned(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nanything")) as d:
        said = await d.ask(request())
        assert said.startswith(b"HTTP/1.1 502")
        assert b"anything" not in said


async def test_a_program_of_the_old_days_without_a_host_header_is_served() -> None:
    server = Canned()
    async with doorway(server=server) as d:
        said = await d.ask(b"GET http://example.com/old HTTP/1.0\r\n\r\n")
        assert said.endswith(b"hello")
        assert server.heard[0].startswith(b"GET /old HTTP/1.1\r\nhost: example.com\r\n")


async def test_the_door_tells_who_asks_it_what_it_is() -> None:
    async with doorway("list", "a.example") as d:
        said = await d.ask(request("/", host="127.0.0.1:3128"))
        assert said.endswith(b"This is the way out of machine tested. Its egress policy is `list` and 1 rules: a.example.\n")
        assert d.notes.attempts == []


async def test_a_connection_over_which_nothing_moves_is_cut() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with doorway(server=server, idle_seconds=0.2) as d:
        said = await d.ask(request())
        assert b"nothing has moved for 0.2 s" in said
        assert (await d.notes.until_over())[0].verdict == "failed"


async def test_a_long_upload_that_its_server_hears_in_silence_is_not_idle() -> None:
    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(8)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    async with doorway(server=server, idle_seconds=0.4) as d, await d.connect() as program:
        program.writer.write(request("http://example.com/", "Content-Length: 8", method="PUT"))
        for _ in range(8):
            program.writer.write(b"x")
            await asyncio.sleep(0.1)  # the time that passes is what is tried
        assert (await program.answer()).endswith(b"done")


async def test_a_program_that_does_not_read_its_answer_is_not_kept_for_ever() -> None:
    cut = asyncio.Event()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        finally:
            cut.set()

    async with doorway(server=server, idle_seconds=0.3) as d, await d.connect() as program:
        program.writer.write(request())
        program.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        async with asyncio.timeout(10):
            await cut.wait()
        assert (await d.notes.until_over())[0].verdict == "failed"
