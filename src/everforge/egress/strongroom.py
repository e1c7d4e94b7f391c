"""The secrets of all accounts, opened: at hand for the doors, since a connection does not wait for the database."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets as random
import time
from collections.abc import Mapping, Sequence

from everforge.store.egress import EgressBook, SecretRecord
from everforge.wire.errors import InvalidInput, SecretNotFound, StoreDamaged
from everforge.wire.ids import AccountId, secret_name

from .broker import FRAMING, OURS
from .http import HOP_BY_HOP
from .rules import normal_host, port_of, split_port
from .secrets import OF_HOST_MAX, SCRUBBED_BYTES_MIN, Secret
from .vault import PLACEHOLDER, Vault

log = logging.getLogger(__name__)
SECRETS_MAX = 100  # of an account
VALUE_BYTES_MAX = 4096
HOSTS_MAX = 20
PLACES = ("body", "url")
# What programs and libraries are found and run by: a placeholder there would break every machine of the account, and no deletion would mend it.
_RESERVED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|TERM|TMPDIR|TZ|IFS|HOSTNAME|LC_.*|LD_.*|PYTHON.*|IPYTHON.*|PIP_.*|MALLOC_.*|.*_PROXY|SSL_CERT_.*"
    r"|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_.*|GIT_CONFIG.*|EVERFORGE.*",
    re.IGNORECASE,
)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}):[ \t]*((?:[!-~][ -~]*)?\{\}(?:[ -~]*[!-~])?)")
_OURS = frozenset(name.decode("ascii") for name in OURS | FRAMING | HOP_BY_HOP)


class Strongroom:
    def __init__(self, book: EgressBook, vault: Vault) -> None:
        self._book = book
        self._vault = vault
        self._opened: dict[AccountId, tuple[Secret, ...]] = {}
        self._changing = asyncio.Lock()  # what was read before a change must not come after it

    async def load(self, account: AccountId) -> None:
        """Before a machine of the account goes: what it then connects to is decided without a wait."""
        if account not in self._opened:
            async with self._changing:
                if account not in self._opened:
                    self._opened[account] = await self._read(account)

    async def _read(self, account: AccountId) -> tuple[Secret, ...]:
        found: list[Secret] = []
        for record in await self._book.secrets(account):
            try:
                found.append(self._open(record))
            except StoreDamaged as e:  # the others, and the account's machines, can do without it
                log.error("%s", e.message)
        return tuple(found)

    def of(self, account: AccountId) -> Sequence[Secret]:
        return self._opened.get(account, ())

    def environment(self, account: AccountId) -> Mapping[str, str]:
        return {secret.name: secret.placeholder.decode("ascii") for secret in self.of(account)}

    # --- what accounts ask ---------------------------------------------------------------------------------------------------------------

    async def list(self, account: AccountId) -> Sequence[SecretRecord]:
        return await self._book.secrets(account)

    async def set(self, account: AccountId, name: str, value: str, hosts: Sequence[str], header: str, places: Sequence[str]) -> SecretRecord:
        """Raises InvalidInput, TooMany."""
        check_name(name)
        check_value(value)
        async with self._changing:
            return await self._set(account, name, value, hosts, header, places)

    async def _set(self, account: AccountId, name: str, value: str, hosts: Sequence[str], header: str, places: Sequence[str]) -> SecretRecord:
        present = await self._book.secrets(account)
        known = next((record for record in present if record.name == name), None)
        now = time.time()
        record = SecretRecord(
            account=account,
            name=name,
            placeholder=known.placeholder if known else PLACEHOLDER + random.token_hex(16),
            sealed=self._vault.seal(value, f"{account}/{name}"),
            hosts=_hosts(hosts),
            header=_header(header),
            places=_places(places),
            created_at=known.created_at if known else now,
            changed_at=now,
        )
        for host in record.hosts:
            if sum(host in other.hosts for other in present if other.name != name) >= OF_HOST_MAX:
                raise InvalidInput(f"a host has {OF_HOST_MAX} secrets at most, and {host} has that many")
        await self._book.put_secret(record, SECRETS_MAX)
        self._opened[account] = await self._read(account)
        return record

    async def delete(self, account: AccountId, name: str) -> None:
        """Raises SecretNotFound."""
        async with self._changing:
            if not await self._book.delete_secret(account, name):
                raise SecretNotFound(f"there is no secret {name[:64]!r}")
            self._opened[account] = await self._read(account)

    async def forget(self, account: AccountId) -> None:
        """It was deleted, and all that it had."""
        async with self._changing:
            self._opened.pop(account, None)

    def _open(self, record: SecretRecord) -> Secret:
        value = self._vault.open(record.sealed, f"{record.account}/{record.name}").encode()
        found = _HEADER.fullmatch(record.header)
        return Secret(
            name=record.name,
            placeholder=record.placeholder.encode("ascii"),
            value=value,
            hosts=frozenset(_place(host) for host in record.hosts),
            header=(found[1].lower().encode("ascii"), found[2].encode("ascii").replace(b"{}", value)) if found else None,
            in_body="body" in record.places,
            in_url="url" in record.places,
        )


def check_name(name: str) -> None:
    if _RESERVED.fullmatch(secret_name(name)):
        raise InvalidInput(f"{name} is a variable that machines themselves need: give the secret another name, such as {name.upper()}_KEY")


def check_value(value: str) -> None:
    size = len(value.encode("utf-8", "surrogatepass"))
    if not SCRUBBED_BYTES_MIN <= size <= VALUE_BYTES_MAX or not value.isprintable() or not value.isascii() or value != value.strip():
        raise InvalidInput(f"a secret's value has {SCRUBBED_BYTES_MIN} to {VALUE_BYTES_MAX} characters of ASCII, no spaces at its ends")


def _hosts(hosts: Sequence[str]) -> list[str]:
    if not 1 <= len(hosts) <= HOSTS_MAX:
        raise InvalidInput(f"a secret is for 1 to {HOSTS_MAX} hosts")
    found = [_place(host) for host in hosts]
    return [host if port == 443 else f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in dict.fromkeys(found)]


def _place(text: str) -> tuple[str, int]:
    host, port_text = split_port(text)
    name, port = normal_host(host), port_of(port_text) if port_text else 443
    if name is None or port is None:
        raise InvalidInput(f"{text[:100]!r} is not a host such as api.example.com or api.example.com:8443")
    return name, port


def _header(text: str) -> str:
    if not text:
        return text
    if (found := _HEADER.fullmatch(text)) is None:
        raise InvalidInput("a header is written as in `Authorization: Bearer {}`, with {} where the value goes")
    if found[1].lower() in _OURS:
        raise InvalidInput(
            f"the header {found[1]} says how a request is carried, and holds no secret: take another, such as `Authorization: Bearer {{}}`"
        )
    return text


def _places(places: Sequence[str]) -> list[str]:
    if unknown := [place for place in places if place not in PLACES]:
        raise InvalidInput(f"a secret is put into headers, and if asked for into {' or '.join(PLACES)}, not into {unknown[0][:40]!r}")
    return sorted(set(places))
