"""The order of a build, with the slow parts replaced: what is built once, what is built again, and what is left when it fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from everforge.folders import images_folder
from everforge.images import build, debian, guestcode, wheels
from everforge.images.catalogue import Catalogue
from everforge.images.recipe import Deb, Lock, load_recipe, save_lock
from everforge.progress import Silent
from everforge.wire.errors import ImageBuildFailed, ImageDamaged, ImageNotFound, InvalidInput

RECIPE = 'suite = "trixie"\npython = "3.13"\ndebs = ["bash"]\n'


class Workshop:
    """Stands in for apt, uv and the image's own programs; counts what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.catalogue = Catalogue(folder / "images", folder / "cache")
        self.recipe = folder / "mine.toml"
        self.recipe.write_text(RECIPE)
        save_lock(load_recipe(str(self.recipe)), Lock(build.host_architecture(), (_deb("1"),), ()))
        self.unpacked = 0
        self.gone: set[str] = set()
        self.guest = {"guest/agent.py": b"1"}
        self.warnings: list[str] = []
        self.trouble: BaseException | None = None

    def fetch(self, debs: tuple[Deb, ...], folder: Path, progress: object) -> dict[str, Path]:
        for deb in debs:
            if deb.version in self.gone:
                raise debian.Gone(f"could not fetch {deb.package} {deb.version}: 404")
        return {deb.sha256: Path(deb.version) for deb in debs}

    def unpack(self, files: list[Path], root: Path, progress: object) -> None:
        self.unpacked += 1
        (root / "usr/lib").mkdir(parents=True)
        (root / "usr/version").write_text(str(files[0]))
        if self.trouble:
            raise self.trouble

    def ensure(self, locked: bool = False) -> build.CataloguedImage:
        return build.ensure(str(self.recipe), self.catalogue, self, locked)

    def leftovers(self) -> list[str]:
        return [path.name for path in self.catalogue.images.rglob(".partial-*")]

    def step(self, text: str) -> None: ...

    def count(self, done: int, total: int) -> None: ...

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def _deb(version: str) -> Deb:
    return Deb("bash", version, "amd64", f"pool/bash_{version}.deb", 1, version * 64)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop(tmp_path)
    monkeypatch.setattr(debian, "fetch", shop.fetch)
    monkeypatch.setattr(debian, "unpack", shop.unpack)
    monkeypatch.setattr(debian, "resolve", lambda *_: (_deb("2"),))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(wheels, "install", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(build, "finish", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(build, "compile_python", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(build, "guest_files", lambda: shop.guest)
    yield shop
    assert shop.leftovers() == []


def test_an_image_is_built_once_and_then_found(workshop: Workshop) -> None:
    image = workshop.ensure()
    assert workshop.ensure() == image
    assert workshop.unpacked == 1
    assert workshop.catalogue.find("mine") == image
    assert workshop.catalogue.find(image.digest[:12]) == image
    assert (image.root / "usr/lib/everforge/_everforge/guest/agent.py").read_bytes() == b"1"
    assert image.image.root == image.root


def test_another_guest_makes_another_image_on_the_same_base(workshop: Workshop) -> None:
    first = workshop.ensure()
    workshop.guest = {"guest/agent.py": b"2"}
    second = workshop.ensure()
    assert workshop.unpacked == 1
    assert second.base == first.base
    assert second.digest != first.digest
    assert workshop.catalogue.find("mine") == second
    assert (second.root / "usr/version").samefile(first.root / "usr/version")


def test_going_back_to_an_earlier_guest_finds_its_image(workshop: Workshop) -> None:
    first = workshop.ensure()
    workshop.guest = {"guest/agent.py": b"2"}
    workshop.ensure()
    workshop.guest = {"guest/agent.py": b"1"}
    assert workshop.ensure() == first
    assert workshop.catalogue.find("mine") == first


def test_when_the_mirror_lost_a_package_the_newest_is_taken_and_said_so(workshop: Workshop) -> None:
    workshop.gone = {"1"}
    image = workshop.ensure()
    assert not image.as_locked
    assert (image.root / "usr/version").read_text() == "2"
    assert "differs from its lock" in workshop.warnings[0]
    assert workshop.ensure() == image


def test_locked_refuses_what_the_lock_does_not_name(workshop: Workshop) -> None:
    workshop.gone = {"1"}
    workshop.ensure()
    with pytest.raises(ImageBuildFailed, match="everforge image lock"):
        workshop.ensure(locked=True)
    workshop.gone = set()
    assert workshop.ensure(locked=True).as_locked


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), ImageBuildFailed("no"), OSError("disk")])
def test_a_build_that_ends_in_the_middle_leaves_nothing(workshop: Workshop, trouble: BaseException) -> None:
    workshop.trouble = trouble
    with pytest.raises(type(trouble)):
        workshop.ensure()
    assert workshop.leftovers() == []
    assert workshop.catalogue.list() == []
    workshop.trouble = None
    assert workshop.ensure() == workshop.catalogue.find("mine")


def test_what_a_killed_build_left_is_cleared_away_by_the_next(workshop: Workshop) -> None:
    stale = workshop.catalogue.bases / ".partial-dead"
    (stale / "root").mkdir(parents=True)
    (stale / "root").chmod(0o500)
    workshop.ensure()
    assert not stale.exists()


def test_two_builders_at_once_build_once(workshop: Workshop) -> None:
    threads = [threading.Thread(target=workshop.ensure) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert workshop.unpacked == 1
    assert len(workshop.catalogue.list()) == 1


def test_a_changed_image_is_refused_with_what_to_do(workshop: Workshop) -> None:
    image = workshop.ensure()
    (image.root / "usr/version").write_text("x")
    with pytest.raises(ImageDamaged, match="everforge image delete"):
        Catalogue(workshop.catalogue.images, workshop.catalogue.cache).find("mine")
    with pytest.raises(ImageDamaged, match="/usr/version"):
        workshop.catalogue.scrub(image.digest)


def test_a_change_that_keeps_size_and_time_is_found_by_scrubbing(workshop: Workshop) -> None:
    image = workshop.ensure()
    workshop.catalogue.scrub(image.digest)
    place = image.root / "usr/version"
    place.write_text("9")
    build.settle_times(image.root)
    with pytest.raises(ImageDamaged, match="/usr/version"):
        workshop.catalogue.scrub(image.digest)


def test_deleting_an_image_takes_its_base_only_with_the_last(workshop: Workshop) -> None:
    first = workshop.ensure()
    workshop.guest = {"guest/agent.py": b"2"}
    second = workshop.ensure()
    workshop.catalogue.delete(first.digest)
    assert (workshop.catalogue.bases / first.base).is_dir()
    workshop.catalogue.delete("mine")
    assert not (workshop.catalogue.bases / second.base).exists()
    with pytest.raises(ImageNotFound, match="everforge image build mine"):
        workshop.catalogue.find("mine")


def test_deleting_a_damaged_image_takes_the_base_that_shares_its_files(workshop: Workshop) -> None:
    first = workshop.ensure()
    workshop.guest = {"guest/agent.py": b"2"}
    workshop.ensure()
    workshop.catalogue.note_damage(first, "a byte of it changed")
    with pytest.raises(ImageDamaged, match="a byte of it changed"):
        workshop.catalogue.find(first.digest)
    workshop.catalogue.delete(first.digest)
    workshop.guest = {"guest/agent.py": b"1"}
    assert workshop.ensure() == workshop.catalogue.find(first.digest)
    assert workshop.unpacked == 2, "it was built on the damaged base"


@pytest.mark.parametrize("name", ["../images", "a/b", "", "/etc", "names", "0" * 64, ".building"])
def test_no_name_leads_out_of_the_catalogue(workshop: Workshop, name: str) -> None:
    workshop.ensure()
    with pytest.raises(ImageNotFound):
        workshop.catalogue.find(name)
    with pytest.raises(ImageNotFound):
        workshop.catalogue.delete(name)


def test_an_ambiguous_beginning_of_a_digest_is_refused(workshop: Workshop) -> None:
    image = workshop.ensure()
    twin = image.folder.with_name(image.digest[:8] + "0" * 56)
    twin.mkdir()
    (twin / "image.json").write_text((image.folder / "image.json").read_text().replace(image.digest, twin.name))
    with pytest.raises(InvalidInput, match="write more of it"):
        workshop.catalogue.find(image.digest[:8])


def test_a_folder_without_a_whole_record_is_no_image(workshop: Workshop) -> None:
    image = workshop.ensure()
    (image.folder / "image.json").write_text('{"digest": 1')
    assert workshop.catalogue.list() == []


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path, workshop: Workshop) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageBuildFailed, match="EVERFORGE_CACHE"):
        build.ensure(str(workshop.recipe), Catalogue(tmp_path / "images", tmp_path / "file" / "cache"), Silent())
    with pytest.raises(InvalidInput, match="EVERFORGE_IMAGES"):
        build.ensure(str(workshop.recipe), Catalogue(tmp_path / "file" / "images", tmp_path / "cache"), Silent())


def test_something_else_in_the_place_of_the_builders_lock_is_named(workshop: Workshop) -> None:
    (workshop.catalogue.images / ".building").mkdir(parents=True)
    with pytest.raises(ImageBuildFailed, match=r"\.building cannot be opened"):
        workshop.ensure()


def test_the_guests_files_import_nothing_but_each_other_and_what_the_image_has() -> None:
    files = guestcode.guest_files()
    assert {"__init__.py", "guest/__init__.py", "wire/frames.py"} <= files.keys()
    for path, content in files.items():
        assert b"import everforge" not in content, path
        assert b"from everforge" not in content, path


def test_machines_elsewhere_share_the_usual_images_unless_they_have_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("EVERFORGE_IMAGES", "EVERFORGE_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    usual, elsewhere = tmp_path / "everforge", tmp_path / "elsewhere"
    assert images_folder(elsewhere) == elsewhere / "images"
    (usual / "images").mkdir(parents=True)
    assert images_folder() == images_folder(elsewhere) == usual / "images"
    monkeypatch.setenv("EVERFORGE_DATA", str(elsewhere))  # the same as the option
    assert images_folder() == usual / "images"
    (elsewhere / "images").mkdir(parents=True)
    assert images_folder() == images_folder(elsewhere) == elsewhere / "images"
