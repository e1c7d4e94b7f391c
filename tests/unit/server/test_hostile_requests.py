"""Requests that no honest client makes: each is served right or refused clearly, and none of them is two requests, or half of one."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from everforge.machines.service import Machines
from everforge.server import connections
from everforge.server.socketconnections import PIECE_BYTES, LimitedSocketProtocol
from kit.background import in_background
from kit.service import QUIET, Running
from kit.wild import BINARY, CLOSE, PING, TEXT, Neighbour, Wild, frame, request

MB = 1024 * 1024


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LINGER_SECONDS", 0.2)
        with in_background(settings=replace(QUIET, header_seconds=5.0)) as running:
            yield running


@pytest.fixture(scope="module")
def neighbour(running: Running) -> Iterator[Neighbour]:
    neighbour = Neighbour(running)
    yield neighbour
    neighbour.close()


# --- what a server must not understand in two ways ------------------------------------------------------------------------------------------

INNER = b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/machine/list HTTP/1.1\r\nHost: localhost\r\n"
SMUGGLED = {
    "both lengths": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 36\r\n\r\n" + INNER,
    "a signed length": POST + b"Content-Length: +5\r\n\r\n{}   " + INNER,
    "a negative length": POST + b"Content-Length: -1\r\n\r\n" + INNER,
    "an endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n" + INNER,
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunked not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
    "a bad chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + INNER,
    "an endless chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n" + INNER,
    "a chunk without an end": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n" + INNER,
    "a space before the colon": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length : 36\r\n\r\n" + INNER,
    "a folded header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + INNER,
    "NUL in a header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: b\0c\r\n\r\n" + INNER,
    "NUL in a path": b"GET /heal\0thz HTTP/1.1\r\nHost: localhost\r\n\r\n" + INNER,
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: localhost\n\n" + INNER,
    "bare carriage returns": b"GET /healthz HTTP/1.1\rHost: localhost\r\r" + INNER,
    "no version": b"GET /healthz\r\n\r\n" + INNER,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
    "noise": bytes(range(256)),
    "a path that is not ASCII": "GET /v1/machine/ä HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + INNER,
    "a tunnel": b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an invented method": b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("what", SMUGGLED)
def test_what_could_be_read_in_two_ways_is_refused_and_ends_the_connection(running: Running, neighbour: Neighbour, what: str) -> None:
    with Wild(running) as wild:
        wild.send(SMUGGLED[what])
        first = wild.answer()
        rest = wild.rest()
    assert 400 <= first.status < 500, first
    assert set(first.json()) == {"code", "message", "retry", "id", "details"}
    assert b"HTTP/1.1 " not in rest  # the inner one was not answered
    neighbour.is_served()


def test_trailers_are_no_headers(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(
            b"POST /v1/machine/list HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
            + f"Authorization: Bearer {running.token}\r\n".encode()
            + b"\r\n"
        )
        assert wild.answer().status == 401


def test_endless_trailers_take_no_memory_and_have_an_end(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Transfer_Encoding="chunked") + b"0\r\n")
        sent = wild.pour(b"X: " + b"y" * 60_000 + b"\r\n", 64 * MB)
        assert sent >= MB  # it reads on, and keeps nothing of it: headers of this size are refused


# --- what is unusual, and allowed ---------------------------------------------------------------------------------------------------------------


def test_requests_in_one_packet_are_answered_in_their_order(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(b"".join(request("GET", f"/v1/machine/number-{number}", running) for number in range(10)))
        for number in range(10):
            assert f"number-{number}" in wild.answer().json()["message"]


def test_however_many_requests_come_at_once_few_wait_and_all_are_answered(
    running: Running, neighbour: Neighbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[int] = []
    begin = connections.LimitedProtocol.on_message_begin

    def counted(protocol: connections.LimitedProtocol) -> None:
        waiting.append(len(protocol.pipeline))
        begin(protocol)

    monkeypatch.setattr(connections.LimitedProtocol, "on_message_begin", counted)
    with Wild(running) as wild:
        wild.send(b"GET / HTTP/1.1\r\n\r\n" * 3_000 + b"".join(request("GET", f"/v1/machine/number-{n}", running) for n in range(40)))
        for _ in range(3_000):
            assert wild.answer().status == 200
        for number in range(40):
            assert f"number-{number}" in wild.answer().json()["message"]
    assert 1 < max(waiting) <= connections.PIPELINE_MAX
    neighbour.is_served()


def test_requests_behind_an_answer_that_has_no_end_are_not_read_without_end(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        endless = request("GET", f"/v1/machine/{neighbour.name}/tape?follow=true", running, Accept="application/x-ndjson")
        wild.send(endless + request("GET", "/healthz") * 200)
        assert wild.pour(request("GET", "/healthz") * 2_000, 64 * MB) < 32 * MB  # what the kernels of both sides hold
        neighbour.is_served()


def test_bodies_behind_requests_that_wait_belong_to_them(running: Running) -> None:
    bodies = [json.dumps({"tags": {"n": str(number) * 500}, "state": number}).encode() for number in range(60)]
    with Wild(running) as wild:
        wild.send(b"".join(request("POST", "/v1/machine/list", running, body) for body in bodies))
        for _ in bodies:
            answer = wild.answer()
            assert (answer.status, answer.json()["message"][:5]) == (400, "state")
        wild.send(request("GET", "/healthz"))
        assert wild.answer().status == 200


def test_old_clients_are_answered_and_the_connection_closed(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = wild.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert wild.rest() == b""


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("http://localhost/healthz", "localhost"),
        ("/healthz", "a.localhost:1"),
        ("/healthz?x=y", "[::1]:80"),
        ("//healthz", "192.0.2.1:1"),
        ("/healthz", ""),
    ],
)
def test_targets_and_hosts_in_all_their_forms_are_understood(running: Running, target: str, host: str) -> None:
    with Wild(running) as wild:
        wild.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert wild.answer().status == 200


@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1.example.org", "localhost.example.org:80", "evil", "127.0.0.1@example.org", "[example.org]"]
)
def test_a_name_that_is_not_this_computers_gets_nothing_whatever_it_asks_for(running: Running, neighbour: Neighbour, host: str) -> None:
    for target in ("/", "/healthz", "/openapi.json", "/v1/whoami", "/nothing"):
        with Wild(running) as wild:
            wild.send(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {running.token}\r\n\r\n".encode())
            answer = wild.answer()
            assert (answer.status, answer.json()["code"]) == (421, "HostUnknown")


def test_a_doubled_slash_is_one(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(request("GET", "//v1/whoami", running))
        assert wild.answer().json() == {"account": "owner"}


@pytest.mark.parametrize(
    "path", ["healthz", "", "v1/whoami", "v1/machine/{name}", "v1/machine/{name}/tape", "v1/machine/{name}/exec/0/stream-result"]
)
def test_head_gets_the_headers_that_get_gets(running: Running, neighbour: Neighbour, path: str) -> None:
    neighbour.run("1")
    found: list[dict[str, str]] = []
    with Wild(running) as wild:
        for method in ("HEAD", "GET"):
            wild.send(request(method, "/" + path.format(name=neighbour.name), running))
            answer = wild.answer(body=method == "GET")
            assert answer.status == 200
            found.append({name: value for name, value in answer.headers.items() if name not in ("x-request-id", "transfer-encoding")})
    assert found[0] == found[1]


def test_head_of_a_file_tells_its_size_and_leaves_nothing_open(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("PUT", f"/v1/machine/{neighbour.name}/files/x", running, b"x" * 300_000))
        assert wild.answer().status == 200
        for _ in range(20):  # more than may be under way at once
            wild.send(request("HEAD", f"/v1/machine/{neighbour.name}/files/x", running))
            answer = wild.answer(body=False)
            assert (answer.status, answer.headers["content-length"]) == (200, "300000")
        wild.send(request("HEAD", f"/v1/machine/{neighbour.name}/files/none", running))
        assert wild.answer(body=False).status == 404


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT"])
def test_methods_that_a_path_does_not_take_are_told_which_it_takes(running: Running, method: str) -> None:
    with Wild(running) as wild:
        wild.send(request(method, "/healthz"))
        answer = wild.answer()
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        wild.send(request("GET", "/healthz"))
        assert wild.answer().status == 200


@pytest.mark.parametrize(
    "name", ["%00", "a%00b", "%FF%FE", "..", "%2E%2E", "a%2F..%2Fb", "%0d%0aX-Evil:%20yes", "%F0%9F%92%A9", "a" * 5000, "%", "%zz", "new%00", " "]
)
def test_strange_names_are_refused_by_name_or_not_there(running: Running, name: str) -> None:
    with Wild(running) as wild:
        wild.send(request("GET", f"/v1/machine/{name.replace(' ', '%20')}/snapshots", running))
        answer = wild.answer()
        assert answer.status in (400, 404)
        assert "x-evil" not in answer.headers
        assert answer.json()["code"] in ("InvalidInput", "RouteNotFound")


# --- too large ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"GET /healthz HTTP/1.1\r\nA: ", b"GET /", b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 12_000])
def test_enormous_headers_are_refused_before_they_have_ended(running: Running, neighbour: Neighbour, head: bytes) -> None:
    with Wild(running) as wild:
        assert wild.pour(head + b"x" * 70_000, 64 * MB) < 32 * MB  # cut off; what is still on its way fits into the kernel
    neighbour.is_served()


def test_headers_just_too_long_are_told_so(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(b"GET /healthz HTTP/1.1\r\nA: " + b"x" * 66_000)
        answer = wild.answer()
        assert (answer.status, answer.json()["code"]) == (431, "TooLarge")


@pytest.mark.parametrize("head", [b"A: " + b"x" * 70_000, b"A: b\r\n" * 12_000 + b"B: c", b"A: " + b"x" * 200_000, b"A:\r\n" * 200 + b"B:"])
def test_headers_that_are_too_long_are_refused_also_when_they_come_whole(running: Running, neighbour: Neighbour, head: bytes) -> None:
    for path in ("healthz", f"v1/machine/{neighbour.name}/connect"):
        with Wild(running) as wild:
            wild.send(b"GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n%s\r\n\r\n" % (path.encode(), head))
            answer = wild.answer()
            assert (answer.status, answer.json()["code"]) == (431, "TooLarge")
    neighbour.is_served()


@pytest.mark.parametrize("coding", ["gzip", "gzip, chunked", "identity", "deflate", "Chunked, gzip"])
def test_a_transfer_encoding_that_nobody_decodes_is_refused(running: Running, coding: str) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Transfer_Encoding=coding) + b"2\r\n{}\r\n0\r\n\r\n")
        answer = wild.answer()
        assert answer.status == 400
        assert wild.rest() == b""


def test_an_enormous_body_is_refused_by_what_it_says_and_by_what_it_is(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Content_Length=str(10**12)))
        assert wild.answer().status == 413
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Transfer_Encoding="chunked"))
        for _ in range(9):
            wild.send(b"100000\r\n" + b" " * MB + b"\r\n")
        assert wild.answer().status == 413
    neighbour.is_served()


def test_somebody_without_a_token_sends_little(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/internal/signup", Content_Length=str(17 * 1024)))
        assert (wild.answer().status) == 413
    with Wild(running) as wild:
        wild.send(request("POST", "/internal/signup", Transfer_Encoding="chunked") + b"4400\r\n" + b" " * 0x4400 + b"\r\n")
        assert wild.answer().json()["code"] == "TooLarge"
    with Wild(running) as wild:
        wild.send(request("POST", "/internal/signup", None, b" " * 15 * 1024 + b"{}"))
        assert wild.answer().status == 400  # read, and found wanting
    with Wild(running) as wild:  # where a token is needed nothing is read without
        wild.send(request("POST", "/v1/machine/new", Content_Length=str(MB)))
        assert wild.answer().status == 401


def test_a_message_may_be_as_large_as_a_body_and_no_larger(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.send(b"\x81\xff" + (8 * MB + 1).to_bytes(8, "big") + b"\0\0\0\0")
        assert wild.close_code() == 1009


def test_a_compressed_body_is_refused_in_one_sentence(running: Running) -> None:
    bomb = gzip.compress(b" " * 10 * MB)
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, bomb, Content_Encoding="gzip"))
        answer = wild.answer()
        assert answer.status == 400
        assert "Content-Encoding" in answer.json()["message"]


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"metadata":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001, b"9" * 100_000])
def test_deep_or_long_json_is_refused(running: Running, neighbour: Neighbour, body: bytes) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/new", running, body))
        answer = wild.answer()
        assert (answer.status, answer.json()["code"]) == (400, "InvalidInput")
        assert len(answer.body) < 1000
    neighbour.is_served()


LISTED = b",".join([b"1"] * 300_000)
HEAVY = {
    "empty objects": b'{"metadata":{"a":[' + b"{}," * 2_500_000 + b"{}]}}",
    "empty texts": b'{"metadata":{"a":[' + b'"",' * 2_500_000 + b'""]}}',
    "backslashes": b'{"metadata":{"a":[' + b'"\\\\",' * 1_500_000 + b'""]}}',
    "a text without an end": b'{"name":[' + LISTED + b',"' + b'\\",' * 2_000_000,
    "numbers": b'{"name":[' + LISTED + b"]}",
    "fields": b"{" + b",".join(b'"%d":1' % number for number in range(300_000)) + b"}",
    "wrong names": b'{"names":[' + b",".join([b"1"] * 150_000) + b"]}",  # not too many, but all of them wrong
}


@pytest.mark.parametrize("what", HEAVY)
def test_json_that_is_expensive_to_read_is_refused_and_holds_nobody_up(running: Running, neighbour: Neighbour, what: str) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", f"/v1/machine/{neighbour.name}/fork", running, HEAVY[what]))
        answer = wild.answer()
        assert (answer.status, answer.json()["code"]) == (400, "InvalidInput")
        assert len(answer.body) < 1000
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.frame(TEXT, HEAVY[what])
        assert wild.close_code() == 1008
    neighbour.is_served()


def test_code_may_have_any_number_of_commas_and_brackets(running: Running, neighbour: Neighbour) -> None:
    code = "x = [" + ", ".join(["[]"] * 100_000) + "] and '\\\\\",'"
    assert neighbour.run(code)["end"] == "value"


# --- upgrades and frames ----------------------------------------------------------------------------------------------------------------------


def test_an_upgrade_to_anything_else_is_answered_as_if_not_asked_for(running: Running) -> None:
    with Wild(running) as wild:
        wild.send(request("GET", "/healthz", Connection="Upgrade, HTTP2-Settings", Upgrade="h2c", HTTP2_Settings="AAMAAABkAAQAAP__") + INNER)
        assert wild.answer().status == 200
        assert wild.rest() == b""


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/healthz", {}, 404),
        ("/v1/machine/x/connect", {"Sec_WebSocket_Version": "8"}, 400),
        ("/v1/machine/x/connect", {"Sec_WebSocket_Key": "short"}, 400),
        ("/v1/machine/%00/connect", {}, 400),
        ("/v1/machine/x/connect?after=nan", {}, 400),
        ("/v1/machine/x/connect?after=-2", {}, 400),
        ("/v1/machine/x/connect?after=%D9%A3", {}, 400),
        ("/v1/machine/x/connect?after=", {}, 400),
        ("/v1/machine/x/connect?after=-1", {}, 404),
    ],
)
def test_bad_handshakes_are_refused(running: Running, path: str, headers: dict[str, str], status: int) -> None:
    good = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    with Wild(running) as wild:
        wild.send(request("GET", path, running, headers=good | headers))
        assert wild.answer().status == status


def test_a_websocket_does_not_begin_in_the_middle_of_an_answer(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("GET", f"/v1/machine/{neighbour.name}/tape?follow=true", running, Accept="application/x-ndjson"))
        assert wild.answer().status == 200
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        wild.send(request("GET", f"/v1/machine/{neighbour.name}/connect", running, headers=upgrade))
        assert b" 101 " not in wild.rest()


NESTED = b'{"type":"exec","request_id":1,"instruction":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}"
BROKEN = {
    "binary": (frame(BINARY, b"{}"), 1008),
    "not JSON": (frame(TEXT, b"{"), 1008),
    "deep": (frame(TEXT, b"[" * 100_000), 1008),
    "a list": (frame(TEXT, b"[]"), 1008),
    "an unknown type": (frame(TEXT, b'{"type":"dance"}'), 1008),
    "a type that is none": (frame(TEXT, b'{"type":["exec"]}'), 1008),
    "not UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "an enormous frame": (b"\x81\xff" + (2**40).to_bytes(8, "big") + b"\0\0\0\0", 1009),
    "an unmasked frame": (b"\x81\x02{}", 1002),
    "an unknown kind": (frame(0x5, b""), 1002),
    "a reserved bit": (b"\xc1\x80\0\0\0\0", 1002),
    "a continuation of nothing": (frame(0x0, b"x"), 1002),
    "a long ping": (b"\x89\xfe\x00\x7e\0\0\0\0" + b"x" * 126, 1002),
    "a message in pieces without end": (frame(TEXT, b"", last=False) + frame(0x0, b"", last=False) * 20_000, 1009),
    "a close that is none": (frame(CLOSE, b"\0"), 1002),
    "a close with a forbidden code": (frame(CLOSE, (1005).to_bytes(2, "big")), 1002),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("door", ["connect", "repl"])
def test_broken_frames_close_the_socket_with_the_right_code(running: Running, neighbour: Neighbour, what: str, door: str) -> None:
    sent, code = BROKEN[what]
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/{door}").status == 101
        wild.send(sent)
        assert wild.close_code() == code
    neighbour.is_served()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "exec", "request_id": 1},
        {"type": "exec", "request_id": 1, "instruction": {"code": 5}},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1", "dance": True}},
        {"type": "exec", "request_id": 1, "instruction": {"code": "\ud800"}},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1", "timeout_seconds": float("nan")}},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1"}, "key": "x" * 10_000},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1"}, "key": 5},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1"}, "key": "caf\xe9"},
        {"type": "exec", "request_id": 1, "instruction": {"code": "1"}, "interrupt": "yes"},
        NESTED,
    ],
)
def test_bad_requests_on_a_socket_get_an_error_and_the_socket_goes_on(running: Running, neighbour: Neighbour, message: object) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.frame(TEXT, message if isinstance(message, bytes) else json.dumps(message).encode())
        wild.frame(TEXT, b'{"type":"ping","request_id":2}')
        found = wild.until(b'"request_id":2')
        assert b'"type":"error","request_id":1,"error":{"code":"InvalidInput"' in found


@pytest.mark.parametrize("door", ["connect", "repl"])
@pytest.mark.parametrize("id", [b"[1]", b"{}", b"1.5", b"true", b"99999999999999999999", b'"%s"' % (b"x" * 201), b"[" * 500 + b"]" * 500])
def test_a_request_id_is_a_short_text_or_a_number(running: Running, neighbour: Neighbour, door: str, id: bytes) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/{door}").status == 101
        wild.frame(TEXT, b'{"type":"exec","instruction":{"code":"1"},"request_id":%s}' % id)
        found = wild.until(b"a request_id is a text of at most 200 characters")
        assert b'"request_id":null' in found
        for good in (b"2", b'"%s"' % (b"x" * 200), b"9223372036854775807", b"-1", b"null"):
            wild.frame(TEXT, b'{"type":"exec","instruction":{"code":"1"},"request_id":%s}' % good)
            wild.until(b'"request_id":' + good)


def test_a_mistake_of_the_servers_in_one_request_is_told_and_the_socket_goes_on(
    running: Running, neighbour: Neighbour, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("a mistake")

    with Wild(running) as first, Wild(running) as second, monkeypatch.context() as patch:
        assert first.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        assert second.upgrade(f"/v1/machine/{neighbour.name}/repl").status == 101
        patch.setattr(Machines, "interrupt", broken)
        patch.setattr(Machines, "exec", broken)
        for kind in (b'"interrupt"', b'"exec","instruction":{"code":"1"}'):
            first.frame(TEXT, b'{"type":%s,"request_id":1}' % kind)
            first.until(b'"type":"error","request_id":1,"error":{"code":"Internal"')
        second.frame(TEXT, b'{"type":"exec","instruction":{"code":"1"},"request_id":1}')
        second.until(b'"error":"Internal: a mistake of the server')
        patch.undo()
        first.frame(TEXT, b'{"type":"ping","request_id":2}')
        first.until(b'"reply","request_id":2')
        second.frame(TEXT, b'{"type":"exec","instruction":{"code":"6 * 7"},"request_id":2}')
        second.until(b'"value":"42"')
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError] * 3


def test_who_sends_many_frames_at_once_makes_only_itself_wait(running: Running, neighbour: Neighbour, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    parse = LimitedSocketProtocol._parse  # pyright: ignore[reportPrivateUsage]

    def watched(self: LimitedSocketProtocol, data: bytes) -> None:
        pieces.append(len(data))
        parse(self, data)

    monkeypatch.setattr(LimitedSocketProtocol, "_parse", watched)
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.send(frame(PING) * 10_000)
        neighbour.is_served()
        wild.frame(TEXT, b'{"type":"ping","request_id":"last"}')
        wild.until(b'"request_id":"last"')
    assert max(pieces) <= PIECE_BYTES  # each in a turn of its own, or in one with few others: test_turns.py


def test_thousands_of_small_messages_at_once_are_taken_in_their_time(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.send(frame(TEXT, b'{"type":"ping"}') * 20_000 + frame(TEXT, b'{"type":"ping","request_id":"last"}'))
        neighbour.is_served()
        wild.until(b'"request_id":"last"')
        assert running.service.arrivals.bytes == 0


def test_pieces_pings_and_a_close_in_between_are_understood(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.frame(TEXT, b'{"type":"ping",', last=False)
        wild.frame(PING, b"are you there")
        wild.frame(0x0, b'"request_id":"in pieces"}')
        assert b"are you there" in wild.until(b'"in pieces"}')
        wild.frame(CLOSE, (3000).to_bytes(2, "big"))
        assert wild.close_code() == 3000


# --- logs ---------------------------------------------------------------------------------------------------------------------------------------


def test_neither_tokens_nor_lines_of_a_clients_choice_come_into_the_log(
    running: Running, neighbour: Neighbour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    evil = "%0AERROR%20everything%20is%20lost%0A"
    handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    for path in (f"/v1/machine/{neighbour.name}/connect", f"/v1/machine/{evil}/connect", "/v1/machine/nobody/repl", evil):
        with Wild(running) as wild:
            wild.send(request("GET", f"{path if path[0] == '/' else '/' + path}?_forevervm_jwt={running.token}", headers=handshake))
            wild.answer()
    with Wild(running) as wild:
        wild.send(request("GET", f"/{evil}?token={running.token}", running, User_Agent="\tERROR"))
        wild.answer()
    for data in SMUGGLED.values():
        with Wild(running) as wild:
            wild.send(data)
            wild.rest()
    secret = running.token.split(".")[1]
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore", "asyncio", "hypothesis"))]
    assert not [record for record in ours if secret in record.getMessage()]
    assert not [record for record in ours if "\n" in record.getMessage() or record.levelno >= logging.WARNING]
