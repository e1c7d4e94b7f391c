from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from everforge.wire.errors import ProtocolError
from everforge.wire.frames import (
    HEADER,
    MAGIC,
    MARK,
    MESSAGE_BYTES_MAX,
    MORE,
    NONCE_BYTES,
    NUMBER_MAX,
    RECORD_BYTES_MAX,
    Assembler,
    Decoder,
    Message,
    Outbox,
    Record,
    encode_record,
    mark,
    split,
    weight,
)

SMALL = HEADER.size + 5  # records of five bytes: every message of some length comes in pieces

records = st.builds(
    Record,
    kind=st.integers(0, 255),
    number=st.integers(0, NUMBER_MAX),
    more=st.booleans(),
    payload=st.binary(max_size=RECORD_BYTES_MAX - HEADER.size),
)
nonces = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)


def feed(decoder: Decoder, data: bytes, cuts: Iterable[int]) -> list[Record]:
    """The bytes, cut at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [record for a, b in itertools.pairwise(places) for record in decoder.feed(data[a:b])]


# --- records -----------------------------------------------------------------------------------------------------------------------


@given(st.lists(records, max_size=8), st.lists(st.integers(0, 10**6), max_size=12))
def test_however_the_stream_is_cut_the_same_records_come_out(sent: list[Record], cuts: list[int]) -> None:
    assert feed(Decoder(RECORD_BYTES_MAX), b"".join(map(encode_record, sent)), cuts) == sent


def test_a_stream_may_come_byte_by_byte() -> None:
    sent = [Record(1, 1, True, b"ab"), Record(1, 2, False, b""), Record(2, 0, False, b"c")]
    assert feed(Decoder(SMALL), b"".join(map(encode_record, sent)), range(10**3)) == sent


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_garbage_gives_records_or_a_protocol_error_and_nothing_else(chunks: list[bytes]) -> None:
    decoder, assembler = Decoder(RECORD_BYTES_MAX), Assembler()
    with contextlib.suppress(ProtocolError):
        for chunk in chunks:
            for record in decoder.feed(chunk):
                assembler.add(record)


@given(st.lists(records, min_size=1, max_size=4), st.data())
def test_a_damaged_stream_gives_records_or_a_protocol_error_and_nothing_else(sent: list[Record], data: st.DataObject) -> None:
    stream = bytearray(b"".join(map(encode_record, sent)))
    for _ in range(data.draw(st.integers(1, 5))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    decoder, assembler = Decoder(RECORD_BYTES_MAX), Assembler()
    with contextlib.suppress(ProtocolError):
        for record in decoder.feed(bytes(stream)):
            assembler.add(record)


@pytest.mark.parametrize(
    "header",
    [
        HEADER.pack(MAGIC ^ 1, 1, 0, 0, 1),
        HEADER.pack(MAGIC, 1, 2, 0, 1),
        HEADER.pack(MAGIC, 1, MORE | 0x80, 0, 1),
        HEADER.pack(MAGIC, 1, 0, 0, NUMBER_MAX + 1),
        HEADER.pack(MAGIC, 1, 0, RECORD_BYTES_MAX - HEADER.size + 1, 1),
        HEADER.pack(MAGIC, 1, 0, 2**32 - 1, 1),
    ],
)
def test_a_malformed_header_is_refused_before_its_payload_is_waited_for(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Decoder(RECORD_BYTES_MAX).feed(header))


def test_records_before_a_malformed_one_are_given_first() -> None:
    good = Record(1, 1, False, b"x")
    seen: list[Record] = []

    def read() -> None:
        for record in Decoder(RECORD_BYTES_MAX).feed(encode_record(good) + b"\xff" * HEADER.size):
            seen.append(record)

    with pytest.raises(ProtocolError):
        read()
    assert seen == [good]


# --- finding one's place -------------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300), nonces, st.lists(records, max_size=4), st.lists(st.integers(0, 10**6), max_size=12))
def test_everything_before_the_marker_is_skipped(before: bytes, nonce: bytes, sent: list[Record], cuts: list[int]) -> None:
    # A nonce is random and comes after whatever is in the pipe: only here could the bytes before it be made to fit.
    assume((before + mark(nonce)).find(mark(nonce)) == len(before))
    decoder = Decoder(RECORD_BYTES_MAX, nonce)
    assert feed(decoder, before + mark(nonce) + b"".join(map(encode_record, sent)), cuts) == sent
    assert decoder.placed


@given(st.binary(max_size=300), nonces, nonces.filter(lambda n: n != bytes(NONCE_BYTES)), st.lists(st.integers(0, 10**6), max_size=6))
def test_a_marker_with_another_nonce_is_no_marker(before: bytes, nonce: bytes, change: bytes, cuts: list[int]) -> None:
    other = bytes(a ^ b for a, b in zip(nonce, change, strict=True))
    decoder = Decoder(RECORD_BYTES_MAX, nonce)
    stream = before + mark(other) + encode_record(Record(1, 1, False, b"x"))
    if mark(nonce) not in stream:
        assert feed(decoder, stream, cuts) == []
        assert not decoder.placed


def test_a_reader_without_its_place_keeps_no_more_than_a_marker() -> None:
    decoder = Decoder(RECORD_BYTES_MAX, b"n" * NONCE_BYTES)
    for _ in range(100):
        assert list(decoder.feed(MARK * 1000)) == []
    assert len(decoder._buffer) < len(MARK) + NONCE_BYTES  # pyright: ignore[reportPrivateUsage]


# --- messages of several records -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=60)), max_size=6), st.integers(HEADER.size + 1, 60))
def test_a_message_of_any_length_is_split_and_joined_again(sent: list[tuple[int, bytes]], record_bytes_max: int) -> None:
    outbox, assembler = Outbox(record_bytes_max), Assembler()
    stream = b"".join(data for kind, body in sent for data in outbox.add(kind, body))
    found = [message for record in Decoder(record_bytes_max).feed(stream) if (message := assembler.add(record))]
    assert [(m.kind, m.body) for m in found] == sent
    assert assembler.last == outbox.last == (found[-1].number if found else 0)


def test_a_resend_is_dropped_and_a_gap_is_an_error() -> None:
    assembler = Assembler(4)
    assert assembler.add(Record(1, 4, False, b"old")) is None
    assert assembler.add(Record(1, 5, False, b"new")) == Message(1, 5, b"new")
    assert assembler.add(Record(1, 5, False, b"again")) is None
    with pytest.raises(ProtocolError, match="record 7 came after 5"):
        assembler.add(Record(1, 7, False, b"x"))


def test_control_messages_pass_between_the_pieces_of_another() -> None:
    assembler = Assembler()
    assert assembler.add(Record(1, 1, True, b"a")) is None
    assert assembler.add(Record(2, 0, False, b"control")) == Message(2, 0, b"control")
    assert assembler.add(Record(1, 2, False, b"b")) == Message(1, 2, b"ab")


def test_a_message_that_changes_its_kind_and_a_control_message_in_pieces_are_refused() -> None:
    assembler = Assembler()
    assembler.add(Record(1, 1, True, b"a"))
    with pytest.raises(ProtocolError, match="kind"):
        assembler.add(Record(2, 2, False, b"b"))
    with pytest.raises(ProtocolError, match="pieces"):
        assembler.add(Record(2, 0, True, b""))


def test_a_message_over_the_limit_is_refused_on_both_sides() -> None:
    with pytest.raises(ProtocolError, match="limit"):
        split(1, bytes(MESSAGE_BYTES_MAX + 1), 1, RECORD_BYTES_MAX)
    with pytest.raises(ProtocolError, match="does not fit"):
        split(1, bytes(RECORD_BYTES_MAX), 0, RECORD_BYTES_MAX)
    assembler, megabyte = Assembler(), bytes(2**20)
    for number in range(1, 17):
        assert assembler.add(Record(1, number, True, megabyte)) is None
    with pytest.raises(ProtocolError, match="limit"):
        assembler.add(Record(1, 17, True, b"x"))


def test_a_flood_of_empty_pieces_takes_no_memory() -> None:
    assembler = Assembler()
    for number in range(1, 100_000):
        assert assembler.add(Record(1, number, True, b"")) is None
    assert len(assembler._body) == 0  # pyright: ignore[reportPrivateUsage]


def test_the_writer_that_replaces_another_begins_its_message_anew() -> None:
    assembler = Assembler()
    assembler.add(Record(1, 1, True, b"half of"))
    assembler.forget_partial()
    assert assembler.add(Record(2, 2, False, b"whole")) == Message(2, 2, b"whole")


@given(st.lists(st.binary(max_size=30), max_size=10), st.data())
def test_the_outbox_keeps_what_is_not_acknowledged(bodies: list[bytes], data: st.DataObject) -> None:
    outbox = Outbox(SMALL)
    made = [record for body in bodies for record in outbox.add(1, body)]
    upto = data.draw(st.integers(0, outbox.last))
    outbox.acknowledge(upto)
    assert outbox.after(0) == made[upto:]
    assert outbox.weight == sum(map(weight, made[upto:]))
    place = data.draw(st.integers(0, outbox.last))
    assert outbox.after(place) == made[max(upto, place) :]


def test_an_acknowledgement_of_what_was_never_sent_is_refused() -> None:
    outbox = Outbox(SMALL)
    outbox.add(1, b"x")
    with pytest.raises(ProtocolError):
        outbox.acknowledge(2)


class Reconnecting(RuleBasedStateMachine):
    """A guest sends; servers read, put on the tape, acknowledge, and are killed at any place. Every message is on the tape exactly once, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(SMALL)
        self.pipe = b""  # written by the guest, not read by anyone yet
        self.sent: list[bytes] = []
        self.tape: list[bytes] = []
        self.have = 0  # the number of the last message on the tape
        self.attaches = 0
        self.attach()

    @rule()
    def attach(self) -> None:
        """A new server, in the middle of whatever is in the pipe."""
        self.attaches += 1
        nonce = self.attaches.to_bytes(NONCE_BYTES, "big")
        self.decoder, self.assembler = Decoder(SMALL, nonce), Assembler(self.have)
        self.outbox.acknowledge(self.have)
        self.pipe += mark(nonce) + b"".join(self.outbox.after(self.have))

    @rule(body=st.binary(max_size=20) | st.just(mark(bytes(NONCE_BYTES))))
    def send(self, body: bytes) -> None:
        self.sent.append(body)
        self.pipe += b"".join(self.outbox.add(1, body))

    @rule(count=st.integers(0, 80), last=st.integers(0, 3))
    def read(self, count: int, last: int) -> None:
        """Some bytes; a server may be killed after it took a message and before it wrote it (the `last` ones)."""
        data, self.pipe = self.pipe[:count], self.pipe[count:]
        taken = [message for record in self.decoder.feed(data) if (message := self.assembler.add(record))]
        kept = taken[: len(taken) - last] if last else taken
        for message in kept:
            self.tape.append(message.body)
            self.have = message.number
        if len(kept) < len(taken):
            self.attach()

    @rule(lost=st.integers(1, 60))
    def lose(self, lost: int) -> None:
        """A killed server takes with it what it had read of the pipe."""
        self.pipe = self.pipe[lost:]
        self.attach()

    @precondition(lambda self: self.outbox.last)
    @rule()
    def acknowledge(self) -> None:
        self.outbox.acknowledge(self.have)

    @invariant()
    def the_tape_is_what_was_sent_so_far(self) -> None:
        assert self.tape == self.sent[: len(self.tape)]

    def teardown(self) -> None:
        self.attach()
        self.read(len(self.pipe), 0)
        assert self.tape == self.sent


TestReconnecting = Reconnecting.TestCase
