"""A web site of a test's own on loopback, over TLS with an authority of its own: files, a package index, a git repository."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from everforge.folders import cache_folder

WHEELS = ("aiohttp==3.14.5", "httpx==0.28.1", "markupsafe==3.0.4")  # and what they need; for the Python of images
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")


class Authority:
    """Made for one test; its certificate is `pem`."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority of a test")])
        self._certificate = self._make(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=0), ())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _make(self, name: x509.Name, key: ec.EllipticCurvePublicKey, constraints: x509.BasicConstraints, hosts: tuple[str, ...]) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(
            self._name, name, key, x509.random_serial_number(), now - datetime.timedelta(1), now + datetime.timedelta(1)
        )
        builder = builder.add_extension(constraints, critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        else:
            usage = dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
            signs = x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)
            builder = builder.add_extension(signs, critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def context(self, *hosts: str) -> ssl.SSLContext:
        """Of a server that these are the names of."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        made = self._make(name, key.public_key(), x509.BasicConstraints(ca=False, path_length=None), hosts)
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as f:
            f.write(secret + made.public_bytes(serialization.Encoding.PEM))
            f.flush()
            context.load_cert_chain(f.name)
        return context


@asynccontextmanager
async def site(files: Mapping[str, bytes], context: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Files by path; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, path, *_ = head.decode("latin-1").split()
            body = files.get(path.partition("?")[0])
            kind = b"text/html" if path.endswith("/") else b"application/octet-stream"
            status = b"404 Not Found" if body is None else b"200 OK"
            told = body or b""
            writer.write(b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, kind, len(told)))
            writer.write(told if method != "HEAD" else b"")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def wheels() -> Path:
    """A folder of real wheels, fetched with this computer's pip when a test first wants them, and kept."""
    mark = hashlib.sha256(" ".join(WHEELS).encode()).hexdigest()[:12]
    folder = cache_folder() / "test-wheels" / mark
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--dest",
                f"{partial}/all",
                "--only-binary=:all:",
                "--python-version",
                "3.13",
            ]
            subprocess.run([*command, *(part for name in _PLATFORMS for part in ("--platform", name)), *WHEELS], check=True, timeout=300)
            Path(partial, "all").rename(folder)
    return folder


def package_index(folder: Path) -> dict[str, bytes]:
    """The wheels as an index of the simple kind."""
    files: dict[str, bytes] = {}
    for wheel in sorted(folder.glob("*.whl")):
        project = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        files[f"/wheels/{wheel.name}"] = content = wheel.read_bytes()
        link = f'<a href="/wheels/{wheel.name}#sha256={hashlib.sha256(content).hexdigest()}">{wheel.name}</a>\n'
        page = f"/simple/{project}/"
        files[page] = files.get(page, b"<!DOCTYPE html>\n") + link.encode()
    return files


def git_repository() -> dict[str, bytes]:
    """One commit, as files that git reads over plain HTTP, below /repo.git."""
    with tempfile.TemporaryDirectory() as folder:
        run = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
        Path(folder, "readme.txt").write_text("from a repository\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"], ["update-server-info"]):
            subprocess.run([*run, *words], check=True)
        top = Path(folder, ".git")
        return {f"/repo.git/{path.relative_to(top)}": path.read_bytes() for path in top.rglob("*") if path.is_file()}
