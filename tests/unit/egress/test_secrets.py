"""Secrets: put in outside, over TLS, for one host; scrubbed from what comes back; and kept so that a copy of the database tells nothing."""

from __future__ import annotations

import asyncio
import re
import ssl
import tempfile
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import h11
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from everforge.egress import broker
from everforge.egress.authority import Authority
from everforge.egress.rules import parse_rule
from everforge.egress.secrets import BASIC_BYTES_MAX, OF_HOST_MAX, Scrubber, Secret, Substitution, TooLong
from everforge.egress.settings import opened_place
from everforge.egress.strongroom import Strongroom
from everforge.egress.vault import Vault
from everforge.store.memory_egress import MemoryEgress
from everforge.wire.errors import InvalidInput, SecretNotFound, StoreDamaged
from everforge.wire.ids import OWNER
from kit.doorway import Doorway, Handler, doorway, own_authority, request

VALUE, PLACEHOLDER = b"s3cr3t-of-the-host", b"everforge-secret-0123456789abcdef"
HOST = "api.example.com"


def secret(**more: object) -> Secret:
    return Secret("API_KEY", PLACEHOLDER, VALUE, frozenset({(HOST, 443)}), **more)  # pyright: ignore[reportArgumentType]


class Api:
    """A real server outside, which keeps what it was sent and echoes it."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.authority = Authority.in_folder(Path(folder))
        self.requests: list[tuple[bytes, dict[bytes, bytes], bytes]] = []
        self.heads: list[bytes] = []  # as they came, of one that is only answering
        self.extra: list[tuple[bytes, bytes]] = []
        self.name = HOST

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.certificate)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(self.authority.context(self.name))
        state = h11.Connection(h11.SERVER)
        while True:
            body, request = b"", None
            while not isinstance(event := state.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    state.receive_data(await reader.read(65536))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.ConnectionClosed):
                    return
            assert request is not None
            self.requests.append((bytes(request.target), {bytes(k): bytes(v) for k, v in request.headers}, body))
            told = b"\n".join([request.target, *(k + b": " + v for k, v in request.headers), body])
            for one in (
                h11.Response(status_code=200, headers=[(b"content-length", b"%d" % len(told)), *self.extra]),
                h11.Data(data=told),
                h11.EndOfMessage(),
            ):
                writer.write(state.send(one) or b"")
            await writer.drain()
            if state.our_state is h11.MUST_CLOSE:
                writer.close()
                return
            state.start_next_cycle()


@asynccontextmanager
async def api_behind_the_door(held: Secret | None = None, rule: str = HOST) -> AsyncGenerator[tuple[Doorway, Api]]:
    api = Api()
    held = held or secret()
    async with doorway(
        "list", rule, server=api.serve, names={HOST: ["93.184.216.34"], "other.example.com": ["93.184.216.35"]}, secrets=[held], trust=api.trust
    ) as d:
        yield d, api


class Tls:
    """A program in the machine that trusts the machine's certificates: the real servers' and the door's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, text: bytes) -> bytes:
        self.writer.write(text)
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await self.reader.readexactly(length)


@asynccontextmanager
async def tls(d: Doorway, api: Api, host: str = HOST, port: int = 443) -> AsyncGenerator[Tls]:
    async with await d.connect() as program:
        program.writer.write(request(f"{host}:{port}", method="CONNECT"))
        head = await program.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        trust = ssl.create_default_context(cadata=own_authority().certificate + api.authority.certificate)
        await program.writer.start_tls(trust, server_hostname=host)
        yield Tls(program.reader, program.writer)


def get(path: bytes = b"/", *headers: bytes, host: str = HOST) -> bytes:
    return b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: " + host.encode(), *headers, b"", b""])


async def test_a_placeholder_in_a_header_becomes_the_value_outside_and_is_scrubbed_from_the_echo() -> None:
    async with api_behind_the_door() as (d, api):
        async with tls(d, api) as program:
            told = await program.ask(get(b"/a", b"Authorization: Bearer " + PLACEHOLDER))
        assert api.requests[0][1][b"authorization"] == b"Bearer " + VALUE
        assert VALUE not in told
        assert b"Bearer " + b"*" * len(VALUE) in told
        asked = next(a for a in d.notes.attempts if a.method == "GET")
        assert (asked.path, asked.secrets, asked.verdict) == ("/a", ("API_KEY",), "allowed")


async def test_a_placeholder_in_basic_credentials_is_found_inside_the_base64() -> None:
    async with api_behind_the_door() as (d, api):
        async with tls(d, api) as program:
            told = await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"user:" + PLACEHOLDER)))
        sent = api.requests[0][1][b"authorization"]
        assert b64decode(sent.removeprefix(b"Basic ")) == b"user:" + VALUE
        assert sent.removeprefix(b"Basic ") not in told  # the spelling that was sent is known, and scrubbed too


async def test_bodies_and_addresses_are_left_alone_unless_asked_for() -> None:
    body = b"key=" + PLACEHOLDER
    post = b"\r\n".join([b"POST /?k=" + PLACEHOLDER + b" HTTP/1.1", b"Host: " + HOST.encode(), b"Content-Length: %d" % len(body), b"", body])
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        await program.ask(post)
        assert (api.requests[0][0], api.requests[0][2]) == (b"/?k=" + PLACEHOLDER, body)
    async with api_behind_the_door(secret(in_body=True, in_url=True)) as (d, api), tls(d, api) as program:
        told = await program.ask(post)
        assert (api.requests[0][0], api.requests[0][2]) == (b"/?k=" + VALUE, b"key=" + VALUE)
        assert api.requests[0][1][b"content-length"] == b"%d" % len(b"key=" + VALUE)
        assert VALUE not in told


async def test_of_two_secrets_of_a_host_only_the_one_that_is_meant_for_bodies_is_put_into_one() -> None:
    other = Secret("BODY_KEY", b"everforge-secret-for-bodies", b"value-for-bodies", frozenset({(HOST, 443)}), in_body=True)
    body = PLACEHOLDER + b" " + other.placeholder
    api = Api()
    async with asking(api, api.serve, secret(), other) as (_, program):
        await program.ask(get().replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(body)) + body)
    assert api.requests[0][2] == PLACEHOLDER + b" " + other.value


async def test_a_header_of_the_secret_is_put_in_by_itself_in_place_of_the_programs_own() -> None:
    async with api_behind_the_door(secret(header=(b"x-api-key", VALUE))) as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", b"X-Api-Key: mine"))
        assert api.requests[0][1][b"x-api-key"] == VALUE


async def test_many_requests_of_one_connection_each_get_their_secret() -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        for _ in range(3):
            await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        assert [sent[b"authorization"] for _, sent, _ in api.requests] == [b"Bearer " + VALUE] * 3


@pytest.mark.parametrize("has_its_own", [False, True])
@pytest.mark.parametrize(("host", "port"), [("other.example.com", 443), (HOST, 8443)])
async def test_another_host_on_the_same_address_gets_no_secret(host: str, port: int, has_its_own: bool) -> None:
    """Nor another port of the host. One with a secret of its own, whose TLS the door opens as well, gets that one alone."""
    own = Secret("OTHER_KEY", b"everforge-secret-of-another", b"value-of-another", frozenset({(host, port)}))
    both = [secret(header=(b"x-api-key", VALUE)), *([own] if has_its_own else [])]
    names = {HOST: ["93.184.216.34"], "other.example.com": ["93.184.216.34"]}
    place = host if port == 443 else f"{host}:{port}"
    api = Api()
    api.name = host
    async with doorway("list", HOST, place, server=api.serve, names=names, secrets=both, trust=api.trust) as d, tls(d, api, host, port) as program:
        await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER, b"X-Other: " + own.placeholder, host=place))
        [(_, heard, _)] = api.requests
        assert heard[b"authorization"] == b"Bearer " + PLACEHOLDER
        assert b"x-api-key" not in heard
        assert heard[b"x-other"] == (own.value if has_its_own else own.placeholder)


async def test_a_request_for_another_host_within_the_connection_gets_no_secret() -> None:
    """A shared address must not leak it."""
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        told = await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER, host="evil.example.com"))
        assert told.startswith(b"HTTP/1.1 400")
        assert api.requests == []


BOTH_LENGTHS = b"\r\n".join([b"POST / HTTP/1.1", b"Host: " + HOST.encode(), b"Content-Length: 5", b"Transfer-Encoding: chunked", b"", b"0\r\n\r\n"])


@pytest.mark.parametrize("asked", [get(b"https://evil.example.com/"), get(f"https://{HOST}/".encode()), get(b"evil.example.com:443"), BOTH_LENGTHS])
async def test_what_the_host_could_understand_in_another_way_than_the_door_is_not_passed_on(asked: bytes) -> None:
    """The host that an address names goes before the header, and behind a body of two lengths another request may hide."""
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        assert (await program.ask(asked)).startswith(b"HTTP/1.1 400")
        assert api.requests == []


async def test_over_plain_tcp_the_machine_speaks_with_the_host_itself_and_has_only_the_placeholder() -> None:
    """The door opens no TLS there: nobody has said that it is any."""
    async with api_behind_the_door(rule=f"tcp://{HOST}:443") as (d, api), tls(d, api) as program:
        told = await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        assert api.requests[0][1][b"authorization"] == b"Bearer " + PLACEHOLDER
        assert PLACEHOLDER in told


async def test_after_a_redirect_elsewhere_there_is_only_the_placeholder() -> None:
    async with api_behind_the_door(rule="*.example.com") as (d, api):
        api.extra = [(b"location", b"https://other.example.com/")]
        async with tls(d, api) as program:
            await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        api.name = "other.example.com"
        async with tls(d, api, "other.example.com") as program:  # whoever follows it begins anew, and the door does not even open this TLS
            await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER, host="other.example.com"))
        assert api.requests[1][1][b"authorization"] == b"Bearer " + PLACEHOLDER


async def test_a_location_that_gives_the_value_away_is_scrubbed() -> None:
    async with api_behind_the_door() as (d, api):
        api.extra = [(b"location", b"https://evil.example.com/?" + VALUE)]
        async with tls(d, api) as program:
            assert VALUE not in await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))


async def test_plain_http_to_the_host_carries_the_placeholder_and_nothing_else() -> None:
    heard: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with doorway("list", HOST, server=plain, names={HOST: ["93.184.216.34"]}, secrets=[secret(header=(b"x-api-key", VALUE))]) as d:
        await d.ask(request(f"http://{HOST}/", f"Authorization: Bearer {PLACEHOLDER.decode()}", "Connection: close", host=HOST))
    assert VALUE not in heard[0]
    assert PLACEHOLDER in heard[0]


async def test_a_host_that_cannot_prove_who_it_is_gets_nothing() -> None:
    async with api_behind_the_door() as (d, api):
        api.authority = Api().authority  # the server's certificate is signed by somebody whom the door does not trust
        told = await d.ask(request(f"{HOST}:443", method="CONNECT"))
        assert told.startswith(b"HTTP/1.1 502")
        assert api.requests == []


async def test_the_policy_comes_before_the_secret() -> None:
    async with api_behind_the_door(rule="elsewhere.example.com") as (d, _):
        assert (await d.ask(request(f"{HOST}:443", method="CONNECT"))).startswith(b"HTTP/1.1 403")
        assert d.far.dialled == []


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


def upgrade(*headers: bytes) -> bytes:
    return get(b"/", b"Connection: upgrade", b"Upgrade: websocket", *headers)


def answering(*answers: bytes) -> tuple[Api, Handler]:
    """A host that says these words to its requests, one after the other, whatever they are."""
    api = Api()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(api.authority.context(HOST))
        for answer in answers:
            api.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
        await reader.read()

    return api, say


@asynccontextmanager
async def asking(api: Api, say: Handler, *held: Secret) -> AsyncGenerator[tuple[Doorway, Tls]]:
    async with (
        doorway("list", HOST, server=say, names={HOST: ["93.184.216.34"]}, secrets=held or [secret()], trust=api.trust) as d,
        tls(d, api) as program,
    ):
        yield d, program


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


@pytest.mark.parametrize("value", [b"a value with spaces", b"s3cr3t-with\nan-end-of-a-line"])
async def test_a_value_that_makes_no_http_of_a_request_is_told_to_nobody(value: bytes) -> None:
    """Spaces are none in an address; and the password of a package index may have anything in it, which is none in a header."""
    held = Secret("API_KEY", PLACEHOLDER, value, frozenset({(HOST, 443)}), in_url=True)
    async with api_behind_the_door(held) as (d, api):
        async with tls(d, api) as program:
            told = await program.ask(get(b"/" + PLACEHOLDER, b"Authorization: Bearer " + PLACEHOLDER))
        assert told.endswith(b"\r\n\r\nwith its secrets in it, this is no HTTP request any more\n")
        assert api.requests == []
        assert value not in told
        attempts = await d.notes.until_over(2)
    assert PLACEHOLDER.decode() in next(a.path for a in attempts if a.method == "GET")
    assert not any(word in str(a) for a in attempts for word in value.decode().splitlines())


async def test_a_length_that_looks_like_a_value_is_a_length() -> None:
    """What frames an answer has been read as numbers and words, and is passed on as such."""
    held = Secret("DIGITS", PLACEHOLDER, b"00000005", frozenset({(HOST, 443)}))
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 00000005\r\n\r\nhello")
    async with asking(api, say, held) as (_, program):
        assert (await program.ask(get())).endswith(b"hello")


async def test_a_spelling_of_a_value_that_an_earlier_request_has_sent_is_not_told_by_a_later_answer() -> None:
    login = b64encode(b"user:" + VALUE)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"
    api, say = answering(head % 0, head % len(login) + login)
    async with asking(api, say) as (_, program):
        await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"user:" + PLACEHOLDER)))
        assert login not in await program.ask(get())


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


async def test_what_is_said_of_the_connection_gets_no_value_and_its_echo_is_scrubbed() -> None:
    api, say = answering(b"HTTP/1.1 101 Switching\r\nconnection: upgrade, " + VALUE + b"\r\nupgrade: " + VALUE + b"\r\n\r\n")
    async with asking(api, say) as (_, program):
        program.writer.write(get(b"/", b"Connection: upgrade, " + PLACEHOLDER, b"Upgrade: websocket"))
        async with asyncio.timeout(10):
            told = await program.reader.readuntil(b"\r\n\r\n")
    assert b"101" in told
    assert VALUE not in told
    [head] = api.heads
    assert VALUE not in head


@pytest.mark.parametrize("protocol", [b"h2c", b"TLS/1.0", b"websocket, h2c", PLACEHOLDER])
async def test_a_wish_for_another_protocol_than_websockets_is_not_passed_on(protocol: bytes) -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        settings = b"HTTP2-Settings: AAMAAABkAAQAAP__"
        wish = get(b"/", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: " + protocol, settings, b"Authorization: Bearer " + PLACEHOLDER)
        for _ in range(2):  # it is a request like any other, and more may follow
            assert (await program.ask(wish)).startswith(b"HTTP/1.1 200")
    for _, sent, _ in api.requests:
        assert sent[b"authorization"] == b"Bearer " + VALUE
        assert not {b"upgrade", b"connection", b"http2-settings"} & set(sent)


async def test_a_host_that_switches_to_another_protocol_unasked_is_not_followed() -> None:
    api, say = answering(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n" + VALUE)
    async with asking(api, say) as (_, program):
        program.writer.write(get(b"/", b"Connection: upgrade", b"Upgrade: h2c"))
        async with asyncio.timeout(10):
            told = await program.reader.read()
    assert b" 101 " not in told
    assert VALUE not in told


async def test_one_connection_has_so_many_different_credentials_and_no_more_and_each_is_short() -> None:
    """All of them are looked for in every answer, so that whoever sends one after the other would take more and more of the server."""
    async with api_behind_the_door() as (d, api):
        async with tls(d, api) as program:
            for n in range(broker.CREDENTIALS_MAX - 1):
                answer = await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"user-%d:" % n + PLACEHOLDER)))
                assert answer.startswith(b"HTTP/1.1 200"), n
            answer = await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"one-more:" + PLACEHOLDER)))
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"different credentials" in answer
        async with tls(d, api) as program:
            answer = await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"A" * BASIC_BYTES_MAX + PLACEHOLDER)))
        assert answer.startswith(b"HTTP/1.1 400")
        assert len(api.requests) == broker.CREDENTIALS_MAX - 1


async def test_a_value_that_names_another_secret_is_put_in_as_it_is() -> None:
    """Else three secrets of a few kilobytes would be a request of megabytes, and five one of more than there is memory."""
    first = Secret("A", b"everforge-secret-a", b"x" * 20 + b"everforge-secret-b" * 200, frozenset({(HOST, 443)}))
    second = Secret("B", b"everforge-secret-b", b"y" * 4000, frozenset({(HOST, 443)}))
    (told,) = Substitution([first, second]).headers([(b"x-key", first.placeholder)])
    assert told[1] == first.value
    with pytest.raises(TooLong):
        Substitution([second]).headers([(b"x-key", second.placeholder * 100)])
    with pytest.raises(TooLong):
        Substitution([Secret("C", b"c-secret", b"z" * 4000, frozenset(), in_body=True)]).body(b"c-secret" * 1000)


async def test_a_secret_that_was_deleted_is_not_put_into_the_next_request_of_an_open_connection() -> None:
    api = Api()
    held = [secret()]
    async with (
        doorway("list", HOST, server=api.serve, names={HOST: ["93.184.216.34"]}, secrets=held, trust=api.trust) as d,
        tls(d, api) as program,
    ):
        await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        held.clear()
        program.writer.write(get(b"/", b"Authorization: Bearer " + PLACEHOLDER))
        async with asyncio.timeout(10):
            assert await program.reader.read() == b""
    assert len(api.requests) == 1


async def test_the_password_of_the_index_is_for_reading_alone() -> None:
    async with api_behind_the_door(secret(only_reads=True)) as (d, api), tls(d, api) as program:
        login = b"Authorization: Bearer " + PLACEHOLDER
        await program.ask(get(b"/", login))
        await program.ask(b"\r\n".join([b"POST /upload HTTP/1.1", b"Host: " + HOST.encode(), b"Content-Length: 0", login, b"", b""]))
        assert [sent[b"authorization"] for _, sent, _ in api.requests] == [b"Bearer " + VALUE, b"Bearer " + PLACEHOLDER]


async def test_a_value_for_reading_alone_is_scrubbed_from_the_answer_to_a_write_too() -> None:
    """The host knows it, and may tell it though it was not sent."""
    api, say = answering(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(VALUE) + VALUE)
    async with asking(api, say, secret(only_reads=True)) as (_, program):
        told = await program.ask(get().replace(b"GET", b"POST"))
    assert told.endswith(b"\r\n\r\n" + b"*" * len(VALUE))


OTHER_METHODS = (b"X-HTTP-Method-Override", b"X-HTTP-Method", b"x-method-override", b"X_HTTP_Method_Override")


@pytest.mark.parametrize("name", OTHER_METHODS)
async def test_a_reading_request_with_the_password_of_the_index_cannot_ask_to_be_taken_for_another(name: bytes) -> None:
    async with api_behind_the_door(secret(only_reads=True)) as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER, name + b": DELETE"))
    ((_, sent, _),) = api.requests
    assert sent[b"authorization"] == b"Bearer " + VALUE
    assert name.lower() not in sent


async def test_headers_that_name_another_method_pass_where_a_secret_is_for_every_method() -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", *(name + b": PATCH" for name in OTHER_METHODS)))
    assert {name.lower() for name in OTHER_METHODS} <= set(api.requests[0][1])


async def test_another_spelling_of_the_host_goes_on_in_the_one_that_was_allowed() -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", host="Api.Example.COM.:443"))
        assert api.requests[0][1][b"host"] == HOST.encode()


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


def test_text_that_only_looks_like_credentials_is_left_as_it_is() -> None:
    headers = [(b"authorization", b"Basic not base64!"), (b"authorization", b"Basic dXNlcjpwYXNz"), (b"x", b"Basic")]
    assert Substitution([secret()]).headers(headers) == headers


async def test_values_are_kept_encrypted_under_the_folders_key_and_open_only_for_their_account_and_name(tmp_path: Path) -> None:
    book = MemoryEgress()
    room = Strongroom(book, Vault.in_folder(tmp_path))
    made = await room.set(OWNER, "API_KEY", "a value of mine", ["Api.Example.com", "api.example.com:8443"], "", [])
    assert "a value" not in str(made)
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert made.hosts == ["api.example.com", "api.example.com:8443"]
    again = Strongroom(book, Vault.in_folder(tmp_path))
    await again.load(OWNER)
    assert again.of(OWNER)[0].value == b"a value of mine"
    assert again.environment(OWNER) == {"API_KEY": made.placeholder}
    with pytest.raises(StoreDamaged):
        Vault.in_folder(tmp_path).open(made.sealed, f"{OWNER}/OTHER")
    (tmp_path / "secrets.key").unlink()
    lost = Strongroom(book, Vault.in_folder(tmp_path))
    await lost.load(OWNER)  # its machines can do without
    assert lost.of(OWNER) == ()


async def test_a_host_has_so_many_secrets_and_no_more_of_which_one_would_not_be_put_in(tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    for number in range(OF_HOST_MAX):
        await room.set(OWNER, f"KEY_{number}", "a value of mine", ["api.example.com"], "", [])
    with pytest.raises(InvalidInput, match=r"20 secrets at most, and api\.example\.com has that many"):
        await room.set(OWNER, "ONE_MORE", "a value of mine", ["other.example.com", "api.example.com"], "", [])
    await room.set(OWNER, "KEY_3", "another value", ["api.example.com"], "", [])


@pytest.mark.parametrize("host", ["api.example.com:00000165536", "api.example.com:0" + "0" * 5000, "api.example.com:65536", "api.example.com:0"])
async def test_a_port_that_is_none_is_refused_and_nothing_is_kept(host: str, tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    with pytest.raises(InvalidInput, match="is not a host such as"):
        await room.set(OWNER, "KEY", "a value of mine", [host], "", [])
    assert await room.list(OWNER) == []
    with pytest.raises(InvalidInput):
        parse_rule(host)
    with pytest.raises(InvalidInput):
        opened_place(host)


async def test_a_new_value_keeps_the_placeholder_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    first = await room.set(OWNER, "API_KEY", "first value", ["a.example.com"], "", [])
    second = await room.set(OWNER, "API_KEY", "second value", ["b.example.com"], "", [])
    assert first.placeholder == second.placeholder
    assert [s.value for s in room.of(OWNER)] == [b"second value"]
    await room.delete(OWNER, "API_KEY")
    assert room.of(OWNER) == ()
    with pytest.raises(SecretNotFound):
        await room.delete(OWNER, "API_KEY")


@pytest.mark.parametrize(
    ("name", "value", "hosts", "header", "places"),
    [
        ("1ST", "long enough", ["a.example.com"], "", []),
        ("PATH", "long enough", ["a.example.com"], "", []),
        ("LD_PRELOAD", "long enough", ["a.example.com"], "", []),
        ("https_proxy", "long enough", ["a.example.com"], "", []),
        ("PYTHONPATH", "long enough", ["a.example.com"], "", []),
        ("A", "short", ["a.example.com"], "", []),
        ("A", "with\nnewline", ["a.example.com"], "", []),
        ("A", " space at its end ", ["a.example.com"], "", []),
        ("A", "long enough", ["a.example.com"], "X: {} ", []),
        ("A", "long enough", [], "", []),
        ("A", "long enough", ["*.example.com"], "", []),
        ("A", "long enough", ["a.example.com:x"], "", []),
        ("A", "long enough", ["a.example.com"], "Authorization", []),
        ("A", "long enough", ["a.example.com"], "Host: {}", []),
        ("A", "long enough", ["a.example.com"], "X: {}\r\nY: 1", []),
        ("A", "long enough", ["a.example.com"], "", ["cookie"]),
    ],
)
async def test_what_cannot_be_a_secret_is_refused_in_words(
    tmp_path: Path, name: str, value: str, hosts: list[str], header: str, places: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await Strongroom(MemoryEgress(), Vault.in_folder(tmp_path)).set(OWNER, name, value, hosts, header, places)
    assert value not in refused.value.message
