"""Differences of immutable parts of an object, as upstream prints them: a unified diff of internal structs as JSON.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/diff (indentation of one space, three lines of context).
"""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

from tetrapod.core.validation import shown
from tetrapod.core.validation.internal_types import fields_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_ZEROES: Final[dict[str, Any]] = {"": "", "int": 0, "bool": False, "port": 0, "quantity": "0"}


def spec_difference(type_name: str, old: Object, new: Object) -> str:
    """Return the unified diff of two wire objects of an internal type, ending with a line break."""
    old_lines, new_lines = (_text(internal(type_name, value)).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def internal(type_name: str, wire: Object) -> Object:
    """Return a wire object as its internal Go struct prints: every field, by its Go name."""
    struct: Object = {}
    for go in fields_of(type_name):
        if go.kind == "+":
            struct.update(internal(go.type, wire))
        elif go.kind == "meta":
            struct.update(shown.metadata(wire.get(go.key)))
        else:
            struct[go.name] = _value(go.kind, go.type, wire.get(go.key))
    return struct


def internal_list(type_name: str, wires: list[Object] | None) -> list[Object] | None:
    """Return each wire object of a list as its internal Go struct prints, or None for an unset list."""
    return None if wires is None else [internal(type_name, wire) for wire in wires]


def pod_template(template: Object) -> Object:
    """Return a pod template as upstream's internal PodTemplateSpec prints."""
    return {**shown.metadata(template.get("metadata")), "Spec": internal("PodSpec", template.get("spec") or {})}


def _value(kind: str, type_name: str, value: Any) -> Any:
    match kind:
        case "*":
            return None if value is None else internal(type_name, value)
        case "=":
            return internal(type_name, value or {})
        case "[]":
            return internal_list(type_name, value)
        case "map":
            return dict(sorted(value.items())) if value else None
        case "resources":
            return None if value is None else {name: str(Quantity.of(value[name])) for name in sorted(value)}
        case "selector":
            return shown.selector(value)
        case "list":
            return value
        case "quantity":
            return str(Quantity.of(value))
        case "ptr" | "wire":
            return value
        case _:
            return _ZEROES[kind] if value is None else value


def _text(value: Any) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
