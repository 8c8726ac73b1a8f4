"""Rules that ConfigMap and Secret share: the size of their values, and data that cannot change."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

MAX_SIZE: Final = 1024 * 1024
FROZEN: Final = "field is immutable when `immutable` is set"


def decoded_size(value: str) -> int:
    """Return the number of bytes that a valid Base64 text decodes to, computed from its length."""
    return len(value) * 3 // 4 - value.count("=", -2)


def frozen(new: Object, old: Object, *parts: str) -> list[FieldError]:
    """Reject changes to an object whose stored version has `immutable: true`.

    Args:
        parts: the top-level fields that must not change then. `immutable` must not change either.
    """
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [field.forbidden("immutable", FROZEN)]
    return errors + [field.forbidden(part, FROZEN) for part in parts if (new.get(part) or {}) != (old.get(part) or {})]
