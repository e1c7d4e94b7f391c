"""Where a client finds its server and its token. Light to import: the command line asks here, too.

A token is a secret of one server, so that token and address always come from one and the same source; the first source that has both wins.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from everforge.folders import data_folder
from everforge.wire.errors import ConfigurationBad, InvalidInput, ServerUnknown
from everforge.wire.sentences import quoted, say

FILE_BYTES_MAX = 64 * 1024  # a configuration is a few lines
TOKEN_CHARACTERS_MAX = 1024
_NO_ADDRESS = re.compile(r"[?#\s\x00-\x1f\x7f-\x9f]")
_NO_HOST = re.compile(r"[%<>\[\]\\^|]")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]+")


class Access(NamedTuple):
    """What it takes to reach a server."""

    base_url: str
    token: str
    source: str = ""  # for messages: where it was found

    @property
    def was_given(self) -> bool:
        """By somebody who means this server; else it is what the server on this computer left."""
        return self.source != str(_owner_token())

    def __repr__(self) -> str:
        return f"Access({self.base_url!r}, source={self.source!r})"  # a token is nobody's to see


def find_access(token: str | None = None, base_url: str | None = None) -> Access:
    """What was given, else the environment, else the files of `everforge login`, else the server on this computer."""
    if token is not None and base_url is not None:
        return Access(check_url(base_url), check_token(token), "the arguments")
    if token is not None:
        return Access(_local_url(say("no_address")), check_token(token), "the arguments")
    wanted = None if base_url is None else check_url(base_url)
    for access in _sources():
        if wanted is None or access.base_url == wanted:
            return access
    if wanted is not None:
        raise ConfigurationBad(say("no_token", url=wanted))
    raise ServerUnknown(say("no_server"))


def _sources() -> Iterator[Access]:
    found = os.environ.get("EVERFORGE_TOKEN")
    if found:
        url = os.environ.get("EVERFORGE_URL") or _local_url(say("environment_no_address"))
        yield Access(check_url(url), check_token(found), "EVERFORGE_TOKEN")
    elif os.environ.get("EVERFORGE_URL"):
        yield _token_for(check_url(os.environ["EVERFORGE_URL"]))
    yield from _file(config_path())
    found, url = os.environ.get("FOREVERVM_TOKEN"), os.environ.get("FOREVERVM_BASE_URL")
    if found and url:  # one alone is meant for another service
        yield Access(check_url(url), check_token(found), "FOREVERVM_TOKEN")
    yield from _file(_config_home() / "forevervm" / "config.json")
    yield from _local()


def _token_for(url: str) -> Access:
    """EVERFORGE_URL alone names a server whose token lies in a file."""
    for access in (*_file(config_path()), *_local()):
        if access.base_url == url:
            return access
    raise ConfigurationBad(say("environment_no_token", url=url))


# --- files ---------------------------------------------------------------------------------------------------------------------------


def config_path() -> Path:
    return _config_home() / "everforge" / "config.json"


def _config_home() -> Path:
    value = os.environ.get("XDG_CONFIG_HOME", "")
    if Path(value).is_absolute():
        return Path(value)
    try:
        return Path.home() / ".config"
    except RuntimeError:
        return Path("/etc/xdg")  # nobody's home; nothing is written there


def write_config(access: Access) -> Path:
    """For the next time. Mode 0600, whole or not at all."""
    import tempfile  # slow to load, and most who ask here only read

    from .newfile import named

    path = config_path()
    with named(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".config.")  # created with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"token": access.token, "server_url": access.base_url}, file)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return path


def delete_config() -> bool:
    """Was there one?"""
    try:
        config_path().unlink()
    except FileNotFoundError:
        return False
    return True


def _file(path: Path) -> Iterator[Access]:
    text = _read_private(path)
    if text is None:
        return
    try:
        found = json.loads(text)
    except ValueError as e:
        raise ConfigurationBad(say("config_not_json", path=path)) from e
    fields: Mapping[str, Any] = cast(Mapping[str, Any], found) if isinstance(found, dict) else {}
    token, url = fields.get("token"), fields.get("server_url")
    if isinstance(token, str) and isinstance(url, str) and token and url:
        yield Access(check_url(url), check_token(token), str(path))


def _local() -> Iterator[Access]:
    """The server on this computer leaves its address and its owner's token in the data folder."""
    url = local_url()
    if url is None:
        return
    path = _owner_token()
    token = _read_private(path)
    if token is not None and token.strip():
        yield Access(url, check_token(token.strip()), str(path))


def _owner_token() -> Path:
    return data_folder() / "owner.token"


def local_url() -> str | None:
    """Of the server on this computer, as far as one said so here. It may have gone since."""
    try:
        place = data_folder() / "server.json"
        # A link on a full disk. Not by pathlib, which would make one slash of two.
        text = os.readlink(place) if place.is_symlink() else place.read_bytes()[:FILE_BYTES_MAX]  # noqa: PTH115
        found = json.loads(text)
        return check_url(found["url"])
    except (OSError, ValueError, TypeError, KeyError, InvalidInput):
        return None  # not there, not ours to read, or half written: then there is none


def _local_url(otherwise: str) -> str:
    url = local_url()
    if url is None:
        raise ConfigurationBad(otherwise)
    return url


def _read_private(path: Path) -> str | None:
    """None where there is none, or where it is another user's. A secret that others can read, or a thing that is no file, is an error."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as e:
        raise ConfigurationBad(f"{path} cannot be read: {e.strerror}") from e
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationBad(say("config_not_file", path=path))
        if status.st_mode & 0o077:
            raise ConfigurationBad(say("config_public", path=path))
        if status.st_size > FILE_BYTES_MAX:
            raise ConfigurationBad(say("config_too_long", path=path))
        return os.read(handle, FILE_BYTES_MAX).decode("utf-8", "replace")
    finally:
        os.close(handle)


# --- what may stand there --------------------------------------------------------------------------------------------------------------


def check_url(text: str) -> str:
    """Without a slash at its end; InvalidInput that says what it should look like."""
    given = text.strip()
    try:
        parts = urlsplit(given)
        parts.port  # noqa: B018  ValueError when it is none
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not _is_host(parts.hostname or "") or "@" in parts.netloc or _NO_ADDRESS.search(given):
        raise InvalidInput(say("bad_address", text=quoted(text)))
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _is_host(host: str) -> bool:
    """As browsers see it, and what they are made of: what ends like a number is an address of four bytes, or nothing."""
    last = host.removesuffix(".").rpartition(".")[2]
    if ":" in host or not _NUMBER.fullmatch(last):
        return host != "" and not _NO_HOST.search(host)
    import socket  # slow to load, and whoever only looks for a server needs none

    try:
        return bool(socket.inet_aton(host.removesuffix(".")))
    except OSError:
        return False


def check_token(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text or not 0 < len(text) <= TOKEN_CHARACTERS_MAX:
        raise InvalidInput(say("bad_token"))
    return text
