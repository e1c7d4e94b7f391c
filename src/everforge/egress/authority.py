"""The door's own certificate authority.

It opens TLS for hosts that have a secret and for no others. Machines of this server trust it, and nobody else does.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from everforge.wire.errors import StoreDamaged

from .vault import read_or_make

FILE = "egress-authority.pem"  # key and certificate
NAME = "Everforge egress door of this server"
YEARS = 20
LEAF_DAYS = 365
DAY_SECONDS = 24 * 3600.0
CONTEXTS_MAX = 500


class Authority:
    def __init__(self, pem: bytes) -> None:
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(pem)
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())  # of this server's life
        self._contexts: dict[str, tuple[float, ssl.SSLContext]] = {}  # and when it was made

    @classmethod
    def in_folder(cls, folder: Path) -> Authority:
        """Made at first use. Raises StoreDamaged when the file is not one."""
        path = folder / FILE
        try:
            return cls(read_or_make(path, _make))
        except (ValueError, AssertionError) as e:
            raise StoreDamaged(f"{path} is not the certificate of this server's egress door: delete it, and another is made ({e})") from e

    @property
    def certificate(self) -> str:
        """For machines to trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")

    def context(self, host: str) -> ssl.SSLContext:
        """To be that host in a machine's eyes. HTTP/1.1 alone: that is what can be read here."""
        now = time.monotonic()
        made_at, context = self._contexts.get(host, (now, None))
        if context is None or now > made_at + LEAF_DAYS / 2 * DAY_SECONDS:
            if len(self._contexts) >= CONTEXTS_MAX:
                self._contexts.clear()
            context = self._new_context(host)
            self._contexts[host] = now, context
        return context

    def _new_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.NamedTemporaryFile("wb") as file:  # it can be given in no other way; the key lives as long as this process
            file.write(_pem(self._leaf_key) + self._leaf(host).public_bytes(serialization.Encoding.PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _leaf(self, host: str) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        authority = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = (
            _certificate(x509.Name([]), self._certificate.subject, self._leaf_key.public_key(), now, datetime.timedelta(days=LEAF_DAYS))
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())


def _make() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        _certificate(name, name, key.public_key(), now, datetime.timedelta(days=YEARS * 365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _pem(key) + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, life: datetime.timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks differ
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
