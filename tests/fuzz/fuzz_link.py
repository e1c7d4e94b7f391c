"""A fuzzer for everything that reads bytes from a guest: `python tests/fuzz/fuzz_link.py -max_total_time=60 CORPUS_FOLDER`.

Whatever comes in, the decoders give records and messages or raise ProtocolError; what they give can be written again, and how the stream was cut
makes no difference. Anything else is a crash, and atheris keeps the input.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import atheris  # pyright: ignore[reportMissingTypeStubs]

with atheris.instrument_imports(include=["everforge.wire"]):  # pyright: ignore
    from everforge.wire import frames, messages
    from everforge.wire.errors import ProtocolError

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
]


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


def take(data: bytes) -> None:
    """The first byte decides how deep the input goes in at once: a stream, a stream of one framed record, or the body of a message."""
    if not data:
        return
    choice, data = data[0], data[1:]
    if choice < 64:
        check_stream(data)
    elif choice < 128 and len(data) > 2:
        payload = data[2 : RECORD_BYTES_MAX - frames.HEADER.size]
        record = struct.pack(">HBBIQ", frames.MAGIC, data[0], data[1] & 1, len(payload), data[1] >> 1)
        check_stream(bytes(5) + record + record)
    elif data:
        check_body(data[0], data[1:])


def write_corpus(folder: Path) -> None:
    """Something honest to begin from."""
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
