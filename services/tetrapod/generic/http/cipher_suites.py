"""Go's names of TLS versions and cipher suites, and their translation to OpenSSL's names.

Cipher suites of TLS 1.3 are accepted and always enabled, as in Go.
Upstream: k8s.io/component-base/cli/flag/ciphersuites_flag.go
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_TLS13: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    # Go classifies these as insecure
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
}
_BROKEN: Final = frozenset(
    {
        "TLS_RSA_WITH_RC4_128_SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    }
)
"""Suites that Go still offers, but OpenSSL is built without."""


def tls_version(name: str) -> ssl.TLSVersion:
    """Return the TLS version for the value of --tls-min-version, such as `VersionTLS13`; TLS 1.2 for "".

    Raises:
        ValueError: the version is unknown. The text is upstream's.
    """
    version = VERSIONS.get(name or "VersionTLS12")
    if version is None:
        raise ValueError(f"unknown tls version {go_quote(name)}")
    return version


def openssl_ciphers(names: Sequence[str]) -> str:
    """Return OpenSSL's names of the cipher suites for TLS 1.2 and earlier, joined by colons.

    Args:
        names: Go's names. Suites of TLS 1.3 are accepted, but not part of the result: they are always enabled.

    Raises:
        ValueError: a suite is unknown (with upstream's text), or OpenSSL does not offer it because it is broken.
    """
    for name in names:
        if name in _BROKEN:
            raise ValueError(f"Cipher suite {name} is broken and not offered: leave it out of --tls-cipher-suites")
        if name not in _SUITES and name not in _TLS13:
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
    return ":".join(dict.fromkeys(_SUITES[name] for name in names if name in _SUITES))
