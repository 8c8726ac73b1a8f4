"""The comparison of immutable parts of objects, and their differences as upstream prints them.

A difference is a unified diff of internal structs as JSON.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/diff (indentation of one space, three lines of context);
apiequality.Semantic.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from tetrapod.core.validation.internal_types import INTERNAL_TYPES
from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


def immutable(new: Any, old: Any, path: str, shown: Any = ...) -> list[FieldError]:
    """Reject a changed value. `shown` is the value to print in the error; by default the new one."""
    return [] if same(new, old) else [field.invalid(path, new if shown is ... else shown, IMMUTABLE)]


def spec_difference(type_name: str, old: Object, new: Object) -> str:
    """Return the unified diff of two wire objects of an internal type, ending with a line break."""
    old_lines, new_lines = (_text(internal(type_name, value)).splitlines() for value in (old, new))
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def internal(type_name: str, wire: Object) -> Object:
    """Return a wire object as its internal Go struct prints: every field, by its Go name."""
    return INTERNAL_TYPES.struct(type_name, wire)


def internal_list(type_name: str, wires: list[Object] | None) -> list[Object] | None:
    """Return each wire object of a list as its internal Go struct prints, or None for an unset list."""
    return INTERNAL_TYPES.structs(type_name, wires)


def pod_template(template: Object) -> Object:
    """Return a pod template as upstream's internal PodTemplateSpec prints."""
    return {**go_structs.metadata(template.get("metadata")), "Spec": internal("PodSpec", template.get("spec") or {})}


def _text(value: Any) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
