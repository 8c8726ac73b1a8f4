"""Validation of the status of a PodCertificateRequest, which the signer writes.

Upstream: pkg/apis/certificates/validation/validation.go, ValidatePodCertificateRequestStatusUpdate.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tetrapod.core.certificates.alternative_names import alternative_names, dns_names, mail_addresses
from tetrapod.core.validation.conditions import conditions
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.mail_addresses import is_address
from tetrapod.machinery.golang.pem import blocks
from tetrapod.machinery.gvk import Object

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, SubjectAlternativeName

_DECISIONS: Final = ("Issued", "Denied", "Failed")
_ONE_DECISION: Final = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
_LARGEST_CHAIN: Final = 100 * 1024
_FINAL: Final = "immutable after PodCertificateRequest is issued, denied, or failed"
_ONLY_CONDITIONS: Final = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
_UNDECIDED: Final = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
_CHAIN: Final = "status.certificateChain"
_NOT_BLOCKS: Final = "issued certificate chain must consist entirely of {} PEM blocks"
_TIMES: Final = {
    "notBefore": "must be present and consistent with the issued certificate",
    "notAfter": "must be present and consistent with the issued certificate",
    "beginRefreshAt": "must be present and in the range [notbefore+10min, notafter-10min]",
}
_SKEW: Final = timedelta(minutes=5)
_MARGIN: Final = timedelta(minutes=10)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated status.

    It may only change from undecided to Issued, Denied or Failed, and is immutable afterwards. An issued chain must
    match the requested key and lifetime.
    """
    status, old_status = new.get("status") or {}, old.get("status") or {}
    listed = status.get("conditions") or []
    if errors := _decisions(listed) + conditions(listed, "status.conditions"):
        return errors
    if any(c.get("type") in _DECISIONS and c.get("status") == "True" for c in old_status.get("conditions") or ()):
        return [] if same(status, old_status) else [field.omitted("status", _FINAL)]
    kinds = {c.get("type") for c in listed}
    if kinds & {"Denied", "Failed"}:
        others = any(value for key, value in status.items() if key != "conditions")
        return [field.omitted("status", _ONLY_CONDITIONS)] if others else []
    if "Issued" in kinds:
        return _issued(new.get("spec") or {}, status)
    return [] if same(status, old_status) else [field.omitted("status", _UNDECIDED)]


def _decisions(listed: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    decisions = 0
    for i, condition in enumerate(listed):
        path, kind = f"status.conditions.[{i}]", condition.get("type") or ""
        if kind not in _DECISIONS:
            errors.append(field.not_supported(f"{path}.type", kind, _DECISIONS, typed=False))
            continue
        decisions += 1
        if decisions > 1:
            errors.append(field.invalid(f"{path}.type", kind, _ONE_DECISION))
        if condition.get("status") != "True":
            errors.append(field.not_supported(f"{path}.status", condition.get("status") or "", ["True"]))
    return errors


def _issued(spec: Object, status: Object) -> list[FieldError]:
    from cryptography import x509

    chain = status.get("certificateChain") or ""
    if len(chain.encode()) > _LARGEST_CHAIN:
        return [field.too_long(_CHAIN, _LARGEST_CHAIN)]
    pem_blocks = blocks(chain.encode())
    if not pem_blocks:
        return [field.invalid(_CHAIN, chain, "issued certificate chain must contain at least one certificate")]
    leaf, *others = pem_blocks
    if leaf.type != "CERTIFICATE":
        return [field.invalid(_CHAIN, chain, _NOT_BLOCKS.format("CERTIFICATE"))]
    try:
        certificate = x509.load_der_x509_certificate(leaf.content)
        errors = _names(alternative_names(certificate))
    except ValueError:
        return [field.invalid(_CHAIN, chain, "leaf certificate does not parse as valid X.509")]
    if _public(certificate) != _requested(spec):
        return [*errors, field.invalid(_CHAIN, chain, "leaf certificate was not issued to the requested public key")]
    errors += [field.required(f"status.{name}", text) for name, text in _TIMES.items() if not status.get(name)]
    if errors:
        return errors
    if errors := _times(spec, status, certificate):
        return errors
    for block in others:
        if block.type != "CERTIFICATE":
            return [field.invalid(_CHAIN, chain, _NOT_BLOCKS.format("CERTFICATE"))]
        try:
            x509.load_der_x509_certificate(block.content)
        except ValueError:
            return [field.invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")]
    return []


def _names(names: SubjectAlternativeName | None) -> list[FieldError]:
    """Return the errors of a leaf certificate's DNS names and mail addresses."""
    errors: list[FieldError] = []
    for name in dns_names(names):
        if not name:
            errors.append(field.invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName"))
        if ".." in name:
            errors.append(field.invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'"))
        if name.startswith(".") or name.endswith("."):
            errors.append(field.invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'"))
    errors += [
        field.invalid(_CHAIN, address, "leaf certificate should not contain invalid EmailAddress")
        for address in mail_addresses(names)
        if not is_address(address)
    ]
    return errors


def _public(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    encoded: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _requested(spec: Object) -> bytes:
    """Return the DER-encoded public key for which a certificate is requested.

    It is that of stubPKCS10Request or, if this is unset, pkixPublicKey.

    Args:
        spec: the spec of the PodCertificateRequest.
    """
    from cryptography import x509

    if stub := spec.get("stubPKCS10Request"):
        return _public(x509.load_der_x509_csr(base64.b64decode(stub)))
    return base64.b64decode(spec.get("pkixPublicKey") or "")


def _times(spec: Object, status: Object, certificate: Certificate) -> list[FieldError]:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    not_before, not_after, refresh = (datetime.fromisoformat(status[name]) for name in _TIMES)
    checks = (
        ("notBefore", not_before == begins, "must be set to the NotBefore time encoded in the leaf certificate"),
        (
            "notBefore",
            abs(not_before - datetime.now(UTC)) < _SKEW,
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        ("notAfter", not_after == ends, "must be set to the NotAfter time encoded in the leaf certificate"),
    )
    for name, right, text in checks:
        if not right:
            return [field.invalid(f"status.{name}", status[name], text)]
    lifetime, most = ends - begins, spec.get("maxExpirationSeconds") or 0
    nanoseconds = int(lifetime.total_seconds()) * 10**9
    if lifetime < timedelta(hours=1):
        return [field.invalid(_CHAIN, nanoseconds, "leaf certificate lifetime must be >= 1 hour")]
    if lifetime > timedelta(seconds=most):
        return [
            field.invalid(
                _CHAIN, nanoseconds, f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})"
            )
        ]
    if refresh < not_before + _MARGIN:
        return [
            field.invalid(
                "status.beginRefreshAt", status["beginRefreshAt"], "must be at least 10 minutes after status.notBefore"
            )
        ]
    if refresh > not_after - _MARGIN:
        return [
            field.invalid(
                "status.beginRefreshAt", status["beginRefreshAt"], "must be at least 10 minutes before status.notAfter"
            )
        ]
    return []
