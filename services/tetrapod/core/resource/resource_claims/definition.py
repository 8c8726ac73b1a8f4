"""The definition, the defaults and the columns of ResourceClaims.

Upstream: pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of, status_of
from tetrapod.core.resource import GROUP, hand_written
from tetrapod.core.resource.conversion import VERSIONS, convert_claim
from tetrapod.core.resource.resource_claims import status_validation as claim_status
from tetrapod.core.resource.resource_claims import validation as claims
from tetrapod.core.resource.resource_claims.gated import spec_fields
from tetrapod.core.resource.resource_claims.strategy import AdminStrategy, ClaimAccess, ClaimStatusStrategy
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def definition(access: ClaimAccess) -> ResourceDefinition:
    """Return the resource definition of ResourceClaims: versions, strategy, subresources and columns.

    Args:
        access: checks the rights to request devices with administrative access and to write parts of the status.
    """
    strategy = AdminStrategy(
        access,
        "ResourceClaim",
        lambda obj: ((obj.get("spec") or {}).get("devices") or {}).get("requests") or [],
        defaults={"v1": set_defaults, "v1beta2": set_defaults, "v1beta1": set_v1beta1_defaults},
        validator=claims.validate,
        whole_update_validator=claims.validate_update,
        revalidates_generate_name="before finalizers",
        has_status=True,
        return_deleted_object=True,
        hand_written=hand_written.CLAIM,
        gated_fields=spec_fields("spec"),
    )
    status = ClaimStatusStrategy(access, strategy, validate=claim_status.validate_status)
    return builtin(
        GROUP,
        "resourceclaims",
        strategy,
        versions=VERSIONS,
        table=TABLE,
        subresources={"status": status},
        convert=convert_claim,
    )


def set_defaults(obj: Object) -> None:
    """Set the defaults of the device requests in a ResourceClaim in place (`set_device_defaults`)."""
    set_device_defaults((obj.get("spec") or {}).get("devices") or {})


def set_device_defaults(devices: Object) -> None:
    """Set the defaults of the device requests of a claim or of a claim template.

    They are allocationMode ExactCount with the count 1, and the operator Equal of tolerations, also in alternatives
    (firstAvailable).

    Args:
        devices: the field of that name in the spec, which is modified.
    """
    for request in devices.get("requests") or ():
        for device_request in [
            *([request["exactly"]] if request.get("exactly") is not None else []),
            *(request.get("firstAvailable") or ()),
        ]:
            _default_request(device_request)


def set_v1beta1_defaults(obj: Object) -> None:
    """Set the defaults of the device requests in a v1beta1 ResourceClaim in place (`set_v1beta1_device_defaults`)."""
    set_v1beta1_device_defaults((obj.get("spec") or {}).get("devices") or {})


def set_v1beta1_device_defaults(devices: Object) -> None:
    """Set the defaults of the device requests of a claim or of a claim template in v1beta1.

    They are allocationMode ExactCount with the count 1, and the operator Equal of tolerations. A request without a
    device class has alternatives (firstAvailable), which get these defaults. It gets only those of its tolerations
    itself.

    Args:
        devices: the field of that name in the spec, which is modified.
    """
    for request in devices.get("requests") or ():
        if request.get("deviceClassName"):
            _default_request(request)
        else:
            _default_tolerations(request)
        for alternative in request.get("firstAvailable") or ():
            _default_request(alternative)


def _default_request(request: Object) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    _default_tolerations(request)


def _default_tolerations(request: Object) -> None:
    for toleration in request.get("tolerations") or ():
        toleration["operator"] = toleration.get("operator") or "Equal"


def _claim_state(obj: Object) -> str:
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    status = status_of(obj)
    states = ["deleted"] if deleted else []
    if status.get("allocation"):
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


TABLE: Final = TableConvertor(
    (NAME, Column("State"), AGE),
    lambda obj: [name_of(obj), _claim_state(obj), age(obj)],
)
