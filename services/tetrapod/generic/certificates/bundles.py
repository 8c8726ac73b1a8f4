"""CA bundles, parsed as Go does.

Upstream: k8s.io/client-go/transport (rootCertPool, createErrorParsingCAData), crypto/x509's AppendCertsFromPEM.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----[ \t\r]*\n?", re.DOTALL)
_CERTIFICATE: Final = b"CERTIFICATE"


class UnusableBundle(ValueError):
    """The error of a CA bundle without a usable certificate. The text is upstream's."""


def authorities(bundle: bytes) -> str:
    """Return the certificates of a CA bundle, joined as PEM. Malformed ones and other PEM blocks are left out.

    Raises:
        UnusableBundle: no certificate could be parsed.
    """
    blocks = list(_BLOCK.finditer(bundle))
    certificates = [block[0].decode("latin-1") for block in blocks if block[1] == _CERTIFICATE]
    if valid := [text for text in certificates if _loads(text)]:
        return "\n".join(valid)
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
