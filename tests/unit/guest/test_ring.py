"""The output ring by itself: what goes in comes out, and a writer that is not ours is found out."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.guest import ring
from everforge.wire.errors import ProtocolError

Segment = tuple[int, int, int]


def pair() -> tuple[ring.Writer, ring.Reader, mmap.mmap]:
    fd = ring.create()
    try:
        return ring.Writer(fd), ring.Reader(fd), mmap.mmap(fd, ring.SIZE_BYTES)
    finally:
        os.close(fd)


@pytest.fixture
def pairs() -> Iterator[tuple[ring.Writer, ring.Reader, mmap.mmap]]:
    writer, reader, memory = pair()
    yield writer, reader, memory
    writer.close()
    reader.close()
    memory.close()


def merged(said: list[tuple[Segment, bytes]]) -> list[tuple[Segment, bytes]]:
    found: list[tuple[Segment, bytes]] = []
    for segment, data in said:
        if found and found[-1][0] == segment:
            found[-1] = (segment, found[-1][1] + data)
        elif data:
            found.append((segment, data))
    return found


segments = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(-1, 1))
writes = st.lists(st.tuples(segments, st.sampled_from([1, 2, 7, 100, 5_000, 40_000, 200_000]), st.booleans()), max_size=60)


@settings(max_examples=60, deadline=None)
@given(writes)
def test_what_is_written_is_read_in_order_whatever_the_sizes(orders: list[tuple[Segment, int, bool]]) -> None:
    writer, reader, memory = pair()
    wrote: list[tuple[Segment, bytes]] = []
    read: list[ring.Said] = []
    for number, (segment, size, look) in enumerate(orders):
        data = bytes([number % 256]) * size
        while data:
            taken = writer.write(segment, data)
            wrote.append((segment, data[:taken]))
            data = data[taken:]
            if look or not taken:
                read += reader.read()
    read += reader.read()
    assert merged([((s.stream, s.thread, s.origin), s.data) for s in read]) == merged(wrote)
    assert reader.empty
    for part in (writer, reader, memory):
        part.close()


def test_reading_up_to_a_position_leaves_the_rest(pairs: tuple[ring.Writer, ring.Reader, mmap.mmap]) -> None:
    writer, reader, _ = pairs
    writer.write((0, 0, -1), b"before")
    position = writer.position
    writer.write((0, 0, -1), b" after")
    assert [s.data for s in reader.read(position)] == [b"before"]
    assert [s.data for s in reader.read()] == [b" after"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 200), st.binary(min_size=1, max_size=40)), min_size=1, max_size=8))
def test_scribbled_memory_gives_a_protocol_error_or_text_and_nothing_else(scribbles: list[tuple[int, bytes]]) -> None:
    writer, reader, memory = pair()
    writer.write((1, 5, 3), b"hello" * 10)
    for at, data in scribbles:
        memory[at : at + len(data)] = data
    try:
        read = sum(len(s.data) for s in reader.read())
        assert read <= ring.CAPACITY_BYTES
    except ProtocolError:
        pass
    for part in (writer, reader, memory):
        part.close()


def test_its_memory_cannot_be_cut_off_under_its_reader() -> None:
    fd = ring.create()
    try:
        for size in (0, ring.SIZE_BYTES * 2):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size)
    finally:
        os.close(fd)
