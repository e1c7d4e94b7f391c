"""What the packages in TypeScript and Rust give to whoever imports them: a class in their sources that is not among it is of no use to anybody."""

from __future__ import annotations

import re
from pathlib import Path

_TS_FROM = re.compile(r'^export (type )?(?:(\*)|\{([^}]*)\}) from "\./([\w/]+)\.js";', re.MULTILINE)
_RUST_USE = re.compile(r"^pub use (?:\w+::)+(?:\{([^}]*)\}|(\w+(?: as \w+)?));", re.MULTILINE)  # at the root alone: what is indented lies deeper
_RUST_MODULE = re.compile(r"^pub mod (\w+);", re.MULTILINE)
_RUST_ITEM = re.compile(r"^pub (?:struct|enum|(?:async )?fn) (\w+)", re.MULTILINE)


def typescript(repo: Path, entry: str) -> set[str]:
    """By one of its entries, as values: what is exported as a type alone nobody can make, nor ask `instanceof`."""
    folder, found = repo / "sdk/typescript/src", set[str]()
    for type_only, everything, names, source in _TS_FROM.findall((folder / f"{entry}.ts").read_text()):
        if type_only:
            continue
        found |= typescript(repo, source) if everything else _known_as(names)
    return found


def rust(repo: Path) -> set[str]:
    """At the crate's root, or in one of its public modules."""
    folder = repo / "sdk/rust/src"
    root = (folder / "lib.rs").read_text()
    found = {name for many, one in _RUST_USE.findall(root) for name in _known_as(many or one)}
    for module in _RUST_MODULE.findall(root):
        found |= set(_RUST_ITEM.findall((folder / f"{module}.rs").read_text()))
    return found


def _known_as(names: str) -> set[str]:
    """`A, B as C, type D`: A and C."""
    each = (name.strip() for name in names.split(","))
    return {name.split(" as ")[-1] for name in each if name and not name.startswith("type ")}
