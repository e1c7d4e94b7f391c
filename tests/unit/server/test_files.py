"""Files over HTTP: in and out, listed, in part, as archives; and everything that is refused."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx2
import pytest

from kit.service import Running, service


def client_of(s: Running) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=s.url, headers=s.headers, timeout=30)


async def machine(client: httpx2.AsyncClient) -> str:
    return f"/v1/machine/{(await client.post('/v1/machine/new')).json()['machine_name']}"


@pytest.mark.parametrize("name", ["plain.txt", "with space", "ünïcödé ☃", "-dash", "a/b/c", "percent%25", "new\nline", "q?x#y"])
async def test_a_file_comes_back_as_it_was_whatever_its_name(name: str) -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        content = bytes(range(256)) * 1000
        url = f"{base}/files/{quote(name)}"
        written = (await client.put(url, content=content)).json()
        assert written["size_bytes"] == len(content)
        got = await client.get(url)
        assert got.content == content
        assert got.headers["content-length"] == str(len(content))
        assert (await client.delete(url)).json() == {"deleted": True}
        assert (await client.get(url)).json()["code"] == "FileNotFound"


async def test_a_sleeping_machine_is_woken_for_its_files() -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        await client.put(f"{base}/files/kept", content=b"through sleep")
        await client.post(f"{base}/hibernate")
        assert (await client.get(f"{base}/files/kept")).content == b"through sleep"


async def test_ranges_lists_and_folders() -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        await client.put(f"{base}/files/folder/ten", content=b"0123456789")
        part = await client.get(f"{base}/files/folder/ten", headers={"Range": "bytes=2-4"})
        assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
        assert (await client.get(f"{base}/files/folder/ten", headers={"Range": "bytes=-3"})).content == b"789"
        beyond = await client.get(f"{base}/files/folder/ten", headers={"Range": "bytes=10-"})
        assert (beyond.status_code, beyond.json()["code"]) == (416, "RangeInvalid")
        listed = (await client.get(f"{base}/files", params={"path": "folder"})).json()
        assert [(f["name"], f["kind"], f["size_bytes"]) for f in listed["files"]] == [("ten", "file", 10)]
        assert (await client.get(f"{base}/files/folder")).json()["code"] == "NotAFile"
        assert (await client.delete(f"{base}/files/folder")).json()["code"] == "FolderNotEmpty"
        assert (await client.delete(f"{base}/files/folder", params={"recursive": True})).json() == {"deleted": True}


async def test_an_upload_that_is_cut_leaves_what_was_there() -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        await client.put(f"{base}/files/x", content=b"before")

        async def broken() -> AsyncIterator[bytes]:
            yield b"half of it"
            raise ConnectionResetError("the client is gone")

        with pytest.raises(ConnectionResetError):
            await client.put(f"{base}/files/x", content=broken())
        assert (await client.get(f"{base}/files/x")).content == b"before"
        names = [f["name"] for f in (await client.get(f"{base}/files")).json()["files"]]
        assert names == ["x"]


@pytest.mark.parametrize("form", ["tar", "tar.gz", "zip"])
async def test_a_folder_goes_in_and_out_as_an_archive(form: str) -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        put = await client.put(f"{base}/archive", params={"path": "in", "format": form}, content=_archive(form, {"a/b.txt": b"one", "c": b"two"}))
        assert put.json() == {"path": "in", "files": 2, "size_bytes": 6}
        assert (await client.get(f"{base}/files/in/a/b.txt")).content == b"one"
        out = (await client.get(f"{base}/archive", params={"path": "in", "format": form})).content
        assert _names(form, out) == {"a/b.txt", "c"}


async def test_archives_that_climb_or_are_none_are_refused_and_change_nothing() -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        for content in (_archive("tar", {"../up": b"x"}), b"no archive at all"):
            put = await client.put(f"{base}/archive", params={"path": "in", "format": "tar"}, content=content)
            assert (put.status_code, put.json()["code"]) == (400, "ArchiveRefused")
        assert (await client.get(f"{base}/files")).json()["files"] == []


async def test_bad_paths_are_refused_in_a_sentence() -> None:
    async with service() as s, client_of(s) as client:
        base = await machine(client)
        nul = await client.put(f"{base}/files/a%00b", content=b"")
        assert (nul.status_code, nul.json()["code"]) == (400, "InvalidInput")
        assert (await client.get(f"{base}/files/{'x' * 5000}")).status_code == 400
        assert (await client.get(f"{base}/files", params={"path": "not/there"})).json()["code"] == "FileNotFound"


def _archive(form: str, files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(made, "w") as zipped:
            for name, content in files.items():
                zipped.writestr(name, content)
    else:
        with tarfile.open(fileobj=made, mode="w:gz" if form == "tar.gz" else "w") as tarred:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tarred.addfile(info, io.BytesIO(content))
    return made.getvalue()


def _names(form: str, content: bytes) -> set[str]:
    if form == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            return {n.removeprefix("./") for n in zipped.namelist() if not n.endswith("/")}
    with tarfile.open(fileobj=io.BytesIO(content)) as tarred:
        return {m.name.removeprefix("./") for m in tarred.getmembers() if m.isfile()}
