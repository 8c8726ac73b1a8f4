"""Metrics of how many issued certificates have the requested duration.

Upstream: pkg/registry/certificates/certificates/storage/metrics.go.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Final

from tetrapod.generic.metrics.counters import Counter
from tetrapod.machinery.gvk import Object

_SIGNER: Final = ("signerName",)
_SLICED: Final = "sliced by signer (only kubernetes.io signer names are specifically identified)"
_REQUESTED: Final = Counter(
    "apiserver_certificates_registry_csr_requested_duration_total",
    f"Total number of issued CSRs with a requested duration, {_SLICED}",
    _SIGNER,
)
_HONORED: Final = Counter(
    "apiserver_certificates_registry_csr_honored_duration_total",
    f"Total number of issued CSRs with a requested duration that was honored, {_SLICED}",
    _SIGNER,
)
_BACKDATED: Final = timedelta(minutes=5)


def newly_issued(new: Object, old: Object) -> bool:
    """Return whether the update adds the certificate of a request that sets expirationSeconds."""
    return (
        old["spec"].get("expirationSeconds") is not None
        and not (old.get("status") or {}).get("certificate")
        and bool((new.get("status") or {}).get("certificate"))
    )


def count_issued(request: Object) -> None:
    """Count the certificate of a request, and whether its lifetime is within 5 minutes plus 5 % of the requested one.

    Args:
        request: the CertificateSigningRequest, with a certificate and expirationSeconds.
    """
    from cryptography import x509

    spec = request["spec"]
    signer_name = spec.get("signerName") or ""
    labels = (signer_name if signer_name.startswith("kubernetes.io/") else "other",)
    _REQUESTED.add(labels)
    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(request["status"]["certificate"]))
    except ValueError:
        return
    requested = timedelta(seconds=spec["expirationSeconds"])
    if (
        abs(requested - (certificate.not_valid_after_utc - certificate.not_valid_before_utc))
        < _BACKDATED + requested / 20
    ):
        _HONORED.add(labels)
