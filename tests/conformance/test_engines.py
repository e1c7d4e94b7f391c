from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everforge.engine.base import Ending, How, Image, Sandbox
from everforge.engine.fake import FakeEngine, FakeHost
from everforge.engine.gvisor.pools import PoolSettings
from everforge.wire.ids import new_snapshot_id

from .engine_suite import EngineSuite, Ground
from .gvisor_ground import GvisorGround


class FakeGround:
    def __init__(self, folder: Path) -> None:
        self.engine = FakeEngine(FakeHost())
        self.image = Image("fake", folder)
        self._folder = folder

    def new_folder(self) -> Path:
        folder = self._folder / new_snapshot_id()
        folder.mkdir()
        return folder

    async def crash(self, sandbox: Sandbox) -> None:
        self.engine.host.sandboxes[sandbox.id].end(Ending(How.KILLED))

    async def reopen(self) -> FakeEngine:
        self.engine = FakeEngine(self.engine.host)
        return self.engine

    async def leaves_nothing(self) -> None:
        assert not self.engine.host.sandboxes


class TestFake(EngineSuite):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        return FakeGround(tmp_path)


@pytest.mark.gvisor
@pytest.mark.root
class TestGvisor(EngineSuite):
    @pytest.fixture
    async def ground(self, tmp_path: Path, runsc: Path, minimal_image: Image) -> AsyncIterator[Ground]:
        # One empty sandbox ahead: so first restores are plain, later ones go into a sandbox that waited.
        ground = GvisorGround(tmp_path, runsc, minimal_image, PoolSettings(empty=1))
        await ground.open()
        yield ground
        await ground.close()
