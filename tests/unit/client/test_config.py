"""Where a client finds its server: token and address always from one and the same source."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everforge.client.config import Access, check_url, config_path, delete_config, find_access, write_config
from everforge.wire.errors import ConfigurationBad, InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet."""
    for name in ("EVERFORGE_TOKEN", "EVERFORGE_URL", "FOREVERVM_TOKEN", "FOREVERVM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("EVERFORGE_DATA", str(tmp_path / "data"))
    return tmp_path


def private(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def local_server(home: Path, url: str = "http://127.0.0.1:8123") -> None:
    private(home / "data/owner.token", "own.er\n")
    private(home / "data/server.json", json.dumps({"url": url, "pid": 1}))


def found(**given: str) -> tuple[str, str]:
    access = find_access(**given)
    return access.token, access.base_url


def test_sources_win_in_order_and_are_never_mixed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_server(home)
    assert found() == ("own.er", "http://127.0.0.1:8123")
    private(home / "config/forevervm/config.json", json.dumps({"token": "for.file", "server_url": "http://d"}))
    assert found() == ("for.file", "http://d")
    monkeypatch.setenv("FOREVERVM_TOKEN", "for.env")
    assert found() == ("for.file", "http://d")  # half a source is none
    monkeypatch.setenv("FOREVERVM_BASE_URL", "http://c/")
    assert found() == ("for.env", "http://c")
    write_config(Access("http://b", "our.file"))
    assert found() == ("our.file", "http://b")
    monkeypatch.setenv("EVERFORGE_TOKEN", "our.env")
    monkeypatch.setenv("EVERFORGE_URL", "http://a")
    assert found() == ("our.env", "http://a")
    assert found(token="x.y", base_url="https://z/sub/") == ("x.y", "https://z/sub")


def test_a_token_alone_is_for_the_server_on_this_computer_and_goes_nowhere_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(Access("http://b", "our.file"))
    monkeypatch.setenv("EVERFORGE_TOKEN", "our.env")
    with pytest.raises(ConfigurationBad, match="EVERFORGE_URL is not"):
        find_access()
    with pytest.raises(ConfigurationBad, match="without an address"):
        find_access(token="x.y")
    local_server(home)
    assert found() == ("our.env", "http://127.0.0.1:8123")
    assert found(token="x.y") == ("x.y", "http://127.0.0.1:8123")


def test_an_address_alone_takes_only_the_token_that_belongs_to_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(Access("http://b", "our.file"))
    local_server(home)
    assert found(base_url="http://127.0.0.1:8123/") == ("own.er", "http://127.0.0.1:8123")
    with pytest.raises(ConfigurationBad, match="no token for http://elsewhere"):
        find_access(base_url="http://elsewhere")
    monkeypatch.setenv("EVERFORGE_URL", "http://elsewhere")
    with pytest.raises(ConfigurationBad, match="EVERFORGE_TOKEN"):
        find_access()
    monkeypatch.setenv("EVERFORGE_URL", "http://b")
    assert found() == ("our.file", "http://b")


def test_without_anything_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigurationBad, match="everforge serve"):
        find_access()


def test_a_written_file_is_private_and_can_be_deleted() -> None:
    path = write_config(Access("http://b", "our.file"))
    assert path == config_path()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["config.json"]
    assert delete_config()
    assert not delete_config()


def test_a_file_that_others_can_read_is_refused_with_the_command_that_mends_it() -> None:
    path = write_config(Access("http://b", "our.file"))
    path.chmod(0o644)
    with pytest.raises(ConfigurationBad, match=f"chmod 600 {path}"):
        find_access()


@pytest.mark.parametrize("kind", ["folder", "garbage", "long"])
def test_what_is_not_a_configuration_is_named(home: Path, kind: str) -> None:
    path = config_path()
    if kind == "folder":
        path.mkdir(parents=True)
    else:
        private(path, "{" if kind == "garbage" else " " * 100_000)
    with pytest.raises(ConfigurationBad, match=str(path)):
        find_access()


NO_ADDRESSES = ["", "machines.example.org", "ftp://a", "http://", "http://a:b", "http://user:secret@a", "http://a?x=1", "http://a#b", "http://a/?",
                "http://a#", "http://127.0.0.1%00:1", "http://a%41", "http://1.2.3.4.5", "http://256.1.1.1", "http://a^b", "http://a\tb", "http://a/x y",
                "http://[zz]", "http://[::1"]  # fmt: skip


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_not_an_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="not the address"):
        check_url(url)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "é.x", "x" * 2000])
def test_what_is_not_a_token_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(InvalidInput, match="not a token") as error:
        find_access(token=token, base_url="http://a")
    assert not token.strip() or token not in error.value.message


def test_an_access_does_not_show_its_token() -> None:
    assert "secret" not in repr(Access("http://a", "id.secret"))


def test_importing_the_package_or_the_configuration_loads_no_http_library() -> None:
    code = "import everforge, everforge.client.config, sys; sys.exit(bool({'httpx2', 'websockets', 'asyncio'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
