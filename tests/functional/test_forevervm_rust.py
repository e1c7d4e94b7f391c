"""ForeverVM's Rust client as published, against `everforge serve` on the real engine: its own tests from its own package, and ours in tests/rust."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cargo import Workshop, needs_cargo, workshop
from kit.commandserver import CommandServer, command_server
from kit.forevervmcli import CRATES, VERSION

pytestmark = [
    pytest.mark.gvisor,
    pytest.mark.slow,
    needs_cargo,
    pytest.mark.timeout(2700),  # from nothing, the crate and its dependencies are built first
]
TEST_SECONDS = 240


@pytest.fixture(scope="module")
def shop() -> Workshop:
    return workshop(CRATES)


@pytest.fixture(scope="module")
def crate(shop: Workshop) -> Path:
    """The published package; it and our tests are built."""
    manifest = shop.unpacked("forevervm-sdk", VERSION, CRATES)
    for built in (manifest, CRATES):
        shop.cargo("test", "--tests", "--locked", "--no-run", manifest=built)
    return manifest


@pytest.fixture(scope="module")
def served(crate: Path) -> Iterator[CommandServer]:
    with command_server() as served:
        yield served


def judge(shop: Workshop, manifest: Path, served: CommandServer) -> str:
    """Two at a time: the client's instructions have 10 seconds, and on a small computer many machines at once would need longer."""
    env = {"FOREVERVM_API_BASE": served.url, "FOREVERVM_TOKEN": served.token}
    return shop.cargo("test", "--tests", "--locked", manifest=manifest, seconds=TEST_SECONDS, after=("--test-threads=2",), **env)


def test_the_crates_own_tests_pass(shop: Workshop, crate: Path, served: CommandServer) -> None:
    assert "test result: ok. 6 passed; 0 failed; 0 ignored" in judge(shop, crate, served)


def test_tags_streams_pictures_repls_and_refusals_are_as_the_crate_expects(shop: Workshop, served: CommandServer) -> None:
    assert "test result: ok. 7 passed; 0 failed; 0 ignored" in judge(shop, CRATES, served)
