"""The package index as machines are told of it: the same one that this computer's pip uses, but for its password, which stays outside."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import quote, unquote, urlsplit

from .outside import HOST_NAME, LOOPBACK, with_aliases
from .packages import PipSettings, place_of
from .secrets import SCRUBBED_BYTES_MIN, Secret
from .vault import Vault

log = logging.getLogger(__name__)
NAME = "PACKAGE_INDEX"


class IndexAccess:
    def __init__(self, pip: PipSettings, vault: Vault) -> None:
        self._vault = vault
        self._secrets: list[Secret] = []
        self.pip_conf = self._conf(pip)

    @property
    def secrets(self) -> Sequence[Secret]:
        return self._secrets

    def _conf(self, pip: PipSettings) -> str:
        lines = [f"index-url = {self._told(pip.index_url)}"] if pip.index_url else []
        if pip.extra_index_urls:
            lines.append("extra-index-url =" + "".join(f"\n    {self._told(url)}" for url in pip.extra_index_urls))
        trusted = [*map(_inside, pip.trusted_hosts), *(HOST_NAME for url in pip.urls if _is_plain_and_here(url))]
        if trusted:
            lines.append("trusted-host =" + "".join(f"\n    {host}" for host in dict.fromkeys(trusted)))
        # In pip.conf a per cent sign stands for nothing else; pip reads it without interpolation.
        return "\n".join(["[global]", *lines, ""]) if lines else ""

    def _told(self, url: str) -> str:
        """With placeholders for what must not be seen, and another name for this computer itself: to a machine, 127.0.0.1 is the machine."""
        parts = urlsplit(url)
        host = _inside(parts.hostname or "")
        netloc = f"[{host}]" if ":" in host else host
        if parts.port:
            netloc += f":{parts.port}"
        hidden = parts.password or parts.username
        if hidden is not None and parts.scheme != "https":
            log.warning("the password of a package index that is not reached by https is not put in: machines must do without")
        elif hidden is not None:
            placeholder = self._hide(unquote(hidden), url)
            netloc = (f"{quote(unquote(parts.username or ''), safe='')}:{placeholder}" if parts.password else placeholder) + f"@{netloc}"
        return parts._replace(netloc=netloc).geturl()

    def _hide(self, value: str, url: str) -> str:
        place = place_of(url)
        placeholder = self._vault.name(f"index {url}")
        if len(value) < SCRUBBED_BYTES_MIN:
            log.warning("the password of a package index has less than %d characters: no answer of the index is searched for it", SCRUBBED_BYTES_MIN)
        if place is not None:
            self._secrets.append(Secret(NAME, placeholder.encode("ascii"), value.encode(), with_aliases([place]), only_reads=True))
        return placeholder


def _is_plain_and_here(url: str) -> bool:
    """pip trusts the computer that it runs on by itself, but not by the name that this one has in machines."""
    parts = urlsplit(url)
    return parts.scheme == "http" and (parts.hostname or "") in LOOPBACK


def _inside(host: str) -> str:
    name, colon, port = host.partition(":") if host.count(":") == 1 else (host, "", "")
    return f"{HOST_NAME if name in LOOPBACK else name}{colon}{port}"
