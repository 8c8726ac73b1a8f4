"""The hand-written form of errors of the kinds of dynamic resource allocation, without DeclarativeValidationBeta.

Upstream: pkg/apis/resource/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.generic.registry.hand_written import HandWritten, Text, lower_case, path_steps
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_long_name

_REQUEST: Final = (
    "name",
    "deviceClassName",
    "selectors",
    "derivedAttributes",
    "allocationMode",
    "count",
    "tolerations[].key",
    "tolerations[].operator",
    "tolerations[].value",
    "tolerations[].effect",
    "capacity",
)
_OPAQUE: Final = ("opaque.driver", "opaque.parameters")
_BYTES: Final = Text("may not be more than 63 bytes")
_UUID_LENGTHS: Final = (32, 36, 38, 45)
_NORMALIZED: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal"
    " characters"
)
_ONE_VALUE: Final = "exactly one value must be specified"


def _key(error: FieldError, obj: Object) -> Any:
    """Return the value of a duplicate: the field that identifies the item."""
    value = error.value
    return value.get("name", value) if isinstance(value, dict) else value


def _attribute(error: FieldError, obj: Object) -> Any:
    """Return a device attribute as Go prints it; "" for one without a value."""
    value: Any = obj
    for step in path_steps(error.field):
        value = value[int(step) if isinstance(value, list) else step]
    return internal("DeviceAttribute", value) if value else ""


def _segment(error: FieldError) -> str:
    """Return the text for a segment of the name of a pool, without its number."""
    text = error.detail.partition(": ")[2] if error.detail.startswith("segment ") else error.detail
    return is_long_name("")[0] if text == "must not be empty" else text


def _segment_value(error: FieldError, obj: Object) -> Any:
    return "" if error.detail.endswith(": must not be empty") else error.value


def _share(error: FieldError) -> str:
    """Return the text for an invalid shareID, as Go's package uuid words it."""
    value = str(error.value)
    try:
        UUID(value)
    except ValueError:
        wrong = f"length: {len(value)}" if len(value) not in _UUID_LENGTHS else "format"
        return f"error validating uid: invalid UUID {wrong}"
    return _NORMALIZED


def _claim(path: str, *order: str, texts: Mapping[str, Text] | None = None) -> HandWritten:
    """Return the form of a kind with the spec of a claim.

    Args:
        path: the path of the spec.
        order: the other fields, after the spec.
        texts: the texts of their errors.
    """
    devices, request = f"{path}.devices", f"{path}.devices.requests[]"
    return HandWritten(
        "spec.metadata",
        f"{request}.name",
        f"{request}!",
        *(f"{request}.firstAvailable[].{name}" for name in _REQUEST),
        *(f"{request}.exactly.{name}" for name in _REQUEST),
        f"{devices}.constraints[].requests",
        f"{devices}.constraints[].matchAttribute",
        f"{devices}.constraints[].distinctAttribute",
        f"{devices}.constraints[]!",
        f"{devices}.config[].requests",
        *(f"{devices}.config[].{name}" for name in _OPAQUE),
        f"{path}#",
        *order,
        texts={
            **(texts or {}),
            f"FieldValueDuplicate {request}": Text(value=_key),
            f"FieldValueDuplicate {request}.firstAvailable[]": Text(value=_key),
            f"FieldValueInvalid {devices}.config[].opaque.driver": Text(lower_case),
            f"FieldValueTooLong {devices}.config[].opaque.driver": _BYTES,
            f"FieldValueInvalid {path}": Text(former=IMMUTABLE, value=_spec),
        },
        ends={request: ("exactly", "firstAvailable")},
    )


def _spec(error: FieldError, obj: Object) -> Any:
    spec = obj.get("spec") or {}
    return internal("ResourceClaimTemplateSpec" if "spec" in spec else "ResourceClaimSpec", spec)


_RESULT: Final = "status.allocation.devices.results[]"
_CONFIG: Final = "status.allocation.devices.config[]"
_DEVICE_STATUS: Final = "status.devices[]"
CLAIM: Final = _claim(
    "spec",
    "status.reservedFor",
    "status.devices[].shareID",
    "status.devices[].driver",
    "status.devices[].pool",
    "status.devices[].device",
    "status.devices[]!",
    "status.devices[].conditions",
    "status.devices[].data",
    "status.devices[].networkData.interfaceName",
    "status.devices[].networkData.hardwareAddress",
    *(f"{_RESULT}.{name}" for name in ("request", "driver", "pool", "device", "bindingConditions", "shareID")),
    *(f"{_CONFIG}.{name}" for name in ("source", "requests", *_OPAQUE)),
    texts={
        "FieldValueDuplicate status.reservedFor[]": Text(value=lambda error, _: error.value["uid"]),
        "FieldValueInvalid status.allocation": Text(
            IMMUTABLE,
            "field cannot be modified once set",
            lambda _, obj: internal("AllocationResult", obj["status"].get("allocation") or {}),
        ),
        f"FieldValueInvalid {_CONFIG}.opaque.driver": Text(lower_case),
        f"FieldValueTooLong {_CONFIG}.opaque.driver": _BYTES,
        **{
            f"{kind} {path}.{name}": text
            for path in (_RESULT, _DEVICE_STATUS)
            for kind, name, text in (
                ("FieldValueInvalid", "driver", Text(lower_case)),
                ("FieldValueTooLong", "driver", _BYTES),
                ("FieldValueInvalid", "pool", Text(_segment, value=_segment_value)),
                ("FieldValueInvalid", "shareID", Text(_share)),
            )
        },
    },
)
TEMPLATE: Final = _claim("spec.spec")
CLASS: Final = HandWritten(
    "spec.selectors",
    *(f"spec.config[].{name}" for name in _OPAQUE),
    "spec.extendedResourceName",
    texts={
        "FieldValueInvalid spec.config[].opaque.driver": Text(lower_case),
        "FieldValueTooLong spec.config[].opaque.driver": _BYTES,
        "FieldValueInvalid spec.extendedResourceName": Text("must be a valid extended resource name"),
    },
)
_DEVICE: Final = "spec.devices[]"
SLICE: Final = HandWritten(
    "spec.driver",
    "spec.pool.name",
    "spec.pool.resourceSliceCount",
    "spec.pool.generation",
    "spec.pool.name#",
    "spec.driver#",
    "spec.nodeName#",
    "spec.nodeName",
    "spec.nodeSelector",
    "spec.allNodes",
    "spec.perDeviceNodeSelection",
    "spec!",
    f"{_DEVICE}.name",
    f"{_DEVICE}.attributes",
    f"{_DEVICE}.capacity",
    f"{_DEVICE}.taints[].key",
    f"{_DEVICE}.taints[].value",
    f"{_DEVICE}.taints[].effect",
    f"{_DEVICE}.consumesCounters[].counterSet",
    f"{_DEVICE}.consumesCounters[].counters",
    f"{_DEVICE}.nodeName",
    f"{_DEVICE}.nodeSelector",
    f"{_DEVICE}.allNodes",
    f"{_DEVICE}.nodeAllocatableResources",
    f"{_DEVICE}!",
    "spec.sharedCounters[].name",
    "spec.sharedCounters[].counters",
    "spec.skipNodeOperations",
    texts={
        f"FieldValueInvalid {_DEVICE}.attributes[]": Text(_ONE_VALUE, value=_attribute),
        "FieldValueDuplicate spec.sharedCounters[]": Text(value=_key),
        f"FieldValueDuplicate {_DEVICE}": Text(value=_key),
    },
)
