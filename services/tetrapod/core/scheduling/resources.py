"""The list of the kinds of scheduling.k8s.io."""

from __future__ import annotations

from tetrapod.core.scheduling import composite_pod_groups, pod_groups, priority_classes, workloads
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group scheduling.k8s.io."""
    return [
        priority_classes.definition(),
        workloads.definition(),
        pod_groups.definition(),
        composite_pod_groups.definition(),
    ]
