"""Which runsc there are in a data folder; a script stands in for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.engine.gvisor import binaries
from everforge.engine.gvisor.binaries import Binaries
from everforge.wire.errors import EngineUnfit, WakeFailed


def script(place: Path, text: str) -> Path:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


async def test_a_build_written_over_the_one_before_leaves_the_kept_one_as_it_was(tmp_path: Path) -> None:
    place, engines = tmp_path / "runsc", tmp_path / "engine"
    old = (await Binaries.open(engines, script(place, "echo old"))).present
    new = await Binaries.open(engines, script(place, "echo new"))  # the same file, written again
    assert new.present != old
    assert await new.of_build(old.build) == await new.of_digest(old.digest) == old
    assert await new.of_build("f" * 64) is None


async def test_an_older_build_that_cannot_answer_now_is_asked_again_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, engines = tmp_path / "slow", tmp_path / "engine"
    old = (await Binaries.open(engines, script(tmp_path / "old", f"test -e {slow} && exec sleep 60; echo old"))).present
    new = await Binaries.open(engines, script(tmp_path / "new", "echo new"))
    slow.touch()
    monkeypatch.setattr(binaries, "ANSWER_SECONDS", 0.2)
    with pytest.raises(WakeFailed, match="did not end within"):
        await new.of_build(old.build)
    slow.unlink()
    monkeypatch.undo()
    assert await new.of_build(old.build) == old


async def test_one_that_cannot_say_what_it_depends_on_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(EngineUnfit, match="status 3: no such luck"):
        await Binaries.open(tmp_path / "engine", script(tmp_path / "runsc", "echo no such luck; exit 3"))
    with pytest.raises(EngineUnfit, match="cannot be read"):
        await Binaries.open(tmp_path / "engine", tmp_path / "nothing")


async def test_a_kept_one_that_rotted_is_put_there_anew_or_counts_as_gone(tmp_path: Path) -> None:
    engines = tmp_path / "engine"
    old = (await Binaries.open(engines, script(tmp_path / "old", "echo old"))).present
    kept = engines / old.digest / "runsc"
    kept.write_text("#!/bin/sh\necho rotten")
    assert await (await Binaries.open(engines, script(tmp_path / "new", "echo new"))).of_build(old.build) is None
    assert (await Binaries.open(engines, tmp_path / "old")).present == old
    assert kept.read_text() == (tmp_path / "old").read_text()
