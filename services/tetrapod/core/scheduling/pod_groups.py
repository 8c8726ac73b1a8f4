"""PodGroups: pods that the scheduler treats as a unit.

Upstream: pkg/registry/scheduling/podgroup/strategy.go, and ValidatePodGroup in pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import group_rules
from tetrapod.core.scheduling import group_types
from tetrapod.core.scheduling.group_types import CLAIMS, COMPOSITE, GROUP, PREEMPTION, TOPOLOGY
from tetrapod.core.validation import declared
from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.declared import Field, Type, long_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

PARENT: Final = Field((long_name,), pointer=True, immutable=True)
"""The rules of the name of the CompositePodGroup to which a group belongs."""
SPEC: Final = Type(
    {
        "parentCompositePodGroupName": replace(PARENT, gate=COMPOSITE),
        "workloadRef": Field(type=group_types.WORKLOAD_REFERENCE, immutable=True),
        "schedulingPolicy": group_types.POLICY,
        "schedulingConstraints": replace(group_rules.CONSTRAINTS, gate=TOPOLOGY, immutable_without_gate=False),
        "resourceClaims": group_rules.RESOURCE_CLAIMS,
        "disruptionMode": replace(group_rules.DISRUPTION, required=True),
        **group_types.PRIORITY,
    }
)
STATUS: Final = Type({"resourceClaimStatuses": group_types.CLAIM_STATUSES})
_GATES: Final = FieldGates(
    GatedFields(TOPOLOGY, ("spec.schedulingConstraints",)),
    GatedFields(CLAIMS, ("spec.resourceClaims",)),
    GatedFields(PREEMPTION, ("spec.preemptionPolicy",)),
    GatedFields(COMPOSITE, ("spec.parentCompositePodGroupName",)),
)
_STATUS_GATES: Final = FieldGates(GatedFields(CLAIMS, ("resourceClaimStatuses",)))
_NO_WORKLOAD: Final = "must be set when parentCompositePodGroupName is set"
_UNKNOWN_CLAIM: Final = "must match the name of an entry in `spec.resourceClaims`"


def definition() -> ResourceDefinition:
    """Return the resource definition of PodGroups: versions, strategy, subresources and columns."""
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
        "podgroups",
        strategy,
        versions=("v1beta1", "v1alpha3"),
        table=TABLE,
        subresources={
            "status": PodGroupStatusStrategy(
                strategy, keep_metadata=ALL_METADATA, validate=validate_status, tabular=False
            )
        },
    )


class PodGroupStatusStrategy(StatusStrategy):
    """The strategy of the status of PodGroups.

    It drops the resource claims of a group whose spec has none, if their feature gate is disabled.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        used = {"resourceClaimStatuses": (old.get("spec") or {}).get("resourceClaims")}
        _STATUS_GATES.drop(new.get("status") or {}, used)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new PodGroup by the rules of `SPEC`. One with a parent must also have a workloadRef."""
    spec = obj.get("spec") or {}
    errors = []
    if spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
        errors.append(field.required("spec.workloadRef", _NO_WORKLOAD))
    return errors + declared.validate(SPEC, spec, None, "spec", update=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate the spec of an updated PodGroup by the rules of `SPEC`: only the minCount of a gang may change."""
    return declared.validate(SPEC, new.get("spec") or {}, old.get("spec") or {}, "spec", update=True)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate a new status by the rules of `STATUS` and of all conditions.

    Its resource claims must be among those of the spec.
    """
    status, spec = new.get("status") or {}, new.get("spec") or {}
    errors = conditions(status.get("conditions") or [], "status.conditions")
    names = {claim.get("name") or "" for claim in spec.get("resourceClaims") or ()}
    for i, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        if (name := claim.get("name") or "") not in names:
            errors.append(field.invalid(f"status.resourceClaimStatuses[{i}].name", name, _UNKNOWN_CLAIM))
    return errors + declared.validate(STATUS, status, old.get("status") or {}, "status", update=True)


def policy_and_workload(obj: Object) -> tuple[str, str]:
    """Return two cells of the table of a PodGroup or CompositePodGroup: its scheduling policy and its Workload."""
    spec = spec_of(obj)
    gang = (spec.get("schedulingPolicy") or {}).get("gang") is not None
    reference = spec.get("workloadRef")
    return "Gang" if gang else "Basic", NONE if reference is None else reference.get("workloadName") or ""


def _row(obj: Object) -> list[Any]:
    by_type = {each.get("type"): each for each in (obj.get("status") or {}).get("conditions") or ()}
    state = "Pending"
    if scheduled := by_type.get("PodGroupInitiallyScheduled"):
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if disrupted := by_type.get("DisruptionTarget"):
        state = disrupted.get("reason") or ""
    return [name_of(obj), *policy_and_workload(obj), state, age(obj)]


TABLE: Final = TableConvertor((NAME, Column("Policy"), Column("Workload"), Column("Status"), AGE), _row)
