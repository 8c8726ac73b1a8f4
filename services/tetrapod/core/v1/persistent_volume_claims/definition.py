"""The resource definition of persistentvolumeclaims, with defaults and warnings.

Upstream: pkg/registry/core/persistentvolumeclaim/storage/storage.go, pkg/api/persistentvolumeclaim.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import ATTRIBUTES_GATE, BETA_CLASS, claim_spec_warnings, default_claim_spec
from tetrapod.core.v1.persistent_volume_claims import validation
from tetrapod.core.v1.persistent_volume_claims.strategy import ClaimStrategy
from tetrapod.core.v1.persistent_volume_claims.table import TABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.gvk import Object

_FIELDS: Final = FieldGates(GatedFields(ATTRIBUTES_GATE, ("spec.volumeAttributesClassName",)))
_STATUS_FIELDS: Final = FieldGates(
    GatedFields("CSIVolumeHealth", ("status.healthStatus",)),
    GatedFields(ATTRIBUTES_GATE, ("status.currentVolumeAttributesClassName",)),
    GatedFields(ATTRIBUTES_GATE, ("status.modifyVolumeStatus",)),
)


def definition() -> ResourceDefinition:
    """Return the resource definition of persistentvolumeclaims: versions, strategy, subresources and columns."""
    strategy = ClaimStrategy(
        defaults=set_defaults,
        has_status=True,
        return_deleted_object=True,
        validator=validation.validate,
        whole_update_validator=validation.validate_update,
        warnings=warnings,
        revalidates_generate_name="after finalizers",
        gated_fields=_FIELDS,
    )
    return builtin(
        "",
        "persistentvolumeclaims",
        strategy,
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, validate=validation.validate_status, gated=_STATUS_FIELDS)},
    )


def warnings(claim: Object, old: Object | None) -> list[str]:
    """Return warnings about the storage class annotation, which is deprecated, and about the claim's spec.

    Args:
        old: not used.
    """
    out: list[str] = []
    if BETA_CLASS in (claim["metadata"].get("annotations") or {}):
        out.append(
            f'metadata.annotations[{BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
        )
    return out + claim_spec_warnings(claim.get("spec") or {}, "spec")


def set_defaults(obj: Object) -> None:
    """Set the defaults of the claim's spec (`default_claim_spec`) and a missing phase to Pending, in place."""
    default_claim_spec(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
