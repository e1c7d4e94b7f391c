"""The audit log in a file, a line of JSON for each entry. Its last line says that this is the end: a file without it was cut.

The whole log, which the owner of the server has, ends with {"head": {"number", "hash"}}. What one account sees of it begins with
{"part": {"account"}} and ends with {"end": {"entries", "digest"}}: numbers have gaps there, and by the digest it shows when one
is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps, loads
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from everforge.wire.audit import GENESIS, AuditHead, Chain, ChainBroken, plain
from everforge.wire.auditpart import Part, digest_with

from ..failures import LocalTrouble

if TYPE_CHECKING:
    from everforge import Everforge

LINE_BYTES_MAX = 1024 * 1024
NOTHING: dict[str, Any] = {}  # after the last line
CUT = "the file ends without saying that this is the end of the log"


def write(server: Everforge, output: TextIO, *, whole: bool) -> int:
    """As much of the log as the token sees; how many entries. `output` can be begun again: where old ones were let go meanwhile, some may lack."""
    if not whole:
        return _write_part(server, output)
    first, count = server.audit.first(), _write_whole(server, output)
    while server.audit.let_go_since(first):
        output.seek(0)
        output.truncate()
        first, count = server.audit.first(), _write_whole(server, output)
    return count


def _write_whole(server: Everforge, output: TextIO) -> int:
    count, head = 0, server.audit.head()
    assert head is not None
    for entry in server.audit.entries():
        if entry.number > head.number:
            break  # what was written since is not part of it
        output.write(dumps(plain(entry)) + "\n")
        count += 1
    output.write(dumps({"head": {"number": head.number, "hash": head.hash}}) + "\n")
    return count


def _write_part(server: Everforge, output: TextIO) -> int:
    count, digest = 0, GENESIS
    output.write(dumps({"part": {"account": server.whoami()}}) + "\n")
    for entry in server.audit.entries():
        output.write(dumps(plain(entry)) + "\n")
        count, digest = count + 1, digest_with(digest, entry.hash)
    output.write(dumps({"end": {"entries": count, "digest": digest}}) + "\n")
    return count


def checked(file: Path, kept: AuditHead | None, part_will_do: bool) -> Chain | Part:
    """Raises ChainBroken; LocalTrouble where it is the part of an account, and that will not do."""
    lines = _lines(file)
    first = next(lines, NOTHING)
    if isinstance(first.get("part"), dict):
        if not part_will_do:
            raise LocalTrouble(f"{file} has the entries of one account and not the whole log: check with --part what can be told from them")
        return _checked_part(lines, kept)
    return _checked_whole(first, lines, kept)


def _checked_whole(first: dict[str, Any], lines: Iterator[dict[str, Any]], kept: AuditHead | None) -> Chain:
    chain, line = Chain(kept), first
    while line and not isinstance(line.get("head"), dict):
        chain.add(line)
        line = next(lines, NOTHING)
    if not line:
        raise ChainBroken(chain.head.number + 1, CUT)
    number = line["head"].get("number")
    _nothing_follows(lines, chain.head)
    chain.end(AuditHead(number=number if type(number) is int else 0, hash=str(line["head"].get("hash"))))
    return chain


def _checked_part(lines: Iterator[dict[str, Any]], kept: AuditHead | None) -> Part:
    part = Part(kept)
    while (line := next(lines, NOTHING)) and not isinstance(line.get("end"), dict):
        part.add(line)
    if not line:
        raise ChainBroken(part.head.number + 1, CUT)
    if line["end"] != {"entries": part.count, "digest": part.digest}:
        raise ChainBroken(part.head.number + 1, f"there may have been one: these are not the {line['end'].get('entries')} entries that were exported")
    _nothing_follows(lines, part.head)
    part.end()
    return part


def _nothing_follows(lines: Iterator[dict[str, Any]], head: AuditHead) -> None:
    if next(lines, None) is not None:
        raise ChainBroken(head.number + 1, "something follows the end of the log")


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with open(file, "rb") as lines:
        while line := lines.readline(LINE_BYTES_MAX):
            try:
                found = loads(line, parse_constant=_no_number, parse_float=_finite)
            except (ValueError, RecursionError):
                found = None
            yield cast("dict[str, Any]", found) if isinstance(found, dict) and found else {"nonsense": True}


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
