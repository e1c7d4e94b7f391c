"""Every byte of an image, read by a process of its own; what it finds is remembered beside the image."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from everforge.images import scrub
from everforge.images.catalogue import Catalogue, CataloguedImage
from everforge.images.finish import settle_times
from everforge.images.listing import read_lines, tally, write_listing
from everforge.images.scrub import WatchedImages
from everforge.wire.errors import ImageDamaged, ImageNotFound


def catalogue(folder: Path) -> Catalogue:
    return Catalogue(folder / "images", folder / "cache")


def make_image(cache: Path, created_at: str = "2026-01-01") -> CataloguedImage:
    folder = cache / "images/new"
    (folder / "root/lib").mkdir(parents=True)
    (folder / "root/lib/tool.so").write_bytes(b"as it was built")
    settle_times(folder / "root")
    digest = write_listing(read_lines(folder / "root"), folder / "listing")
    folder = folder.rename(folder.with_name(digest))
    seen = tally(folder / "root")
    image = CataloguedImage(
        digest=digest, folder=folder, recipe="mine", python="3.13", env={}, warm=(), base="b", guest="g", inputs="i", as_locked=True,
        created_at=created_at, size_bytes=seen.size_bytes, entries=seen.entries,
    )  # fmt: skip
    catalogue(cache).record(image)
    return image


def change_a_byte(image: CataloguedImage, content: bytes = b"as it was BuiLt") -> None:
    """As a failing disk does: size and time stay."""
    (image.root / "lib/tool.so").write_bytes(content)
    settle_times(image.root)


async def test_a_changed_byte_is_found_and_the_image_refused_by_this_server_and_the_next(tmp_path: Path) -> None:
    image = make_image(tmp_path)
    images = WatchedImages(catalogue(tmp_path))
    await images.scrub(image.digest)
    change_a_byte(image)
    assert images.find(image.digest) == image, "its metadata says nothing"
    with pytest.raises(ImageDamaged, match=r"/lib/tool\.so.*everforge image delete"):
        await images.scrub(image.digest)
    for watched in (images, WatchedImages(catalogue(tmp_path))):
        with pytest.raises(ImageDamaged, match=r"/lib/tool\.so"):
            watched.find(image.digest)
    change_a_byte(image, b"as it was built")
    await images.scrub(image.digest)
    assert images.find(image.digest) == WatchedImages(catalogue(tmp_path)).find(image.digest) == image


async def test_one_that_was_built_again_is_not_taken_for_the_damaged_one(tmp_path: Path) -> None:
    image = make_image(tmp_path)
    images = WatchedImages(catalogue(tmp_path))
    change_a_byte(image)
    with pytest.raises(ImageDamaged):
        await images.scrub(image.digest)
    catalogue(tmp_path).delete(image.digest)
    with pytest.raises(ImageNotFound):
        await images.scrub(image.digest)
    again = make_image(tmp_path, created_at="2026-01-02")
    assert images.find(image.digest) == again


async def test_what_was_seen_of_one_is_not_held_against_the_one_built_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = make_image(tmp_path)
    change_a_byte(image)
    look = scrub._look_apart  # pyright: ignore[reportPrivateUsage]

    async def look_and_build_again(images: Path, digest: str) -> str:
        told = await look(images, digest)
        catalogue(tmp_path).delete(digest)
        make_image(tmp_path, created_at="2026-01-02")
        return told

    monkeypatch.setattr(scrub, "_look_apart", look_and_build_again)
    images = WatchedImages(catalogue(tmp_path))
    await images.scrub(image.digest)
    assert images.find(image.digest).created_at == "2026-01-02"
    assert catalogue(tmp_path).find(image.digest).created_at == "2026-01-02"


async def test_a_look_that_is_cut_off_leaves_no_process(tmp_path: Path) -> None:
    image = make_image(tmp_path)
    looking = asyncio.create_task(WatchedImages(catalogue(tmp_path)).scrub(image.digest))

    async with asyncio.timeout(10):
        while not lookers(tmp_path):
            await asyncio.sleep(0.001)
        looking.cancel()
        await asyncio.wait([looking])
    assert lookers(tmp_path) == []


def lookers(cache: Path) -> list[str]:
    """Processes that were told of it."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(cache) in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue  # it ended meanwhile
    return found
