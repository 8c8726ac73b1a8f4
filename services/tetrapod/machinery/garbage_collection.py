"""Detection of updates that change only metadata which the garbage collector manages."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import Object

_IGNORED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "selfLink", "resourceVersion"})
_TYPE: Final = frozenset({"apiVersion", "kind", "metadata"})
_EMPTY: Final[tuple[Any, ...]] = (None, [], {})


def only_owners_and_finalizers_differ(new: Object, old: Object) -> bool:
    """Return whether an update changes nothing except owner references, finalizers, managedFields and resourceVersion.

    Null, empty lists and empty objects equal missing values. `apiVersion` and `kind` are ignored.

    Upstream: pkg/registry/rbac/helpers.go, IsOnlyMutatingGCFields.
    """
    return _compared(new) == _compared(old)


def _compared(obj: Object) -> dict[str, Any]:
    rest = {key: value for key, value in obj.items() if key not in _TYPE and value not in _EMPTY}
    metadata = {
        key: value for key, value in obj["metadata"].items() if key not in _IGNORED and value not in (*_EMPTY, "")
    }
    return {**rest, "metadata": metadata}
