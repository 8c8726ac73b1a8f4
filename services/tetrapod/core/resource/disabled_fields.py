"""Fields of resource.k8s.io whose feature gates are off. Upstream: pkg/api/resourceclaimspec/util.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def drop_disabled_request_fields(requests: list[Object]) -> None:
    """Remove derivedAttributes from the device requests of a claim, because the gate DRADerivedAttributes is off."""
    for request in requests:
        for device_request in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            device_request.pop("derivedAttributes", None)


def drop_disabled_result_fields(results: list[Object]) -> None:
    """Remove skipNodeOperations from allocation results, because the gate DRAOptionalNodeOperations is off."""
    for result in results:
        result.pop("skipNodeOperations", None)
