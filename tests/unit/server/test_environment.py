"""Variables that look like settings and are none: named, with what may have been meant, before anything starts without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import everforge.server.__main__
from everforge.server.__main__ import EXIT_REFUSED, main
from everforge.server.environment import TOLD_MAX, strays

ROOT = Path(__file__).parents[3]
SAID = "everforge: 'EVERFORGE_{}' in the environment is no setting"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been."""
    found: list[str] = []

    def serve(*_: object, **__: object) -> int:
        found.append("a server")
        return 0

    monkeypatch.setattr(everforge.server.__main__, "_serve", serve)
    return found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("EGRES_MAX", "EGRESS_MAX"), ("MAX_EGRESS", "EGRESS_MAX"), ("egress_max", "EGRESS_MAX"), ("ALLOW_HOST", "ALLOW_HOSTS"), ("SIGN_UP", "SIGNUP"),
        ("MEMORY", "MEMORY_MB"), ("WEBHOOK_HOSTS", "WEBHOOK_HOSTS_OPEN"), ("PUBLICURL", "PUBLIC_URL"), ("DATAS", "DATA"), ("EGRESS_MAX ", "EGRESS_MAX"),
    ],
)  # fmt: skip
def test_one_that_is_close_to_a_setting_keeps_a_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: list[str], written: str, meant: str
) -> None:
    monkeypatch.setenv(f"EVERFORGE_{written}", "a value that nobody prints")
    wanted = f"{SAID.format(written)}; did you mean EVERFORGE_{meant}?"
    assert main(["settings", "--data", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert (told.err, "value that nobody" in told.out) == (f"{wanted}\n", False)
    assert main(["serve", "--data", str(tmp_path)]) == EXIT_REFUSED
    assert capsys.readouterr().err == f"{wanted} Nothing was started: give it its right name, or unset it\n"
    assert started == []


@pytest.mark.parametrize("command", ["serve", "settings"])
def test_one_that_is_close_to_none_is_named_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], started: list[str], command: str
) -> None:
    monkeypatch.setenv("EVERFORGE_SERVICE_ADDRESS", "x")
    assert main([command, "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"{SAID.format('SERVICE_ADDRESS')}: `everforge settings` lists what there is\n"
    assert started == (["a server"] if command == "serve" else [])


def test_what_the_project_itself_reads_is_known() -> None:
    files = [
        path for folder in ("src", "tools", "tests", "bench", "examples") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".sh", "")
    ]
    texts = [path.read_text(errors="replace") for path in [ROOT / "Makefile", *files] if path.is_file() and path != Path(__file__)]
    found = {variable for text in texts for variable in re.findall(r"(?<![A-Z_])EVERFORGE_[A-Z_]*[A-Z]", text)}
    assert {"EVERFORGE_DATA", "EVERFORGE_BAIT", "EVERFORGE_TEST_LONG", "EVERFORGE_IDLE_SECONDS"} <= found
    assert strays(dict.fromkeys(found, "")) == []


def test_other_peoples_variables_are_no_strays_and_very_many_are_not_all_told() -> None:
    assert strays({"PATH": "", "FOREVERVM_TOKEN": "", "_EVERFORGE_COMPLETE": "", "EVERFORGED": ""}) == []
    many = {f"EVERFORGE_X{number}": "" for number in range(100)} | {"EVERFORGE_" + "X" * 100_000: "", "EVERFORGE_": "", "EVERFORGE_ALLOWHOSTS": ""}
    told = strays(many)
    assert (len(told), told[0].near, max(len(str(one)) for one in told) < 300) == (TOLD_MAX, "EVERFORGE_ALLOW_HOSTS", True)
