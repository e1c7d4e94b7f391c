"""The user's folder and environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..wire.mux import PORT
from .etc import CERTIFICATES
from .processes import is_init, run_as_user

HOME = "/home/user"
IMAGE_ENV = Path("/etc/everforge/env.json")  # written by the image's recipe
SITE_PACKAGES = ".local/lib/python{}.{}/site-packages"


def folder() -> str:
    """As an ordinary process (tests) the folder is whatever our own environment says."""
    return HOME if is_init() else os.environ.get("HOME", "/")


def environment() -> dict[str, str]:
    env = {
        "HOME": folder(),
        "USER": "user",
        "LANG": "C.UTF-8",
        "PATH": f"{folder()}/.local/bin:/usr/local/bin:/usr/bin:/bin" if is_init() else os.environ.get("PATH", "/usr/bin:/bin"),
        "TERM": "dumb",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PLOTLY_RENDERER": "plotly_mimetype",
        "MALLOC_ARENA_MAX": "2",  # else each of the first threads reserves 64 MB of addresses, which a machine has few of
    }
    if is_init():
        env.update(_way_out())
        env.update(_image_environment())
    return env


def _way_out() -> dict[str, str]:
    """Programs find the egress door by themselves. Not ALL_PROXY: clients that know no SOCKS fail on it. Libraries with certificates of their own are
    pointed to the system's, where the door's own stands."""
    env = {"no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"}
    env.update((name, CERTIFICATES) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"))
    env.update((name, f"http://127.0.0.1:{PORT}") for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"))
    return env


def _image_environment() -> dict[str, str]:
    try:
        found = json.loads(IMAGE_ENV.read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]


def prepare() -> None:
    """The site folder must exist when the interpreter starts, or what `%pip install` puts there would not be found until the next one."""
    if is_init():
        run_as_user(lambda: _make(HOME))


def _make(folder: str) -> None:
    import sys

    Path(folder, SITE_PACKAGES.format(*sys.version_info[:2])).mkdir(parents=True, exist_ok=True)
