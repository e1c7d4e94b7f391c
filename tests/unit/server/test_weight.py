"""What JSON weighs: values count, and what stands in texts does not, however it is written."""

from __future__ import annotations

import json

import pytest

from everforge.server import weight
from everforge.server.weight import is_too_heavy

FEW = 50


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight, "VALUES_MAX", FEW)


@pytest.mark.parametrize("value", [[], {}, 1, "text", "\\", '"', {"a": 1}, None])
def test_more_values_than_there_may_be_are_too_heavy(value: object) -> None:
    assert is_too_heavy(json.dumps([value] * (FEW + 2)).encode())
    assert not is_too_heavy(json.dumps([value] * (FEW // 3)).encode())


def test_nesting_weighs_too() -> None:
    assert is_too_heavy(b"[" * (FEW + 1))
    assert is_too_heavy(b'{"a":' * (FEW + 1))


@pytest.mark.parametrize(
    "text", ["[" * 1_000, "{,}" * 1_000, '",' * 1_000, '\\",' * 1_000, "\\" * 1_001 + "," * 1_000, "é," * 1_000, "\n,\r," * 1_000]
)
def test_a_text_is_one_value_whatever_stands_in_it(text: str) -> None:
    for ascii_only in (True, False):
        assert not is_too_heavy(json.dumps({"code": text}, ensure_ascii=ascii_only).encode())
        assert is_too_heavy(json.dumps([text, *range(FEW + 1)], ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize("body", [b'"' + b"," * 1_000, b'"' + b'\\"' * 1_000 + b"," * 1_000, b'"' + b"," * 1_000 + b"\\"])
def test_a_text_without_an_end_goes_to_the_end(body: bytes) -> None:
    assert not is_too_heavy(body)
