"""Client certificates: which of several CAs signed the one that a connection showed, and whether it holds now.

TLS has verified the certificate against all client CAs together (one listener serves users and the front proxy alike), so
who vouches for it must be settled here, per pool. Follows k8s.io/apiserver/pkg/authentication/request/x509 (Verify).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tetrapod.generic.certificates import faults
from tetrapod.generic.request import Request

_CACHE_LIMIT: Final = 4096
_CLIENT_USAGES: Final = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})


class BadCertificate(Exception):
    """The certificate is not one of this pool's, or does not hold now; the text says why."""


class CertificatePool:
    """The CAs that may sign a kind of client certificate. Verdicts are cached by the certificate's bytes.

    What a certificate was signed with is remembered as well: a TLS session that is taken up again shows the client's own only.
    """

    def __init__(self, pem: bytes) -> None:
        self._authorities: Sequence[x509.Certificate] = ()
        self._anchors: frozenset[bytes] = frozenset()
        self._verdicts: dict[bytes, x509.Certificate | BadCertificate] = {}
        self._chains: dict[bytes, tuple[bytes, ...]] = {}
        self.replace(pem)

    def replace(self, pem: bytes) -> None:
        """Put other CAs in place (the files were reloaded)."""
        self._authorities = x509.load_pem_x509_certificates(pem) if pem.strip() else ()
        self._anchors = frozenset(authority.public_bytes(Encoding.DER) for authority in self._authorities)
        self._verdicts.clear()

    def client_of(self, request: Request) -> x509.Certificate | None:
        """The certificate that a request came with; None if it came with none.

        Raises:
            BadCertificate: TLS would not trust it, or `verify` says so.
        """
        if request.peer_objection:
            raise BadCertificate(request.peer_objection)
        return self.verify(request.peer_certificates) if request.peer_certificates else None

    def verify(self, chain: tuple[bytes, ...], now: datetime | None = None) -> x509.Certificate:
        """The parsed certificate of the client, the first of those that TLS verified.

        Raises:
            BadCertificate: signed by nobody here, expired, not yet valid, or not meant for clients.
        """
        der = chain[0]
        if len(chain) > 1 and der not in self._chains:
            if len(self._chains) >= _CACHE_LIMIT:
                self._chains.clear()
            self._chains[der] = chain
            self._verdicts.pop(der, None)
        verdict = self._verdicts.get(der)
        if verdict is None:
            verdict = self._judge(self._chains.get(der, chain))
            if len(self._verdicts) >= _CACHE_LIMIT:
                self._verdicts.clear()
            self._verdicts[der] = verdict
        if isinstance(verdict, BadCertificate):
            raise verdict
        moment = now or datetime.now(UTC)
        if not verdict.not_valid_before_utc <= moment <= verdict.not_valid_after_utc:
            raise BadCertificate("x509: certificate has expired or is not yet valid")
        return verdict

    def _judge(self, chain: tuple[bytes, ...]) -> x509.Certificate | BadCertificate:
        """An authority of ours in a chain that TLS has verified vouches for all before it."""
        try:
            certificate = x509.load_der_x509_certificate(chain[0])
        except (ValueError, x509.InvalidVersion):
            return BadCertificate(faults.of_certificate(chain[0]))
        if self._anchors.isdisjoint(chain) and not any(_signed_by(certificate, authority) for authority in self._authorities):
            return BadCertificate("x509: certificate signed by unknown authority")
        return certificate if _for_clients(certificate) else BadCertificate("x509: certificate specifies an incompatible key usage")


def _signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    if certificate == authority:  # a leaf that is trusted itself
        return True
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _for_clients(certificate: x509.Certificate) -> bool:
    """A certificate that names its uses must name this one."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:
        return False
    return any(usage in _CLIENT_USAGES for usage in usages)
