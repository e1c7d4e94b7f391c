"""Ids are types, and strings of fixed alphabets: none of them can climb out of a folder, and none is a prefix of another of its kind."""

from __future__ import annotations

import re
import secrets
from typing import NewType

from .errors import InvalidInput
from .sentences import say, show

MachineId = NewType("MachineId", str)  # ours, random, never reused; names a machine's rows and folders
MachineName = NewType("MachineName", str)  # what the owner calls it; unique among the living of an account
SandboxId = NewType("SandboxId", str)
SnapshotId = NewType("SnapshotId", str)
AccountId = NewType("AccountId", str)
TokenId = NewType("TokenId", str)  # the part of a token that is no secret
InvitationId = NewType("InvitationId", str)

OWNER = AccountId("owner")  # whose server it is; the ids of all others are random

CELL = "c0"  # prefix of generated names: which group of servers a machine belongs to, once there are several
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: read aloud and copied by hand

RESERVED_NAMES = frozenset({"new", "list"})  # route words of ForeverVM's API
NAME_LENGTH_MAX = 63  # a DNS label: a name may become a host name
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_machine_id() -> MachineId:
    return MachineId("m" + _random(15))


def new_machine_name() -> MachineName:
    return MachineName(f"{CELL}-{_random(12)}")


def new_sandbox_id() -> SandboxId:
    return SandboxId("s" + _random(19))


def new_snapshot_id() -> SnapshotId:
    return SnapshotId("p" + _random(15))


def new_account_id() -> AccountId:
    return AccountId("a" + _random(15))


def new_token_id() -> TokenId:
    return TokenId("t" + _random(11))


def new_invitation_id() -> InvitationId:
    return InvitationId("i" + _random(11))


def new_webhook_id() -> str:
    return "w" + _random(11)


def new_delivery_id() -> str:
    return "d" + _random(19)


def new_secret() -> str:
    """160 bits."""
    return _random(32)


ACCOUNT_ID = re.compile(rf"a[{ALPHABET}]{{15}}")
SANDBOX_ID = re.compile(rf"s[{ALPHABET}]{{19}}")
SNAPSHOT_ID = re.compile(rf"p[{ALPHABET}]{{15}}")


def machine_name(text: object) -> MachineName:
    """The name, or InvalidInput that says what a name may be."""
    if not isinstance(text, str) or len(text) > NAME_LENGTH_MAX or not _NAME.fullmatch(text) or text in RESERVED_NAMES:
        raise InvalidInput(say("bad_machine_name", text=show(text)))
    return MachineName(text)


def secret_name(text: object) -> str:
    """The name, or InvalidInput that says what a name may be."""
    if not isinstance(text, str) or not _VARIABLE.fullmatch(text):
        raise InvalidInput(say("bad_secret_name", text=show(text)))
    return text
