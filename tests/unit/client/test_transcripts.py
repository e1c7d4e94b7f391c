"""Every transcript of the contract, replayed with both Python SDKs. The other languages do the same in their own test runners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.replayed import TRANSCRIPTS, Replay, replay_server
from kit.steps import Driver


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with replay_server() as found:
        yield found


@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("name", TRANSCRIPTS)
async def test_the_sdk_says_and_understands_what_the_transcript_has(replay: Replay, name: str, asynchronous: bool) -> None:
    steps = replay.steps(name)
    await Driver(replay.variables(name), asynchronous=asynchronous).run(steps)
    assert replay.problems(name) == []
