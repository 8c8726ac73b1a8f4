"""Validation of an applied configuration against its type, with upstream's error texts and paths.

Upstream: sigs.k8s.io/structured-merge-diff/typed/validate.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.equality import identical
from tetrapod.machinery.error_limits import MAX_ERRORS, cut_path, more
from tetrapod.machinery.fieldmanager.pathelement import show
from tetrapod.machinery.fieldmanager.typed import LIST, MAP, SchemaError, Type
from tetrapod.machinery.freeing import free_members
from tetrapod.machinery.golang.formatting import GoValue, plain, syntax, type_name


def validate(value: Any, value_type: Type, *, allow_duplicates: bool = False) -> list[str]:
    """Return the errors of a whole object, each a text with its path; [] if it matches its type.

    After MAX_ERRORS errors, the last text says that there are more.

    Args:
        value: the object.
        value_type: its type.
        allow_duplicates: whether lists may have several elements with the same key or value.
    """
    errors = _value(value, value_type, allow_duplicates)
    texts = [f"{cut_path(path)}: {message}" if path else message for path, message in errors[:MAX_ERRORS]]
    return [*texts, more(0)] if len(errors) > MAX_ERRORS else texts


def differing(old: Any, new: Any, levels: int = 2) -> Any:
    """Return an object without the fields that another one has too.

    If the other object is valid, this part has all errors of the object. Comparing is much quicker than validating.

    Args:
        old: the object.
        new: the other object.
        levels: how many levels of fields are compared: with two, those of the object and of its spec and status.
    """
    if not levels or not isinstance(old, dict) or not isinstance(new, dict):
        return old
    changed = [(name, member) for name, member in old.items() if not identical(member, new.get(name))]
    return {name: differing(member, new.get(name), levels - 1) for name, member in changed}


def join(errors: list[str]) -> str:
    """Return errors as one text: a single one as it is, several on a line each."""
    return errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {error}" for error in errors)])


_Errors = list[tuple[str, str]]


def _value(value: Any, value_type: Type, allow_duplicates: bool) -> _Errors:
    if value is None or (value.__class__ is str and value_type.scalar == "string"):
        return []
    kind = value_type.kind_of(value)
    if kind == MAP:
        if not isinstance(value, dict):
            return [("", f"expected map, got &{{{plain(value)}}}")]
        return _members(value, value_type, allow_duplicates)
    if kind == LIST:
        if not isinstance(value, list):
            return [("", f"expected list, got &{{{plain(value)}}}")]
        return _items(value, value_type, allow_duplicates)
    message = _scalar(value, value_type.scalar)
    return [("", message)] if message else []


def _scalar(value: Any, scalar: str) -> str:
    match scalar:
        case "numeric":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return f"expected numeric (int or float), got {type_name(value)}"
        case "string":
            if not isinstance(value, str):
                return f"expected string, got &value.valueUnstructured{{Value:{syntax(value)}}}"
        case "boolean":
            if not isinstance(value, bool):
                return f"expected boolean, got &{{{plain(value)}}}"
        case _:
            if isinstance(value, dict | list | GoValue):
                return f"expected any scalar, got &{{{plain(value)}}}"
    return ""


def _members(value: dict[str, Any], value_type: Type, allow_duplicates: bool) -> _Errors:
    errors: _Errors = []
    for name, member in value.items():
        if len(errors) > MAX_ERRORS:
            break
        member_type = value_type.field(name) or value_type.element
        if member_type is None:
            # As upstream, the first undeclared field ends the validation of the map.
            errors.append((f".{name}", "field not declared in schema"))
            break
        if member.__class__ is str and member_type.scalar == "string":
            continue  # most members, without the cost of a call
        if below := _value(member, member_type, allow_duplicates):
            errors += [(cut_path(f".{name}{path}"), message) for path, message in below]
    return errors


def _items(value: list[Any], value_type: Type, allow_duplicates: bool) -> _Errors:
    assert value_type.items is not None
    errors: _Errors = []
    seen: set[str] = set()
    for i, item in enumerate(value):
        if len(errors) > MAX_ERRORS:
            break
        element = ""
        if not value_type.list_atomic:
            try:
                element = value_type.element_of(item)
            except SchemaError as error:
                return [*errors, ("", f"element {i}: {error}")]
            if element in seen and not allow_duplicates:
                errors.append(("", f"duplicate entries for key {show(element)}"))
            seen.add(element)
        if below := _value(item, value_type.items, allow_duplicates):
            shown = show(element) if element else f"[{i}]"
            errors += [(cut_path(shown + path), message) for path, message in below]
    free_members(seen)
    return errors
