"""Secrets are put in outside, over TLS, for one host."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from dataclasses import replace

import pytest

from everforge.egress import broker, door
from everforge.egress.secrets import Secret, Substitution, TooLong
from kit.brokered import HOST, PLACEHOLDER, VALUE, Api, answering, api_behind_the_door, asking, get, secret, tls
from kit.doorway import doorway, request


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


async def test_one_connection_may_have_any_number_of_names_before_a_value_and_so_many_values() -> None:
    """All values are looked for in every answer, so that whoever sets one after the other would take more and more of the server."""
    api, held = Api(), [secret()]
    async with (
        doorway("list", HOST, server=api.serve, names={HOST: ["93.184.216.34"]}, secrets=held, trust=api.trust) as d,
        tls(d, api) as program,
    ):
        for n in range(2 * broker.VALUES_MAX):
            answer = await program.ask(get(b"/", b"Authorization: Basic " + b64encode(b"user-%d:" % n + PLACEHOLDER)))
            assert answer.startswith(b"HTTP/1.1 200"), n
        for n in range(broker.VALUES_MAX - 1):
            held[:] = [replace(secret(), value=b"another-value-%d" % n)]
            assert (await program.ask(get())).startswith(b"HTTP/1.1 200"), n
        held[:] = [replace(secret(), value=b"one value more")]
        answer = await program.ask(get())
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"more than 64 values of secrets" in answer
    assert len(api.requests) == 3 * broker.VALUES_MAX - 1


async def test_so_many_bodies_of_a_machine_are_held_at_once_and_the_next_ones_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "BODIES_MAX", 1)
    post = b"\r\n".join([b"POST / HTTP/1.1", b"Host: " + HOST.encode(), b"Content-Length: 4", b"", b""])
    async with api_behind_the_door(secret(in_body=True)) as (d, api), tls(d, api) as first, tls(d, api) as second:
        first.writer.write(post + b"on")
        while not d.door.bodies.locked():
            await asyncio.sleep(0.001)
        waiting = asyncio.ensure_future(second.ask(post + b"more"))
        await asyncio.sleep(0.05)
        assert [body for _, _, body in api.requests if body] == []
        assert (await first.ask(b"e.")).startswith(b"HTTP/1.1 200")
        assert (await waiting).startswith(b"HTTP/1.1 200")
        assert [body for _, _, body in api.requests if body] == [b"one.", b"more"]


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


OTHER_METHODS = (b"X-HTTP-Method-Override", b"X-HTTP-Method", b"x-method-override", b"X_HTTP_Method_Override")


@pytest.mark.parametrize("name", OTHER_METHODS)
async def test_a_reading_request_with_the_password_of_the_index_cannot_ask_to_be_taken_for_another(name: bytes) -> None:
    async with api_behind_the_door(secret(only_reads=True)) as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", b"Authorization: Bearer " + PLACEHOLDER, name + b": DELETE"))
    ((_, sent, _),) = api.requests
    assert sent[b"authorization"] == b"Bearer " + VALUE
    assert name.lower() not in sent


async def test_a_header_of_another_secret_of_the_host_cannot_ask_for_it_either() -> None:
    override = Secret("METHOD", b"placeholder-of-the-other", b"PROPPATCH", frozenset({(HOST, 443)}), header=(b"x-http-method-override", b"PROPPATCH"))
    headers = Substitution([secret(only_reads=True), override]).headers([(b"authorization", b"Bearer " + PLACEHOLDER)])
    assert headers == [(b"authorization", b"Bearer " + VALUE)]


async def test_headers_that_name_another_method_pass_where_a_secret_is_for_every_method() -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", *(name + b": PATCH" for name in OTHER_METHODS)))
    assert {name.lower() for name in OTHER_METHODS} <= set(api.requests[0][1])


async def test_another_spelling_of_the_host_goes_on_in_the_one_that_was_allowed() -> None:
    async with api_behind_the_door() as (d, api), tls(d, api) as program:
        await program.ask(get(b"/", host="Api.Example.COM.:443"))
        assert api.requests[0][1][b"host"] == HOST.encode()


def test_text_that_only_looks_like_credentials_is_left_as_it_is() -> None:
    headers = [(b"authorization", b"Basic not base64!"), (b"authorization", b"Basic dXNlcjpwYXNz"), (b"x", b"Basic")]
    assert Substitution([secret()]).headers(headers) == headers
