"""The subject alternative names of certificates and certificate requests, as Go reads them.

Upstream: Go's crypto/x509/parser.go, parseSANExtension and domainNameValid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tetrapod.machinery.golang.urls import BadUrl, parse

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateSigningRequest, SubjectAlternativeName


def alternative_names(source: Certificate | CertificateSigningRequest) -> SubjectAlternativeName | None:
    """Return the alternative names of a certificate or request, or None if it has none.

    Raises:
        ValueError: Go rejects them: text that is not ASCII, or a URI that is malformed or has an invalid host.
    """
    from cryptography import x509  # imported late: only clusters that sign requests need it

    try:
        names = source.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    for uri in names.get_values_for_type(x509.UniformResourceIdentifier):
        try:
            host = parse(uri).host
        except BadUrl as error:
            raise ValueError(str(error)) from None
        if host and not _is_domain(host):
            raise ValueError("invalid domain")
    return names


def _is_domain(host: str) -> bool:
    return all(host.split(".")) and all("!" <= character <= "~" for character in host)


def dns_names(names: SubjectAlternativeName | None) -> Iterator[str]:
    """Yield the DNS names among alternative names."""
    from cryptography import x509

    yield from names.get_values_for_type(x509.DNSName) if names is not None else ()


def mail_addresses(names: SubjectAlternativeName | None) -> Iterator[str]:
    """Yield the mail addresses among alternative names."""
    from cryptography import x509

    yield from names.get_values_for_type(x509.RFC822Name) if names is not None else ()
