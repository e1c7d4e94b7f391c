"""Which cgroup controllers can be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everforge.cli.checks import cgroup_controllers


def test_version_2_offers_what_its_root_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    assert cgroup_controllers(tmp_path) == ("2", {"cpu", "memory", "pids"})


def test_an_ordinary_user_has_what_its_own_group_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "user.slice").mkdir()
    (tmp_path / "own").write_text("0::/user.slice\n")
    assert cgroup_controllers(tmp_path, tmp_path / "own") == ("2", set())
    (tmp_path / "user.slice/cgroup.controllers").write_text("memory pids\n")
    assert cgroup_controllers(tmp_path, tmp_path / "own") == ("2", {"memory", "pids"})


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert cgroup_controllers(tmp_path) == ("1", {"memory"})
    assert cgroup_controllers(tmp_path / "nothing") == ("none", set())
