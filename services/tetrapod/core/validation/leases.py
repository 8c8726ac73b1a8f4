"""Validation of Lease.

Upstream: pkg/apis/coordination/validation/validation.go.
"""

from __future__ import annotations

from tetrapod.core.validation.names import not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a Lease."""
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    errors: list[FieldError] = []
    if seconds is not None and seconds <= 0:
        errors.append(field.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
