"""The server's own command: what it says to the person who starts it, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everforge.progress import Silent
from everforge.server import serving
from everforge.server.__main__ import EXIT_PIPE, EXIT_REFUSED, main
from everforge.server.configuration import load
from everforge.server.datafolder import DataFolder
from everforge.server.settings import ServerSettings
from everforge.server.welcome import welcome
from kit.house import House

HERE = "http://127.0.0.1:8787"


# --- the welcome -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_the_link_of_a_server_for_this_computer_alone_says_so(host: str) -> None:
    told = welcome(ServerSettings(host=host), HERE, "CODE", None)
    assert f"{HERE}/login/CODE\nIt works on this computer alone" in told
    assert "from another computer" not in told


def test_the_link_of_a_server_for_others_has_the_address_that_they_use() -> None:
    told = welcome(ServerSettings(host="127.0.0.1", public_url="https://forge.example"), "https://forge.example", "CODE", None)
    assert "from another computer, once and within 15 minutes: https://forge.example/login/CODE\n" in told
    assert "alone" not in told
    told = welcome(ServerSettings(host="192.0.2.7"), "http://192.0.2.7:8787", "CODE", None)
    assert "from another computer, once and within 15 minutes: http://192.0.2.7:8787/login/CODE\n" in told


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_at_all_addresses_tells_one_that_others_reach(host: str) -> None:
    told = welcome(ServerSettings(host=host), HERE, "CODE", None)
    [line] = [line for line in told.splitlines() if "from another computer" in line]
    assert line.endswith(":8787/login/CODE")
    assert "0.0.0.0" not in line
    assert "//[::" not in line


def test_what_is_to_be_pasted_finds_the_data_folder(tmp_path: Path) -> None:
    data = tmp_path / "with space"
    told = welcome(ServerSettings(), HERE, "CODE", data)
    for program in ("everforge repl\n", "python):\n"):
        [line] = [line for line in told.splitlines(keepends=True) if line.endswith(program)]
        assert f"EVERFORGE_DATA='{data}' " in line
    assert "EVERFORGE_DATA" not in welcome(ServerSettings(), HERE, "CODE", None)


def test_who_wonders_whether_it_is_harmless_is_told_how_to_find_out(tmp_path: Path) -> None:
    told = welcome(ServerSettings(), HERE, "CODE", tmp_path)
    [line] = [line for line in told.splitlines() if line.startswith("Will it harm my computer?")]
    assert line.endswith("everforge sandbox test")
    assert f"EVERFORGE_DATA={tmp_path} " in line


# --- ends --------------------------------------------------------------------------------------------------------------------------


@contextmanager
def signals_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def test_a_server_that_is_stopped_before_it_is_ready_does_not_say_that_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    await house.start()
    closed: list[object] = []

    async def open_slowly(*_: Any, **__: Any) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return house.machines, DataFolder(tmp_path)

    async def close(*machines_and_folder: object) -> None:
        closed.append(machines_and_folder)

    monkeypatch.setattr(serving, "open_machines", open_slowly)
    monkeypatch.setattr(serving, "close_machines", close)
    said: list[str] = []
    with signals_as_they_were():
        await serving.serve(load({"port": 0}, tmp_path, None, {}), tmp_path, Silent(), lambda url, _: said.append(url))
    assert said == []
    assert closed
    await house.close()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_settings_that_nobody_reads_to_the_end_end_quietly(tmp_path: Path, options: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "everforge.server", "settings", "--data", str(tmp_path), *options]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (EXIT_PIPE, "")


# --- what cannot be ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["no.such.name.invalid", "192.0.2.1", "ä" * 80, "1.2.3"])
def test_an_address_that_is_none_is_told_by_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert main(["serve", "--host", host, "--port", "0", "--data", str(tmp_path)]) == EXIT_REFUSED
    told = capsys.readouterr().err
    assert "with --host" in told
    assert told.count("\n") == 1


def test_no_address_at_all_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "", "--data", str(tmp_path)]) == EXIT_REFUSED
    assert "host is an address" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_by_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1]), "--data", str(tmp_path)]) == EXIT_REFUSED
    assert "choose another with --port" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "settings"])
def test_a_data_folder_that_is_a_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main([command, "--data", str(file)]) == EXIT_REFUSED
    assert capsys.readouterr().err == f"everforge: {file} is a file, and machines need a folder: give another one with --data\n"
