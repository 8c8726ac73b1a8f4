"""CompositePodGroups: PodGroups and other CompositePodGroups that the scheduler treats as a unit.

Upstream: pkg/registry/scheduling/compositepodgroup/strategy.go, and ValidateCompositePodGroup in
pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import group_rules
from tetrapod.core.scheduling import group_types
from tetrapod.core.scheduling.group_types import GROUP, PREEMPTION
from tetrapod.core.scheduling.pod_groups import PARENT, policy_and_workload
from tetrapod.core.validation import declared
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.declared import Field, Type
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

TABLE: Final = TableConvertor(
    (NAME, Column("Policy"), Column("Workload"), AGE), lambda obj: [name_of(obj), *policy_and_workload(obj), age(obj)]
)
SPEC: Final = Type(
    {
        "parentCompositePodGroupName": PARENT,
        "workloadRef": Field(type=group_types.WORKLOAD_REFERENCE, immutable=True, required=True),
        "schedulingPolicy": replace(group_types.COMPOSITE_POLICY, immutable=True),
        "schedulingConstraints": group_rules.CONSTRAINTS,
        "disruptionMode": replace(group_rules.DISRUPTION, required=True),
        **group_types.PRIORITY,
    }
)
_GATES: Final = FieldGates(GatedFields(PREEMPTION, ("spec.preemptionPolicy",)))


def definition() -> ResourceDefinition:
    """Return the resource definition of CompositePodGroups: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=group_types.set_preemption_default,
        validator=validate,
        whole_update_validator=validate_update,
        gated_fields=_GATES,
        has_status=True,
        allow_unconditional_update=False,
    )
    return builtin(
        GROUP,
        "compositepodgroups",
        strategy,
        versions=("v1alpha3",),
        table=TABLE,
        subresources={
            "status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status, tabular=False)
        },
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate a new CompositePodGroup by the rules of `SPEC`."""
    return declared.validate(SPEC, obj.get("spec") or {}, None, "spec", update=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CompositePodGroup by the rules of `SPEC`: all fields are immutable."""
    return declared.validate(SPEC, new.get("spec") or {}, old.get("spec") or {}, "spec", update=True)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the conditions of a new status (`conditions`). The stored object is not used."""
    return conditions((new.get("status") or {}).get("conditions") or [], "status.conditions")
