"""The declared rules of the types that Workloads, PodGroups and CompositePodGroups share.

A Workload holds templates, from which controllers create the groups, so that templates and groups have the same fields.

Upstream: k8s.io/api/scheduling/v1beta1/types.go and v1alpha3/types.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tetrapod.core.podspec.group_rules import CONSTRAINTS, DISRUPTION, MOST_CLAIMS, NAME, RESOURCE_CLAIMS
from tetrapod.core.validation.declared import (
    Field,
    Type,
    at_least,
    at_most,
    long_name,
    one_of,
    path_segment_name,
)
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object

GROUP: Final = "scheduling.k8s.io"
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
COMPOSITE: Final = "CompositePodGroup"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
CLAIMS: Final = "DRAWorkloadResourceClaims"
PREEMPTION: Final = "PodGroupPreemptionPolicy"
_HIGHEST_PRIORITY: Final = 1_000_000_000

WORKLOAD_REFERENCE: Final = Type({"workloadName": Field((long_name,), required=True), "templateName": NAME})
CONTROLLER: Final = Type(
    {
        "apiGroup": Field((long_name,)),
        "kind": Field((path_segment_name,), required=True),
        "name": Field((path_segment_name,), required=True),
    }
)
CLAIM_STATUSES: Final = Field(
    items=Type({"resourceClaimName": Field((long_name,), pointer=True)}), key="name", max_items=MOST_CLAIMS
)
_PRIORITY_FIELDS: Final = {
    "priorityClassName": Field((long_name,), immutable=True),
    "priority": Field((at_most(_HIGHEST_PRIORITY),), pointer=True, immutable=True),
    "preemptionPolicy": Field(
        (one_of(PREEMPT_LOWER_PRIORITY, "Never"),), pointer=True, immutable=True, gate=PREEMPTION
    ),
}


def _policy(count: str) -> Field:
    """Return the rules of a scheduling policy, which is either basic or gang.

    Args:
        count: the field of a gang policy with the least number of members, "minCount" or "minGroupCount".
    """
    gang = Type({count: Field((at_least(1),), required=True)})
    kinds = {"basic": Field(pointer=True, immutable=True), "gang": Field(type=gang, no_set=True, no_unset=True)}
    return Field(type=Type(kinds, union=("basic", "gang")), embedded=True)


POLICY: Final = _policy("minCount")
COMPOSITE_POLICY: Final = _policy("minGroupCount")
PRIORITY: Final = _PRIORITY_FIELDS
"""The fields of the priority of a group or of a template, in upstream's order."""

POD_GROUP_TEMPLATE: Final = Type(
    {
        "name": NAME,
        "schedulingPolicy": POLICY,
        "schedulingConstraints": replace(CONSTRAINTS, gate=TOPOLOGY),
        "resourceClaims": RESOURCE_CLAIMS,
        "disruptionMode": DISRUPTION,
        **PRIORITY,
    }
)
COMPOSITE_POD_GROUP_TEMPLATE: Final = Type(
    {
        "name": NAME,
        "schedulingPolicy": COMPOSITE_POLICY,
        "schedulingConstraints": CONSTRAINTS,
        "disruptionMode": DISRUPTION,
        **PRIORITY,
    }
)


def templates(kind: Type, gate: str = "") -> Field:
    """Return the rules of a list of templates, whose items cannot be added or removed after the creation.

    Args:
        kind: the rules of a template.
        gate: the feature gate of the list, or "".
    """
    return Field(items=kind, key="name", max_items=8, fixed_items=True, gate=gate)


COMPOSITE_POD_GROUP_TEMPLATE.fields["podGroupTemplates"] = templates(POD_GROUP_TEMPLATE)
COMPOSITE_POD_GROUP_TEMPLATE.fields["compositePodGroupTemplates"] = templates(COMPOSITE_POD_GROUP_TEMPLATE)


def set_preemption_default(obj: Object) -> None:
    """Set the default of spec.preemptionPolicy of a group, PreemptLowerPriority, in place.

    If the feature gate of the field is disabled, nothing is set.
    """
    spec = obj.setdefault("spec", {})
    if feature_gates.enabled(PREEMPTION) and spec.get("preemptionPolicy") is None:
        spec["preemptionPolicy"] = PREEMPT_LOWER_PRIORITY
