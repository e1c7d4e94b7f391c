from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everforge.wire.events import (
    KINDS,
    START,
    Accepted,
    Answered,
    Called,
    Displayed,
    Ended,
    Event,
    Lost,
    Moved,
    Output,
    Position,
    decode,
    encode_body,
)

ints = st.integers(0, 2**63 - 1)
texts = st.text(st.characters())  # lone surrogates and NUL included: the tape keeps what it is given
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda c: st.lists(c, max_size=3) | st.dictionaries(texts, c, max_size=3),
    max_leaves=6,
)
bundles = st.dictionaries(texts, values, max_size=3)
common: dict[str, Any] = {"position": ints.map(Position), "time": st.floats(0, 1e10), "epoch": ints, "frame": ints}
maybe = st.none() | texts

outputs = st.builds(
    Output,
    **common,
    instruction=st.none() | ints,
    stream=st.sampled_from(["stdout", "stderr"]),
    first_seq=st.integers(0, 10**9),
    lines=st.lists(texts, min_size=1, max_size=6),
    partial=st.booleans(),
    origin=st.none() | ints,
)
events = st.one_of(
    st.builds(Accepted, **common, instruction=ints, code=texts, timeout_seconds=st.floats(0, 1e6), key=maybe),
    outputs,
    st.builds(Displayed, **common, instruction=st.none() | ints, data=bundles, metadata=bundles),
    st.builds(Ended, **common, instruction=ints, end=st.sampled_from(["value", "error", "lost"]), value=maybe, data=st.none() | bundles, error=maybe),
    st.builds(Called, **common, instruction=ints, call=ints, function=texts, args=st.lists(values, max_size=3), kwargs=bundles),
    st.builds(Answered, **common, instruction=ints, call=ints, value=values, error=maybe),
    st.builds(Moved, **common, event=texts, residence=texts, detail=bundles),
    st.builds(
        Lost,
        **common,
        since_position=ints.map(Position),
        first_instruction=st.none() | ints,
        last_instruction=st.none() | ints,
        snapshot=maybe,
        reason=texts,
    ),
)


@given(events)
def test_an_entry_is_read_as_it_was_written(event: Event) -> None:
    body = encode_body(event)
    body.encode("ascii")
    assert decode(event.kind, body, position=event.position, time=event.time, epoch=event.epoch, frame=event.frame) == event


@given(events, ints)
def test_an_entry_at_its_place_is_otherwise_the_same(event: Event, position: int) -> None:
    placed = event.at(Position(position))
    assert placed == replace(event, position=Position(position))
    assert type(placed) is type(event)
    assert placed.width == event.width


@given(outputs, st.integers(-3, 10))
def test_what_lies_after_a_position_are_the_later_lines_with_their_numbers(output: Output, skip: int) -> None:
    numbered = list(zip(range(output.position, output.position + output.width), range(output.first_seq, 10**10), output.lines, strict=False))
    after = output.position + skip - 1
    rest = output.after(Position(after))
    found = list(zip(range(rest.position, rest.position + rest.width), range(rest.first_seq, 10**10), rest.lines, strict=False))
    assert found == [entry for entry in numbered if entry[0] > after]


def test_places_and_times_are_not_in_the_body() -> None:
    event = Moved(event="e", residence="awake", position=Position(3), time=1.0, epoch=2, frame=4)
    assert json.loads(encode_body(event)) == {"event": "e", "residence": "awake", "detail": {}}
    assert START == -1
    assert sorted(KINDS) == ["accepted", "answered", "called", "displayed", "ended", "lost", "moved", "output"]
