"""Building images: a base of packages, and on it the guest's own files.

The base is slow to make and seldom changes; the guest is small and changes often, so an image shares the base's files by hard links.
Nothing is seen under its final name before it is whole: everything is made in a partial folder, then renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from everforge.progress import Progress
from everforge.wire.errors import ImageBuildFailed

from . import debian, wheels
from .catalogue import Catalogue, CataloguedImage, remove_tree
from .command import run
from .finish import compile_python, finish, set_modes, settle_times
from .guestcode import FOLDER, SITE, guest_digest, guest_files, write_guest
from .listing import read_lines, tally, write_listing
from .recipe import Lock, Recipe, host_architecture, load_lock, load_recipe, save_lock

BUILDER = 1  # raise it when the same packages would give another image
_PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True)
class Base:
    digest: str
    folder: Path
    as_locked: bool


def ensure(recipe_name: str, catalogue: Catalogue, progress: Progress, locked: bool = False) -> CataloguedImage:
    """The image of a recipe as recipe, lock and guest stand now; built only when there is none. `locked` refuses packages other than the lock's."""
    recipe = load_recipe(recipe_name)
    lock = load_lock(recipe, host_architecture())
    files = guest_files()
    inputs = _hash(BUILDER, recipe.name, recipe.digest, lock.digest, guest_digest(files))
    image = catalogue.with_inputs(inputs)
    if image is None or (locked and not image.as_locked):
        with _alone(catalogue, progress):
            image = catalogue.with_inputs(inputs)  # someone else may have built it while we waited
            if image is None or (locked and not image.as_locked):
                base = _ensure_base(recipe, lock, catalogue, progress, locked)
                image = _add_guest(recipe, base, files, inputs, catalogue, progress)
    catalogue.check(image)
    catalogue.name(image)
    return image


def lock_recipe(recipe_name: str, catalogue: Catalogue, progress: Progress) -> Lock:
    """Write down the newest packages that fit the recipe; the next build takes exactly these."""
    recipe, architecture = load_recipe(recipe_name), host_architecture()
    debs = debian.resolve(recipe, architecture, catalogue.cache, progress)
    progress.step("working out which Python packages are needed")
    lock = Lock(architecture, debs, wheels.resolve(recipe, architecture))
    save_lock(recipe, lock)
    return lock


def _ensure_base(recipe: Recipe, lock: Lock, catalogue: Catalogue, progress: Progress, locked: bool) -> Base:
    inputs = _hash(BUILDER, recipe.digest, lock.digest)
    for place in sorted(catalogue.bases.glob("*/base.json")):
        told = json.loads(place.read_text(encoding="utf-8"))
        if told["inputs"] == inputs and (told["as_locked"] or not locked):
            return Base(told["digest"], place.parent, told["as_locked"])
    with _partial(catalogue.bases) as partial:
        as_locked = _fill_base(recipe, lock, partial / "root", catalogue, progress, locked)
        progress.step("reading the files' digests")
        digest = write_listing(read_lines(partial / "root"), partial / "listing")
        told = {"digest": digest, "inputs": inputs, "as_locked": as_locked, "recipe": recipe.name}
        (partial / "base.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return Base(digest, _settle(partial, catalogue.bases / digest), as_locked)


def _fill_base(recipe: Recipe, lock: Lock, root: Path, catalogue: Catalogue, progress: Progress, locked: bool) -> bool:
    """True when every file is the locked one."""
    as_locked, cache = True, catalogue.cache / "debs"
    progress.step(f"fetching {len(lock.debs)} Debian packages")
    try:
        found = debian.fetch(lock.debs, cache, progress)
    except debian.Gone as gone:
        if locked:
            raise ImageBuildFailed(
                f"{gone.message}; lock the recipe anew with `everforge image lock {recipe.name}`, or build without --locked"
            ) from gone
        progress.warn(
            f"the mirror no longer has all packages of the lock, so the newest are taken and the image differs from its lock ({gone.message})"
        )
        as_locked, lock = False, replace(lock, debs=debian.resolve(recipe, lock.architecture, catalogue.cache, progress))
        found = debian.fetch(lock.debs, cache, progress)
    root.mkdir(mode=0o755)
    progress.step(f"unpacking {len(found)} Debian packages")
    debian.unpack([found[deb.sha256] for deb in lock.debs], root, progress)
    progress.step(f"installing {len(lock.wheels)} Python packages")
    wheels.install(recipe, lock.architecture, lock.wheels, root)
    finish(root, recipe, progress)
    settle_times(root)
    return as_locked


def _add_guest(recipe: Recipe, base: Base, files: dict[str, bytes], inputs: str, catalogue: Catalogue, progress: Progress) -> CataloguedImage:
    progress.step("adding the guest")
    with _partial(catalogue.images) as partial:
        root = partial / "root"
        run(["cp", "-a", "--link", "--no-preserve=ownership", base.folder / "root", root], "copy the base of the image")
        write_guest(files, root)
        places = [place for place in (FOLDER, SITE) if (root / place).is_dir()]
        compile_python(root, [f"/{place}" for place in places])
        for place in places:
            set_modes(root / place)
        settle_times(root)
        # The base's lines are taken as they are, so that only the guest's few files are read.
        lines = {*(base.folder / "listing").read_text(encoding="ascii").splitlines(), *(line for place in places for line in read_lines(root, place))}
        digest = write_listing(lines, partial / "listing")
        seen = tally(root)
        image = CataloguedImage(
            digest=digest, folder=partial, recipe=recipe.name, python=recipe.python, env=recipe.env, warm=recipe.warm, base=base.digest,
            guest=guest_digest(files), inputs=inputs, as_locked=base.as_locked, created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            size_bytes=seen.size_bytes, entries=seen.entries,
        )  # fmt: skip
        catalogue.record(image)
        return replace(image, folder=_settle(partial, catalogue.images / digest))


def _settle(partial: Path, place: Path) -> Path:
    """Give it its name. What stood there has the same digest; it goes only after the new one is whole."""
    if place.exists():
        aside = place.with_name(f"{_PARTIAL}{secrets.token_hex(4)}")
        place.rename(aside)
        partial.rename(place)
        remove_tree(aside)
    else:
        partial.rename(place)
    return place


@contextmanager
def _partial(parent: Path) -> Generator[Path, None, None]:
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"{_PARTIAL}{secrets.token_hex(4)}"
    folder.mkdir(mode=0o755)
    try:
        yield folder
    finally:
        remove_tree(folder)


@contextmanager
def _alone(catalogue: Catalogue, progress: Progress) -> Generator[None, None, None]:
    """One builder at a time; whatever half-made thing lies there then was left by one that was killed."""
    _check_writable("cache folder", catalogue.cache, "EVERFORGE_CACHE")
    _check_writable("folder of images", catalogue.images, "EVERFORGE_IMAGES")
    place = catalogue.images / ".building"
    try:
        door = os.open(place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ImageBuildFailed(f"{place} cannot be opened ({error.strerror}); move it away, or set EVERFORGE_IMAGES to another folder") from error
    try:
        try:
            fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step("waiting for another build to end")
            fcntl.flock(door, fcntl.LOCK_EX)
        for parent in (catalogue.images, catalogue.bases):
            for stale in parent.glob(f"{_PARTIAL}*"):
                remove_tree(stale)
        yield
    finally:
        os.close(door)


def _check_writable(what: str, folder: Path, setting: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ImageBuildFailed(f"the {what} {folder} cannot be written ({error.strerror}); set {setting} to one that can") from error


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
