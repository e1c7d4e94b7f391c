"""Certificates that this computer trusts and an image does not: those of a company, or of a proxy on the way.

Machines must trust them too, or nothing that such a proxy opens could be reached from inside.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)
CERTIFICATES_MAX = 100
BUNDLE_BYTES_MAX = 8 * 1024 * 1024
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+?-----END CERTIFICATE-----")


def host_bundle(pip_certificates: str = "", environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file that programs on this computer take them from, pip before others."""
    named = [pip_certificates, *(environment.get(name, "") for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"))]
    usual = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    return next((path for text in [*named, usual] if text and (path := Path(text)).is_file()), None)


def extra_certificates(host: Path | None, image: Path) -> str:
    """Of the host's, those that the image lacks, as PEM."""
    known = set(_read(image))
    extra = [pem for der, pem in (_read(host) if host else {}).items() if der not in known]
    if len(extra) > CERTIFICATES_MAX:
        log.warning("this computer trusts %d certificates that images do not know; machines get the first %d", len(extra), CERTIFICATES_MAX)
    return "".join(f"{pem}\n" for pem in extra[:CERTIFICATES_MAX])


def trusting(bundle: Path | None) -> ssl.SSLContext:
    """Whom this computer's programs trust."""
    return ssl.create_default_context(cafile=str(bundle) if bundle else None)


def _read(path: Path) -> dict[bytes, str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as f:
            text = f.read(BUNDLE_BYTES_MAX)
    except OSError:
        return {}
    found: dict[bytes, str] = {}
    for pem in _PEM.findall(text):
        try:
            found[ssl.PEM_cert_to_DER_cert(pem)] = pem
        except ValueError:
            continue
    return found
