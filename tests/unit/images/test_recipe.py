"""Recipes and their locks: what is taken, what is refused, and that every refusal says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from everforge.images.recipe import Deb, Lock, Wheel, load_lock, load_recipe, recipe_names, save_lock
from everforge.wire.errors import ImageNotFound, InvalidInput

GOOD = 'suite = "trixie"\npython = "3.13"\ndebs = ["bash", "libstdc++6"]\nwheels = ["numpy"]\nwarm = ["matplotlib.pyplot"]\n[env]\nA = "b"\n'
LOCK = Lock("amd64", (Deb("bash", "5.2-1", "amd64", "pool/b.deb", 7, "a" * 64),), (Wheel("numpy", "2.5", "b" * 64),))


def recipe_at(folder: Path, text: str = GOOD, name: str = "mine") -> str:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return str(path)


def test_a_recipe_file_gives_its_fields_and_the_environment_every_image_has(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_at(tmp_path))
    assert (recipe.name, recipe.debs, recipe.warm) == ("mine", ("bash", "libstdc++6"), ("matplotlib.pyplot",))
    assert recipe.env["A"] == "b"
    assert recipe.env["HOME"] == "/home/user"


def test_the_digest_of_a_recipe_changes_with_what_it_says_and_not_with_how(tmp_path: Path) -> None:
    digest = load_recipe(recipe_at(tmp_path)).digest
    assert load_recipe(recipe_at(tmp_path, "# a comment\n" + GOOD)).digest == digest
    assert load_recipe(recipe_at(tmp_path, GOOD.replace("numpy", "scipy"))).digest != digest


@pytest.mark.parametrize(
    "text",
    [
        "not toml at all [",
        GOOD.replace("trixie", "../etc"),
        GOOD.replace("3.13", "3"),
        GOOD.replace('"bash"', '"--allow-unauthenticated"'),
        GOOD.replace('"bash"', "7"),
        GOOD.replace('["numpy"]', '"numpy"'),
        GOOD.replace('"b"', "1"),
        GOOD.replace("warm", "wram"),
    ],
)
def test_a_wrong_recipe_is_refused_and_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"mine\.toml"):
        load_recipe(recipe_at(tmp_path, text))


@pytest.mark.parametrize("name", ["../default", "a/b", "", "Default", "x" * 80, "-x"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        load_recipe(name)


def test_an_unknown_recipe_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ImageNotFound, match="default, minimal"):
        load_recipe("nonesuch")


def test_a_lock_is_read_back_as_written_and_those_of_other_processors_stay(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_at(tmp_path))
    other = replace(LOCK, architecture="arm64")
    save_lock(recipe, LOCK)
    save_lock(recipe, other)
    assert load_lock(recipe, "amd64") == LOCK
    assert load_lock(recipe, "arm64") == other


def test_a_missing_lock_says_how_to_make_one(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_at(tmp_path))
    with pytest.raises(ImageNotFound, match="everforge image lock"):
        load_lock(recipe, "amd64")
    save_lock(recipe, LOCK)
    with pytest.raises(ImageNotFound, match="for amd64 and not for this computer's arm64"):
        load_lock(recipe, "arm64")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1, "architectures": {"amd64": {"debs": [[1]], "wheels": []}}}', '{"version": 2}'])
def test_a_damaged_lock_is_refused_and_says_how_to_make_another(tmp_path: Path, text: str) -> None:
    recipe = load_recipe(recipe_at(tmp_path))
    recipe.lock_path.write_text(text)
    with pytest.raises(InvalidInput, match="everforge image lock"):
        load_lock(recipe, "amd64")


@pytest.mark.parametrize("name", recipe_names())
def test_our_recipes_are_locked_and_the_lock_holds_what_they_ask_for(name: str) -> None:
    recipe = load_recipe(name)
    lock = load_lock(recipe, "amd64")
    assert set(recipe.debs) <= {deb.package for deb in lock.debs}
    assert set(recipe.wheels) <= {wheel.name for wheel in lock.wheels}
    assert all(len(entry.sha256) == 64 for entry in (*lock.debs, *lock.wheels))
