"""Validation of CertificateSigningRequest.

Upstream: pkg/apis/certificates/validation/validation.go.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from tetrapod.core.certificates.request_signatures import signature_error
from tetrapod.core.validation.signer_names import signer_name
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang import x509_errors
from tetrapod.machinery.golang.pem import blocks
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

_USAGES: Final = frozenset(
    {
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    }
)
_DECISIONS: Final = ("Approved", "Denied")
_FINAL: Final = (*_DECISIONS, "Failed")
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_SHORTEST: Final = 600
_BOTH: Final = ", ".join(f'conditions[{{"type": "{kind}"}}]' for kind in _DECISIONS)
_AT_MOST_ONE: Final = "must specify at most one of: " + ", ".join(
    f'`conditions[{{"type": "{kind}"}}]`' for kind in _DECISIONS
)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new CertificateSigningRequest.

    It needs a PKCS#10 request, unique known usages and a valid signerName that is not the legacy one. expirationSeconds
    is at least 600. Conditions and a certificate in the status are valid, and Approved excludes Denied.
    """
    return _written(obj, None) + _declared(obj, None)


def _declared(obj: Object, old: Object | None) -> list[FieldError]:
    """Reject a request with both conditions Approved and Denied, unless the stored one has both.

    The schema declares this rule upstream, so its error comes last.

    Args:
        old: the stored request; None on create.
    """
    kinds, old_kinds = (
        {c.get("type") or "" for c in (o.get("status") or {}).get("conditions") or ()} for o in (obj, old or {})
    )
    if not set(_DECISIONS) <= kinds or set(_DECISIONS) <= old_kinds:
        return []
    return [field.invalid("status.conditions", f"{{{_BOTH}}}", _AT_MOST_ONE)]


def _written(obj: Object, old: Object | None) -> list[FieldError]:
    """Validate the rules that upstream implements in Go code instead of declaring them in the schema.

    These are all rules of `validate` except the last. Some errors are accepted if the stored request has them too:
    repeated or unknown usages, repeated or empty condition types, and an invalid certificate.

    Args:
        old: the stored request; None on create.
    """
    spec, old_spec = obj.get("spec") or {}, (old or {}).get("spec") or {}
    usages, old_usages = spec.get("usages") or [], old_spec.get("usages") or []
    request, seconds, signer = spec.get("request") or "", spec.get("expirationSeconds"), spec.get("signerName") or ""
    errors = [field.invalid("spec.request", spec.get("request"), text) for text in (_request_error(request),) if text]
    if not usages:
        errors.append(field.required("spec.usages"))
    if _USAGES.issuperset(old_usages):
        errors += [
            field.not_supported(f"spec.usages[{i}]", usage, _USAGES)
            for i, usage in enumerate(usages)
            if usage not in _USAGES
        ]
    if not repeated(old_usages):
        repeated_indexes = repeated(usages)
        errors += [
            field.duplicate(f"spec.usages[{i}]", usage) for i, usage in enumerate(usages) if i in repeated_indexes
        ]
    if signer == _LEGACY and old_spec.get("signerName") != _LEGACY:
        errors.append(
            field.invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version")
        )
    else:
        errors += signer_name(signer, "spec.signerName")
    if seconds is not None and seconds < _SHORTEST:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(field.invalid("spec.expirationSeconds", seconds, text))
    conditions = (obj.get("status") or {}).get("conditions") or []
    return (
        errors
        + _conditions(conditions, ((old or {}).get("status") or {}).get("conditions") or [])
        + _certificate(obj, old)
    )


def parse_request(request: str) -> CertificateSigningRequest:
    """Parse `spec.request`, a PEM-encoded PKCS#10 request in Base64. Its signature is not checked.

    Raises:
        ValueError: the block has another type or cannot be parsed; the message is upstream's.

    Upstream: pkg/apis/certificates/helpers.go, ParseCSR
    """
    from cryptography import x509  # imported late: only clusters that sign requests need it

    pem_blocks = blocks(_decoded(request))
    if not pem_blocks or pem_blocks[0].type != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(pem_blocks[0].content)
    except (ValueError, x509.InvalidVersion):
        raise ValueError(x509_errors.request_error(pem_blocks[0].content)) from None


def _request_error(request: str) -> str:
    try:
        return signature_error(parse_request(request))
    except ValueError as error:
        return str(error)


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


def _conditions(listed: list[Object], existing: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds, old_kinds = ([c.get("type") or "" for c in conditions] for conditions in (listed, existing))
    repeated_indexes, old_unique, old_has_unnamed = repeated(kinds), not repeated(old_kinds), "" in old_kinds
    for i, condition in enumerate(listed):
        kind, status, path = kinds[i], condition.get("status") or "", f"status.conditions[{i}]"
        allowed = frozenset({"True"}) if kind in _FINAL else frozenset({"True", "False", "Unknown"})
        if not kind and not old_has_unnamed:
            errors.append(field.required(f"{path}.type"))
        if not status:
            errors.append(field.required(f"{path}.status"))
        elif status not in allowed:
            errors.append(field.not_supported(f"{path}.status", status, allowed))
        if i in repeated_indexes and old_unique:
            errors.append(field.duplicate(f"{path}.type", kind))
    return errors


def _certificate(obj: Object, old: Object | None) -> list[FieldError]:
    certificate, old_certificate = ((o.get("status") or {}).get("certificate") or "" for o in (obj, old or {}))
    if old is not None and (certificate == old_certificate or certificate_error(_decoded(old_certificate))):
        return []
    text = certificate_error(_decoded(certificate))
    return [field.invalid("status.certificate", "<certificate data>", text)] if text else []


def certificate_error(content: bytes) -> str:
    """Return an error text for an issued certificate chain (PEM), or "" if it is valid or empty.

    Only the encoding is checked, not the signatures.
    """
    from cryptography import x509

    if not content:
        return ""
    pem_blocks = blocks(content)
    for block in pem_blocks:
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {go_quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            text = x509_errors.certificate_error(block.content)
            # Go's ParseCertificates reads trailing data as the next certificate.
            return "x509: malformed certificate" if text == x509_errors.TRAILING else text
    return "" if pem_blocks else "must contain at least one CERTIFICATE PEM block"


def validate_update(new: Object, old: Object, *, decides: bool = False, signs: bool = False) -> list[FieldError]:
    """Validate an updated CertificateSigningRequest.

    Conditions Approved, Denied and Failed cannot be removed, and a certificate cannot be changed once set.

    Args:
        decides: the request is for `/approval`, which may add Approved and Denied conditions.
        signs: the request is for `/status`, which may set the certificate.
    """
    errors = _written(new, old)
    status, old_status = new.get("status") or {}, old.get("status") or {}
    path = "status.conditions"
    for kind in _FINAL:
        if len(_of(status, kind)) < len(_of(old_status, kind)):
            errors.append(field.forbidden(path, f"updates may not remove a condition of type {go_quote(kind)}"))
    for kind in () if decides else _DECISIONS:
        decisions, old_decisions = _of(status, kind), _of(old_status, kind)
        if len(decisions) > len(old_decisions):
            errors.append(field.forbidden(path, f"updates may not add a condition of type {go_quote(kind)}"))
        elif len(decisions) == len(old_decisions) and decisions != old_decisions:
            errors.append(field.forbidden(path, f"updates may not modify a condition of type {go_quote(kind)}"))
    if (status.get("certificate") or "") != (old_status.get("certificate") or ""):
        if not signs:
            errors.append(field.forbidden("status.certificate", "updates may not set certificate content"))
        elif old_status.get("certificate"):
            errors.append(field.forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors + _declared(new, old)


def _of(status: Object, kind: str) -> list[Object]:
    return [c for c in status.get("conditions") or () if c.get("type") == kind]
