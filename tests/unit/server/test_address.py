"""Where a server says that it is."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from everforge.client.config import local_url
from everforge.server import address

URL, OTHER = "http://127.0.0.1:8765", "http://127.0.0.1:8766"


def test_it_is_found_while_it_runs_and_forgotten_afterwards(tmp_path: Path) -> None:
    address.tell(tmp_path, URL)
    assert address.find(tmp_path) == URL
    address.forget(tmp_path)
    assert address.find(tmp_path) is None


def test_it_is_told_on_a_disk_without_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERFORGE_DATA", str(tmp_path))

    def full(path: Path, *_: Any, **__: Any) -> int:
        path.touch()  # a name needs no room
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        address.tell(tmp_path, URL)
    assert address.find(tmp_path) == local_url() == URL
    address.tell(tmp_path, OTHER)
    assert address.find(tmp_path) == local_url() == OTHER
    address.forget(tmp_path)
    assert list(tmp_path.iterdir()) == []
