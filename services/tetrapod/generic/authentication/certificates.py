"""Verification of client certificates against one of several CA pools.

TLS has verified the certificate against all client CAs together, because one listener serves users and front proxies.
Each authenticator therefore checks whether its own pool trusts the certificate.
Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go, Verify
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tetrapod.generic.certificates.rejections import INCOMPATIBLE_USAGE, UNKNOWN_AUTHORITY, validity_error
from tetrapod.generic.http.request import Request
from tetrapod.machinery.boundedcache import BoundedCache
from tetrapod.machinery.golang import x509_errors

_PARSED: Final = 4
"""Estimated bytes of a parsed certificate and its DER, for each byte of the DER."""
_CLIENT_USAGES: Final = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


class TrustedCertificate(NamedTuple):
    """A client certificate that a pool trusts.

    Its validity is from `begins` to `expires`, in seconds since the epoch. It may have expired since it was verified.
    """

    certificate: x509.Certificate
    begins: float
    expires: float


class CertificatePool:
    """The CAs that may sign one kind of client certificate: those of users, or those of front proxies.

    The result of a verification is cached by the certificate's DER. The chain of a certificate is cached as well,
    because a resumed TLS session contains only the certificate of the client.

    Args:
        pem: the CA certificates; empty for a pool that trusts none.

    Raises:
        ValueError: `pem` is not empty, and contains no certificate or a malformed one.
    """

    def __init__(self, pem: bytes) -> None:
        self._authorities: Sequence[x509.Certificate] = ()
        self._anchors: frozenset[bytes] = frozenset()
        self._verdicts: BoundedCache[bytes, TrustedCertificate | str] = BoundedCache(
            count=4096, size=16 << 20, largest=256 << 10, weigh_entry=lambda der, _: _PARSED * len(der)
        )
        self._chains: BoundedCache[bytes, tuple[bytes, ...]] = BoundedCache(
            count=4096, size=16 << 20, largest=256 << 10
        )
        self.replace(pem)

    def replace(self, pem: bytes) -> None:
        """Replace the CAs by those in `pem` and clear the cached results. Empty `pem` removes all CAs.

        Raises:
            ValueError: `pem` contains no certificate or a malformed one.
        """
        self._authorities = x509.load_pem_x509_certificates(pem) if pem.strip() else ()
        self._anchors = frozenset(authority.public_bytes(Encoding.DER) for authority in self._authorities)
        self._verdicts.clear()

    def client_of(self, request: Request) -> TrustedCertificate | str | None:
        """Return the client certificate of a request if this pool trusts it.

        The reason for a rejection is returned instead of raised, because the front proxy's pool rejects the certificate
        of every ordinary user.

        Returns:
            The trusted certificate, the text of the reason if it is rejected, or None if the request has no
                certificate.
        """
        if request.certificate_error:
            return request.certificate_error
        return self.verify(request.peer_certificates) if request.peer_certificates else None

    def verify(self, chain: tuple[bytes, ...], now: float | None = None) -> TrustedCertificate | str:
        """Return the first certificate of `chain`, parsed, or the text of the reason why it is rejected.

        It is rejected if it was signed by an unknown CA, is expired or not yet valid, or is not for client
        authentication.

        Args:
            chain: the certificates that TLS verified, as DER, that of the client first.
            now: seconds since the epoch; None for the current time.
        """
        der = chain[0]
        if len(chain) > 1 and der not in self._chains and self._chains.recall(der) is None:
            self._chains.keep(der, chain)
            self._verdicts.discard(der)
        verdict = self._verdicts.get(der) or self._verdicts.recall(der)
        if verdict is None:
            verdict = self._verdicts.keep(der, self._judge(self._chains.recall(der) or chain))
        if isinstance(verdict, str):
            return verdict
        return validity_error(verdict.begins, verdict.expires, time.time() if now is None else now) or verdict

    def _judge(self, chain: tuple[bytes, ...]) -> TrustedCertificate | str:
        """Return the first certificate of `chain`, parsed, or the reason for its rejection.

        Its validity in time is not checked.

        TLS has verified the chain, so a CA of this pool anywhere in the chain suffices. Otherwise one must have signed
        the first certificate.
        """
        try:
            certificate = x509.load_der_x509_certificate(chain[0])
        except (ValueError, x509.InvalidVersion):
            return x509_errors.certificate_error(chain[0])
        if self._anchors.isdisjoint(chain) and not any(
            _signed_by(certificate, authority) for authority in self._authorities
        ):
            return UNKNOWN_AUTHORITY
        if not _for_clients(certificate):
            return INCOMPATIBLE_USAGE
        return TrustedCertificate(
            certificate, certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        )


def _signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    if certificate == authority:  # a leaf certificate that is itself in the pool
        return True
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _for_clients(certificate: x509.Certificate) -> bool:
    """Return whether the extended key usages allow client authentication. A certificate without any is allowed."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:
        return False
    return any(usage in _CLIENT_USAGES for usage in usages)
