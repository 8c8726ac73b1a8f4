"""PodCertificateRequest (upstream: pkg/apis/certificates/validation/validation.go)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.names import IMMUTABLE, dns_subdomain
from tetrapod.core.validation.pem import blocks
from tetrapod.core.validation.projected import signer_name
from tetrapod.core.validation.shown import same
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_DECISIONS: Final = ("Issued", "Denied", "Failed")
_ONE_DECISION: Final = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
_LONGEST_UID: Final = 128
_SHORTEST: Final = 3600
_LONGEST: Final = 7_862_400
_LONGEST_KUBERNETES: Final = 86_400
_LARGEST_REQUEST: Final = 10 * 1024
_LARGEST_CHAIN: Final = 100 * 1024
_FINAL: Final = "immutable after PodCertificateRequest is issued, denied, or failed"
_ONLY_CONDITIONS: Final = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
_TIMES: Final = {
    "notBefore": "must be present and consistent with the issued certificate",
    "notAfter": "must be present and consistent with the issued certificate",
    "beginRefreshAt": "must be present and in the range [notbefore+10min, notafter-10min]",
}


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    signer = spec.get("signerName") or ""
    errors = signer_name(signer, "spec.signerName")
    for kind in ("pod", "serviceAccount", "node"):
        errors += dns_subdomain(spec.get(f"{kind}Name") or "", f"spec.{kind}Name")
        errors += _uid(spec.get(f"{kind}UID") or "", f"spec.{kind}UID")
    seconds, path = spec.get("maxExpirationSeconds"), "spec.maxExpirationSeconds"
    if seconds is None:
        return [*errors, field.required(path, "must be set")]
    most = _LONGEST_KUBERNETES if signer.partition("/")[0].endswith("kubernetes.io") else _LONGEST
    if not _SHORTEST <= seconds <= most:
        errors.append(field.invalid(path, seconds, f"must be in the range [{_SHORTEST}, {most}]"))
    return errors + _stub(spec.get("stubPKCS10Request") or "")


def _uid(uid: str, path: str) -> list[FieldError]:
    if not uid:
        return [field.invalid(path, uid, "must not be empty")]
    return [field.too_long(path, _LONGEST_UID)] if len(uid) > _LONGEST_UID else []


def _stub(request: str) -> list[FieldError]:
    """The request shows that the kubelet holds the key: only its key and signature count."""
    from cryptography import x509  # only where requests are signed

    path = "spec.stubPKCS10Request"
    if not request:
        return [field.required(path)]
    try:
        content = base64.b64decode(request)
        if len(content) > _LARGEST_REQUEST:
            return [field.too_long(path, _LARGEST_REQUEST)]
        parsed = x509.load_der_x509_csr(content)
        valid = parsed.is_signature_valid
    except (ValueError, binascii.Error):
        return [field.invalid(path, request, "must be a valid PKCS#10 certificate signing request")]
    return [] if valid else [field.invalid(path, request, "signature is not valid")]


def validate_update(new: Object, old: Object) -> list[FieldError]:
    spec = new.get("spec")
    return [] if same(spec, old.get("spec")) else [field.invalid("spec", spec, IMMUTABLE)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    listed = status.get("conditions") or []
    if errors := _decisions(listed) + conditions(listed, "status.conditions"):
        return errors
    if any(c.get("type") in _DECISIONS for c in before.get("conditions") or ()):
        return [] if same(status, before) else [field.invalid("status", status, _FINAL)]
    kinds = {c.get("type") for c in listed}
    others = {key: value for key, value in status.items() if key != "conditions" and value}
    if kinds & {"Denied", "Failed"}:
        return [field.invalid("status", status, _ONLY_CONDITIONS)] if others else []
    if "Issued" in kinds:
        return _issued(status)
    return [field.invalid("status", status, "may only be set with a condition that decides the request")] if others else []


def _decisions(listed: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    known = 0
    for i, condition in enumerate(listed):
        path, kind = f"status.conditions.[{i}]", condition.get("type") or ""
        if kind not in _DECISIONS:
            errors.append(field.not_supported(f"{path}.type", kind, _DECISIONS))
            continue
        known += 1
        if known > 1:
            errors.append(field.invalid(f"{path}.type", kind, _ONE_DECISION))
        if condition.get("status") != "True":
            errors.append(field.not_supported(f"{path}.status", condition.get("status") or "", ["True"]))
    return errors


def _issued(status: Object) -> list[FieldError]:
    from cryptography import x509

    chain, path = status.get("certificateChain") or "", "status.certificateChain"
    if len(chain) > _LARGEST_CHAIN:
        return [field.too_long(path, _LARGEST_CHAIN)]
    found = blocks(chain.encode())
    if not found:
        return [field.invalid(path, chain, "issued certificate chain must contain at least one certificate")]
    if any(block.type != "CERTIFICATE" for block in found):
        return [field.invalid(path, chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")]
    try:
        x509.load_der_x509_certificate(found[0].content)
    except ValueError:
        return [field.invalid(path, chain, "leaf certificate does not parse as valid X.509")]
    return [field.required(f"status.{name}", text) for name, text in _TIMES.items() if not status.get(name)]
