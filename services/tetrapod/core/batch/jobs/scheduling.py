"""The field `scheduling` of a Job, which says how its pods are scheduled as a group (gate WorkloadWithJob).

Upstream: pkg/api/job/util.go, pkg/apis/batch/validation/validation.go, and the rules declared in
k8s.io/api/batch/v1/types.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.group_rules import CONSTRAINTS, DISRUPTION, RESOURCE_CLAIMS
from tetrapod.core.validation import declared
from tetrapod.core.validation.declared import Field, Type, at_least
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_GATE: Final = "WorkloadWithJob"
_GANG: Final = Type({"minCount": Field((at_least(1),), pointer=True)})
_POLICY: Final = Type({"basic": Field(pointer=True), "gang": Field(type=_GANG)}, union=("basic", "gang"))
_SCHEDULING: Final = Type(
    {
        "schedulingPolicy": Field(type=_POLICY, no_set=True, no_unset=True),
        "schedulingConstraints": CONSTRAINTS,
        "disruptionMode": DISRUPTION,
        "resourceClaims": RESOURCE_CLAIMS,
    }
)
_SPEC: Final = Type({"scheduling": Field(type=_SCHEDULING, gate=_GATE, no_set=True, no_unset=True)})
_NOT_FOR_BASIC: Final = "the disruptionMode `all` is not supported with the Basic scheduling policy"
_SWITCHED: Final = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be updated"
)


def gated(spec: str) -> FieldGates:
    """Return the gated fields of a Job spec.

    Args:
        spec: its path, such as "spec.jobTemplate.spec" in a CronJob.
    """
    return FieldGates(GatedFields(_GATE, (f"{spec}.scheduling",)))


def group_rules(spec: Object, path: str) -> list[FieldError]:
    """Validate the scheduling of a Job spec by upstream's hand-written rules.

    A gang is not larger than the parallelism, and only the pods of a gang are disrupted together.

    Args:
        spec: the Job spec.
        path: its field path.
    """
    scheduling, path = spec.get("scheduling"), f"{path}.scheduling"
    if scheduling is None:
        return []
    errors: list[FieldError] = []
    policy = scheduling.get("schedulingPolicy")
    least = ((policy or {}).get("gang") or {}).get("minCount")
    parallelism = 1 if spec.get("parallelism") is None else spec["parallelism"]
    if least is not None and least > parallelism:
        text = f"must not be greater than parallelism ({parallelism})"
        errors.append(field.invalid(f"{path}.schedulingPolicy.gang.minCount", least, text))
    basic = policy is None or policy.get("basic") is not None
    if basic and (scheduling.get("disruptionMode") or {}).get("all") is not None:
        errors.append(field.invalid(f"{path}.disruptionMode", "", _NOT_FOR_BASIC))
    return errors


def changed_policy(spec: Object, existing: Object) -> list[FieldError]:
    """Reject a change between the policies basic and gang in the update of a Job."""
    new, old = ((each.get("scheduling") or {}).get("schedulingPolicy") for each in (spec, existing))
    if new is None or old is None or (new.get("basic") is None) is (old.get("basic") is None):
        return []
    return [field.invalid("spec.scheduling.schedulingPolicy", None, _SWITCHED)]


def declared_rules(spec: Object, existing: Object | None, path: str) -> list[FieldError]:
    """Validate the scheduling of a Job spec by the rules that upstream declares beside the fields.

    Most fields are immutable, and cannot be set or unset later.

    Args:
        spec: the Job spec.
        existing: the stored one; None on create.
        path: the field path of the spec.
    """
    return declared.validate(_SPEC, spec, existing, path, update=existing is not None)
