"""Fields of resource.k8s.io whose feature gates are off. Upstream: pkg/api/resourceclaimspec/util.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def drop_disabled_request_fields(requests: list[Object]) -> None:
    """Drop the field of claim requests that is behind the gate DRADerivedAttributes."""
    for request in requests:
        for device_request in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            device_request.pop("derivedAttributes", None)


def drop_disabled_result_fields(results: list[Object]) -> None:
    """Drop the field of allocation results that is behind the gate DRAOptionalNodeOperations."""
    for result in results:
        result.pop("skipNodeOperations", None)
