"""What this computer's pip is configured for, and what is learned from the index itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from everforge.egress.packages import PackageIndex, PipSettings, place_of, read_settings
from kit.doorway import Canned, index_page, serving


def conf(path: Path, **values: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[global]\n" + "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in values.items()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    monkeypatch.setattr("everforge.egress.packages.OF_THIS_COMPUTER", tmp_path / "etc/pip.conf")
    return tmp_path / "home"


def told(home: Path, **environment: str) -> PipSettings:
    return read_settings({"XDG_CONFIG_DIRS": str(home.parent / "xdg"), **environment}, home)


def test_files_are_read_in_pips_order_and_the_environment_comes_last(home: Path) -> None:
    places = [
        home.parent / "xdg/pip/pip.conf",
        home.parent / "etc/pip.conf",
        home / ".pip/pip.conf",
        home / ".config/pip/pip.conf",
        home.parent / "venv/pip.conf",
        home.parent / "named.conf",
    ]
    for number, place in enumerate(places):
        conf(place, index_url=f"https://index{number}.example/simple")
        assert told(home, PIP_CONFIG_FILE=str(places[5])).index_url == f"https://index{number}.example/simple"
    assert told(home, PIP_CONFIG_FILE=str(places[5]), PIP_INDEX_URL="https://env.example/").index_url == "https://env.example/"


def test_no_files_are_read_where_pip_is_told_so(home: Path) -> None:
    conf(home / ".config/pip/pip.conf", index_url="https://index.example/simple")
    assert told(home, PIP_CONFIG_FILE="/dev/null") == PipSettings()


def test_all_that_concerns_an_index_is_found_over_several_lines_and_in_both_sections(home: Path) -> None:
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example/simple\n  http://c.example:8080/s\ntrusted-host = c.example\n"
        "[install]\nindex-url = https://i.example/simple\ncert = /etc/ca.pem\nproxy = http://proxy.example:3128\n"
    )
    found = told(home)
    assert found == PipSettings(
        "https://i.example/simple",
        ("https://b.example/simple", "http://c.example:8080/s"),
        ("c.example",),
        "/etc/ca.pem",
        "http://proxy.example:3128",
    )
    assert PackageIndex(found).configured == {("i.example", 443), ("b.example", 443), ("c.example", 8080)}


@pytest.mark.parametrize("text", [b"\xff\xfe nonsense", b"index-url = x\n", b"[global\n", b"[global]\nindex-url\n"])
def test_a_file_of_nonsense_is_no_reason_to_stop(home: Path, text: bytes) -> None:
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_bytes(text)
    assert told(home).index_url in ("", "x")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://user:secret@Index.Example/simple", ("index.example", 443)),
        ("http://index.example:8080/", ("index.example", 8080)),
        ("ftp://index.example/", None),
        ("https:///nowhere", None),
        ("https://index.example:port/", None),
        ("file:///srv/wheels", None),
    ],
)
def test_the_place_of_an_address(url: str, place: tuple[str, int] | None) -> None:
    assert place_of(url) == place


def page(links: list[str], *, is_json: bool) -> bytes:
    if not is_json:
        return index_page(*links)
    body = json.dumps({"files": [{"url": link} for link in links]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.pypi.simple.v1+json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("is_json", [True, False])
async def test_where_its_files_lie_is_learned_from_a_page_of_the_index(is_json: bool) -> None:
    server = Canned(page(["https://files.example/a.whl", "../../own.whl", "http://mirror.example:81/b.whl"], is_json=is_json))
    async with serving(server) as port:
        index = PackageIndex(PipSettings(index_url=f"http://user:pass@127.0.0.1:{port}/simple/"))
        assert await index.known() == {("127.0.0.1", port), ("files.example", 443), ("mirror.example", 81)}
        assert index.configured == {("127.0.0.1", port)}
        assert await index.known()
        assert len(server.heard) == 1
        assert server.heard[0].startswith(b"GET /simple/pip/ HTTP/1.1")
        assert b"Basic dXNlcjpwYXNz" in server.heard[0]
        await index.close()


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{\"a\"", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"]
)  # fmt: skip
async def test_an_index_that_is_down_is_known_by_itself_and_asked_again_soon(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Canned(answer)
    async with serving(server) as port:
        index = PackageIndex(PipSettings(index_url=f"http://127.0.0.1:{port}/simple"))
        assert await index.known() == {("127.0.0.1", port)}
        server.answer = page(["https://files.example/a.whl"], is_json=True)
        assert await index.known() == {("127.0.0.1", port)}
        assert len(server.heard) == 1
        index._again_at = 0.0
        await index.known()
        while index._learning is not None:
            await asyncio.sleep(0.01)
        assert await index.known() == {("127.0.0.1", port), ("files.example", 443)}
        await index.close()


async def test_an_index_without_such_a_project_has_its_files_where_it_is() -> None:
    server = Canned(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    async with serving(server) as port:
        index = PackageIndex(PipSettings(index_url=f"http://127.0.0.1:{port}/simple"))
        assert await index.known() == {("127.0.0.1", port)}
        await index.close()


async def test_the_loop_goes_on_while_an_index_takes_its_time() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked.wait()

    asked = asyncio.Event()
    async with serving(slow) as port:
        index = PackageIndex(PipSettings(index_url=f"http://127.0.0.1:{port}/simple"))
        waiting = asyncio.ensure_future(index.known())
        while index._learning is None:
            await asyncio.sleep(0)
        asked.set()  # this loop serves the index as well: had it waited for it, neither would ever go on
        assert await waiting == {("127.0.0.1", port)}
        await index.close()


async def test_pips_own_default_is_asked_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def nobody(urls: tuple[str, ...], _: object) -> tuple[frozenset[tuple[str, int]], bool]:
        asked.append(urls)
        return frozenset(), True

    monkeypatch.setattr("everforge.egress.packages._learn_places", nobody)
    index = PackageIndex(PipSettings(extra_index_urls=("https://more.example/",)))
    await index.known()
    await index.close()
    [(default, more)] = asked
    assert default.startswith("https://")
    assert more == "https://more.example/"
