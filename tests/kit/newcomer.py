"""A user who has nothing yet: no server, no log-in, an empty home."""

from __future__ import annotations

from pathlib import Path

import pytest

# What may be set around the tests, and says where a server is or how to speak.
ELSEWHERE = (
    "EVERFORGE_TOKEN", "EVERFORGE_URL", "EVERFORGE_MCP_CONVERSATION", "FOREVERVM_TOKEN", "FOREVERVM_BASE_URL", "NO_COLOR", "_EVERFORGE_COMPLETE",
)  # fmt: skip


def move_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("EVERFORGE_DATA", str(home / "data"))
    return home
