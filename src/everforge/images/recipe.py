"""A recipe says what an image holds; its lock beside it says which files exactly that was, so that anyone can build the same image again."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from everforge.wire.errors import ImageNotFound, InvalidInput

RECIPES = Path(__file__).parent / "recipes"
LOCK_VERSION = 1

# Debian's word for a processor, and what Python's platform module calls it.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*")
_FIELDS = {"suite", "python", "debs", "wheels", "warm", "env"}

# Every image has these; a recipe may say otherwise.
BASE_ENV = {
    "HOME": "/home/user",
    "LANG": "C.UTF-8",
    "PATH": "/home/user/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "SHELL": "/bin/bash",
    "USER": "user",
}


@dataclass(frozen=True, slots=True)
class Recipe:
    name: str
    path: Path
    suite: str
    python: str
    debs: tuple[str, ...]
    wheels: tuple[str, ...]
    warm: tuple[str, ...]  # modules that the template imports before it is saved
    env: Mapping[str, str]

    @property
    def lock_path(self) -> Path:
        return self.path.with_suffix(".lock")

    @property
    def digest(self) -> str:
        told = {"suite": self.suite, "python": self.python, "debs": self.debs, "wheels": self.wheels, "warm": self.warm, "env": dict(self.env)}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Deb:
    package: str
    version: str
    architecture: str
    path: str  # below the mirror's root
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Wheel:
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The files of one recipe for one processor architecture."""

    architecture: str
    debs: tuple[Deb, ...]
    wheels: tuple[Wheel, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def host_architecture() -> str:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise InvalidInput(f"images cannot be built for a {machine} processor; use one of: {', '.join(_ARCHITECTURES)}")
    return _ARCHITECTURES[machine]


def recipe_names() -> list[str]:
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def load_recipe(name_or_path: str) -> Recipe:
    """One of ours by its name, or anybody's by the path of its file."""
    by_path = name_or_path.endswith(".toml")
    path = Path(name_or_path) if by_path else RECIPES / f"{name_or_path}.toml"
    if not _NAME.fullmatch(path.stem if by_path else name_or_path):
        raise InvalidInput(f"{name_or_path!r} cannot name a recipe; use small letters, digits, '-' and '_'")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ImageNotFound(f"there is no readable recipe {name_or_path!r}; name one of {', '.join(recipe_names())} or a .toml file") from error
    try:
        return _parse(path.absolute(), tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise InvalidInput(f"the recipe {path} is not right: {error}") from error


def _parse(path: Path, fields: dict[str, Any]) -> Recipe:
    if unknown := fields.keys() - _FIELDS:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    env = fields.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in cast("dict[str, object]", env).values()):
        raise ValueError("[env] must hold strings")
    python = fields.get("python")
    if not isinstance(python, str) or not re.fullmatch(r"3\.[0-9]+", python):
        raise ValueError("python must be a version such as '3.13'")
    suite = fields.get("suite")
    if not isinstance(suite, str) or not re.fullmatch(r"[a-z]+", suite):
        raise ValueError("suite must be the name of a Debian release such as 'trixie'")
    debs, wheels, warm = (_words(fields, field) for field in ("debs", "wheels", "warm"))
    return Recipe(path.stem, path, suite, python, debs, wheels, warm, {**BASE_ENV, **cast("dict[str, str]", env)})


def _words(fields: dict[str, Any], field: str) -> tuple[str, ...]:
    words = fields.get(field, [])
    for word in cast("list[object]", words if isinstance(words, list) else [None]):
        if not isinstance(word, str) or not _PACKAGE.fullmatch(word):
            raise ValueError(f"{field} must be a list of names and holds {word!r}")
    return tuple(cast("list[str]", words))


def load_lock(recipe: Recipe, architecture: str) -> Lock:
    """The lock for this processor; says how to make one when there is none."""
    make_it = f"make one with `everforge image lock {recipe.path if recipe.path.parent != RECIPES else recipe.name}`"
    try:
        told = json.loads(recipe.lock_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ImageNotFound(f"the recipe {recipe.name!r} has no lock; {make_it}") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the lock {recipe.lock_path} cannot be read ({error}); {make_it}") from error
    try:
        if told["version"] != LOCK_VERSION:
            raise InvalidInput(f"the lock {recipe.lock_path} is of another version; {make_it}")
        if architecture not in told["architectures"]:
            known = ", ".join(sorted(told["architectures"]))
            raise ImageNotFound(f"the recipe {recipe.name!r} is locked for {known} and not for this computer's {architecture}; {make_it}")
        entry = told["architectures"][architecture]
        return Lock(architecture, tuple(Deb(*row) for row in entry["debs"]), tuple(Wheel(*row) for row in entry["wheels"]))
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"the lock {recipe.lock_path} is damaged; {make_it}") from error


def save_lock(recipe: Recipe, lock: Lock) -> None:
    """Put it beside the recipe; locks for other processors stay."""
    entries: dict[str, Any] = {}
    if recipe.lock_path.exists():
        told = json.loads(recipe.lock_path.read_text(encoding="utf-8"))
        entries = told.get("architectures", {}) if told.get("version") == LOCK_VERSION else {}
    entries[lock.architecture] = {
        "debs": [list(asdict(deb).values()) for deb in lock.debs],
        "wheels": [list(asdict(wheel).values()) for wheel in lock.wheels],
    }
    partial = recipe.lock_path.with_suffix(".lock.partial")
    partial.write_text(_rows(entries), encoding="utf-8")
    partial.replace(recipe.lock_path)


def _rows(entries: dict[str, Any]) -> str:
    """JSON with one file to a line, so that a changed lock reads well as a diff."""

    def block(rows: Sequence[Any]) -> str:
        return "[\n" + ",\n".join("   " + json.dumps(row) for row in rows) + "\n  ]"

    parts = [
        f' {json.dumps(name)}: {{\n  "debs": {block(entries[name]["debs"])},\n  "wheels": {block(entries[name]["wheels"])}\n }}'
        for name in sorted(entries)
    ]
    return f'{{"version": {LOCK_VERSION}, "architectures": {{\n' + ",\n".join(parts) + "\n}}\n"
