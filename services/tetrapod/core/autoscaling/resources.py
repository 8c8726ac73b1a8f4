"""The list of the kinds of autoscaling."""

from __future__ import annotations

from tetrapod.core.autoscaling.horizontal_pod_autoscalers import definition as horizontal_pod_autoscalers
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group autoscaling."""
    return [horizontal_pod_autoscalers.definition()]
