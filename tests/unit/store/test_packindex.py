from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everforge.store.packs import index as packindex
from everforge.store.packs.index import BASE, PACK, PAGE_BYTES, ZERO, Index, Runs
from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId

ID = SnapshotId("p" + "a" * 15)


def index(*runs: tuple[int, int, int], size: int | None = None, base: str | None = "base-1") -> Index:
    found = Runs()
    for run in runs:
        found.add(*run)
    return Index(ID, base, {"pages.img": (found.pages * PAGE_BYTES if size is None else size, found)})


def sealed(body: bytes) -> bytes:
    folded = zlib.compress(body)
    return packindex._digest(folded) + folded  # pyright: ignore[reportPrivateUsage]


def test_an_index_is_read_as_it_was_written() -> None:
    written = index((BASE, 0, 7), (PACK, 3, 2), (PACK, 9, 1), (ZERO, 0, 4), size=14 * PAGE_BYTES - 5)
    found = packindex.decode(packindex.encode(written), ID)
    assert (found.snapshot, found.base) == (ID, "base-1")
    size, runs = found.files["pages.img"]
    assert size == 14 * PAGE_BYTES - 5
    assert list(runs) == [(BASE, 0, 7), (PACK, 3, 2), (PACK, 9, 1), (ZERO, 0, 4)]


def test_pages_that_follow_each_other_are_one_run() -> None:
    runs = Runs()
    for run in [(PACK, 3), (PACK, 4), (BASE, 5), (BASE, 7), (ZERO, 0), (ZERO, 0)]:
        runs.add(*run)
    assert list(runs) == [(PACK, 3, 2), (BASE, 5, 1), (BASE, 7, 1), (ZERO, 0, 2)]


def test_any_flipped_bit_is_found() -> None:
    right = packindex.encode(index((PACK, 0, 3), (BASE, 3, 4)))
    for at in range(len(right) * 8):
        wrong = bytearray(right)
        wrong[at // 8] ^= 1 << at % 8
        with pytest.raises(SnapshotDamaged):
            packindex.decode(bytes(wrong), ID)


WRONG = {
    "of another snapshot": packindex.encode(Index(SnapshotId("p" + "b" * 15), None)),
    "with too few pages": packindex.encode(index((PACK, 0, 3), size=4 * PAGE_BYTES)),
    "with too many pages": packindex.encode(index((PACK, 0, 3), size=2 * PAGE_BYTES)),
    "with pages from nowhere": packindex.encode(index((7, 0, 3))),
    "with a base that it does not name": packindex.encode(index((BASE, 0, 3), base=None)),
    "with a base elsewhere": packindex.encode(index((BASE, 0, 3), base="../../etc/passwd")),
    "that unfolds to more than it may": sealed(bytes(packindex.INDEX_BYTES_MAX + 1)),
    "of nothing": b"",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_index_is_refused(wrong: str) -> None:
    with pytest.raises(SnapshotDamaged):
        packindex.decode(WRONG[wrong], ID)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=8
)


@given(st.binary() | JSON.map(lambda v: json.dumps(v).encode() + b"\n"))
def test_whatever_has_the_right_checksum_is_an_index_or_damage(body: bytes) -> None:
    with pytest.raises(SnapshotDamaged):
        packindex.decode(sealed(body), ID)


@given(st.sampled_from(["format", "byteorder", "snapshot", "base", "files"]), JSON, st.binary(max_size=30))
def test_a_header_with_wrong_fields_is_an_index_or_damage(name: str, value: object, rest: bytes) -> None:
    header = json.loads(zlib.decompress(packindex.encode(index((PACK, 0, 3)))[32:]).partition(b"\n")[0])
    try:
        packindex.decode(sealed(json.dumps(header | {name: value}).encode() + b"\n" + rest), ID)
    except SnapshotDamaged:
        pass
