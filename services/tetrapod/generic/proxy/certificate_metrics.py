"""Metrics of connections that fail because the server's certificate has no SANs or is signed with SHA-1.

Upstream: k8s.io/apiserver/pkg/util/x509metrics
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter

_SERVERS: Final = "in their serving certificate OR the number of connection failures due to the"
_EITHER: Final = "(either/or, based on the runtime environment)"
_NO_NAMES: Final = "certificate relies on legacy Common Name field"
_WEAK: Final = "digest algorithm too weak"


class CertificateFailures:
    """Two counters of connections that failed because of the server's certificate: it has no SAN, or a SHA-1 signature.

    There is an instance for each kind of client, such as the aggregator.

    Args:
        prefix: the beginning of the metrics' names.
    """

    def __init__(self, prefix: str) -> None:
        self._missing_san = Counter(
            f"{prefix}_x509_missing_san_total",
            f"Counts the number of requests to servers missing SAN extension {_SERVERS} lack of x509 certificate SAN "
            f"extension missing {_EITHER}",
        )
        self._sha1 = Counter(
            f"{prefix}_x509_insecure_sha1_total",
            f"Counts the number of requests to servers with insecure SHA1 signatures {_SERVERS} insecure SHA1 "
            f"signatures {_EITHER}",
        )

    def count(self, error: Exception) -> None:
        """Count a failed connection if the text of its error says that the SAN is missing or the signature is SHA-1.

        Ignore all other errors.
        """
        text = str(error)
        if _NO_NAMES in text:
            self._missing_san.add()
        elif _WEAK in text:
            self._sha1.add()
