"""The authenticator of client certificates: the common name is the user, organizations are the groups.

Upstream: k8s.io/apiserver/pkg/authentication/request/x509/x509.go (CommonNameUserConversion). The subject attribute
1.3.6.1.4.1.57683.2 is the uid, and the certificate's fingerprint is the credential id.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.interface import Authenticated, Rejected
from tetrapod.generic.authentication.serviceaccount import CREDENTIAL_ID_KEY
from tetrapod.generic.certificates.rejections import identified
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.request import Request
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.boundedcache import BoundedCache
from tetrapod.machinery.user import UserInfo, weigh_user

UID_OID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_EXPIRATION: Final = Histogram(
    "apiserver_client_certificate_expiration_seconds",
    "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    (),
    tuple(3600.0 * hours for hours in (0, 0.5, 1, 2, 6, 12, 24, 48, 96, 168, 720, 2160, 4320, 8640)),
)


class X509Authenticator:
    """The authenticator of client certificates. Users are cached by certificate.

    It returns None for a request without a certificate and for a certificate without a common name. It returns
    `Rejected` if the certificate is not trusted or its uid is invalid.

    Args:
        pool: the CAs of client certificates.
        reserved_groups: groups that are removed from the user. A server to which users connect passes SERVICES_GROUP,
            so that no certificate makes a user a peer service.
    """

    def __init__(self, pool: CertificatePool, *, reserved_groups: Collection[str] = ()) -> None:
        self._pool = pool
        self._reserved = frozenset(reserved_groups)
        self._users: BoundedCache[bytes, UserInfo] = BoundedCache(
            count=4096,
            size=16 << 20,
            largest=256 << 10,
            weigh_entry=lambda der, user: len(der) + weigh_user(user) + 200,
        )
        """Users by the DER of their certificates."""

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None:
        trusted = self._pool.client_of(request)
        if trusted is None:
            return None
        if isinstance(trusted, str):
            if not request.peer_certificates:  # the TLS handshake rejected it, and the error already names it
                return Rejected((trusted,))
            return Rejected((identified(request.peer_certificates[0], trusted),))
        _EXPIRATION.observe((), trusted.expires - time.time())
        der = request.peer_certificates[0]
        user = self._users.get(der) or self._users.recall(der)
        if user is None:
            try:
                user = self._users.keep(der, user_of(trusted.certificate, self._reserved))
            except ValueError as error:
                return Rejected((str(error),))
        return Authenticated(user) if user.name else None


def user_of(certificate: x509.Certificate, reserved_groups: Collection[str] = ()) -> UserInfo:
    """Return the user that the subject of a certificate names.

    The name is the last common name, or "" if the subject has no common name. The groups are the organizations without
    `reserved_groups`. The extra value of the credential id is the SHA-256 fingerprint of the certificate. The uid is
    read only if the feature gate AllowParsingUserUIDFromCertAuth is enabled.

    Raises:
        ValueError: the subject has several uids or an empty one.
    """
    subject = certificate.subject
    names = _texts(subject, NameOID.COMMON_NAME)
    uids = _texts(subject, UID_OID) if feature_gates.enabled("AllowParsingUserUIDFromCertAuth") else []
    if len(uids) > 1 or uids == [""]:
        raise ValueError("x509: the subject must name one uid at most, and none that is empty")
    groups = tuple(g for g in _texts(subject, NameOID.ORGANIZATION_NAME) if g not in reserved_groups)
    fingerprint = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    # As in Go, the last of several common names counts.
    return UserInfo(
        names[-1] if names else "",
        uid=uids[0] if uids else "",
        groups=groups,
        extra={CREDENTIAL_ID_KEY: (f"X509SHA256={fingerprint}",)},
    )


def _texts(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [
        v if isinstance(v := attribute.value, str) else v.decode("utf-8", "replace")
        for attribute in subject.get_attributes_for_oid(oid)
    ]
