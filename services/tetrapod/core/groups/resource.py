"""Resource definitions of resource.k8s.io/v1 (dynamic resource allocation)."""

from __future__ import annotations

from tetrapod.core.defaults import devices as defaults
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.strategies.devices import GROUP, DeviceClassStrategy, SliceStrategy, slice_warnings
from tetrapod.core.strategies.resource_claims import AdminStrategy, ClaimAccess, ClaimStatusStrategy
from tetrapod.core.tables import policies as tables
from tetrapod.core.validation import claim_status
from tetrapod.core.validation import resource_claims as claims
from tetrapod.core.validation import resource_slices as slices
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA


def device_classes() -> ResourceDefinition:
    """Return the definition of DeviceClasses."""
    strategy = DeviceClassStrategy(
        validate=claims.validate_class,
        whole_update=claims.validate_class_update,
        name=claims.any_name,
        generation=["spec"],
        returns_deleted=True,
    )
    return builtin(GROUP, "deviceclasses", strategy, table=tables.DEVICE_CLASSES)


def device_taint_rules() -> ResourceDefinition:
    """Return the definition of DeviceTaintRules."""
    strategy = KindStrategy(
        default=defaults.default_taint_rule,
        validate=claims.validate_taint_rule,
        status=True,
        generation=["spec"],
        unconditional_update=False,
    )
    status = status_strategy(strategy, keep_metadata=ALL_METADATA, validate=claims.validate_taint_rule_status)
    return builtin(GROUP, "devicetaintrules", strategy, table=tables.DEVICE_TAINT_RULES, subresources={"status": status})


def resource_claims(access: ClaimAccess) -> ResourceDefinition:
    """Return the definition of ResourceClaims."""
    strategy = AdminStrategy(
        access,
        "ResourceClaim",
        lambda obj: ((obj.get("spec") or {}).get("devices") or {}).get("requests") or [],
        default=defaults.default_claim,
        validate=claims.validate,
        whole_update=claims.validate_update,
        revalidates_generate_name=True,
        status=True,
        returns_deleted=True,
    )
    status = ClaimStatusStrategy(access, strategy, validate=claim_status.validate_status)
    return builtin(GROUP, "resourceclaims", strategy, table=tables.RESOURCE_CLAIMS, subresources={"status": status})


def resource_claim_templates(access: ClaimAccess) -> ResourceDefinition:
    """Return the definition of ResourceClaimTemplates."""
    strategy = AdminStrategy(
        access,
        "ResourceClaimTemplate",
        lambda obj: (((obj.get("spec") or {}).get("spec") or {}).get("devices") or {}).get("requests") or [],
        default=defaults.default_claim_template,
        validate=claims.validate_template,
        whole_update=claims.validate_template_update,
        returns_deleted=True,
    )
    return builtin(GROUP, "resourceclaimtemplates", strategy, table=tables.RESOURCE_CLAIM_TEMPLATES)


def resource_slices() -> ResourceDefinition:
    """Return the definition of ResourceSlices."""
    strategy = SliceStrategy(
        default=defaults.default_slice,
        validate=slices.validate,
        whole_update=slices.validate_update,
        warnings=slice_warnings,
        generation=["spec"],
        returns_deleted=True,
        fields={
            "spec.nodeName": lambda o: (o.get("spec") or {}).get("nodeName") or "",
            "spec.driver": lambda o: (o.get("spec") or {}).get("driver") or "",
            "spec.pool.name": lambda o: ((o.get("spec") or {}).get("pool") or {}).get("name") or "",
        },
    )
    return builtin(GROUP, "resourceslices", strategy, table=tables.RESOURCE_SLICES)


def definitions(access: ClaimAccess) -> list[ResourceDefinition]:
    """Return the definitions of the group.

    Args:
        access: decides who may request devices with admin access and change the status of claims.
    """
    return [
        device_classes(),
        device_taint_rules(),
        resource_claims(access),
        resource_claim_templates(access),
        resource_slices(),
    ]
