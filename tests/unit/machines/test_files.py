"""Files of machines, through the door that servers use. The clerks are the real ones, in a folder of this computer."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
import zipfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.machines.files import Format, MachineFiles
from everforge.wire.errors import (
    ArchiveRefused,
    EverforgeError,
    FileNotFound,
    FileRefused,
    FolderNotEmpty,
    GuestTooOld,
    InvalidInput,
    MachineNotFound,
    NotAFile,
    NotAFolder,
    QueueFull,
    TransferCut,
)
from everforge.wire.files import CHUNK_BYTES, shown
from kit.house import House, NewMachine, quick

FORMATS: tuple[Format, ...] = ("tar", "tar.gz", "zip")


async def given_files(house: House, **wanted: Any) -> tuple[str, MachineFiles]:
    name = (await house.machines.create(NewMachine(**wanted))).record.name
    return name, house.machines.files(name)


def home(house: House) -> Path:
    """Of the only machine that is awake."""
    (sandbox,) = house.host.sandboxes.values()
    assert sandbox._files is not None
    return sandbox._files.home


async def send(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def content(files: MachineFiles, path: str, start: int = 0, length: int | None = None) -> bytes:
    _, data = await files.read(path, start, length)
    return b"".join([piece async for piece in data])


async def names(files: MachineFiles, path: str = "") -> list[str]:
    return [f.name for f in (await files.list(path)).files]


# --- single files ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5000, CHUNK_BYTES, 3 * CHUNK_BYTES + 17])
async def test_what_was_written_is_read_as_it_was(house: House, size: int) -> None:
    _, files = await given_files(house)
    data = os.urandom(size)
    info = await files.write("a/b/data.bin", send(data[: size // 3], data[size // 3 :]))
    assert (info.name, info.path, info.kind, info.size_bytes, info.mode) == ("data.bin", "a/b/data.bin", "file", size, 0o644)
    found, stream = await files.read("a/b/data.bin")
    assert b"".join([piece async for piece in stream]) == data
    assert found == info == await files.stat("a/b/data.bin")
    assert await names(files, "a/b") == ["data.bin"]


async def test_a_part_of_a_file_can_be_read(house: House) -> None:
    _, files = await given_files(house)
    await files.write("x", send(b"0123456789"))
    assert await content(files, "x", 3) == b"3456789"
    assert await content(files, "x", 3, 4) == b"3456"
    assert await content(files, "x", 8, 100) == b"89"
    assert await content(files, "x", 100) == b""


async def test_a_file_is_replaced_whole_and_keeps_its_mode_and_its_link(house: House) -> None:
    _, files = await given_files(house)
    await files.write("run.sh", send(b"old"))
    (home(house) / "run.sh").chmod(0o755)
    (home(house) / "link").symlink_to("run.sh")
    await files.write("link", send(b"new"))
    assert await content(files, "run.sh") == b"new"
    assert ((await files.stat("run.sh")).mode, (await files.stat("link")).kind, (await files.stat("link")).target) == (0o755, "link", "run.sh")


ODD = ["with space", "-rf", "ünïcödé", "日本語", "a\nb", "back\\slash", "'quoted\"", "%41", "\udcff\udcfe not UTF-8", "..."]


@pytest.mark.parametrize("name", ODD)
async def test_any_name_that_a_file_can_have_is_served(house: House, name: str) -> None:
    _, files = await given_files(house)
    await files.write(f"d/{name}", send(b"1"))
    assert (await names(files, "d"), await content(files, f"d/{name}")) == ([name], b"1")
    shown(name).encode()
    await files.remove(f"d/{name}")
    assert await names(files, "d") == []


async def test_dots_lead_where_they_would_in_the_machine(house: House) -> None:
    _, files = await given_files(house)
    await files.write("a/../b/./c", send(b"1"))
    assert [await content(files, p) for p in ("b/c", "b//c", f"{home(house)}/b/c", f"x/y/../../../{home(house).name}/b/c")] == [b"1"] * 4
    assert (await files.stat("/")).kind == "folder"
    assert (await files.stat("..")).path == str(home(house).parent)


@pytest.mark.parametrize("path", ["a\0b", "x" * 4000, "\ud800", 7, None, b"x"])
async def test_what_cannot_be_a_path_is_refused(house: House, path: Any) -> None:
    _, files = await given_files(house)
    with pytest.raises(InvalidInput):
        await files.stat(path)


async def test_every_mistake_has_its_own_error(house: House) -> None:
    _, files = await given_files(house)
    await files.write("file", send(b"1"))
    await files.write("folder/inside", send(b"1"))
    os.mkfifo(home(house) / "pipe")
    mistakes: list[tuple[Any, type[EverforgeError]]] = [
        (lambda: files.stat("nothing"), FileNotFound),
        (lambda: files.read("nothing"), FileNotFound),
        (lambda: files.read("folder"), NotAFile),
        (lambda: files.read("pipe"), NotAFile),
        (lambda: files.read("/dev/zero"), NotAFile),
        (lambda: files.stat("file/below"), NotAFolder),
        (lambda: files.list("file"), NotAFolder),
        (lambda: files.list("nothing"), FileNotFound),
        (lambda: files.write("folder", send(b"1")), NotAFile),
        (lambda: files.write("file/below", send(b"1")), NotAFolder),
        (lambda: files.write("n" * 300, send(b"1")), InvalidInput),
        (lambda: files.remove("nothing"), FileNotFound),
        (lambda: files.remove("folder"), FolderNotEmpty),
        (lambda: files.remove(""), FileRefused),
        (lambda: files.remove("/", recursive=True), FileRefused),
        (lambda: files.pack("file"), NotAFolder),
        (lambda: files.pack("nothing"), FileNotFound),
        (lambda: files.unpack("file", "tar", send(b"")), NotAFolder),
        (lambda: files.unpack("x", "rar", send(b"")), InvalidInput),  # pyright: ignore[reportArgumentType]
    ]
    for act, error in mistakes:
        with pytest.raises(error):
            await act()
    assert await names(files) == ["file", "folder", "pipe"]


async def test_a_folder_goes_with_all_that_is_in_it_but_not_what_its_links_point_at(house: House) -> None:
    _, files = await given_files(house)
    await files.write("keep/it", send(b"1"))
    await files.write("gone/deep/er/file", send(b"1"))
    (home(house) / "gone" / "link").symlink_to("../keep")
    await files.remove("gone", recursive=True)
    assert (await names(files), await names(files, "keep")) == (["keep"], ["it"])


async def test_a_long_folder_is_listed_in_pages_that_miss_nothing(house: House) -> None:
    _, files = await given_files(house)
    await files.write("d/0", send(b""))
    made = sorted([f"{'ö' * 100}{i:04}" for i in range(700)] + ["0"], key=os.fsencode)
    for name in made:
        (home(house) / "d" / name).touch()
    seen: list[str] = []
    after = ""
    while True:
        page = await files.list("d", after=after, limit=300)
        assert len(page.files) <= 300
        seen += [f.name for f in page.files]
        if page.next is None:
            break
        after = page.next
    assert seen == made


# --- in the middle of something --------------------------------------------------------------------------------------------------------------


async def test_a_cut_upload_leaves_nothing(house: House) -> None:
    _, files = await given_files(house)

    async def cut() -> AsyncIterator[bytes]:
        yield b"x" * 2 * CHUNK_BYTES
        raise ConnectionError("the client has gone")

    for act in (files.write("new/file", cut()), files.unpack("another/folder", "tar", cut())):  # a folder above both would be left to whoever made it
        with pytest.raises((ConnectionError, ArchiveRefused)):
            await act
    for _ in range(200):
        if not await names(files):
            break
        await asyncio.sleep(0.01)  # its clerk hears of it a little later
    assert await names(files) == []


async def test_uploads_at_once_make_their_folder_together(house: House) -> None:
    _, files = await given_files(house)
    for turn in range(20):
        into = f"{turn}/" + "/".join("abcdefgh")
        unpacked = [files.unpack(into, "tar", send(a_tar([(f"d/u{n}", "file", "u")]))) for n in range(3)]
        await asyncio.gather(*(files.write(f"{into}/w{n}", send(b"w")) for n in range(3)), *unpacked)
        assert (await names(files, into), await names(files, f"{into}/d")) == (["d", "w0", "w1", "w2"], ["u0", "u1", "u2"])


@pytest.mark.parametrize("what", ["write", "unpack"])
async def test_an_upload_whose_folders_are_made_by_somebody_else_just_then_succeeds(house: House, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    _, files = await given_files(house)
    make = os.mkdir

    def make_second(path: Any, *rest: Any, **how: Any) -> None:
        if os.path.basename(path) in ("a", "b", "c"):
            make(path, *rest, **how)
        make(path, *rest, **how)

    monkeypatch.setattr(os, "mkdir", make_second)
    await (files.write("a/b/c/x", send(b"1")) if what == "write" else files.unpack("a/b/c", "tar", send(a_tar([("x", "file", "1")]))))
    assert (await names(files, "a/b/c"), await content(files, "a/b/c/x")) == (["x"], b"1")


@pytest.mark.parametrize("what", ["write", "unpack"])
async def test_an_upload_makes_its_folders_again_when_one_that_was_given_up_takes_them_away(
    house: House, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    _, files = await given_files(house)
    make, vanishing = os.mkdir, ["a", "b", "c"]

    def make_in_vain(path: Any, *rest: Any, **how: Any) -> None:
        make(path, *rest, **how)
        if vanishing and os.path.basename(path) == vanishing[0]:
            os.rmdir(path)
            vanishing.pop(0)

    monkeypatch.setattr(os, "mkdir", make_in_vain)
    packed = a_tar([("d/x", "file", "1")])
    await (files.write("a/b/c/d/x", send(b"1")) if what == "write" else files.unpack("a/b/c", "tar", send(packed)))
    assert (await content(files, "a/b/c/d/x"), await names(files, "a/b/c/d")) == (b"1", ["x"])
    assert what == "unpack" or not vanishing  # an archive makes its own folder last, under another name


async def test_an_archive_is_put_beside_what_came_to_its_place_while_it_was_on_its_way(house: House) -> None:
    _, files = await given_files(house)
    packed = a_tar([("d/x", "file", "1")])

    async def with_a_pause() -> AsyncIterator[bytes]:
        yield packed[:600]
        await files.write("new/folder/before", send(b"1"))
        await files.write("new/folder/d/before", send(b"1"))
        yield packed[600:]

    await files.unpack("new/folder", "tar", with_a_pause())
    assert (await names(files, "new/folder"), await names(files, "new/folder/d")) == (["before", "d"], ["before", "x"])


async def test_files_are_served_while_an_instruction_runs_and_the_machine_stays_busy(house: House) -> None:
    name, files = await given_files(house)
    number, _ = await house.machines.exec(name, "hang()")
    await files.write("x", send(b"1"))
    assert await content(files, "x") == b"1"
    assert (await house.machines.get(name)).state == "busy"
    await house.machines.interrupt(name)
    assert (await house.machines.result(name, number)).end == "interrupted"


async def test_a_sleeping_machine_is_woken_and_its_files_are_there(house: House) -> None:
    name, files = await given_files(house)
    await files.write("x", send(b"1"))
    await house.machines.hibernate(name)
    assert await content(files, "x") == b"1"
    assert (await house.machines.get(name)).state == "ready"
    assert not [e async for e in house.machines.read(name) if "x" in str(getattr(e, "lines", ""))]


async def test_a_machine_whose_files_nobody_asks_for_any_more_goes_to_sleep() -> None:
    house = House(quick(idle_seconds=0.05))
    await house.start()
    name, files = await given_files(house)
    await files.write("x", send(b"1" * 3 * CHUNK_BYTES))
    _, stream = await files.read("x")
    await anext(stream)  # and then never again
    for _ in range(500):
        if (await house.machines.get(name)).state == "asleep":
            break
        await asyncio.sleep(0.01)
    assert (await house.machines.get(name)).state == "asleep"
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    await house.close()


@pytest.mark.parametrize("what", ["rollback", "reset", "lost"])
async def test_a_transfer_is_cut_when_the_machine_goes_back_to_another_state(house: House, what: str) -> None:
    name, files = await given_files(house)
    await files.write("x", send(b"1" * 3 * CHUNK_BYTES))
    point = await house.machines.snapshot(name)
    _, stream = await files.read("x")
    await anext(stream)
    if what == "rollback":
        await house.machines.rollback(name, snapshot=point.snapshot)
    elif what == "reset":
        await house.machines.reset(name)
    else:
        house.host.lose_everything()
        await house.machines.wake(name)
    with pytest.raises(TransferCut):
        async for _ in stream:
            pass
    assert len(await names(files)) == (what != "reset")


async def test_a_deleted_machine_has_no_files_any_more(house: House) -> None:
    name, files = await given_files(house)
    await files.write("x", send(b"1" * 3 * CHUNK_BYTES))
    _, stream = await files.read("x")
    await anext(stream)
    await house.machines.delete(name)
    with pytest.raises(EverforgeError):
        async for _ in stream:
            pass
    with pytest.raises(MachineNotFound):
        await files.stat("x")


async def test_there_is_a_limit_to_transfers_at_a_time_and_an_end_makes_room(house: House) -> None:
    _, files = await given_files(house)
    await files.write("x", send(b"1" * 2 * CHUNK_BYTES))
    streams: list[Any] = [(await files.read("x"))[1] for _ in range(8)]
    with pytest.raises(QueueFull):
        await files.read("x")
    async for _ in streams[0]:
        pass
    assert (await files.stat("x")).size_bytes == 2 * CHUNK_BYTES
    for stream in streams:
        async for _ in stream:
            pass


async def test_an_older_guest_is_not_asked_for_files(house: House) -> None:
    name, files = await given_files(house)
    await house.machines.run(name, "1")
    next(iter(house.host.sandboxes.values())).guest.protocol = 1
    await house.machines.hibernate(name)
    with pytest.raises(GuestTooOld):
        await files.stat("")


async def test_a_guest_that_does_not_answer_is_waited_for_only_so_long() -> None:
    house = House(quick(guest_answer_seconds=0.1))
    await house.start()
    name, files = await given_files(house)
    await house.machines.run(name, "1")
    (sandbox,) = house.host.sandboxes.values()
    sandbox._clerks().ask = lambda message: None  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TransferCut):
        await files.stat("")
    assert (await house.machines.run(name, "2")).value == "2"
    await house.close()


# --- archives ----------------------------------------------------------------------------------------------------------------------------


async def archive(files: MachineFiles, path: str, form: Format) -> bytes:
    return b"".join([piece async for piece in await files.pack(path, form)])


@pytest.mark.parametrize("form", FORMATS)
async def test_a_folder_that_was_packed_is_unpacked_as_it_was(house: House, form: Format) -> None:
    _, files = await given_files(house)
    big = os.urandom(CHUNK_BYTES + 5)
    await files.write("src/big", send(big))
    await files.write("src/ä/空 x", send(b"1"))
    (home(house) / "src" / "ä" / "link").symlink_to("../big")
    (home(house) / "src" / "empty").mkdir()
    (home(house) / "src" / "run").write_bytes(b"")
    (home(house) / "src" / "run").chmod(0o755)
    os.mkfifo(home(house) / "src" / "pipe")
    packed = await archive(files, "src", form)
    unpacked = await files.unpack("to/there", form, send(packed))
    assert (unpacked.files, unpacked.size_bytes) == (4, len(big) + 1)
    assert await names(files, "to/there") == ["big", "empty", "run", "ä"]
    assert await content(files, "to/there/ä/link") == big
    assert ((await files.stat("to/there/run")).mode, (await files.stat("to/there/ä/link")).target) == (0o755, "../big")
    assert await content(files, "to/there/ä/空 x") == b"1"


def a_tar(entries: Iterable[tuple[str, str, str]]) -> bytes:
    """Entries of (name, type, link or content)."""
    out = io.BytesIO()
    types = {
        "file": tarfile.REGTYPE,
        "link": tarfile.SYMTYPE,
        "hard": tarfile.LNKTYPE,
        "device": tarfile.CHRTYPE,
        "pipe": tarfile.FIFOTYPE,
        "folder": tarfile.DIRTYPE,
    }
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, rest in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = types[kind], 0o644
            if kind == "file":
                info.size = len(rest)
            else:
                info.linkname = rest
            tar.addfile(info, io.BytesIO(rest.encode()) if kind == "file" else None)
    return out.getvalue()


REFUSED = {
    "a name that climbs": [("../evil", "file", "x")],
    "a name that climbs inside": [("a/../../evil", "file", "x")],
    "an absolute name": [("/etc/evil", "file", "x")],
    "a device": [("zero", "device", "")],
    "a pipe": [("pipe", "pipe", "")],
    "a link that leaves": [("link", "link", "../..")],
    "an absolute link": [("link", "link", "/etc/passwd")],
    "a link that leaves through another": [("d", "link", "."), ("x", "link", "d/..")],
    "a file through a link": [("d", "link", "."), ("d/file", "file", "x")],
    "a link in the place of a folder": [("d/file", "file", "x"), ("d", "link", ".")],
    "a hard link to what is not in it": [("x", "hard", "/etc/passwd")],
    "a file as a folder": [("f", "file", "x"), ("f/below", "file", "x")],
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_must_not_be_unpacked_is_refused_and_leaves_nothing(house: House, what: str) -> None:
    _, files = await given_files(house)
    await files.write("there/before", send(b"1"))
    bad = a_tar([("good", "file", "x"), *REFUSED[what]])
    for folder in ("there", "new/folder"):
        with pytest.raises(ArchiveRefused):
            await files.unpack(folder, "tar", send(bad))
    assert (await names(files), await names(files, "there")) == (["there"], ["before"])


async def test_an_archive_is_put_beside_what_is_there_or_refused_where_that_cannot_be(house: House) -> None:
    _, files = await given_files(house)
    await files.write("there/d/before", send(b"1"))
    await files.write("there/f", send(b"old"))
    await files.unpack(
        "there", "tar", send(a_tar([("./", "folder", ""), ("d/new", "file", "n"), ("f", "file", "new"), ("h", "hard", "f"), ("d/l", "link", "../f")]))
    )
    assert (await names(files, "there"), await names(files, "there/d")) == (["d", "f", "h"], ["before", "l", "new"])
    assert (await content(files, "there/f"), await content(files, "there/d/l")) == (b"new", b"new")
    for bad in ([("d", "file", "x")], [("x", "file", "x"), ("f/below", "file", "x")]):
        with pytest.raises(ArchiveRefused):
            await files.unpack("there", "tar", send(a_tar(bad)))
    assert await names(files, "there") == ["d", "f", "h"]


def a_zip(*entries: tuple[str, bytes], flag: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in entries:
            made.writestr(name, data)
    return out.getvalue()


async def test_a_bomb_is_refused_before_it_fills_the_disk(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    _, files = await given_files(house)
    room = os.statvfs_result((4096, 4096, 10_000, 5_000, 5_000, 0, 0, 0, 0, 255))  # 20 MB
    monkeypatch.setattr("everforge.guest.layout.os.statvfs", lambda path: room)  # pyright: ignore[reportUnknownLambdaType]
    zeros = b"\0" * (30 << 20)
    bombs: list[tuple[Format, bytes]] = [("zip", a_zip(("a", zeros))), ("zip", a_zip(*((f"{i}", zeros[: 1 << 20]) for i in range(25))))]
    with tarfile.open(fileobj=(out := io.BytesIO()), mode="w:gz") as tar:
        for i in range(25):
            info = tarfile.TarInfo(f"{i}")
            info.size = 1 << 20
            tar.addfile(info, io.BytesIO(zeros[: 1 << 20]))
    bombs.append(("tar.gz", out.getvalue()))
    for form, bomb in bombs:
        with pytest.raises(ArchiveRefused, match="room"):
            await files.unpack("x", form, send(bomb))
    assert await names(files) == []


@pytest.mark.parametrize("form", FORMATS)
async def test_a_damaged_or_cut_archive_is_refused(house: House, form: Format) -> None:
    _, files = await given_files(house)
    await files.write("src/a", send(os.urandom(200_000)))
    packed = await archive(files, "src", form)
    for bad in (packed[: len(packed) // 2], b"garbage" * 1000, packed[: len(packed) // 2] + b"\xff" * 500 + packed[len(packed) // 2 + 500 :]):
        if form == "tar" and len(bad) == len(packed):
            continue  # tar has no checksums of what is in it
        with pytest.raises(ArchiveRefused):
            await files.unpack("x", form, send(bad))
    assert await names(files) == ["src"]


async def test_names_that_zip_cannot_hold_are_written_out(house: House) -> None:
    _, files = await given_files(house)
    await files.write("d/\udcff", send(b"1"))
    assert zipfile.ZipFile(io.BytesIO(await archive(files, "d", "zip"))).namelist() == ["\\xff"]
    await files.unpack("e", "tar", send(await archive(files, "d", "tar")))
    assert await names(files, "e") == ["\udcff"]


parts = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda n: n not in (".", ".."))


@given(st.dictionaries(parts, st.binary(max_size=50), max_size=5))
@settings(max_examples=15, deadline=None)
def test_any_flat_folder_survives_every_format(tree: dict[str, bytes]) -> None:
    async def walk() -> None:
        house = House()
        await house.start()
        try:
            _, files = await given_files(house)
            await files.write("d/.keep", send(b""))
            for name, data in tree.items():
                await files.write(f"d/{name}", send(data))
            for form in FORMATS:
                await files.unpack(f"e-{form}", form, send(await archive(files, "d", form)))
                assert {n: await content(files, f"e-{form}/{n}") for n in tree} == tree
        finally:
            await house.close()

    asyncio.run(walk())


# --- what is no file, and what lies deep -------------------------------------------------------------------------------------------------


async def test_what_is_neither_file_nor_folder_is_neither_read_nor_replaced(house: House) -> None:
    _, files = await given_files(house)
    await files.write("file", send(b"x"))
    place = home(house)
    os.mkfifo(place / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "socket"))
    (place / "link").symlink_to("pipe")
    async with asyncio.timeout(10):
        for path in ("pipe", "socket", "link", "/dev/null", "/dev/zero", "/dev/tty"):
            with pytest.raises(NotAFile):
                await files.read(path)
            with pytest.raises(NotAFile):
                await files.write(path, send(b"y"))
        assert {(f.name, f.kind) for f in (await files.list()).files} == {("file", "file"), ("link", "link"), ("pipe", "other"), ("socket", "other")}
        packed = b"".join([piece async for piece in await files.pack()])
        await files.remove("pipe")
        await files.remove("socket")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert set(tar.getnames()) == {"file", "link"}


@pytest.mark.parametrize(("name", "levels", "forms"), [("d", 5000, ("tar",)), ("n" * 200, 100, FORMATS)])
async def test_a_folder_of_any_depth_is_packed_and_removed(house: House, name: str, levels: int, forms: tuple[Format, ...]) -> None:
    _, files = await given_files(house)
    await files.write("deep/file", send(b"x"))
    _dig(home(house) / "deep", name, levels)
    for form in forms:
        packed = b"".join([piece async for piece in await files.pack("deep", form)])
        if form == "zip":
            found = zipfile.ZipFile(io.BytesIO(packed)).namelist()
        else:
            with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                found = tar.getnames()
        assert len(found) == levels + 2
        assert "/".join([name] * levels + ["end"]) in found
    await files.remove("deep", recursive=True)
    assert await names(files) == []


def _dig(folder: Path, name: str, levels: int) -> None:
    """Deeper than any path can say."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("levels", "refused"), [(400, False), (5000, True)])
async def test_a_deep_archive_is_unpacked_or_refused_and_leaves_nothing_half_done(house: House, levels: int, refused: bool, there: bool) -> None:
    _, files = await given_files(house)
    await files.write("in/beside" if there else "beside", send(b"x"))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("d/" * min(levels, 490) + "file"))
        tar.addfile(tarfile.TarInfo("d/" * levels + "file"))
    before = sorted(map(str, home(house).rglob("*")))
    if refused:
        with pytest.raises(ArchiveRefused, match="folders deep"):
            await files.unpack("in", "tar", send(out.getvalue()))
        assert sorted(map(str, home(house).rglob("*"))) == before
    else:
        await files.unpack("in", "tar", send(out.getvalue()))
        assert await content(files, "in/" + "d/" * levels + "file") == b""
    if there or not refused:
        await files.remove("in", recursive=True)
