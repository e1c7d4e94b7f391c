"""The guest's own files in an image: copies of `guest` and `wire`, which need nothing but the standard library and import only each other."""

from __future__ import annotations

import hashlib
from pathlib import Path

import everforge

PACKAGE = "_everforge"  # hidden from users: their own `import everforge` is the client
FOLDER = "usr/lib/everforge"
_PARTS = ("guest", "wire")
_CLIENTS_ONLY = frozenset({"wire/api.py"})  # guests do not speak it, and a new image for each of its changes would be a waste


def guest_files() -> dict[str, bytes]:
    """What is put below the package's folder, by relative path."""
    source = Path(everforge.__file__).parent
    files = {"__init__.py": b'"""What runs inside a machine."""\n'}
    for part in _PARTS:
        for path in sorted((source / part).rglob("*.py")):
            name = path.relative_to(source).as_posix()
            if name not in _CLIENTS_ONLY:
                files[name] = path.read_bytes()
    return files


def guest_digest(files: dict[str, bytes]) -> str:
    told = hashlib.sha256()
    for path in sorted(files):
        told.update(f"{path} {len(files[path])} ".encode() + files[path])
    return told.hexdigest()


def write_guest(files: dict[str, bytes], root: Path) -> None:
    for path, content in files.items():
        place = root / FOLDER / PACKAGE / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
