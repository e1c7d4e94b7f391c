"""The transcripts of the contract in headless Chromium, with the TypeScript SDK. Without the rules for pages of other servers: the replay server knows none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.browser import Page, needs_chromium, page
from kit.replayed import TRANSCRIPTS, Replay, replay_server
from kit.sdks import typescript_sdk

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.timeout(900)]  # from nothing, the TypeScript SDK is built first
SECONDS = 60
# What a page does otherwise: it may not say who it is, and has to ask once more why a WebSocket was refused. And Chromium itself sends a request again,
# whatever it is, when a connection that it had kept is cut: nobody is asked, and nobody told.
NOT_OF_PAGES = {"whoami", "repl_refused", "not_asked_again", "delete_that_was_cut"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page(typescript_sdk().browser_bundle, tmp_path_factory.mktemp("page"), "--disable-web-security") as found:
        yield found


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with replay_server() as found:
        yield found


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name not in NOT_OF_PAGES])
def test_a_page_does_what_the_transcript_says(opened: Page, replay: Replay, name: str) -> None:
    outcome = opened.outcome({"steps": replay.steps(name), "variables": replay.variables(name)}, SECONDS)
    assert outcome["ok"], outcome
    assert replay.problems(name) == []
