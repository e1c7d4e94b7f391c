"""Secrets are kept so that a copy of the database tells nothing, and what cannot be one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.egress.rules import parse_rule
from everforge.egress.secrets import OF_HOST_MAX
from everforge.egress.settings import opened_place
from everforge.egress.strongroom import Strongroom
from everforge.egress.vault import Vault
from everforge.store.memory_egress import MemoryEgress
from everforge.wire.errors import InvalidInput, SecretNotFound, StoreDamaged
from everforge.wire.ids import OWNER


async def test_values_are_kept_encrypted_under_the_folders_key_and_open_only_for_their_account_and_name(tmp_path: Path) -> None:
    book = MemoryEgress()
    room = Strongroom(book, Vault.in_folder(tmp_path))
    made = await room.set(OWNER, "API_KEY", "a value of mine", ["Api.Example.com", "api.example.com:8443"], "", [])
    assert "a value" not in str(made)
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert made.hosts == ["api.example.com", "api.example.com:8443"]
    again = Strongroom(book, Vault.in_folder(tmp_path))
    await again.load(OWNER)
    assert again.of(OWNER)[0].value == b"a value of mine"
    assert again.environment(OWNER) == {"API_KEY": made.placeholder}
    with pytest.raises(StoreDamaged):
        Vault.in_folder(tmp_path).open(made.sealed, f"{OWNER}/OTHER")
    (tmp_path / "secrets.key").unlink()
    lost = Strongroom(book, Vault.in_folder(tmp_path))
    await lost.load(OWNER)  # its machines can do without
    assert lost.of(OWNER) == ()


async def test_a_host_has_so_many_secrets_and_no_more_of_which_one_would_not_be_put_in(tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    for number in range(OF_HOST_MAX):
        await room.set(OWNER, f"KEY_{number}", "a value of mine", ["api.example.com"], "", [])
    with pytest.raises(InvalidInput, match=r"20 secrets at most, and api\.example\.com has that many"):
        await room.set(OWNER, "ONE_MORE", "a value of mine", ["other.example.com", "api.example.com"], "", [])
    await room.set(OWNER, "KEY_3", "another value", ["api.example.com"], "", [])


@pytest.mark.parametrize("host", ["api.example.com:00000165536", "api.example.com:0" + "0" * 5000, "api.example.com:65536", "api.example.com:0"])
async def test_a_port_that_is_none_is_refused_and_nothing_is_kept(host: str, tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    with pytest.raises(InvalidInput, match="is not a host such as"):
        await room.set(OWNER, "KEY", "a value of mine", [host], "", [])
    assert await room.list(OWNER) == []
    with pytest.raises(InvalidInput):
        parse_rule(host)
    with pytest.raises(InvalidInput):
        opened_place(host)


async def test_a_new_value_keeps_the_placeholder_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    room = Strongroom(MemoryEgress(), Vault.in_folder(tmp_path))
    first = await room.set(OWNER, "API_KEY", "first value", ["a.example.com"], "", [])
    second = await room.set(OWNER, "API_KEY", "second value", ["b.example.com"], "", [])
    assert first.placeholder == second.placeholder
    assert [s.value for s in room.of(OWNER)] == [b"second value"]
    await room.delete(OWNER, "API_KEY")
    assert room.of(OWNER) == ()
    with pytest.raises(SecretNotFound):
        await room.delete(OWNER, "API_KEY")


@pytest.mark.parametrize(
    ("name", "value", "hosts", "header", "places"),
    [
        ("1ST", "long enough", ["a.example.com"], "", []),
        ("PATH", "long enough", ["a.example.com"], "", []),
        ("LD_PRELOAD", "long enough", ["a.example.com"], "", []),
        ("https_proxy", "long enough", ["a.example.com"], "", []),
        ("PYTHONPATH", "long enough", ["a.example.com"], "", []),
        ("A", "short", ["a.example.com"], "", []),
        ("A", "with\nnewline", ["a.example.com"], "", []),
        ("A", " space at its end ", ["a.example.com"], "", []),
        ("A", "long enough", ["a.example.com"], "X: {} ", []),
        ("A", "long enough", [], "", []),
        ("A", "long enough", ["*.example.com"], "", []),
        ("A", "long enough", ["a.example.com:x"], "", []),
        ("A", "long enough", ["a.example.com"], "Authorization", []),
        ("A", "long enough", ["a.example.com"], "Host: {}", []),
        ("A", "long enough", ["a.example.com"], "X: {}\r\nY: 1", []),
        ("A", "long enough", ["a.example.com"], "", ["cookie"]),
    ],
)
async def test_what_cannot_be_a_secret_is_refused_in_words(
    tmp_path: Path, name: str, value: str, hosts: list[str], header: str, places: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await Strongroom(MemoryEgress(), Vault.in_folder(tmp_path)).set(OWNER, name, value, hosts, header, places)
    assert value not in refused.value.message
