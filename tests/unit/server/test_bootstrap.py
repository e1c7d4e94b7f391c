from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everforge.server import bootstrap
from everforge.server.datafolder import DataFolder
from everforge.wire.errors import DataFolderBusy, EngineUnfit


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the lock, and no further."""

    def unfit(_: object) -> Path:
        raise EngineUnfit("it was let in")

    monkeypatch.setattr(bootstrap, "find_or_build", unfit)


async def test_a_server_waits_for_a_caretaker_at_work_and_not_for_another_server(tmp_path: Path) -> None:
    other = DataFolder(tmp_path)
    other.lock()
    with pytest.raises(DataFolderBusy):
        await bootstrap.open_machines(tmp_path)
    other.unlock()
    other.expect_caretaker("token")
    other.lock("token")
    opening = asyncio.create_task(bootstrap.open_machines(tmp_path))
    await asyncio.wait([opening], timeout=0.3)
    assert not opening.done()
    assert other.awaits("token"), "the caretaker is not sent away before it lets go"
    other.unlock()
    async with asyncio.timeout(10):
        with pytest.raises(EngineUnfit, match="let in"):
            await opening
    assert not other.has_caretaker


async def test_a_caretaker_does_not_wait_for_anyone(tmp_path: Path) -> None:
    server = DataFolder(tmp_path)
    server.lock()
    server.expect_caretaker("token")
    with pytest.raises(DataFolderBusy):
        await bootstrap.open_machines(tmp_path, caretaker_token="token")
    server.unlock()
