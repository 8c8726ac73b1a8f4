"""CertificateSigningRequest (upstream: pkg/apis/certificates/validation/validation.go)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from tetrapod.core.validation.pem import blocks
from tetrapod.core.validation.projected import signer_name
from tetrapod.generic.certificates import faults
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.gvk import Object

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
_AT_MOST_ONE: Final = "must specify at most one of: " + ", ".join(f'`conditions[{{"type": "{kind}"}}]`' for kind in _DECISIONS)


def validate(obj: Object) -> list[FieldError]:
    return _written(obj, None) + _declared(obj, None)


def _declared(obj: Object, old: Object | None) -> list[FieldError]:
    """What the schema declares is told last: a request is approved or denied, not both."""
    kinds, had = ({c.get("type") or "" for c in (o.get("status") or {}).get("conditions") or ()} for o in (obj, old or {}))
    if not set(_DECISIONS) <= kinds or set(_DECISIONS) <= had:
        return []
    return [field.invalid("status.conditions", f"{{{_BOTH}}}", _AT_MOST_ONE)]


def _written(obj: Object, old: Object | None) -> list[FieldError]:
    """`old`: what it was, whose faults may stay."""
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    usages, had = spec.get("usages") or [], before.get("usages") or []
    request, seconds, signer = spec.get("request") or "", spec.get("expirationSeconds"), spec.get("signerName") or ""
    errors = [field.invalid("spec.request", spec.get("request"), text) for text in (_request_fault(request),) if text]
    if not usages:
        errors.append(field.required("spec.usages"))
    if _USAGES.issuperset(had):
        errors += [field.not_supported(f"spec.usages[{i}]", usage, _USAGES) for i, usage in enumerate(usages) if usage not in _USAGES]
    if len(set(had)) == len(had):
        errors += [field.duplicate(f"spec.usages[{i}]", usage) for i, usage in enumerate(usages) if usage in usages[:i]]
    if signer == _LEGACY and before.get("signerName") != _LEGACY:
        errors.append(field.invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += signer_name(signer, "spec.signerName")
    if seconds is not None and seconds < _SHORTEST:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(field.invalid("spec.expirationSeconds", seconds, text))
    conditions = (obj.get("status") or {}).get("conditions") or []
    return errors + _conditions(conditions, ((old or {}).get("status") or {}).get("conditions") or []) + _certificate(obj, old)


def _request_fault(request: str) -> str:
    from cryptography import x509  # only where requests are signed

    found = blocks(_decoded(request))
    if not found or found[0].type != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        parsed = x509.load_der_x509_csr(found[0].content)
        return "" if parsed.is_signature_valid else _unverified(parsed.public_key())
    except (ValueError, x509.InvalidVersion):
        return faults.of_request(found[0].content)


def _unverified(key: object) -> str:
    """In the words of Go's CheckSignature (crypto/x509/x509.go)."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        return "crypto/rsa: verification error"
    return f"x509: {'Ed25519' if isinstance(key, Ed25519PublicKey) else 'ECDSA'} verification failure"


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


def _conditions(listed: list[Object], before: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds, had = ([c.get("type") or "" for c in conditions] for conditions in (listed, before))
    for i, condition in enumerate(listed):
        kind, status, path = kinds[i], condition.get("status") or "", f"status.conditions[{i}]"
        allowed = frozenset({"True"}) if kind in _FINAL else frozenset({"True", "False", "Unknown"})
        if not kind and "" not in had:
            errors.append(field.required(f"{path}.type"))
        if not status:
            errors.append(field.required(f"{path}.status"))
        elif status not in allowed:
            errors.append(field.not_supported(f"{path}.status", status, allowed))
        if kind in kinds[:i] and len(set(had)) == len(had):
            errors.append(field.duplicate(f"{path}.type", kind))
    return errors


def _certificate(obj: Object, old: Object | None) -> list[FieldError]:
    now, before = ((o.get("status") or {}).get("certificate") or "" for o in (obj, old or {}))
    if old is not None and (now == before or certificate_fault(_decoded(before))):
        return []
    text = certificate_fault(_decoded(now))
    return [field.invalid("status.certificate", "<certificate data>", text)] if text else []


def certificate_fault(content: bytes) -> str:
    from cryptography import x509

    if not content:
        return ""
    found = blocks(content)
    for block in found:
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {go_quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            text = faults.of_certificate(block.content)
            return "x509: malformed certificate" if text == faults.TRAILING else text  # what trails is another one in a list
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def validate_update(new: Object, old: Object, *, decides: bool = False, signs: bool = False) -> list[FieldError]:
    """`decides`: through `/approval`; `signs`: through `/status`."""
    errors = _written(new, old)
    status, before = new.get("status") or {}, old.get("status") or {}
    path = "status.conditions"
    for kind in _FINAL:
        if len(_of(status, kind)) < len(_of(before, kind)):
            errors.append(field.forbidden(path, f"updates may not remove a condition of type {go_quote(kind)}"))
    for kind in () if decides else _DECISIONS:
        now, had = _of(status, kind), _of(before, kind)
        if len(now) > len(had):
            errors.append(field.forbidden(path, f"updates may not add a condition of type {go_quote(kind)}"))
        elif len(now) == len(had) and now != had:
            errors.append(field.forbidden(path, f"updates may not modify a condition of type {go_quote(kind)}"))
    if (status.get("certificate") or "") != (before.get("certificate") or ""):
        if not signs:
            errors.append(field.forbidden("status.certificate", "updates may not set certificate content"))
        elif before.get("certificate"):
            errors.append(field.forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors + _declared(new, old)


def _of(status: Object, kind: str) -> list[Object]:
    return [c for c in status.get("conditions") or () if c.get("type") == kind]
