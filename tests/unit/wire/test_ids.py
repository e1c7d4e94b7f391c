from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everforge.wire.errors import InvalidInput
from everforge.wire.ids import (
    ALPHABET,
    NAME_LENGTH_MAX,
    RESERVED_NAMES,
    SANDBOX_ID,
    SNAPSHOT_ID,
    machine_name,
    new_machine_id,
    new_machine_name,
    new_sandbox_id,
    new_snapshot_id,
)


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a--b", "web-1", "x" * NAME_LENGTH_MAX])
def test_a_good_name_is_taken_as_it_is(name: str) -> None:
    assert machine_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "-",
            "-a",
            "a-",
            "A",
            "a.b",
            "..",
            ".",
            "a/b",
            "../a",
            "/a",
            "a b",
            " a",
            "a\n",
            "a\x00",
            "ä",
            "\u0430",
            "a_b",
            "a\ud800",
            "%61",
            "a\u202eb",
        ),
        *("x" * (NAME_LENGTH_MAX + 1), "x" * 10**6, *RESERVED_NAMES, None, 5, b"a", ["a"], object()),
    ],
)
def test_a_bad_name_is_refused_with_a_short_message_that_can_be_shown(name: object) -> None:
    with pytest.raises(InvalidInput) as raised:
        machine_name(name)
    assert len(raised.value.message) < 300
    raised.value.message.encode("utf-8")
    assert raised.value.message.isprintable()


@given(st.text())
def test_a_name_is_a_host_name_or_refused(text: str) -> None:
    try:
        name = machine_name(text)
    except InvalidInput:
        return
    assert name == text
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)


def test_ids_are_of_fixed_length_so_none_is_a_prefix_of_another() -> None:
    assert SANDBOX_ID.fullmatch(new_sandbox_id())
    assert SNAPSHOT_ID.fullmatch(new_snapshot_id())
    for new in (new_machine_id, new_sandbox_id, new_snapshot_id, new_machine_name):
        some = {new() for _ in range(200)}
        assert len(some) == 200
        assert len({len(id) for id in some}) == 1
    assert len(set(ALPHABET)) == 32


def test_a_made_up_name_is_a_good_name() -> None:
    for _ in range(100):
        machine_name(new_machine_name())


def test_the_sentence_about_names_has_the_limits_that_are_kept() -> None:
    with pytest.raises(InvalidInput) as refused:
        machine_name("it's\x1b\u202e")
    sentence = str(refused.value)
    assert sentence.startswith(r""""it's\x1b\u202e" is not a machine name: """)
    assert f"1 to {NAME_LENGTH_MAX} of" in sentence
    assert sentence.endswith(" or ".join(sorted(RESERVED_NAMES)))
