"""Secrets at rest: encrypted under a key that lies beside the database in a file of its own, so that a copy of the database alone tells nothing."""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from everforge.wire.errors import StoreDamaged

KEY_FILE = "secrets.key"
KEY_BYTES = 32
PLACEHOLDER = "everforge-secret-"  # what machines have in place of a value begins so
NONCE_BYTES = 12


class Vault:
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._cipher = AESGCM(key)

    @classmethod
    def in_folder(cls, folder: Path) -> Vault:
        """Its key is made at first use. Raises StoreDamaged when it is not one."""
        path = folder / KEY_FILE
        key = read_or_make(path, lambda: os.urandom(KEY_BYTES))
        if len(key) != KEY_BYTES:
            raise StoreDamaged(f"{path} is not the key of this folder's secrets: bring the right one back from a backup, or delete it and them")
        return cls(key)

    def name(self, what: str) -> str:
        """A placeholder for something that has no record of its own: always the same, and nobody can tell what it stands for."""
        return PLACEHOLDER + hmac.new(self._key, what.encode(), hashlib.sha256).hexdigest()[:32]

    def seal(self, value: str, whose: str) -> str:
        nonce = os.urandom(NONCE_BYTES)
        return b64encode(nonce + self._cipher.encrypt(nonce, value.encode(), whose.encode())).decode("ascii")

    def open(self, sealed: str, whose: str) -> str:
        """`whose`: a value that was moved to another account or name in the database does not open."""
        data = b64decode(sealed)
        try:
            return self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], whose.encode()).decode()
        except InvalidTag:
            raise StoreDamaged(f"the secret {whose.partition('/')[2]} cannot be opened with the key of this folder; set it again") from None


def read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """A file that only we may read, made once: whole or not at all."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    content = make()
    beside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    beside.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)  # or a power cut could take it, and everything that is encrypted under it
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return content
