"""Tokens and invitations: `id.secret`, shown once. What is kept of them is a hash that is of no use without this server's key.

The last characters of a secret are a checksum that only this server can make: what it never gave out is refused without a look into the store.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

from everforge.store.disk import FULL, Disk
from everforge.wire.errors import DiskFull, StoreDamaged
from everforge.wire.ids import ALPHABET, new_secret

KEY_BYTES = 32
CHECK_LENGTH = 8  # 40 bits: to get past it costs a trillion tries, and buys a look into the store
SECRET_LENGTH = 32 + CHECK_LENGTH
_FORM = re.compile(rf"([a-z][{ALPHABET}]{{11}})\.[{ALPHABET}]{{{SECRET_LENGTH}}}")
LENGTH = 12 + 1 + SECRET_LENGTH


class Credentials:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def new(self, id: str) -> str:
        text = f"{id}.{new_secret()}"
        return text + self._check(text)

    def id_of(self, text: object) -> str | None:
        """None for whatever this server did not give out."""
        if not isinstance(text, str) or not (found := _FORM.fullmatch(text)):
            return None
        good = hmac.compare_digest(text[-CHECK_LENGTH:], self._check(text[:-CHECK_LENGTH]))
        return found[1] if good else None

    def hash(self, text: str) -> str:
        return hmac.digest(self._key, b"hash:" + text.encode(), "sha256").hex()

    def is_hash_of(self, text: str, hash: str) -> bool:
        return hmac.compare_digest(self.hash(text), hash)

    def _check(self, text: str) -> str:
        digest = hmac.digest(self._key, b"check:" + text.encode(), "sha256")
        return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:CHECK_LENGTH])


def fingerprint(text: str) -> bytes:
    """To find it again in memory, without keeping it there."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


# --- files: these block --------------------------------------------------------------------------------------------------------------


def server_key(path: Path) -> bytes:
    """This server's key, made when it is not there. Raises StoreDamaged, DiskFull."""
    text = read_secret(path)
    if text is None:
        key = hashlib.sha256(new_secret().encode() + new_secret().encode()).digest()
        write_secret(path, key.hex())
        return key
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreDamaged(f"{path} is not a key: restore it from a backup, or remove it, which makes all tokens invalid")
    return key


def read_secret(path: Path) -> str | None:
    """The contents of a small file of ours, None where there is none. Raises StoreDamaged."""
    try:
        text = Disk().read_file(path, 1024)
        path.chmod(0o600)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise StoreDamaged(f"{path} cannot be read: {e.strerror or e}; it must be a small file of this user") from e
    return text.decode("ascii", "replace").strip()


def write_secret(path: Path, text: str) -> None:
    """All of it or nothing, readable by this user alone. Raises DiskFull, StoreDamaged."""
    disk, partial = Disk(), path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        disk.write_file(partial, f"{text}\n".encode())
        disk.replace(partial, path)
        disk.sync(path.parent)
    except OSError as e:
        raise (DiskFull if e.errno in FULL else StoreDamaged)(f"{path} cannot be written: {e.strerror or e}") from e
