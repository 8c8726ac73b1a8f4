"""The fields of claims that belong to feature gates.

Upstream: pkg/api/resourceclaimspec/util.go, and pkg/registry/resource/resourceclaim/strategy.go,
dropDisabledStatusFields.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields

_RESULTS: Final = "status.allocation.devices.results[]"
_ADMIN_ACCESS: Final = "spec.devices.requests[].exactly.adminAccess"


def _capacities(devices: str) -> tuple[str, ...]:
    """Return the paths of the fields of DRAConsumableCapacity in a spec.

    Args:
        devices: the path of the field `devices`.
    """
    return (
        f"{devices}.constraints[].distinctAttribute",
        f"{devices}.requests[].exactly.capacity",
        f"{devices}.requests[].firstAvailable[].capacity",
    )


def spec_fields(spec: str) -> FieldGates:
    """Return the gated fields of the spec of a claim.

    Args:
        spec: its path, such as "spec.spec" in a claim template.
    """
    devices = f"{spec}.devices"
    requests = f"{devices}.requests[]"
    return FieldGates(
        GatedFields("DRAPrioritizedList", (f"{requests}.firstAvailable",)),
        GatedFields("DRADeviceTaints", (f"{requests}.exactly.tolerations", f"{requests}.firstAvailable[].tolerations")),
        GatedFields("DRAAdminAccess", (f"{requests}.exactly.adminAccess",)),
        GatedFields("DRAConsumableCapacity", _capacities(devices)),
        GatedFields(
            "DRADerivedAttributes",
            (f"{requests}.exactly.derivedAttributes", f"{requests}.firstAvailable[].derivedAttributes"),
        ),
    )


STATUS_FIELDS: Final = FieldGates(
    GatedFields("DRAResourceClaimDeviceStatus", ("status.devices",)),
    GatedFields("DRAAdminAccess", (f"{_RESULTS}.adminAccess",), signs=(_ADMIN_ACCESS,)),
    GatedFields(
        "DRAConsumableCapacity",
        (f"{_RESULTS}.shareID|consumedCapacity", "status.devices[].shareID"),
        signs=_capacities("spec.devices"),
    ),
    GatedFields("DRADeviceBindingConditions", (f"{_RESULTS}.bindingConditions|bindingFailureConditions",)),
    GatedFields("DRAOptionalNodeOperations", (f"{_RESULTS}.skipNodeOperations",)),
)
"""The gated fields of the status of a claim."""
