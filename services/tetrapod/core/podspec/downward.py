"""Validation of downward API references to a pod's own fields and resources, in environment variables and volumes.

Upstream: validateObjectFieldSelector, validateContainerResourceFieldSelector, ConvertDownwardAPIFieldLabel.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import qualified_name
from tetrapod.core.validation.quantities import quantity
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

ENV_FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
VOLUME_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_KNOWN: Final = ENV_FIELDS | VOLUME_FIELDS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}

RESOURCES: Final = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_SIZES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def field_ref(ref: Object, allowed: frozenset[str], path: str) -> list[FieldError]:
    """Validate a fieldRef: apiVersion and fieldPath are required, and the path is known in this version and allowed.

    Args:
        allowed: the field paths that are allowed, in their v1 form. A label or annotation with a subscript, such as
            metadata.labels['app'], is always allowed.
        path: the field path of the reference, for the errors.
    """
    version, label = ref.get("apiVersion") or "", ref.get("fieldPath") or ""
    if not version:
        return [field.required(f"{path}.apiVersion")]
    if not label:
        return [field.required(f"{path}.fieldPath")]
    subscripted = _subscripted(label)
    converted, error_text = _convert(version, label, subscripted)
    if error_text:
        return [field.invalid(f"{path}.fieldPath", label, f"error converting fieldPath: {error_text}")]
    if subscripted:
        of, key = subscripted
        return qualified_name(key.lower() if of == "metadata.annotations" else key, path)
    return [] if converted in allowed else [field.not_supported(f"{path}.fieldPath", converted, allowed)]


def _subscripted(label: str) -> tuple[str, str] | None:
    """Return the parts of a label with a subscript: ("metadata.labels", "app") for metadata.labels['app'], else None.

    Upstream: pkg/fieldpath/fieldpath.go, SplitMaybeSubscriptedPath
    """
    if not label.endswith("']"):
        return None
    of, bracket, key = label[:-2].partition("['")
    return (of, key) if of and bracket else None


def _convert(version: str, label: str, subscripted: tuple[str, str] | None) -> tuple[str, str]:
    """Convert a field path of this API version to its v1 form: ("spec.nodeName", ""), or ("", an error text).

    Args:
        subscripted: the parts of a label with a subscript (`_subscripted`), else None.
    """
    if version != "v1":
        return "", f"unsupported pod version: {version}"
    if subscripted:
        if subscripted[0] in ("metadata.annotations", "metadata.labels"):
            return label, ""
        return "", f"field label does not support subscript: {label}"
    if label == "spec.host":
        return "spec.nodeName", ""
    return (label, "") if label in _KNOWN else ("", f"field label not supported: {label}")


def resource_ref(ref: Object, path: str, *, volume: bool) -> list[FieldError]:
    """Validate a resourceFieldRef: the resource is one of those that the downward API offers, and the divisor fits it.

    Args:
        path: the field path of the reference, for the errors.
        volume: whether it is in a volume, where containerName is required.
    """
    name = ref.get("resource") or ""
    errors: list[FieldError] = []
    if volume and not ref.get("containerName"):
        errors.append(field.required(f"{path}.containerName"))
    elif not name:
        errors.append(field.required(f"{path}.resource"))
    elif name not in RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.append(field.not_supported(f"{path}.resource", name, RESOURCES, typed=False))
    return errors + _divisor(name, ref.get("divisor"), f"{path}.divisor")


def _divisor(name: str, value: object, path: str) -> list[FieldError]:
    divisor = quantity(value)
    if divisor.is_zero:
        return []
    kind = name.partition(".")[2]
    allowed: tuple[str, ...]
    if kind == "cpu":
        allowed, text = ("1m", "1"), "1m and 1 are supported with the cpu resource"
    elif kind == "memory":
        allowed, text = _SIZES, f"{', '.join(_SIZES)} are supported with the memory resource"
    elif kind == "ephemeral-storage":
        allowed, text = _SIZES, f"{', '.join(_SIZES)} are supported with the local ephemeral storage resource"
    elif name.startswith(_HUGE_PAGES):
        allowed, text = _SIZES, f"{', '.join(_SIZES)} are supported with the hugepages resource"
    else:
        return []
    return [] if str(divisor) in allowed else [field.invalid(path, name, f"only divisor's values {text}")]
