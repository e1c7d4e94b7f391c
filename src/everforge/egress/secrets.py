"""Secrets on their way: placeholders out of a machine become values, and values in what comes back become asterisks. No I/O."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

_BASIC = re.compile(rb"\s*basic\s+([A-Za-z0-9+/=]+)\s*", re.IGNORECASE)
PART_BYTES_MAX = 64 * 1024  # of a header or an address, once values are in it
BODY_BYTES_MAX = 1024 * 1024  # of a body in which a secret may stand, before and after: it is held until its new length is known
SCRUBBED_BYTES_MIN = 8  # a shorter value would be found where it is not meant
OF_HOST_MAX = 20  # secrets that are looked for in one request
# By which some hosts take a GET for something else.
_OTHER_METHODS = frozenset({b"x-http-method", b"x-http-method-override", b"x-method-override"})
_PRINTABLE = bytes(range(0x20, 0x7F))  # what values are made of
_ANY = bytes(range(256))

Headers = Sequence[tuple[bytes, bytes]]


class TooLong(Exception):
    """What a request becomes with its secrets in it."""


@dataclass(frozen=True, slots=True)
class Secret:
    name: str
    placeholder: bytes
    value: bytes
    hosts: frozenset[tuple[str, int]]
    header: tuple[bytes, bytes] | None = None  # name and value; put in by itself
    in_body: bool = False
    in_url: bool = False
    only_reads: bool = False  # put into GET and HEAD alone

    def is_for(self, method: bytes) -> bool:
        return not self.only_reads or method in (b"GET", b"HEAD")


class Substitution:
    """Of one request. `used` are the names of the secrets that were put in."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._secrets = secrets
        self.used: list[str] = []

    @property
    def wants_body(self) -> bool:
        return any(secret.in_body for secret in self._secrets)

    def headers(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Raises TooLong."""
        own = {secret.header[0]: (secret.name, secret.header) for secret in self._secrets if secret.header is not None}
        only_reads = any(secret.only_reads for secret in self._secrets)
        kept = [(name, self._header(value)) for name, value in headers if name not in own]
        for name, header in own.values():
            kept.append(header)
            self._use(name)
        return [pair for pair in kept if not (only_reads and pair[0].replace(b"_", b"-") in _OTHER_METHODS)]

    def target(self, target: bytes) -> bytes:
        """Raises TooLong."""
        return self._replace(target, [secret for secret in self._secrets if secret.in_url], PART_BYTES_MAX)

    def body(self, body: bytes) -> bytes:
        """Raises TooLong."""
        return self._replace(body, [secret for secret in self._secrets if secret.in_body], BODY_BYTES_MAX)

    def _header(self, value: bytes) -> bytes:
        found = _BASIC.fullmatch(value)
        if found is None:
            return self._replace(value, self._secrets, PART_BYTES_MAX)
        try:
            inner = b64decode(found[1], validate=True)
        except ValueError:
            return value
        replaced = self._replace(inner, self._secrets, PART_BYTES_MAX)
        return value if replaced == inner else b"Basic " + b64encode(replaced)

    def _replace(self, data: bytes, secrets: Sequence[Secret], bytes_max: int) -> bytes:
        """In one pass: a value in which another's placeholder stands is put in as it is, or each could be made of many others."""
        known = {secret.placeholder: secret for secret in secrets}
        if not known or not any(placeholder in data for placeholder in known):
            return data
        pattern = _any_of(known)
        if len(data) + sum(len(known[found].value) - len(found) for found in pattern.findall(data)) > bytes_max:
            raise TooLong(f"with its secrets in it, a part of the request would have more than {bytes_max} bytes")

        def value(found: re.Match[bytes]) -> bytes:
            secret = known[found[0]]
            self._use(secret.name)
            return secret.value

        return pattern.sub(value, data)

    def _use(self, name: str) -> None:
        if name not in self.used:
            self.used.append(name)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Of a value, as it may come back. In Base64 its first and last bytes share characters with their neighbours: so many of those go with it."""

    text: bytes
    before: int = 0
    after: int = 0

    @property
    def size(self) -> int:
        return self.before + len(self.text) + self.after


def _spellings(value: bytes) -> Iterator[_Spelling]:
    """As it is; and in Base64, wherever it begins in a group of three bytes: Basic credentials are sent so, with any name before it."""
    if len(value) < SCRUBBED_BYTES_MIN:
        return
    yield _Spelling(value)
    for others in range(3):  # bytes of something else in its first group
        first = -others % 3
        whole, last = divmod(len(value) - first, 3)
        yield _Spelling(b64encode(value[first : first + 3 * whole]), before=first + 1 if first else 0, after=last + 1 if last else 0)


class Scrubber:
    """Of one answer, piece by piece: lengths stay, so that what was announced is what comes.

    As much as may be the beginning of a value is held back of every piece, whatever it is: who saw that something was held back because it is the
    beginning of a value would find that value out letter by letter, wherever a host says again what it is sent. But no value goes on over the end of
    a line, or over any byte that is not printable: up to there everything is told, and a stream of lines flows.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        values = {*values}
        self._spellings = [spelling for value in values for spelling in _spellings(value)]
        self._small = [spelling.text.lower() for spelling in self._spellings]
        self._keep = max((spelling.size for spelling in self._spellings), default=1) - 1
        # The password of a package index may have anything in it.
        self._alphabet = _ANY if any(value.strip(_PRINTABLE) for value in values) else _PRINTABLE
        self._held = b""
        self._masked = 0  # so many bytes at its beginning belong to a value whose first part was told already

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def whole(self, data: bytes) -> bytes:
        return self._mask(data, len(data), 0)[0]

    def name(self, name: bytes) -> bytes:
        """Of a header, which comes in small letters."""
        return b"x-scrubbed" if any(text in name for text in self._small) else name

    def piece(self, data: bytes) -> bytes:
        """What may be told of it now."""
        data = self._held + data
        tail = data[max(0, len(data) - self._keep) :]
        return self._tell(data, len(data) - len(tail) + len(tail.rstrip(self._alphabet)))

    def rest(self) -> bytes:
        return self._tell(self._held, len(self._held))

    def _tell(self, data: bytes, end: int) -> bytes:
        told, self._masked = self._mask(data, end, self._masked)
        self._held = data[end:]
        return told

    def _mask(self, data: bytes, end: int, masked: int) -> tuple[bytes, int]:
        """Up to `end`, with every byte unreadable that is part of a value, of several even; and how many more behind it are.

        Each is looked for by itself: a pattern for all of them would take a time that whoever chose the values could make as long as they like.
        """
        told = bytearray(data[:end])
        told[:masked] = b"*" * min(masked, end)
        for spelling in self._spellings:
            for at in _places(spelling.text, data):
                begin, over = max(0, at - spelling.before), at + len(spelling.text) + spelling.after
                if begin >= end:
                    break
                masked = max(masked, over)
                told[begin:over] = b"*" * (min(over, end) - begin)
        return bytes(told), max(0, masked - end)


def _places(text: bytes, data: bytes) -> Iterator[int]:
    """Where it begins, in order. Of those that overlap enough of them that every byte of every one is in one: to name all would take too long."""
    size, at, backwards = len(text), data.find(text), text[::-1]
    while at >= 0:
        yield at
        # The last that begins within this one, or right behind it. It is looked for backwards: `rfind` itself may take size times as long.
        ahead = data[at + 1 : at + 2 * size]
        found = ahead[::-1].find(backwards)
        at = at + 1 + len(ahead) - found - size if found >= 0 else data.find(text, at + size)


def _any_of(texts: Collection[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, texts)))
