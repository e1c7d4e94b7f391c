"""The guest's own files in an image: copies of `guest` and `wire`, which need nothing but the standard library and import only each other."""

from __future__ import annotations

import hashlib
from pathlib import Path

import everforge

PACKAGE = "_everforge"  # hidden from users: their own `import everforge` is the client
FOLDER = "usr/lib/everforge"
SITE = "usr/lib/python3/dist-packages"  # where Debian's Python looks, whichever version it is
_STARTING = ("guest/proxies.py", "_everforge_proxies")  # what every Python of a machine reads as it starts, and its name there
_PARTS = ("guest", "wire")
_CLIENTS_ONLY = ("wire/api/", "wire/auditpart.py")  # guests do not speak them; a new image for each of their changes would be a waste


def guest_files() -> dict[str, bytes]:
    """What is put below the package's folder, by relative path."""
    source = Path(everforge.__file__).parent
    files = {"__init__.py": b'"""What runs inside a machine."""\n'}
    for part in _PARTS:
        for path in sorted((source / part).rglob("*.py")):
            name = path.relative_to(source).as_posix()
            if not name.startswith(_CLIENTS_ONLY):
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
    source, name = _STARTING
    if source in files:
        site = root / SITE
        site.mkdir(parents=True, exist_ok=True)
        (site / f"{name}.py").write_bytes(files[source])
        (site / "everforge.pth").write_text(f"import {name}; {name}.begin()\n", encoding="ascii")
