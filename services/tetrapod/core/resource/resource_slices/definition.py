"""The definition, the strategy, the defaults and the columns of ResourceSlices.

Upstream: pkg/registry/resource/resourceslice/strategy.go and pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.resource import GROUP, device_taint_rules, hand_written
from tetrapod.core.resource.conversion import VERSIONS, convert_slice
from tetrapod.core.resource.resource_slices import validation as slices
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_DEVICES: Final = "spec.devices[]"
_GATES: Final = FieldGates(
    GatedFields("DRADeviceTaints", (f"{_DEVICES}.taints",)),
    GatedFields(
        "DRAPartitionableDevices",
        (
            "spec.sharedCounters|perDeviceNodeSelection",
            f"{_DEVICES}.consumesCounters|nodeName|nodeSelector|allNodes",
        ),
    ),
    GatedFields(
        "DRADeviceBindingConditions",
        (f"{_DEVICES}.bindingConditions|bindingFailureConditions|bindsToNode",),
        also="DRAResourceClaimDeviceStatus",
    ),
    GatedFields(
        "DRAConsumableCapacity",
        (f"{_DEVICES}.allowMultipleAllocations", f"{_DEVICES}.capacity{{}}.requestPolicy"),
    ),
    GatedFields("DRADeviceCompatibilityGroups", (f"{_DEVICES}.consumesCounters[].compatibilityGroups",)),
    GatedFields("DRANodeAllocatableResources", (f"{_DEVICES}.nodeAllocatableResources",)),
    GatedFields("DRAListTypeAttributes", (f"{_DEVICES}.attributes{{}}.bools|ints|strings|versions",)),
    GatedFields("DRAPartitionableDevicesType", ("spec.partitionTypeAttribute",)),
    GatedFields("DRAOptionalNodeOperations", ("spec.skipNodeOperations",)),
)


def definition() -> ResourceDefinition:
    """Return the resource definition of ResourceSlices: versions, strategy, subresources and columns."""
    strategy = SliceStrategy(
        defaults={"v1": set_defaults, "v1beta2": set_defaults, "v1beta1": set_v1beta1_defaults},
        validator=slices.validate,
        whole_update_validator=slices.validate_update,
        warnings=warnings,
        generation=("spec",),
        return_deleted_object=True,
        hand_written=hand_written.SLICE,
        fields={
            "spec.nodeName": lambda o: (o.get("spec") or {}).get("nodeName") or "",
            "spec.driver": lambda o: (o.get("spec") or {}).get("driver") or "",
            "spec.pool.name": lambda o: ((o.get("spec") or {}).get("pool") or {}).get("name") or "",
        },
    )
    return builtin(GROUP, "resourceslices", strategy, versions=VERSIONS, table=TABLE, convert=convert_slice)


class SliceStrategy(KindStrategy):
    """The strategy of ResourceSlices, which drops the fields of disabled feature gates."""

    indexed_field = "spec.nodeName"

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        if label != "metadata.name" and label not in self.field_labels:
            raise ValueError(f"field label not supported for {GROUP}/{version}, Kind=ResourceSlice: {label}")
        return label, value

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _GATES.drop(obj, {})

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Return whether the update changes the spec; then drop its fields of disabled feature gates.

        As upstream, the comparison comes first, so that a change of a dropped field increments the generation.
        """
        changed = super().changes_generation(new, old)
        _GATES.drop(new, old)
        return changed


def warnings(new: Object, old: Object | None) -> list[str]:
    """Return a warning if the driver name has uppercase letters, else []. The stored object is not used."""
    driver = (new.get("spec") or {}).get("driver") or ""
    text = f"spec.driver: driver names should be lowercase; {go_quote(driver)} contains uppercase characters"
    return [text] if driver != driver.lower() else []


def set_defaults(obj: Object) -> None:
    """Set timeAdded of device taints in a ResourceSlice, which is modified, to the current time where it is unset."""
    for device in (obj.get("spec") or {}).get("devices") or ():
        _set_device_defaults(device)


def set_v1beta1_defaults(obj: Object) -> None:
    """Set timeAdded of device taints in a v1beta1 ResourceSlice, in place, to the current time where it is unset."""
    for device in (obj.get("spec") or {}).get("devices") or ():
        _set_device_defaults(device.get("basic") or {})


def _set_device_defaults(device: Object) -> None:
    for taint in device.get("taints") or ():
        device_taint_rules.set_taint_defaults(taint)


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Node"),
        Column("Driver"),
        Column("Pool"),
        AGE,
    ),
    _row,
)
