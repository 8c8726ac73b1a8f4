"""Values as refusals print them, and their comparison as upstream compares (apiequality.Semantic).

A label selector prints with its fields in the order of the Go struct; metadata inside another object prints its fields likewise.
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
    if value is None:
        return None
    found: Object = {}
    if labels := value.get("matchLabels"):
        found["matchLabels"] = dict(sorted(labels.items()))
    if expressions := value.get("matchExpressions"):
        found["matchExpressions"] = [_requirement(e) for e in expressions]
    return found


def _requirement(expression: Mapping[str, Any]) -> Object:
    found: Object = {"key": expression.get("key", ""), "operator": expression.get("operator", "")}
    if values := expression.get("values"):
        found["values"] = values
    return found


def labels(value: Mapping[str, str] | None) -> Object | None:
    return None if value is None else dict(sorted(value.items()))


def metadata(value: Mapping[str, Any] | None) -> Object:
    """The set fields of an embedded ObjectMeta, which keeps its names on the wire."""
    found: Object = {key: value[key] for key in FIELD_ORDER if value and (value.get(key) or (key in _POINTERS and value.get(key) == 0))}
    for key in ("labels", "annotations"):
        if key in found:
            found[key] = dict(sorted(found[key].items()))
    if "ownerReferences" in found:
        found["ownerReferences"] = [ordered_owner(owner) for owner in found["ownerReferences"]]
    return found


def immutable(new: Any, old: Any, path: str, shown: Any = ...) -> list[FieldError]:
    """A value that an update must leave; `shown` is its form in the refusal."""
    return [] if same(new, old) else [field.invalid(path, new if shown is ... else shown, IMMUTABLE)]
