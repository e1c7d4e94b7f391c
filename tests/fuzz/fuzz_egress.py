"""A fuzzer for what the egress door reads before it knows whom it speaks to: `python tests/fuzz/fuzz_egress.py -max_total_time=60 CORPUS_FOLDER`.

Whatever comes in, frames of the mux are frames or a ProtocolError, the beginning of TLS gives a name or NotTls, a host has one spelling or is none.
How the bytes were cut makes no difference. Anything else is a crash, and atheris keeps the input.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import atheris  # pyright: ignore[reportMissingTypeStubs]

with atheris.instrument_imports(include=["everforge.wire.mux", "everforge.egress"]):  # pyright: ignore
    from everforge.egress import addresses, rules
    from everforge.egress.hello import Asked, NotTls, asks_again, before_hello, server_name
    from everforge.egress.targets import host_and_port
    from everforge.wire import mux
    from everforge.wire.errors import InvalidInput, ProtocolError


def frames(data: bytes, step: int) -> tuple[list[mux.Frame], bool]:
    decoder, found = mux.Decoder(), list[mux.Frame]()
    try:
        for at in range(0, len(data), step):
            for frame in decoder.feed(data[at : at + step]):
                found.append(frame)
    except ProtocolError:
        return found, False
    return found, True


def check_frames(data: bytes) -> None:
    assert frames(data, 1 + len(data) // 5) == frames(data, max(1, len(data))), "the cut made a difference"


def asked(data: bytes) -> Asked | str | None:
    try:
        return server_name(data)
    except NotTls:
        return "no"


def check_hello(data: bytes) -> None:
    whole = asked(data)
    for n in range(0, len(data), 1 + len(data) // 4):
        part = asked(data[:n])
        assert part is None or part == whole or (part == "no") == (whole == "no"), "a beginning said something else"
        assert asks_again(data[:n]) in (None, asks_again(data)), "the beginning of an answer said something else"
    try:
        assert before_hello(data) in (None, *range(len(data) + 1))
    except NotTls:
        pass


def check_host(data: bytes) -> None:
    text = data.decode("latin-1")
    host = rules.normal_host(text)
    assert host is None or (rules.normal_host(host) == host and len(host) <= 253)
    if (address := addresses.parse(text)) is not None:
        assert isinstance(addresses.is_closed(address), str | None)
    place = host_and_port(text, 80)
    assert place is None or 0 < place[1] < 65536
    try:
        rule = rules.parse_rule(text)
    except InvalidInput:
        return
    assert rules.parse_rule(rule.text) == rule, "a rule is not what it says"


def take(data: bytes) -> None:
    if data:
        (check_frames, check_hello, check_host)[data[0] % 3](data[1:])


def write_corpus(folder: Path) -> None:
    """Something honest to begin from."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="example.com")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        (folder / "hello").write_bytes(b"\x01" + outgoing.read())
    said = mux.encode(mux.OPEN, 1) + mux.encode(mux.DATA, 1, b"GET") + mux.credit(1, 7) + mux.encode(mux.END, 1) + mux.encode(mux.RESET, 1)
    (folder / "frames").write_bytes(b"\x00" + said)
    for number, text in enumerate(
        ["0x7f.1", "[::ffff:7f00:1]:443", "*.example.com:8443", "tcp://db.example:5432", "2130706433", "a.b:80", "0x\xad7f"]
    ):
        (folder / f"host-{number}").write_bytes(b"\x02" + text.encode("latin-1"))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if not argument.startswith("-"):
            write_corpus(Path(argument))
    atheris.Setup(sys.argv, take)  # pyright: ignore[reportUnknownMemberType]
    atheris.Fuzz()  # pyright: ignore[reportUnknownMemberType]
