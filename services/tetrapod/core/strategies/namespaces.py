"""Strategies of Namespace, its status and its `/finalize` subresource.

A namespace is deleted in two steps: DELETE sets the deletion timestamp and the phase; the namespace controller empties it and then removes
the finalizer `kubernetes` through `/finalize`. The object is removed when spec.finalizers and metadata.finalizers are both empty.
Upstream: pkg/registry/core/namespace/strategy.go and storage/storage.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.defaults.cluster import default_namespace
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name, name_is_dns_label

KUBERNETES: Final = "kubernetes"


class NamespaceStrategy(Strategy):
    """The strategy of Namespace, which adds the finalizer `kubernetes` on create and keeps spec.finalizers on update."""

    has_status = True
    initial_status: Mapping[str, Any] = {"phase": "Active"}
    field_labels = ("status.phase",)
    revalidates_generate_name = True

    def default(self, obj: Object, version: str) -> None:
        default_namespace(obj)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return name_is_dns_label(name, prefix)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        finalizers = list(spec.get("finalizers") or ())
        if KUBERNETES not in finalizers:
            finalizers.append(KUBERNETES)
        spec["finalizers"] = finalizers

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = {**(new.get("spec") or {})}
        _keep_finalizers(new, old)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_finalizers(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_finalizers(new)

    def canonicalize(self, obj: Object) -> None:
        """Set the label kubernetes.io/metadata.name to the namespace's name, overwriting any other value."""
        labels = obj["metadata"].get("labels")
        if labels is None:
            labels = obj["metadata"]["labels"] = {}
        labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        return not (new.get("spec") or {}).get("finalizers")

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase") or ""}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


def _keep_finalizers(new: Object, old: Object) -> None:
    """Copy spec.finalizers from the stored object."""
    finalizers = (old.get("spec") or {}).get("finalizers")
    new["spec"].pop("finalizers", None)
    if finalizers:
        new["spec"]["finalizers"] = finalizers


def validate_finalizers(obj: Object, *, indexed: bool = False) -> list[FieldError]:
    """Validate spec.finalizers.

    Args:
        indexed: whether error paths include the index of the finalizer. Only `/finalize` does this upstream.
    """
    errors = []
    for i, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{i}]" if indexed else "spec.finalizers"
        errors += [field.invalid(path, name, text) for text in is_qualified_name(name)]
        if "/" not in name and name != KUBERNETES:
            errors.append(field.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


class NamespaceStatusStrategy(NamespaceStrategy):
    """The strategy of `namespaces/status`."""

    has_status = False
    revalidates_generate_name = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old.get("spec", {})

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        phase = (new.get("status") or {}).get("phase")
        if new["metadata"].get("deletionTimestamp"):
            expected, condition = "Terminating", "is not empty"
        else:
            expected, condition = "Active", "is empty"
        if phase == expected:
            return []
        return [field.invalid("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` {condition}")]

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",)]


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """The strategy of `namespaces/finalize`, the only way to change spec.finalizers."""

    has_status = False
    tabular = False
    revalidates_generate_name = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = old.get("status", {})
        finalizers = (new.get("spec") or {}).get("finalizers")
        new["spec"] = {"finalizers": finalizers} if finalizers else {}

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_finalizers(new, indexed=True)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]
