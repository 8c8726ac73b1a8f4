"""The list of the kinds of resource.k8s.io."""

from __future__ import annotations

from tetrapod.core.resource import (
    device_classes,
    device_taint_rules,
    resource_claim_templates,
    resource_pool_status_requests,
)
from tetrapod.core.resource.resource_claims import definition as resource_claims
from tetrapod.core.resource.resource_claims.strategy import ClaimAccess
from tetrapod.core.resource.resource_slices import definition as resource_slices
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions(access: ClaimAccess) -> list[ResourceDefinition]:
    """Return the definitions of all resources in the API group resource.k8s.io.

    Args:
        access: decides who may request devices with admin access and change the status of claims.
    """
    return [
        device_classes.definition(),
        device_taint_rules.definition(),
        resource_claims.definition(access),
        resource_claim_templates.definition(access),
        resource_pool_status_requests.definition(),
        resource_slices.definition(),
    ]
