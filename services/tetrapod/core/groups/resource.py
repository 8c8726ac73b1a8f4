"""Resource definitions of resource.k8s.io/v1 (dynamic resource allocation)."""

from __future__ import annotations

from tetrapod.core.defaults import devices as defaults
from tetrapod.core.strategies.devices import GROUP, DeviceClassStrategy, SliceStrategy, slice_warnings
from tetrapod.core.strategies.resource_claims import AdminStrategy, ClaimAccess, ClaimStatusStrategy
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import policies as tables
from tetrapod.core.validation import claim_status
from tetrapod.core.validation import resource_claims as claims
from tetrapod.core.validation import resource_slices as slices
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA


def definitions(access: ClaimAccess) -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [_classes(), _taint_rules(), *_claims(access), _slices()]


def _classes() -> ResourceDefinition:
    strategy = DeviceClassStrategy(
        validate=claims.validate_class,
        whole_update=claims.validate_class_update,
        name=claims.any_name,
        generation=["spec"],
        returns_deleted=True,
    )
    return builtin(GROUP, "deviceclasses", strategy, table=tables.DEVICE_CLASSES)


def _taint_rules() -> ResourceDefinition:
    rule = KindStrategy(
        default=defaults.default_taint_rule,
        validate=claims.validate_taint_rule,
        status=True,
        generation=["spec"],
        unconditional_update=False,
    )
    status = status_of(rule, keep_metadata=ALL_METADATA, validate=claims.validate_taint_rule_status)
    return builtin(GROUP, "devicetaintrules", rule, table=tables.DEVICE_TAINT_RULES, subresources={"status": status})


def _claims(access: ClaimAccess) -> list[ResourceDefinition]:
    claim = AdminStrategy(
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
    template = AdminStrategy(
        access,
        "ResourceClaimTemplate",
        lambda obj: (((obj.get("spec") or {}).get("spec") or {}).get("devices") or {}).get("requests") or [],
        default=defaults.default_claim_template,
        validate=claims.validate_template,
        whole_update=claims.validate_template_update,
        returns_deleted=True,
    )
    status = ClaimStatusStrategy(access, claim, validate=claim_status.validate_status)
    return [
        builtin(GROUP, "resourceclaims", claim, table=tables.RESOURCE_CLAIMS, subresources={"status": status}),
        builtin(GROUP, "resourceclaimtemplates", template, table=tables.RESOURCE_CLAIM_TEMPLATES),
    ]


def _slices() -> ResourceDefinition:
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
