from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everforge.engine.warden import verbs
from everforge.wire.errors import ProtocolError
from everforge.wire.ids import new_sandbox_id

NEW: dict[str, Any] = {
    "verb": "start",
    "id": new_sandbox_id(),
    "engine": "0" * 64,
    "image": "/images/one/root",
    "memory_mb": 512,
    "cpus": 2.0,
    "processes": 64,
    "disk_mb": 128,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def test_a_verb_comes_out_as_it_went_in() -> None:
    verb = verbs.Restore(**{k: v for k, v in NEW.items() if k != "verb"}, folder="/data/snapshots/one", pooled=True)
    assert verbs.decode({"seq": 7, **verbs.encode(verb)}) == verb


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../../etc"),
        ("id", "s1"),
        ("id", new_sandbox_id() + "\n"),
        ("engine", "../runsc"),
        ("engine", "A" * 64),
        ("image", "relative/path"),
        ("image", "/a\x00b"),
        ("image", "/" + "a" * 5000),
        ("memory_mb", 0),
        ("memory_mb", True),
        ("memory_mb", "512"),
        ("memory_mb", 10**12),
        ("cpus", 0),
        ("cpus", float("nan")),
        ("cpus", float("inf")),
        ("processes", -1),
        ("disk_mb", 1.5),
        ("argv", ["sh"]),
        ("spec", {}),
        ("verb", "run"),
        ("verb", None),
    ],
)
def test_what_does_not_fit_is_refused(field: str, value: object) -> None:
    with pytest.raises(ProtocolError):
        verbs.decode({**NEW, field: value})


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(ProtocolError):
        verbs.decode({k: v for k, v in NEW.items() if k != "image"})


@given(st.dictionaries(st.sampled_from([*NEW, "folder", "pooled", "seq", "after", "direct"]) | st.text(), JSON), st.sampled_from(sorted(verbs.VERBS)))
def test_any_object_gives_a_verb_or_a_protocol_error(message: dict[str, Any], name: str) -> None:
    try:
        assert isinstance(verbs.decode({**message, "verb": name}), verbs.Verb)
    except ProtocolError:
        pass
