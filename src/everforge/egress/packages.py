"""Which package index this computer's pip is configured for, and where its files lie: what the policy `packages` opens.

pip itself is asked what it would do where nothing is configured, and the index where its files are: no name of an index stands in this program.
"""

from __future__ import annotations

import asyncio
import configparser
import json
import logging
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from .policy import Place
from .rules import normal_host

log = logging.getLogger(__name__)
LEARN_SECONDS = 20.0
AGAIN_SECONDS = 60.0  # after a failure
FRESH_SECONDS = 3600.0
PAGE_BYTES_MAX = 8 * 1024 * 1024
OF_THIS_COMPUTER = Path("/etc/pip.conf")
SAMPLE = "pip"  # a project that every index has, as a rule
_LINK = re.compile(rb"""<a\s[^>]*?href\s*=\s*["']([^"'#]+)""", re.IGNORECASE)
_DEFAULT = re.compile(r"--index-url.*?\(default\s+(\S+?)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PipSettings:
    """As pip reads them; "" and () where nothing is set."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificates: str = ""  # a file
    proxy: str = ""

    @property
    def urls(self) -> tuple[str, ...]:
        return (*((self.index_url,) if self.index_url else ()), *self.extra_index_urls)


def read_settings(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> PipSettings:
    """Files first, the environment over them, in pip's own order."""
    values: dict[str, str] = {}
    for path in _files(environment, home or Path.home()):
        values.update(_read(path))
    for name in ("index-url", "extra-index-url", "trusted-host", "cert", "proxy"):
        if told := environment.get(f"PIP_{name.upper().replace('-', '_')}"):
            values[name] = told
    return PipSettings(
        index_url=values.get("index-url", "").strip(),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        certificates=values.get("cert", "").strip(),
        proxy=values.get("proxy", "").strip(),
    )


def _files(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    if environment.get("PIP_CONFIG_FILE") == os.devnull:
        return
    for folder in reversed(environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")):
        yield Path(folder) / "pip/pip.conf"
    yield OF_THIS_COMPUTER
    yield home / ".pip/pip.conf"
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if told := environment.get("PIP_CONFIG_FILE"):
        yield Path(told)


def _read(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            found.update(parser.items(section))
    return found


def place_of(url: str) -> Place | None:
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None
    host = normal_host(parts.hostname or "")
    return None if host is None or port is None else (host, port)


class PackageIndex:
    """What is known of it, learned when a machine first wants something of it."""

    def __init__(self, settings: PipSettings | None = None) -> None:
        self.settings = settings or read_settings()
        self.configured = frozenset(place for url in self.settings.urls if (place := place_of(url)))
        self.places: frozenset[Place] = self.configured  # as far as they are known
        self._learning: asyncio.Task[None] | None = None
        self._learned_at: float | None = None
        self._again_at = 0.0

    async def known(self) -> frozenset[Place]:
        """With the hosts of its files, as far as they can be learned soon. Never raises."""
        now = time.monotonic()
        if self._learning is None and now >= self._again_at:
            self._learning = asyncio.create_task(self._learn())
        if self._learning is not None and self._learned_at is None:
            await asyncio.wait([self._learning], timeout=LEARN_SECONDS)
        return self.places

    async def close(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])

    async def _learn(self) -> None:
        try:
            urls = self.settings.urls if self.settings.index_url else (await _default_index(), *self.settings.extra_index_urls)
            found, complete = await asyncio.to_thread(_learn_places, urls, self.settings)
            self.places = found if complete else found | self.places
            self._learned_at = time.monotonic()
            self._again_at = self._learned_at + (FRESH_SECONDS if complete else AGAIN_SECONDS)
        except Exception as e:
            log.warning("where the files of the package index lie could not be learned: %s", e)
            self._again_at = time.monotonic() + AGAIN_SECONDS
        finally:
            self._learning = None


async def _default_index() -> str:
    """pip's own, in its own words."""
    command = [sys.executable, "-m", "pip", "--isolated", "download", "--help"]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "400"},
    )
    try:
        told, _ = await asyncio.wait_for(process.communicate(), LEARN_SECONDS)
    except BaseException:
        process.kill()
        raise
    found = _DEFAULT.search(told.decode(errors="replace"))
    if found is None:
        raise RuntimeError("pip does not say which index it uses")
    return found[1]


def _learn_places(urls: tuple[str, ...], settings: PipSettings) -> tuple[frozenset[Place], bool]:
    """False: not all of them. An index that cannot be asked now has its files where it is itself, for all we know."""
    found: set[Place | None] = set()
    complete = True
    for url in urls:
        found.add(place_of(url))
        try:
            found.update(place_of(urljoin(f"{url.rstrip('/')}/{SAMPLE}/", link)) for link in _links(url, settings))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as e:
            log.info("the page of %s on the package index could not be read: %s", SAMPLE, e)
            complete = False
    return frozenset(place for place in found if place), complete


def _links(url: str, settings: PipSettings) -> list[str]:
    """On the page of one project; none where there is no such page. Raises whatever urllib and a page of nonsense make of it."""
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    request = urllib.request.Request(f"{bare.rstrip('/')}/{SAMPLE}/", headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"})
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", "Basic " + b64encode(login.encode()).decode())  # wherever the index leads us, it stays here
    try:
        with _opener(settings).open(request, timeout=LEARN_SECONDS / 2) as answer:
            page: bytes = answer.read(PAGE_BYTES_MAX)
            is_json = "json" in answer.headers.get("Content-Type", "")
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return []
        raise
    if is_json:
        return [str(file["url"]) for file in json.loads(page).get("files", [])]
    return [link.decode("utf-8", "replace") for link in _LINK.findall(page)]


def _opener(settings: PipSettings) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=settings.certificates or None))
    ]
    if settings.proxy:
        handlers.append(urllib.request.ProxyHandler({"http": settings.proxy, "https": settings.proxy}))
    return urllib.request.build_opener(*handlers)
