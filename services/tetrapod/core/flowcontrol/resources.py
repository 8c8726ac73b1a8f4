"""The list of the kinds of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

from tetrapod.core.flowcontrol import flow_schemas as flowcontrol_flow_schemas
from tetrapod.core.flowcontrol import priority_level_configurations
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group flowcontrol.apiserver.k8s.io."""
    return [flowcontrol_flow_schemas.definition(), priority_level_configurations.definition()]
