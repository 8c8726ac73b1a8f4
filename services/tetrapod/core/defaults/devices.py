"""Defaults of resource.k8s.io. Upstream: pkg/apis/resource/v1/defaults.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339


def default_claim(obj: Object) -> None:
    """Set the defaults of a ResourceClaim."""
    _default_devices((obj.get("spec") or {}).get("devices") or {})


def default_claim_template(obj: Object) -> None:
    """Set the defaults of a ResourceClaimTemplate."""
    _default_devices(((obj.get("spec") or {}).get("spec") or {}).get("devices") or {})


def _default_devices(devices: Object) -> None:
    for request in devices.get("requests") or ():
        for device_request in [
            *([request["exactly"]] if request.get("exactly") is not None else []),
            *(request.get("firstAvailable") or ()),
        ]:
            _default_request(device_request)


def _default_request(request: Object) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        toleration["operator"] = toleration.get("operator") or "Equal"


def default_taint_rule(obj: Object) -> None:
    """Set the defaults of a DeviceTaintRule."""
    if (taint := (obj.get("spec") or {}).get("taint")) is not None:
        _default_taint(taint)


def default_slice(obj: Object) -> None:
    """Set the defaults of a ResourceSlice."""
    for device in (obj.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            _default_taint(taint)


def _default_taint(taint: Object) -> None:
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = now_rfc3339()
