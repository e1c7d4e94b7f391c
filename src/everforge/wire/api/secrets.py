"""Secrets, which machines use without seeing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .base import Request

Place = Literal["body", "url"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret(Request):
    value: str
    hosts: list[str]
    header: str | None = None  # put in by itself, {} where the value goes
    places: list[Place] | None = None  # beside headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Everything of it but its value."""

    name: str
    placeholder: str
    hosts: list[str]
    header: str | None
    places: list[str]
    created_at: str
    changed_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretList:
    secrets: list[Secret]
