"""The variables `request` and `namespaceObject` of expressions (upstream: CreateNamespaceObject)."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.request import describe
from tetrapod.machinery.gvk import Object

_HIDDEN: Final = ("managedFields", "ownerReferences", "selfLink")


def admission_request(attributes: Attributes, matched_kind: Equivalent) -> Object:
    """Return the value of `request`."""
    return {**describe(attributes, matched_kind), "dryRun": attributes.dry_run, "options": attributes.options or None}


def namespace_object(namespace: Object | None) -> Any:
    """Return the value of `namespaceObject`, without hidden metadata."""
    if namespace is None:
        return None
    metadata = {key: value for key, value in namespace["metadata"].items() if key not in _HIDDEN}
    shown: Object = {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
    return shown
