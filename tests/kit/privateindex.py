"""A package index of a company: pypiserver, over TLS, for those who know the password. On loopback, with a certificate authority of its own."""

from __future__ import annotations

import base64
import hashlib
import io
import socketserver
import threading
import wsgiref.simple_server
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pypiserver

from everforge.egress.authority import Authority

USER = "robot"


@dataclass
class PrivateIndex:
    url: str  # with the password, as the host's pip has it
    password: str
    certificates: Path  # what the host's pip trusts
    port: int
    logins: list[str] = field(default_factory=list[str])  # users whose password was right
    refused: int = 0


@contextmanager
def private_index(folder: Path, password: str) -> Iterator[PrivateIndex]:
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for name, content in (("house_rules", wheel("house_rules", "RULES = 'be kind'")), ("pip", wheel("pip", "", "0.0.1"))):
        (packages / f"{name}-{'0.0.1' if name == 'pip' else '1.0'}-py3-none-any.whl").write_bytes(content)
    authority = Authority.in_folder(folder)
    (folder / "authorities.pem").write_text(authority.certificate)
    made = PrivateIndex("", password, folder / "authorities.pem", 0)

    def knows(user: str, given: str) -> bool:
        if user == USER and given == password:
            made.logins.append(user)
            return True
        made.refused += 1
        return False

    app = pypiserver.app(roots=[packages], authenticate=["list", "download"], password_file=".", auther=knows, disable_fallback=True, verbosity=0)
    server = wsgiref.simple_server.make_server("127.0.0.1", 0, cast("Any", app), _Server, _Quiet)
    server.socket = authority.context("127.0.0.1").wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    made.port = server.server_port
    made.url = f"https://{USER}:{password}@127.0.0.1:{made.port}/simple/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None: ...  # a client that hangs up is none


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


def wheel(name: str, source: str, version: str = "1.0") -> bytes:
    """A package of one module, as an index serves it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_digest(text.encode())},{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
