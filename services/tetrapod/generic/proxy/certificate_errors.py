"""Error texts about a backend's certificate, as Go's crypto/x509 gives them.

Importing this module imports `cryptography`.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence

from cryptography import x509


def certificate_error(der: bytes, name: str) -> str:
    """Return Go's error about the validity period of a certificate, or else about its names; "" if both are valid.

    Args:
        der: the certificate.
        name: the DNS name or IP address for which the certificate must be valid.
    """
    certificate = x509.load_der_x509_certificate(der)
    return _validity_error(certificate, datetime.datetime.now(datetime.UTC)) or _name_error(certificate, name)


def _validity_error(certificate: x509.Certificate, now: datetime.datetime) -> str:
    text = "x509: certificate has expired or is not yet valid: current time"
    if now < certificate.not_valid_before_utc:
        return f"{text} {_go_time(now)} is before {_go_time(certificate.not_valid_before_utc)}"
    if now > certificate.not_valid_after_utc:
        return f"{text} {_go_time(now)} is after {_go_time(certificate.not_valid_after_utc)}"
    return ""


def _go_time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name_error(certificate: x509.Certificate, name: str) -> str:
    try:
        listed = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        listed = None
    addresses = [str(a) for a in listed.get_values_for_type(x509.IPAddress)] if listed is not None else []
    hosts = listed.get_values_for_type(x509.DNSName) if listed is not None else []
    try:
        address = str(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return _host_error(certificate, hosts, name, has_names=bool(hosts or addresses))
    if not addresses:
        return f"x509: cannot validate certificate for {name} because it doesn't contain any IP SANs"
    return "" if address in addresses else f"x509: certificate is valid for {', '.join(addresses)}, not {name}"


def _host_error(certificate: x509.Certificate, hosts: Sequence[str], name: str, *, has_names: bool) -> str:
    if any(_matches(host, name) for host in hosts):
        return ""
    if not has_names and certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME):
        return "x509: certificate relies on legacy Common Name field, use SANs instead"
    if not hosts:
        return f"x509: certificate is not valid for any names, but wanted to match {name}"
    return f"x509: certificate is valid for {', '.join(hosts)}, not {name}"


def _matches(pattern: str, name: str) -> bool:
    pattern_labels, name_labels = pattern.lower().rstrip(".").split("."), name.lower().rstrip(".").split(".")
    return len(pattern_labels) == len(name_labels) and all(
        pattern_label == name_label or (i == 0 and pattern_label == "*" and len(name_label) > 0)
        for i, (pattern_label, name_label) in enumerate(zip(pattern_labels, name_labels, strict=True))
    )
