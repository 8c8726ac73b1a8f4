"""The definition of ResourceClaimTemplates, with their defaults, validation and table columns.

Upstream: pkg/registry/resource/resourceclaimtemplate/strategy.go and pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.podspec.claim_spec import template_metadata
from tetrapod.core.resource import GROUP, hand_written
from tetrapod.core.resource.conversion import VERSIONS, convert_claim_template
from tetrapod.core.resource.device_rules import ErrorLists
from tetrapod.core.resource.resource_claims import definition as resource_claims
from tetrapod.core.resource.resource_claims.gated import spec_fields
from tetrapod.core.resource.resource_claims.strategy import AdminStrategy, ClaimAccess
from tetrapod.core.resource.resource_claims.validation import validate_devices
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.raw_extensions import TEMPLATE_PARAMETERS, same_texts
from tetrapod.machinery.table import TableConvertor

TABLE: Final = TableConvertor((NAME, AGE), lambda obj: [name_of(obj), age(obj)])


def definition(access: ClaimAccess) -> ResourceDefinition:
    """Return the resource definition of ResourceClaimTemplates: versions, strategy, subresources and columns.

    Args:
        access: checks the right to request devices with administrative access.
    """
    strategy = AdminStrategy(
        access,
        "ResourceClaimTemplate",
        lambda obj: (((obj.get("spec") or {}).get("spec") or {}).get("devices") or {}).get("requests") or [],
        defaults={"v1": set_defaults, "v1beta2": set_defaults, "v1beta1": set_v1beta1_defaults},
        validator=validate,
        whole_update_validator=validate_update,
        return_deleted_object=True,
        revalidates_generate_name="before finalizers",
        hand_written=hand_written.TEMPLATE,
        gated_fields=spec_fields("spec.spec"),
    )
    return builtin(
        GROUP, "resourceclaimtemplates", strategy, versions=VERSIONS, table=TABLE, convert=convert_claim_template
    )


def set_defaults(obj: Object) -> None:
    """Set the defaults of the device requests in a ResourceClaimTemplate in place (`set_device_defaults` of claims)."""
    resource_claims.set_device_defaults(((obj.get("spec") or {}).get("spec") or {}).get("devices") or {})


def set_v1beta1_defaults(obj: Object) -> None:
    """Set the defaults of the device requests in a ResourceClaimTemplate of v1beta1, which is modified."""
    resource_claims.set_v1beta1_device_defaults(((obj.get("spec") or {}).get("spec") or {}).get("devices") or {})


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ResourceClaimTemplate.

    Metadata for claims has only labels and annotations. Device requests follow `validate_devices` of claims.
    """
    return _template(obj).all()


def _template(obj: Object) -> ErrorLists:
    errors = ErrorLists()
    spec = obj.get("spec") or {}
    errors.written += template_metadata(spec.get("metadata") or {}, "spec.metadata")
    claim_spec = spec.get("spec") or {}
    validate_devices(claim_spec.get("devices") or {}, "spec.spec.devices", errors)
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ResourceClaimTemplate as a new one; its spec is immutable, with the order of parameters."""
    spec = new.get("spec") or {}
    errors = _template(new)
    if not (same(spec, old.get("spec") or {}) and same_texts(new, old, TEMPLATE_PARAMETERS)):
        errors.written.append(field.invalid("spec", internal("ResourceClaimTemplateSpec", spec), IMMUTABLE))
    return errors.all()
