"""Heads of answers: with the beginning of a short body, and before a long one."""

from __future__ import annotations

import asyncio
from typing import cast

from everforge.server.heads import TOGETHER_BYTES_MAX, HeadWithBody


class Written:
    """A transport that remembers what it was handed."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.pieces.append(data)


def written(*pieces: bytes) -> list[bytes]:
    transport = Written()
    head = HeadWithBody(cast(asyncio.Transport, transport))
    for piece in pieces:
        head.write(piece)
    return transport.pieces


def test_a_head_goes_out_with_a_short_body() -> None:
    assert written(b"head", b"body", b"rest") == [b"headbody", b"rest"]


def test_a_long_body_is_not_copied() -> None:
    body = b"x" * (TOGETHER_BYTES_MAX + 1)
    head, same = written(b"head", body)
    assert head == b"head"
    assert same is body
