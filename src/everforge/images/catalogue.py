"""The images on this computer: found by recipe name or digest, checked before use, deleted."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from everforge.engine.base import Image
from everforge.folders import cache_folder, images_folder
from everforge.wire.errors import ImageDamaged, ImageNotFound, InvalidInput

from .listing import Tally, differences, tally

_DIGEST = re.compile(r"[0-9a-f]{8,64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_NOTE = "damaged"  # beside the image's root: what was found, as a sentence
_NOTE_BYTES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class CataloguedImage:
    digest: str
    folder: Path
    recipe: str
    python: str
    env: Mapping[str, str]
    warm: tuple[str, ...]  # modules for the template to import
    base: str
    guest: str
    inputs: str  # hash of everything it was built from: the same inputs need no second build
    as_locked: bool  # False when the mirror had newer packages than the lock
    created_at: str
    size_bytes: int
    entries: int

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def image(self) -> Image:
        return Image(self.digest, self.root)


class Catalogue:
    """Layout below the folder of images: `DIGEST/{root,listing,image.json}`, `names/RECIPE`, `bases/DIGEST/{root,listing,base.json}`.

    Packages that images are made of lie in the cache folder.
    """

    def __init__(self, images: Path, cache: Path) -> None:
        self.images = images
        self.bases = images / "bases"
        self.cache = cache
        self._checked: set[str] = set()

    @classmethod
    def here(cls, data: Path | None = None) -> Catalogue:
        """That of this user on this computer, for machines in this data folder."""
        return cls(images_folder(data), cache_folder())

    def list(self) -> list[CataloguedImage]:
        try:
            folders = sorted(self.images.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InvalidInput(f"the images in {self.images} cannot be read ({error.strerror}); set EVERFORGE_IMAGES to a folder that can") from error
        found = [self._read(folder) for folder in folders if _DIGEST.fullmatch(folder.name)]
        return sorted((image for image in found if image), key=lambda image: (image.recipe, image.created_at))

    def find(self, name_or_digest: str) -> CataloguedImage:
        """A recipe's present image, or one by its digest or the beginning of it. Looks once at every file's metadata."""
        image = self._by_name(name_or_digest) or self._by_digest(name_or_digest)
        if image is None:
            raise ImageNotFound(f"there is no image {name_or_digest!r}; build it with `everforge image build {_as_word(name_or_digest)}`")
        self.check(image)
        return image

    def with_inputs(self, inputs: str) -> CataloguedImage | None:
        return next((image for image in self.list() if image.inputs == inputs), None)

    def check(self, image: CataloguedImage) -> None:
        """Count, sizes and times of all files, once for each image: a changed image would bring up machines that are not what was saved."""
        if told := _noted_damage(image):
            raise ImageDamaged(told, digest=image.digest)
        if image.digest in self._checked:
            return
        try:
            seen = tally(image.root)
        except OSError as error:
            raise _damaged(image, f"it cannot be read ({error})") from error
        if seen != Tally(image.entries, image.size_bytes, 0):
            raise _damaged(image, "files in it were changed, added or removed")
        self._checked.add(image.digest)

    def scrub(self, digest: str) -> None:
        """Read every byte; raises ImageDamaged naming what differs. Takes seconds."""
        image = self._by_digest(digest)
        if image is None:
            raise ImageNotFound(f"there is no image {digest!r}; `everforge image list` shows what there is")
        try:
            told = differences(image.root, image.folder / "listing", image.digest)
        except (OSError, ValueError) as error:
            raise _damaged(image, f"it cannot be read ({error})") from error
        if told:
            raise _damaged(image, f"it differs from its listing in {told}")

    def note_damage(self, image: CataloguedImage, told: str) -> None:
        """What scrubbing found, or nothing: until it is mended or deleted, everybody refuses it. Raises OSError."""
        if told:
            (image.folder / _NOTE).write_text(told, encoding="utf-8")
        else:
            (image.folder / _NOTE).unlink(missing_ok=True)

    def delete(self, name_or_digest: str) -> CataloguedImage:
        """One image, and the base below it when no other image stands on it, or when it shares the damage: images have its files by hard links."""
        image = self._by_name(name_or_digest) or self._by_digest(name_or_digest)
        if image is None:
            raise ImageNotFound(f"there is no image {name_or_digest!r}; `everforge image list` shows what there is")
        damaged = bool(_noted_damage(image))
        if self.present(image.recipe) == image.digest:
            (self.images / "names" / image.recipe).unlink(missing_ok=True)
        # The record goes first: a folder without one is no image, whatever else is still in it.
        (image.folder / "image.json").unlink(missing_ok=True)
        remove_tree(image.folder)
        if damaged or all(other.base != image.base for other in self.list()):
            (self.bases / image.base / "base.json").unlink(missing_ok=True)
            remove_tree(self.bases / image.base)
        self._checked.discard(image.digest)
        return image

    def present(self, recipe: str) -> str | None:
        """The digest that a recipe's name stands for."""
        try:
            return (self.images / "names" / recipe).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None

    def name(self, image: CataloguedImage) -> None:
        """From now on the recipe's name stands for this image."""
        if self.present(image.recipe) == image.digest:
            return
        place = self.images / "names" / image.recipe
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{image.recipe}.{secrets.token_hex(4)}.partial")  # two builders may name at once
        partial.write_text(image.digest + "\n", encoding="ascii")
        partial.replace(place)

    def record(self, image: CataloguedImage) -> None:
        told = {**asdict(image), "env": dict(image.env)}
        del told["folder"]
        (image.folder / "image.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def _by_name(self, name: str) -> CataloguedImage | None:
        digest = self.present(name) if _NAME.fullmatch(name) else None
        return self._read(self.images / digest) if digest and _DIGEST.fullmatch(digest) else None

    def _by_digest(self, digest: str) -> CataloguedImage | None:
        if not _DIGEST.fullmatch(digest):
            return None
        found = [image for image in self.list() if image.digest.startswith(digest)]
        if len(found) > 1:
            raise InvalidInput(f"{digest!r} begins the digests of {len(found)} images; write more of it")
        return found[0] if found else None

    def _read(self, folder: Path) -> CataloguedImage | None:
        """None when there is no whole record: an image that is being deleted, or never was finished."""
        try:
            told = cast("dict[str, Any]", json.loads((folder / "image.json").read_text(encoding="utf-8")))
            warm = tuple(told.pop("warm"))
            return CataloguedImage(**told, folder=folder, warm=warm)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _noted_damage(image: CataloguedImage) -> str:
    try:
        with open(image.folder / _NOTE, encoding="utf-8", errors="replace") as note:
            return note.read(_NOTE_BYTES_MAX)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"the image {image.digest[:12]} may be damaged: {image.folder / _NOTE} cannot be read ({error.strerror})"


def remove_tree(folder: Path) -> None:
    """Also when some folder in it may not be written, as in unpacked packages."""
    if not folder.exists():
        return
    for below in [folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())]:
        if below.stat().st_mode & 0o700 != 0o700:
            below.chmod(0o700)
    shutil.rmtree(folder)


def _damaged(image: CataloguedImage, what: str) -> ImageDamaged:
    return ImageDamaged(
        f"the image {image.digest[:12]} ({image.recipe}) is not what it was built as: {what}; "
        f"delete it with `everforge image delete {image.digest[:12]}` and build it again with `everforge image build {image.recipe}`",
        digest=image.digest,
    )


def _as_word(text: str) -> str:
    return text if _NAME.fullmatch(text) and not _DIGEST.fullmatch(text) else "default"
