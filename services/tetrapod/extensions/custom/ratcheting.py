"""Validation ratcheting: an update is not refused for what it left as it was.

Of the complaints about the new object those are dropped that concern a value which the old object has too, in the same place: the
same property, or the list-map element of the same keys; elements of other lists have no place of their own. Upstream:
WithRatcheting of apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go and apiserver/pkg/cel/common (CorrelatedObject).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tetrapod.machinery.equality import identical
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.shapes.node import SchemaNode

_ABSENT: Final = object()
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)" must| in (\S*)$').search


def ratchet(node: SchemaNode, new: Any, old: Any, errors: list[FieldError]) -> list[FieldError]:
    return [e for e in errors if not _unchanged(node, new, old, _path(e))] if errors else errors


def _path(error: FieldError) -> str:
    """Complaints about several schemas at once, and about formats of numbers, name their place in the text only."""
    if error.field != "<nil>":
        return error.field
    found = _NAMED(error.detail)
    return (found[1] or found[2] or "") if found else ""


def _unchanged(node: SchemaNode | None, new: Any, old: Any, path: str) -> bool:
    """Whether the value at a path, or what it is part of, is what it was."""
    if old is _ABSENT:
        return False
    if identical(new, old):
        return True
    if not path:
        return False
    return any(_unchanged(*step) for step in _steps(node, new, old, path))


def _steps(node: SchemaNode | None, new: Any, old: Any, path: str) -> Iterator[tuple[SchemaNode | None, Any, Any, str]]:
    """One step down a path; names may have dots in them, so there may be several readings."""
    if isinstance(new, dict):
        for key, value in new.items():
            if path == key or path.startswith((f"{key}.", f"{key}[")):
                child = None if node is None else node.properties.get(key) or node.additional_properties
                before = old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT
                yield child, value, before, path[len(key) :].removeprefix(".")
    elif isinstance(new, list) and (found := re.match(r"\[(\d+)\]\.?", path)) and int(found[1]) < len(new):
        value = new[int(found[1])]
        yield None if node is None else node.items, value, _same_element(node, value, old), path[found.end() :]


def _same_element(node: SchemaNode | None, value: Any, old: Any) -> Any:
    if node is None or node.list_type != "map" or not isinstance(old, list) or not isinstance(value, dict):
        return _ABSENT
    keys = [value.get(key) for key in node.list_map_keys]
    return next((item for item in old if isinstance(item, dict) and [item.get(k) for k in node.list_map_keys] == keys), _ABSENT)
