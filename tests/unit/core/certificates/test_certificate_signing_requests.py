"""Tests of the validation of CertificateSigningRequests."""

from __future__ import annotations

from tetrapod.core.certificates.certificate_signing_requests.validation import validate_update
from tetrapod.machinery.gvk import Object


def test_declared_rules_of_decisions_are_reported_last() -> None:
    conditions = [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": ""}]
    old: Object = {"metadata": {}, "spec": {"usages": ["any"], "signerName": "a.b/c"}, "status": {}}
    new = {**old, "status": {"conditions": conditions}}
    kinds = [error.type for error in validate_update(new, old, signs=True) if error.field.startswith("status")]
    assert kinds == ["FieldValueRequired", "FieldValueForbidden", "FieldValueForbidden", "FieldValueInvalid"]
