"""Checks of file paths in volumes and mounts (upstream: validatePathNoBacksteps and its neighbours)."""

from __future__ import annotations

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError


def no_backsteps(value: str, path: str) -> list[FieldError]:
    return [field.invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def descending(value: str, path: str) -> list[FieldError]:
    """Relative, and below where it starts."""
    errors = [field.invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + no_backsteps(value, path)


def not_reserved(value: str, path: str) -> list[FieldError]:
    """Names that begin with two dots are the kubelet's own."""
    errors = descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(field.invalid(path, value, "must not start with '..'"))
    return errors


def file_mode(mode: int | None, path: str) -> list[FieldError]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [field.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
