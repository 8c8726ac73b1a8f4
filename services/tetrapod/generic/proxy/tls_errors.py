"""Errors of TLS connections to backends, with Go's texts.

Upstream: Go's crypto/tls, alert.go.
"""

from __future__ import annotations

import ssl
from typing import Final

_NOT_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNSUPPORTED_PROTOCOL", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)
_ALERTS: Final = {
    "bad record mac": "bad record MAC",
    "certificate expired": "expired certificate",
    "certificate revoked": "revoked certificate",
    "certificate unknown": "unknown certificate",
    "decode error": "error decoding message",
    "decrypt error": "error decrypting message",
    "insufficient security": "insufficient security level",
    "protocol version": "protocol version not supported",
    "unknown ca": "unknown certificate authority",
    "user cancelled": "user canceled",
}
"""Go's texts of the alerts that OpenSSL calls otherwise."""


def tls_text(error: ssl.SSLError) -> str:
    """Return Go's text of an error of a handshake or of an established connection."""
    if error.reason in _NOT_TLS:
        return "tls: first record does not look like a TLS handshake"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "EOF"
    text = openssl_text(error)
    _, is_alert, alert = text.partition("alert ")
    return f"remote error: tls: {_ALERTS.get(alert, alert)}" if is_alert else f"tls: {text}"


def lost_text(error: Exception) -> str:
    """Return the text of the error with which an established connection ended.

    With TLS 1.3, a server rejects a client certificate after the client's handshake.
    """
    return tls_text(error) if isinstance(error, ssl.SSLError) else f"connection lost: {error}"


def openssl_text(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in words. Python has no `reason` for some, such as that of alert 120."""
    if error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error.args[-1]).removeprefix("[SSL] ").rpartition(" (_ssl")[0] or str(error)
