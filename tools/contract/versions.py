"""One version for all packages: that of the Python one, written into the manifests of the others."""

from __future__ import annotations

import re
from pathlib import Path

from everforge import __version__

# The first version that a file names, or the one behind the package's own name.
PLACES = {
    "sdk/typescript/package.json": r'"version": "([^"]*)"',
    "sdk/typescript/package-lock.json": r'"name": "everforge",\s+"version": "([^"]*)"',
    "sdk/rust/Cargo.toml": r'(?m)^version = "([^"]*)"',
    "sdk/rust/Cargo.lock": r'name = "everforge"\nversion = "([^"]*)"',
}


def texts(repo: Path) -> dict[Path, str]:
    """Each file as it should be."""
    found: dict[Path, str] = {}
    for name, pattern in PLACES.items():
        text = (repo / name).read_text()
        found[repo / name] = re.sub(pattern, lambda match: match[0].replace(f'"{match[1]}"', f'"{__version__}"'), text)
    return found
