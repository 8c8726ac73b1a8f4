"""Conversion of the kinds of resource.k8s.io between v1beta1 and the later versions, whose structure is that of v1.

In v1beta1 the fields of a device are below `basic`, and those of an exact device request in the request itself.
Upstream: pkg/apis/resource/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.core.resource import GROUP
from tetrapod.machinery.gvk import Object

VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
"""The versions of all kinds but DeviceTaintRule, in order of preference."""
_OLD: Final = "v1beta1"
EXACT_FIELDS: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)
"""The fields of an exact device request, in the order of the type."""


def convert_claim(obj: Object, version: str) -> Object:
    """Return a copy of a ResourceClaim in `version`. The copy may share nested objects."""
    return _converted(obj, version, ("spec", "devices", "requests"), _request_to_v1beta1, request_from_v1beta1)


def convert_claim_template(obj: Object, version: str) -> Object:
    """Return a copy of a ResourceClaimTemplate in `version`. The copy may share nested objects."""
    path = ("spec", "spec", "devices", "requests")
    return _converted(obj, version, path, _request_to_v1beta1, request_from_v1beta1)


def convert_slice(obj: Object, version: str) -> Object:
    """Return a copy of a ResourceSlice in `version`. The copy may share nested objects."""
    copy = _converted(obj, version, ("spec", "devices"), _device_to_v1beta1, _device_from_v1beta1)
    if version == _OLD and copy is not obj and isinstance(spec := copy.get("spec"), dict):
        # v1beta1 omits them if they are empty, and the later versions if they are unset
        copy["spec"] = {key: value for key, value in spec.items() if value or key not in ("nodeName", "allNodes")}
    return copy


def _converted(
    obj: Object,
    version: str,
    path: tuple[str, ...],
    to_old: Callable[[Object], Object],
    from_old: Callable[[Object], Object],
) -> Object:
    """Return a copy of the object in `version`.

    Args:
        obj: the object in any version.
        version: the version of the result.
        path: the path of the list whose elements differ in v1beta1.
        to_old: converts an element to v1beta1.
        from_old: converts an element from v1beta1.
    """
    is_old = obj.get("apiVersion", "").rpartition("/")[2] == _OLD
    converted = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if is_old != (version == _OLD):
        _replace(converted, path, from_old if is_old else to_old)
    return converted


def _replace(parent: Object, path: tuple[str, ...], convert: Callable[[Object], Object]) -> None:
    """Convert the elements of the list at `path`, copying only the objects on the way.

    Nothing is converted if the list, or an object on the way, is missing or null.

    Args:
        parent: an object that may be modified.
        path: the keys from it to the list.
        convert: converts an element.
    """
    *above, last = path
    for key in above:
        if not isinstance(parent.get(key), dict):
            return
        parent[key] = dict(parent[key])
        parent = parent[key]
    if parent.get(last):
        parent[last] = [convert(element) for element in parent[last]]


def _request_to_v1beta1(request: Object) -> Object:
    converted = {key: value for key, value in request.items() if key != "exactly"}
    return converted | {"deviceClassName": ""} | (request.get("exactly") or {})


def request_from_v1beta1(request: Object) -> Object:
    """Return a device request of v1beta1 in the structure of v1."""
    converted = {key: value for key, value in request.items() if key not in EXACT_FIELDS}
    exactly = {key: request[key] for key in EXACT_FIELDS if key in request}
    if any(value or isinstance(value, bool | list | dict) for value in exactly.values()):
        converted["exactly"] = exactly
    return converted


def _device_to_v1beta1(device: Object) -> Object:
    return {"name": device.get("name", ""), "basic": {key: value for key, value in device.items() if key != "name"}}


def _device_from_v1beta1(device: Object) -> Object:
    return {"name": device.get("name", "")} | (device.get("basic") or {})
