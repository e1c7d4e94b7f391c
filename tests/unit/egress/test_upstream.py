"""Where this computer reaches its package index through a proxy, machines do so too, and reach nothing else that way."""

from __future__ import annotations

import asyncio

import pytest

from everforge.egress.packages import PipSettings
from everforge.egress.upstream import Upstream, upstream_of
from kit.doorway import Canned, doorway, index_page, request, serving

PROXY = Upstream("proxy.corp", 3128, "me:pass word")
INDEX = PipSettings(index_url="https://index.corp/simple")


class Proxy:
    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n") -> None:
        self.answer = answer
        self.heard: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        while data := await reader.read(65536):
            writer.write(data)


async def test_the_index_is_reached_through_it_without_looking_its_name_up() -> None:
    proxy = Proxy()
    async with doorway("packages", "tcp://index.corp:443", server=proxy, index=INDEX, upstream=PROXY) as d:
        d.set("packages")
        async with await d.connect() as program:
            program.writer.write(request("index.corp:443", method="CONNECT"))
            async with asyncio.timeout(10):
                assert (await program.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert d.far.dialled == [("proxy.corp", 3128)]
        assert d.far.looked_up == []
        assert proxy.heard == [b"CONNECT index.corp:443 HTTP/1.1\r\nHost: index.corp:443\r\nProxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n\r\n"]
        assert (await d.notes.until_over())[0].address == "proxy.corp:3128"


async def test_nothing_but_the_index_goes_through_it() -> None:
    proxy = Proxy()
    async with doorway("public", server=proxy, index=INDEX, upstream=PROXY) as d:
        await d.ask(request("http://10.0.0.1/", host="10.0.0.1"))
        assert d.far.dialled == []
        async with await d.connect() as program:
            program.writer.write(request("example.com:443", method="CONNECT"))
            async with asyncio.timeout(10):
                await program.reader.readuntil(b"\r\n\r\n")
        assert d.far.dialled == [("93.184.216.34", 443)]


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", b"403"), ("169.254.169.254", b"403"), ("10.1.2.3", b"200")])
async def test_an_address_among_the_files_of_the_index_is_checked_before_the_proxy_is_asked_for_it(address: str, status: bytes) -> None:
    """A name is the proxy's to look up; an address leads to the same place from here and from there."""
    async with serving(Canned(index_page(f"https://{address}/a.whl"))) as port:
        index = PipSettings(index_url=f"http://127.0.0.1:{port}/simple")
        async with doorway("packages", server=Proxy(), index=index, upstream=PROXY) as d, await d.connect() as program:
            program.writer.write(request(f"{address}:443", method="CONNECT"))
            async with asyncio.timeout(10):
                assert (await program.reader.readuntil(b"\r\n\r\n")).split()[1] == status
            assert d.far.dialled == ([("proxy.corp", 3128)] if status == b"200" else [])


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b"HTTP/1.1 2000 x\r\n\r\n", b"nonsense\r\n\r\n"])
async def test_what_it_says_when_it_refuses_is_passed_on(answer: bytes) -> None:
    async with doorway("packages", server=Proxy(answer), index=INDEX, upstream=PROXY) as d:
        said = await d.ask(request("index.corp:443", method="CONNECT"))
        assert said.startswith(b"HTTP/1.1 502")
        assert b"the proxy of this computer, proxy.corp:3128, says: " + answer.partition(b"\r\n")[0] in said
        assert b"pass word" not in said


async def test_an_index_that_needs_no_proxy_is_reached_without_it() -> None:
    near = Upstream("proxy.corp", 3128, not_for="localhost,.corp")
    async with doorway("packages", server=Proxy(), index=INDEX, upstream=near, names={"index.corp": ["10.1.2.3"]}) as d:
        async with await d.connect() as program:
            program.writer.write(request("index.corp:443", method="CONNECT"))
            async with asyncio.timeout(10):
                await program.reader.readuntil(b"\r\n\r\n")
        assert d.far.dialled == [("10.1.2.3", 443)]


@pytest.mark.parametrize(
    ("pip", "environment", "found"),
    [
        ("", {}, None),
        ("http://proxy.corp:8080", {"https_proxy": "http://other:1"}, Upstream("proxy.corp", 8080)),
        ("proxy.corp:8080", {}, Upstream("proxy.corp", 8080)),
        ("", {"HTTPS_PROXY": "http://a:1", "https_proxy": "http://u:p%40@b:2", "no_proxy": "x"}, Upstream("b", 2, "u:p@", "x")),
        ("", {"ALL_PROXY": "http://a"}, Upstream("a", 3128)),
        ("", {"http_proxy": "http://a:1"}, None),
        ("socks5://a:1", {}, None),
        ("http://a:port", {}, None),
    ],
)
def test_pips_own_word_comes_before_what_all_programs_are_told(pip: str, environment: dict[str, str], found: Upstream | None) -> None:
    assert upstream_of(pip, environment) == found
