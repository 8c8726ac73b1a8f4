"""Strategies of DeviceClass and ResourceSlice, and the fields of resource.k8s.io whose feature gates are off.

Upstream: pkg/registry/resource/{deviceclass,resourceslice}/strategy.go and pkg/api/resourceclaimspec/util.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

GROUP: Final = "resource.k8s.io"
_LISTS: Final = ("bools", "ints", "strings", "versions")


class DeviceClassStrategy(KindStrategy):
    """The strategy of DeviceClass: a change of labels increments the generation too."""

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("labels") != old["metadata"].get("labels")


class SliceStrategy(KindStrategy):
    """The strategy of ResourceSlice."""

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        if label != "metadata.name" and label not in self.field_labels:
            raise ValueError(f"field label not supported for {GROUP}/{version}, Kind=ResourceSlice: {label}")
        return label, value

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _drop_of_slice(obj.get("spec") or {})

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Compare before dropping disabled fields, as upstream does: a change of a dropped field increments the generation."""
        changed = super().changes_generation(new, old)
        _drop_of_slice(new.get("spec") or {})
        return changed


def drop_of_requests(requests: list[Object]) -> None:
    """Drop the field of claim requests that is behind the gate DRADerivedAttributes."""
    for request in requests:
        for device_request in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            device_request.pop("derivedAttributes", None)


def drop_of_results(results: list[Object]) -> None:
    """Drop the field of allocation results that is behind the gate DRAOptionalNodeOperations."""
    for result in results:
        result.pop("skipNodeOperations", None)


def _drop_of_slice(spec: Object) -> None:
    """Drop the fields of a ResourceSlice spec whose gates are off.

    The gates are DRAPartitionableDevicesType, DRAOptionalNodeOperations, DRANodeAllocatableResources, DRADeviceCompatibilityGroups and
    DRAListTypeAttributes.
    """
    for name in ("partitionTypeAttribute", "skipNodeOperations"):
        spec.pop(name, None)
    for device in spec.get("devices") or ():
        device.pop("nodeAllocatableResources", None)
        for consumed in device.get("consumesCounters") or ():
            consumed.pop("compatibilityGroups", None)
        for attribute in (device.get("attributes") or {}).values():
            for list_type in _LISTS:
                attribute.pop(list_type, None)


def slice_warnings(new: Object, old: Object | None) -> list[str]:
    """Return a warning if the driver name is not lowercase."""
    driver = (new.get("spec") or {}).get("driver") or ""
    text = f"spec.driver: driver names should be lowercase; {go_quote(driver)} contains uppercase characters"
    return [text] if driver != driver.lower() else []
