"""EvictionRequests: each asks, in the name of one requester, for the graceful eviction of a pod.

Upstream: pkg/registry/lifecycle/evictionrequest/strategy.go, and ValidateEvictionRequest in
pkg/apis/lifecycle/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.lifecycle.targets import (
    GROUP,
    STATUS_FIELDS,
    TARGET,
    missing_name,
    state_cell,
    target_cells,
    validate_name,
)
from tetrapod.core.podspec.eviction_responders import unreserved_domain
from tetrapod.core.validation import declared
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.declared import Field, Type, one_of, prefixed_label_key
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

INTENT: Final = Field((one_of("Eviction", "Withdrawn"),), required=True)
"""The rules of a requester's intent."""
SPEC: Final = Type(
    {
        "target": TARGET,
        "requester": Field((unreserved_domain, prefixed_label_key), required=True, immutable=True),
        "intent": INTENT,
    }
)
STATUS: Final = Type(dict(STATUS_FIELDS))
TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Target"),
        Column("Target Type"),
        Column("Status"),
        Column("Requester"),
        Column("Intent"),
        AGE,
    ),
    lambda obj: [
        name_of(obj),
        *target_cells(obj),
        state_cell(obj),
        spec_of(obj).get("requester") or "",
        spec_of(obj).get("intent") or "",
        age(obj),
    ],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of EvictionRequests: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        name_validator=validate_name,
        has_status=True,
        generation=("spec",),
        allow_unconditional_update=False,
    )
    return builtin(
        GROUP,
        "evictionrequests",
        strategy,
        versions=("v1alpha1",),
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status)},
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate a new EvictionRequest by the rules of `SPEC`: target, requester and intent are required."""
    return missing_name(obj) + declared.validate(SPEC, obj.get("spec") or {}, None, "spec", update=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated EvictionRequest by the rules of `SPEC`: target and requester are immutable."""
    return declared.validate(SPEC, new.get("spec") or {}, old.get("spec") or {}, "spec", update=True)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate a new status by the rules of `STATUS` and of all conditions."""
    status = new.get("status") or {}
    errors = conditions(status.get("conditions") or [], "status.conditions")
    return errors + declared.validate(STATUS, status, old.get("status") or {}, "status", update=True)
