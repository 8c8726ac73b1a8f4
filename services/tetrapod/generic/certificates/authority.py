"""Certificate authorities and the certificates that they issue.

Keys are ECDSA P-256, because generating RSA keys would slow down the first start noticeably. Importing this module
imports `cryptography` (0.1 s).
Upstream: k8s.io/client-go/util/cert and kubeadm's certs phase
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE: Final = datetime.timedelta(days=3650)
LEAF_LIFE: Final = datetime.timedelta(days=365)
_BACKDATED: Final = datetime.timedelta(minutes=5)
"""Certificates are valid from this long before their creation, because clocks differ."""


class Authority:
    """A certificate authority, with its certificate and private key; it issues serving and client certificates."""

    def __init__(self, certificate: x509.Certificate, key: Any) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, common_name: str) -> Authority:
        """Create a self-signed CA with a new key and this common name. It is valid for ten years."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(name, name, key.public_key(), CA_LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Authority:
        """Return the CA with this certificate and key, both PEM and the key unencrypted.

        Raises:
            ValueError: the certificate or the key is malformed.
        """
        return cls(x509.load_pem_x509_certificate(certificate), load_pem_private_key(key, None))

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self._key)

    def issue_server(
        self, common_name: str, hosts: Iterable[str], life: datetime.timedelta = LEAF_LIFE
    ) -> tuple[bytes, bytes]:
        """Issue a serving certificate for DNS names and IP addresses.

        Args:
            common_name: the common name.
            hosts: the DNS names and IP addresses.
            life: how long it is valid from now.

        Returns:
            The certificate and its new key as PEM.
        """
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(common_name, (), (ExtendedKeyUsageOID.SERVER_AUTH,), life, alternatives)

    def issue_client(
        self, user: str, groups: Sequence[str] = (), life: datetime.timedelta = LEAF_LIFE
    ) -> tuple[bytes, bytes]:
        """Issue a client certificate with the user as CN and the groups as O, which is valid for `life` from now.

        Returns:
            The certificate and its new key as PEM.
        """
        return self._issue(user, groups, (ExtendedKeyUsageOID.CLIENT_AUTH,), life, None)

    def issue_peer(
        self, common_name: str, hosts: Iterable[str], life: datetime.timedelta = LEAF_LIFE
    ) -> tuple[bytes, bytes]:
        """Issue a certificate for both serving and client authentication.

        Members of etcd use such a certificate for connections to each other.

        Args:
            common_name: the common name.
            hosts: the DNS names and IP addresses.
            life: how long it is valid from now.

        Returns:
            The certificate and its new key as PEM.
        """
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._issue(
            common_name, (), usages, life, x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        )

    def issued(self, certificate: bytes) -> bool:
        """Return whether this CA has signed a PEM certificate; False also if it is malformed.

        The expiry is not checked.
        """
        try:
            x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _issue(
        self,
        common_name: str,
        organizations: Sequence[str],
        usages: Sequence[x509.ObjectIdentifier],
        life: datetime.timedelta,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = _builder(x509.Name(names), self._certificate.subject, key.public_key(), life)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(Encoding.PEM), key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: Any, life: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def key_pem(key: Any) -> bytes:
    """Return a private key as unencrypted PEM (PKCS #8)."""
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def signing_key() -> tuple[bytes, bytes]:
    """Create an RSA key for service account tokens. Return the private and the public key as PEM.

    It is RSA because all consumers of service account tokens support RS256.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key_pem(key), key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def expiry(certificate: bytes) -> float:
    """Return when a PEM certificate expires, in seconds since the epoch. Raises ValueError if it is malformed."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def hosts(certificate: bytes) -> list[str]:
    """Return the DNS names, then the IP addresses of a PEM certificate; [] if it has none.

    Raises ValueError if it is malformed.
    """
    try:
        names = (
            x509.load_pem_x509_certificate(certificate)
            .extensions.get_extension_for_class(x509.SubjectAlternativeName)
            .value
        )
    except x509.ExtensionNotFound:
        return []
    return [*names.get_values_for_type(x509.DNSName), *(str(a) for a in names.get_values_for_type(x509.IPAddress))]


def groups(certificate: bytes) -> list[str]:
    """Return the organizations of a PEM certificate, which are the groups of a client.

    Raises ValueError if it is malformed.
    """
    names = x509.load_pem_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [str(name.value) for name in names]
