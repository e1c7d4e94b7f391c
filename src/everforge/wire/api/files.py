"""Files of machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FileKind = Literal["file", "folder", "link", "other"]
ArchiveFormat = Literal["tar", "tar.gz", "zip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    path: str
    kind: FileKind
    size_bytes: int
    modified_at: str
    mode: int
    target: str | None  # of a link


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    path: str
    files: list[File]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    path: str
    files: int
    size_bytes: int
