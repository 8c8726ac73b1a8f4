"""Error texts about client certificates that are not trusted, as kube-apiserver logs them.

Upstream: crypto/x509/verify.go; staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tetrapod.machinery.timestamps import format_time

if TYPE_CHECKING:
    from cryptography import x509

UNKNOWN_AUTHORITY: Final = "x509: certificate signed by unknown authority"
INCOMPATIBLE_USAGE: Final = "x509: certificate specifies an incompatible key usage"
_UNKNOWN_AUTHORITY_CODES: Final = frozenset({2, 7, 18, 19, 20, 21, 24, 79})
"""OpenSSL's results: no issuer, a wrong signature, self-signed, unable to verify, an invalid CA."""
_INCOMPATIBLE_USAGE_CODE: Final = 26


def rejection_error(der: bytes, code: int, text: str) -> str:
    """Return the error of a client certificate that OpenSSL rejected.

    Args:
        der: the certificate.
        code: OpenSSL's result of the verification.
        text: OpenSSL's text of it, which is used for results that Go does not have.
    """
    certificate = _parsed(der)
    if certificate is None:
        return f"x509: {text}"
    begins, expires = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    reason = validity_error(begins, expires, time.time())
    if not reason:
        reason = f"x509: {text}"
        if code in _UNKNOWN_AUTHORITY_CODES:
            reason = UNKNOWN_AUTHORITY
        elif code == _INCOMPATIBLE_USAGE_CODE:
            reason = INCOMPATIBLE_USAGE
    return _identified(certificate, reason)


def validity_error(begins: float, expires: float, now: float) -> str:
    """Return the error of a certificate that is not valid at a time, or "". All times are seconds since the epoch."""
    if begins <= now <= expires:
        return ""
    relation, limit = ("before", begins) if now < begins else ("after", expires)
    moment = f"current time {_time_text(now)} is {relation} {_time_text(limit)}"
    return f"x509: certificate has expired or is not yet valid: {moment}"


def identified(der: bytes, reason: str) -> str:
    """Return an error that names the certificate by its serial number and keys. If it is malformed, return `reason`."""
    certificate = _parsed(der)
    return reason if certificate is None else _identified(certificate, reason)


def _parsed(der: bytes) -> x509.Certificate | None:
    """Return a certificate with its extensions parsed, or None if it is malformed."""
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(der)
        _ = certificate.extensions
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension):
        return None
    return certificate


def _identified(certificate: x509.Certificate, reason: str) -> str:
    from cryptography import x509

    subject_key = authority_key = b""
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectKeyIdentifier):
            subject_key = extension.value.digest
        elif isinstance(extension.value, x509.AuthorityKeyIdentifier):
            authority_key = extension.value.key_identifier or b""
    keys = f"SKID={subject_key.hex(':').upper()}, AKID={authority_key.hex(':').upper()}"
    return f"verifying certificate SN={certificate.serial_number}, {keys} failed: {reason}"


def _time_text(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
