"""Validation of ConfigMap, and helpers that Secret shares.

Upstream: pkg/apis/core/validation/validation.go, ValidateConfigMap and ValidateConfigMapUpdate.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import complaints
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_config_map_key

MAX_SIZE: Final = 1024 * 1024
FROZEN: Final = "field is immutable when `immutable` is set"


def decoded_size(value: str) -> int:
    """Return the number of bytes that a base64 text decodes to."""
    return len(value) * 3 // 4 - value.count("=", -2)


def validate(obj: Object) -> list[FieldError]:
    """Validate a ConfigMap: its keys and the total size of its values (at most 1 MiB)."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors: list[FieldError] = []
    size = 0
    for key in sorted(data):
        errors += complaints(is_config_map_key, key, f"data[{key}]")
        if key in binary:
            errors.append(field.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(data[key].encode("utf-8", "surrogatepass"))
    for key in sorted(binary):
        errors += complaints(is_config_map_key, key, f"binaryData[{key}]")
        size += decoded_size(binary[key])
    if size > MAX_SIZE:
        errors.append(field.too_long("[]", MAX_SIZE))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ConfigMap."""
    return frozen(new, old, "data", "binaryData") + validate(new)


def frozen(new: Object, old: Object, *parts: str) -> list[FieldError]:
    """Reject changes to an object that sets `immutable: true`: to that field first, then to the fields named in `parts`."""
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [field.forbidden("immutable", FROZEN)]
    return errors + [field.forbidden(part, FROZEN) for part in parts if (new.get(part) or {}) != (old.get(part) or {})]
