"""A fuzzer for everything that reads bytes from a guest: `python tests/fuzz/fuzz_link.py -max_total_time=60 CORPUS_FOLDER`.

Whatever comes in, the decoders give records and messages or raise ProtocolError; what they give can be written again, and how the stream was cut
makes no difference. Anything else is a crash, and atheris keeps the input.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import atheris  # pyright: ignore[reportMissingTypeStubs]

with atheris.instrument_imports(include=["everforge.wire", "everforge.guest", "everforge.machines.calls"]):  # pyright: ignore
    from everforge.guest import calls as guest_calls
    from everforge.guest import channel
    from everforge.machines import calls as machine_calls
    from everforge.wire import frames, messages
    from everforge.wire.errors import ProtocolError
    from everforge.wire.events import START

NONCE = bytes(range(frames.NONCE_BYTES))
RECORD_BYTES_MAX = 1024  # small, so that the limits are reached
SAMPLES: Sequence[messages.GuestMessage] = [
    messages.Frozen(7),
    messages.Outputs(1, "stdout", ["a", "\u00fc\ud800"], True, 3),
    messages.Display(None, {"text/html": "<b>", "application/json": [1.5, None, {"a": []}]}),
    messages.End(1, "error", 5, None, None, "ValueError", "no", "Traceback"),
    messages.Thawed(-1, False),
    messages.CannotFreeze(7, "process 7 (cat)"),
    messages.FileTold(9, 2, 7, b"\x00raw\xff"),
    messages.Hello(2, 1, 5, 3, False, 1, 20, 1, 1, [0, 2]),
    messages.Run(1, "ask()", {"A": "b"}, ["ask"]),
    messages.Call(1, 0, "ask", [1, "\u00fc", {"a": [None]}], {"key": 2.5}),
    messages.CallDropped(1, 0),
    messages.Answer(1, 0, {"n": [1, "\ud83d\ude00"]}),
    messages.Answer(1, 1, None, "ValueError: no"),
]
FUNCTIONS = ["ask", "tell"]


def read(stream: bytes, cuts: list[int], nonce: bytes | None) -> tuple[list[frames.Message], str | None]:
    """All messages, and the protocol error that ended it."""
    decoder, assembler = frames.Decoder(RECORD_BYTES_MAX, nonce), frames.Assembler()
    found: list[frames.Message] = []
    begin = 0
    try:
        for end in [*cuts, len(stream)]:
            for record in decoder.feed(stream[begin:end]):
                if message := assembler.add(record):
                    found.append(message)
            begin = end
    except ProtocolError as e:
        return found, e.message
    return found, None


def check_stream(data: bytes) -> None:
    nonce = NONCE if data[:1] > b"\x7f" else None
    share, stream = data[1:5], data[5:]
    cuts = sorted(len(stream) * part // 255 for part in share)
    found, error = read(stream, cuts, nonce)
    assert (found, error) == read(stream, [], nonce), "the cut made a difference"
    for message in found:
        check_body(message.kind, message.body)


def check_body(kind: int, body: bytes) -> None:
    for decode in (messages.decode_from_guest, messages.decode_from_keeper):
        try:
            message = decode(kind, body)
        except ProtocolError:
            continue
        assert message is None or decode(kind, messages.encode(message)) == message, "what was read cannot be written"


class _Passed:
    """The link and the outlet of an agent, as far as calls need them."""

    def __init__(self) -> None:
        self.said: list[tuple[int, bytes]] = []

    def send_encoded(self, kind: int, body: bytes) -> None:
        self.said.append((kind, body))

    def send(self, message: messages.GuestMessage) -> None:
        self.send_encoded(message.kind, messages.encode(message))

    def flush(self) -> None: ...


def check_calls(packets: list[bytes]) -> None:
    """Whatever an interpreter says of calls costs it its life or is passed on; and what the agent passes on, the keeper takes."""
    passed, unpacker = _Passed(), channel.Unpacker(RECORD_BYTES_MAX)
    agent: Any = guest_calls.Calls(cast(Any, passed), cast(Any, passed))
    agent.begin(messages.Run(1, "", {}, FUNCTIONS))
    try:
        for packet in packets:
            frame = unpacker.add(packet)
            if frame is not None and frame.kind == channel.CALL:
                agent.take(frame.body)
            elif frame is not None:
                agent.drop(frame.body)
    except ProtocolError:
        pass
    keeper = machine_calls.Calls(FUNCTIONS)
    for kind, body in passed.said:
        message = messages.decode_from_guest(kind, body)
        if isinstance(message, messages.Call):
            keeper.take(message, len(body))
        else:
            assert isinstance(message, messages.CallDropped)
            assert keeper.drop(message.call, START), "the keeper knows nothing of a call that was dropped"


def cut_packets(data: bytes) -> list[bytes]:
    """Some whole and numbered as they should be, some as they come."""
    packets: list[bytes] = []
    for number, piece in enumerate(data.split(b"\n"), 1):
        honest = piece[:1] < b"\xf0"
        kind = channel.CALL if piece[:1] < b"\xc0" else channel.CALL_DROPPED
        packets.append(channel.HEADER.pack(kind, 0, number) + piece[1:] if honest else piece[1:])
    return packets


def take(data: bytes) -> None:
    """The first byte decides how deep the input goes in at once: a stream, a stream of one framed record, an interpreter's packets, or the body of a
    message."""
    if not data:
        return
    choice, data = data[0], data[1:]
    if choice < 64:
        check_stream(data)
    elif choice < 128 and len(data) > 2:
        payload = data[2 : RECORD_BYTES_MAX - frames.HEADER.size]
        record = struct.pack(">HBBIQ", frames.MAGIC, data[0], data[1] & 1, len(payload), data[1] >> 1)
        check_stream(bytes(5) + record + record)
    elif choice < 160:
        check_calls(cut_packets(data))
    elif data:
        check_body(data[0], data[1:])


def write_corpus(folder: Path) -> None:
    """Something honest to begin from."""
    calls = [messages.Call(1, n, name, [n]) for n, name in enumerate(("ask", "tell", "other"))]
    told = [b"\x00" + messages.encode(call) for call in calls] + [b"\xc0" + messages.encode(messages.CallDropped(1, 0))]
    (folder / "calls").write_bytes(b"\x80" + b"\n".join(told))
    (folder / "dropped").write_bytes(b"\x80" + b"\n".join([told[0], told[3], told[1], told[1]]))
    for number, message in enumerate(SAMPLES):
        body = messages.encode(message)
        (folder / f"body-{number}").write_bytes(bytes([200, message.kind]) + body)
        pieces = frames.split(message.kind, body, 1, 64)
        stream = b"".join(map(frames.encode_record, pieces))
        (folder / f"stream-{number}").write_bytes(bytes([0, 0, 50, 100, 150, 200]) + stream)
        (folder / f"marked-{number}").write_bytes(bytes([0, 255, 50, 100, 150, 200]) + b"before" + frames.mark(NONCE) + stream)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if not argument.startswith("-"):
            write_corpus(Path(argument))
    atheris.Setup(sys.argv, take)  # pyright: ignore[reportUnknownMemberType]
    atheris.Fuzz()  # pyright: ignore[reportUnknownMemberType]
