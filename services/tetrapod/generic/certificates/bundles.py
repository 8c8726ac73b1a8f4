"""Bundles of authorities, read as Go reads them.

Upstream: k8s.io/client-go/transport (rootCertPool, createErrorParsingCAData), crypto/x509's AppendCertsFromPEM.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----[ \t\r]*\n?", re.DOTALL)
_CERTIFICATE: Final = b"CERTIFICATE"


class UnusableBundle(ValueError):
    """Nothing in it can be believed; in upstream's words."""


def authorities(bundle: bytes) -> str:
    """The certificates of a bundle as PEM; those that do not parse are passed over, as long as one does. Raises UnusableBundle."""
    blocks = list(_BLOCK.finditer(bundle))
    certificates = [found[0].decode("latin-1") for found in blocks if found[1] == _CERTIFICATE]
    if good := [text for text in certificates if _loads(text)]:
        return "\n".join(good)
    if certificates:
        text = "failed to parse certificate: x509: malformed certificate"
    elif blocks and blocks[-1].end() == len(bundle):
        text = "no valid certificate authority data seen"
    else:
        text = "unable to parse bytes as PEM block"
    raise UnusableBundle(f"unable to load root certificates: {text}")


def _loads(block: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
    except (ssl.SSLError, ValueError):
        return False
    return True
