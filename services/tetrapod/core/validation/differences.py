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
    """Return an error unless the values are equal, as `same` compares them: null and [] equal a missing value.

    Args:
        new: the new value.
        old: the stored value.
        path: the field path of the value, for the error.
        shown: the value to print in the error; by default the new one.
    """
    return [] if same(new, old) else [field.invalid(path, new if shown is ... else shown, IMMUTABLE)]


def spec_difference(type_name: str, old: Object, new: Object) -> str:
    """Return the unified diff that upstream prints of two objects, "" if they are equal, else ending with a line break.

    Args:
        type_name: the type of the objects in `INTERNAL_TYPES`.
        old: the stored object, in its JSON form.
        new: the new object, in its JSON form.
    """
    old_lines, new_lines = (_text(internal(type_name, value)).split("\n") for value in (old, new))
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def internal(type_name: str, wire: Object) -> Object:
    """Return an object as Go prints upstream's internal struct for it: every field in order, by its Go name.

    Args:
        type_name: the type of the object in `INTERNAL_TYPES`.
        wire: the object in its JSON form.
    """
    return INTERNAL_TYPES.struct(type_name, wire)


def internal_list(type_name: str, wires: list[Object] | None) -> list[Object] | None:
    """Return `internal` of each object of a list, or None for an unset list."""
    return INTERNAL_TYPES.structs(type_name, wires)


def pod_template(template: Object) -> Object:
    """Return a pod template as Go prints upstream's internal PodTemplateSpec."""
    return {**go_structs.metadata(template.get("metadata")), "Spec": internal("PodSpec", template.get("spec") or {})}


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False).translate(field.HTML)
