"""Validation of file paths in volumes and mounts.

Upstream: pkg/apis/core/validation/validation.go, validatePathNoBacksteps and related functions.
"""

from __future__ import annotations

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError


def no_backsteps(value: str, path: str) -> list[FieldError]:
    """Reject a path with the element `..`; a name such as `..data` is accepted.

    Args:
        path: the field path of the value, for the errors.
    """
    return [field.invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def descending(value: str, path: str) -> list[FieldError]:
    """Validate a relative path without the element `..`, so that it cannot leave its base directory.

    Args:
        path: the field path of the value, for the errors.
    """
    errors = [field.invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + no_backsteps(value, path)


def not_reserved(value: str, path: str) -> list[FieldError]:
    """Validate a relative path that does not start with `..`, because the kubelet uses such names itself.

    Args:
        path: the field path of the value, for the errors.
    """
    errors = descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(field.invalid(path, value, "must not start with '..'"))
    return errors


def file_mode(mode: int | None, path: str) -> list[FieldError]:
    """Validate file permissions: 0 to 0777 (octal), or None.

    Args:
        path: the field path of the value, for the errors.
    """
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [field.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
