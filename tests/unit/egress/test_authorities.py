"""Whom the door believes: a server that proves its name with a certificate of somebody whom this computer trusts, and no other."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everforge.egress.authorities import trusting
from everforge.egress.authority import Authority
from kit.doorway import own_authority, serving

HOST = "api.example.com"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The one authority that this computer trusts."""
    path = tmp_path / "bundle.pem"
    path.write_text(own_authority().certificate)
    return path


@asynccontextmanager
async def server(authority: Authority, name: str) -> AsyncGenerator[int]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await writer.start_tls(authority.context(name))
        writer.write(b"hello")
        await reader.read()

    async with serving(greet) as port:
        yield port


async def greeted(port: int, trust: ssl.SSLContext) -> bytes:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=HOST)
        try:
            return await reader.readexactly(5)
        finally:
            writer.transport.abort()


async def test_a_server_that_proves_its_name_is_believed(bundle: Path) -> None:
    async with server(own_authority(), HOST) as port:
        assert await greeted(port, trusting(bundle)) == b"hello"


@pytest.mark.parametrize("has_bundle", [True, False])
async def test_a_certificate_of_somebody_unknown_is_not_believed(bundle: Path, has_bundle: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stranger = Authority.in_folder(Path(folder))
    async with server(stranger, HOST) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await greeted(port, trusting(bundle if has_bundle else None))


async def test_a_certificate_for_another_name_is_not_believed(bundle: Path) -> None:
    async with server(own_authority(), "other.example.com") as port:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            await greeted(port, trusting(bundle))
