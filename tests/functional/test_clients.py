"""Programs that people use reach the outside through the door with no settings of their own, over HTTP and TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import pytest_asyncio

from everforge.egress.indexing import IndexAccess
from everforge.egress.packages import PackageIndex, PipSettings, Place
from kit.doorway import PUBLIC
from kit.outskirts import Outskirts, outskirts
from kit.site import Authority, git_repository, package_index, site, wheels

pytestmark = [pytest.mark.gvisor, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

INDEX = "index.example"
SITE = "site.example"


class Known(PackageIndex):
    """An index that need not be asked where its files lie."""

    async def known(self) -> frozenset[Place]:
        return self.configured


@dataclass
class Town:
    out: Outskirts
    name: str  # of a machine with all clients installed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town() -> AsyncIterator[Town]:
    files = {"/": b"hello", **package_index(wheels()), **git_repository()}
    authority = Authority()
    async with site(files) as plain, site(files, authority.context(INDEX, SITE)) as secure, outskirts("default") as out:
        out.ports = {80: plain, 443: secure}
        out.names.update({INDEX: [PUBLIC], SITE: [PUBLIC]})
        doors: Any = out.machines.forge.doors
        doors._certificates += authority.pem
        doors._index = Known(PipSettings(index_url=f"https://{INDEX}/simple/"))
        doors._access = IndexAccess(doors._index.settings, doors._access._vault)
        doors._world = replace(doors._world, index=doors._index)
        name = await out.create("packages", SITE)
        installed = await out.ask(
            name,
            "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', '-q', 'aiohttp', 'httpx'], capture_output=True, text=True).stderr",
            120,
        )
        assert "ERROR" not in installed, installed
        yield Town(out, name)


CLIENTS = {
    "urllib": "import urllib.request\nurllib.request.urlopen(URL, timeout=20).read().decode()",
    "requests": "import requests\nrequests.get(URL, timeout=20).text",
    "httpx": "import httpx\nhttpx.get(URL, timeout=20).text",
    "httpx, asynchronous": "import httpx\nasync with httpx.AsyncClient(timeout=20) as client:\n    told = (await client.get(URL)).text\ntold",
    "aiohttp": "import aiohttp\nasync with aiohttp.ClientSession() as client, client.get(URL) as answer:\n    told = await answer.text()\ntold",
    "aiohttp in a child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''import aiohttp, asyncio\nasync def main():\n    async with aiohttp.ClientSession() as client, client.get(\"%s\") as answer: print(await answer.text(), end=\"\")\nasyncio.run(main())''' % URL], capture_output=True, text=True, check=True).stdout",
    "curl": "import subprocess\nsubprocess.run(['curl', '-sS', '--fail', URL], capture_output=True, text=True, check=True).stdout",
    "wget": "import subprocess\nsubprocess.run(['wget', '-qO-', URL], capture_output=True, text=True, check=True).stdout",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_finds_the_way_out_by_itself(town: Town, client: str, scheme: str) -> None:
    told = await town.out.ask(town.name, f"URL = '{scheme}://{SITE}/'\n{CLIENTS[client]}")
    assert told == "hello"
    [last, *_] = await town.out.log(town.name)
    assert (last.host, last.port, last.verdict) == (SITE, 443 if scheme == "https" else 80, "allowed")


async def test_git_clones_over_https(town: Town) -> None:
    code = f"import subprocess\nsubprocess.run(['git', 'clone', '-q', 'https://{SITE}/repo.git', 'cloned'], capture_output=True, text=True).stderr, open('cloned/readme.txt').read()"
    assert await town.out.ask(town.name, code) == ("", "from a repository\n")


async def test_a_refused_client_shows_which_policy_refused_it_and_the_remedy(town: Town) -> None:
    for client in ("import requests\nrequests.get('https://closed.example/')", "import httpx\nhttpx.get('https://closed.example/')"):
        told = await town.out.ask(
            town.name, "try:\n" + "".join(f"    {line}\n" for line in client.splitlines()) + "except Exception as e: told = str(e)\ntold"
        )
        assert "`packages`" in told
        assert f"everforge egress allow {town.name} closed.example" in told
    curl = await town.out.ask(
        town.name, "import subprocess\nsubprocess.run(['curl', '-sS', 'http://closed.example/'], capture_output=True, text=True).stdout"
    )
    assert "everforge egress allow" in curl


async def test_a_package_with_compiled_parts_is_installed_and_imported_after_a_wake_without_any_way_out(town: Town) -> None:
    out, name = town.out, await town.out.create("packages")
    assert (
        await out.ask(
            name,
            "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', '-q', 'markupsafe'], capture_output=True, text=True).returncode",
            120,
        )
        == 0
    )
    await out.set(name, "none")
    await out.machines.hibernate(name)
    told = await out.ask(
        name,
        "import markupsafe._speedups, urllib.request\nmarkupsafe._speedups.__file__[-3:], str(markupsafe.escape('<a>')), get('http://site.example/')[0]",
    )
    assert told == (".so", "&lt;a&gt;", 403)
    assert {a.host for a in await out.log(name)} == {INDEX, SITE}
    await out.machines.delete(name)
