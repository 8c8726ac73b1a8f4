"""Values as error messages print them, and their comparison as upstream compares (apiequality.Semantic).

Label selectors and embedded metadata print their fields in the order of the Go structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FIELD_ORDER, ordered_owner

_POINTERS: Final = ("deletionGracePeriodSeconds",)


def selector(value: Mapping[str, Any] | None) -> Object | None:
    """Return a label selector as upstream prints it, or None if it is unset."""
    if value is None:
        return None
    printed: Object = {}
    if labels := value.get("matchLabels"):
        printed["matchLabels"] = dict(sorted(labels.items()))
    if expressions := value.get("matchExpressions"):
        printed["matchExpressions"] = [_requirement(e) for e in expressions]
    return printed


def _requirement(expression: Mapping[str, Any]) -> Object:
    printed: Object = {"key": expression.get("key", ""), "operator": expression.get("operator", "")}
    if values := expression.get("values"):
        printed["values"] = values
    return printed


def labels(value: Mapping[str, str] | None) -> Object | None:
    """Return labels in sorted order, or None if they are unset."""
    return None if value is None else dict(sorted(value.items()))


def metadata(value: Mapping[str, Any] | None) -> Object:
    """Return the set fields of an embedded ObjectMeta, which prints with its JSON names."""
    printed: Object = {key: value[key] for key in FIELD_ORDER if value and (value.get(key) or (key in _POINTERS and value.get(key) == 0))}
    for key in ("labels", "annotations"):
        if key in printed:
            printed[key] = dict(sorted(printed[key].items()))
    if "ownerReferences" in printed:
        printed["ownerReferences"] = [ordered_owner(owner) for owner in printed["ownerReferences"]]
    return printed


def immutable(new: Any, old: Any, path: str, shown: Any = ...) -> list[FieldError]:
    """Reject a changed value. `shown` is the value to print in the error; by default the new one."""
    return [] if same(new, old) else [field.invalid(path, new if shown is ... else shown, IMMUTABLE)]
