"""The target, the rules of fields and the table cells that Evictions and EvictionRequests share.

Upstream: k8s.io/api/lifecycle/v1alpha1/types.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import UNSET, spec_of, status_of
from tetrapod.core.validation.declared import Field, Type, at_least, long_name, not_decreased, uuid
from tetrapod.machinery.field import FieldError, invalid
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_long_name

GROUP: Final = "lifecycle.k8s.io"
MAX_LISTED: Final = 100
"""The most conditions, and the most requesters, in a status."""
_POD: Final = Type({"name": Field((long_name,), required=True), "uid": Field((uuid,), required=True)})
TARGET: Final = Field(type=Type({"pod": Field(type=_POD)}, union=("pod",)), embedded=True, immutable=True)
STATUS_FIELDS: Final = {
    "conditions": Field(max_items=MAX_LISTED),
    "observedGeneration": Field((at_least(1), not_decreased), pointer=True, no_unset=True),
}


def validate_name(name: str, prefix: bool) -> list[str]:
    """Return the errors of metadata.name. It implements the field `name_validator` of `KindStrategy`.

    Args:
        name: the name, or the prefix of a generated one.
        prefix: whether it is such a prefix, which upstream does not validate.
    """
    return [] if prefix else is_long_name(name)


def missing_name(obj: Object) -> list[FieldError]:
    """Return the errors of a new object without a name besides the one that it is required.

    The declared rule of the name also applies to an empty one.
    """
    if obj["metadata"].get("name"):
        return []
    return [invalid("metadata.name", "", text) for text in is_long_name("")]


def target_cells(obj: Object) -> list[Any]:
    """Return two cells of a table: the name and the type of the target."""
    pod = (spec_of(obj).get("target") or {}).get("pod")
    return [UNSET, UNSET] if pod is None else [pod.get("name") or "", "Pod"]


def state_cell(obj: Object) -> str:
    """Return the state of an Eviction or EvictionRequest as kubectl shows it.

    Upstream: resolveEvictionStatusConditions.
    """
    status = status_of(obj)
    state = "Progressing" if (status.get("observedGeneration") or 0) > 0 else "Pending"
    for kind in ("Failed", "TargetEvicted"):
        condition = condition_of(status, kind)
        if condition is not None and condition.get("status") == "True":
            state = f"{kind} ({condition.get('reason') or ''})"
    return state


def condition_of(status: Object, kind: str) -> Object | None:
    """Return the first condition of a type in a status, or None."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), None)
