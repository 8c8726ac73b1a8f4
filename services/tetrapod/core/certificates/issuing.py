"""Certificates that a CA issues for certificate requests.

Upstream: pkg/controller/certificates/authority/{authority,policies}.go; Go's crypto/x509, CreateCertificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tetrapod.core.certificates.kubelet_requests import alternative_names

if TYPE_CHECKING:
    from cryptography import x509

_BACKDATED: Final = timedelta(minutes=5)
"""Certificates are valid from this long before their creation, because clocks differ."""
_SHORT: Final = timedelta(hours=8)
"""Certificates with a longer lifetime end earlier by `_BACKDATED`, so that the lifetime includes the backdating."""
_SHORTEST: Final = timedelta(minutes=10)
_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED_USAGES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
"""Usages of certificates, in the order in which Go writes them."""
_SUBJECT: Final = ("2.5.4.6", "2.5.4.10", "2.5.4.11", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.17", "2.5.4.3", "2.5.4.5")
"""The attributes of a subject that Go keeps, in its order: C, O, OU, L, ST, street, postal code, CN, serial number."""


class IssueError(ValueError):
    """The error of a request for which the CA cannot issue a certificate."""


def lifetime(requested: int | None, longest: timedelta) -> timedelta:
    """Return how long a certificate is valid: as long as requested, but at least 10 minutes and at most `longest`.

    Args:
        requested: spec.expirationSeconds; None for `longest`.
        longest: the value of --cluster-signing-duration.

    Upstream: pkg/controller/certificates/signer/signer.go, signer.duration
    """
    if requested is None:
        return longest
    duration = timedelta(seconds=requested)
    return longest if duration > longest else max(duration, _SHORTEST)


def issue(
    request: x509.CertificateSigningRequest,
    authority: tuple[x509.Certificate, Any],
    usages: Sequence[str],
    life: timedelta,
    moment: datetime,
) -> bytes:
    """Return a certificate for a request as PEM, with its subject, alternative names and key.

    Args:
        request: the request. Its extensions other than the alternative names are dropped.
        authority: the certificate and the private key of the CA.
        usages: the usages of the certificate, spec.usages.
        life: how long it is valid, at most until the CA expires.
        moment: the current time.

    Raises:
        IssueError: the CA has expired.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate, key = authority
    end = certificate.not_valid_after_utc
    begin = moment - _BACKDATED
    if begin >= end:
        raise IssueError(f"the signer has expired: NotAfter={end:%Y-%m-%d %H:%M:%S +0000 UTC}")
    if moment >= end:
        text = "refusing to sign a certificate that expired in the past"
        raise IssueError(f"{text}: NotAfter={end:%Y-%m-%d %H:%M:%S +0000 UTC}")
    subject = _subject(request.subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(certificate.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(min(end, moment + life if life < _SHORT else begin + life))
    )
    for extension, critical in _extensions(request, subject, certificate, usages):
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, _hash(key)).public_bytes(Encoding.PEM)


def _extensions(
    request: x509.CertificateSigningRequest, subject: x509.Name, authority: x509.Certificate, usages: Sequence[str]
) -> list[tuple[x509.ExtensionType, bool]]:
    """Return the extensions of a certificate in Go's order, as pairs of an extension and whether it is critical."""
    from cryptography import x509

    extensions: list[tuple[x509.ExtensionType, bool]] = []
    bits = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if bits:
        # Only certificates with key agreement can have the last two bits; cryptography cannot encode them otherwise.
        agreement = "key_agreement" in bits
        flags = {bit: bit in bits and (agreement or not bit.endswith("_only")) for bit in _KEY_USAGES.values()}
        extensions.append((x509.KeyUsage(**flags), True))
    extended = dict.fromkeys(oid for usage, oid in _EXTENDED_USAGES.items() if usage in usages)
    if extended:
        extensions.append((x509.ExtendedKeyUsage([x509.ObjectIdentifier(oid) for oid in extended]), False))
    extensions.append((x509.BasicConstraints(ca=False, path_length=None), True))
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        key_identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        extensions.append((key_identifier, False))
    except x509.ExtensionNotFound:
        pass
    if names := [name for listed in alternative_names(request).values() for name in listed]:
        extensions.append((x509.SubjectAlternativeName(names), not list(subject)))
    return extensions


def _subject(name: x509.Name) -> x509.Name:
    from cryptography import x509

    attributes = [name.get_attributes_for_oid(x509.ObjectIdentifier(oid)) for oid in _SUBJECT]
    # Go keeps the last common name and the last serial number. Values of one attribute become one set.
    chosen = [a[-1:] if oid in ("2.5.4.3", "2.5.4.5") else a for oid, a in zip(_SUBJECT, attributes, strict=True) if a]
    return x509.Name([x509.RelativeDistinguishedName(list(dict.fromkeys(values))) for values in chosen])


def _hash(key: Any) -> Any:
    """Return the hash algorithm with which Go's crypto/x509 signs certificates by the CA's private key.

    The result is None for Ed25519, which needs none.
    """
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return {384: hashes.SHA384(), 521: hashes.SHA512()}.get(key.curve.key_size, hashes.SHA256())
    return hashes.SHA256()
