"""Namespace, its status and its `/finalize` subresource.

A namespace is deleted in two steps. DELETE sets the deletion timestamp and the phase Terminating. The namespace
controller empties it and then removes the finalizer `kubernetes` through `/finalize`. The object is removed when
spec.finalizers and metadata.finalizers are empty.
Upstream: pkg/registry/core/namespace/strategy.go and storage/storage.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, status_of
from tetrapod.generic.registry import dryrun
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.propagation import deletion_finalizers
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Revalidation, Strategy
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.writes import Preconditions, Updated
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name, name_is_dns_label
from tetrapod.machinery.status import conflict
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timestamps import now_rfc3339

KUBERNETES: Final = "kubernetes"


TABLE: Final = TableConvertor(
    (NAME, Column("Status"), AGE),
    lambda obj: [name_of(obj), status_of(obj).get("phase", ""), age(obj)],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of namespaces: versions, strategy, subresources and columns."""
    subresources = {"finalize": NamespaceFinalizeStrategy(), "status": NamespaceStatusStrategy()}
    for strategy in subresources.values():
        strategy.namespaced = False
    return replace(
        builtin("", "namespaces", NamespaceStrategy(), table=TABLE, subresources=subresources), store=NamespaceStore
    )


class NamespaceStrategy(Strategy):
    """The strategy of Namespace.

    Create adds the finalizer `kubernetes` to spec.finalizers; update keeps the stored spec.finalizers.
    """

    has_status = True
    initial_status: Mapping[str, Any] = {"phase": "Active"}
    field_labels = ("status.phase",)
    unsafe_deletion = False
    revalidates_generate_name: Revalidation = "before finalizers"

    def default(self, obj: Object, version: str) -> None:
        set_defaults(obj)

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
    """Replace spec.finalizers of `new` by those of the stored object; `new` must have a spec."""
    finalizers = (old.get("spec") or {}).get("finalizers")
    new["spec"].pop("finalizers", None)
    if finalizers:
        new["spec"]["finalizers"] = finalizers


def validate_finalizers(obj: Object, *, indexed: bool = False) -> list[FieldError]:
    """Validate spec.finalizers: each must be `kubernetes` or a name with a domain.

    Args:
        indexed: whether error paths include the index of the finalizer. Only `/finalize` does this upstream.
    """
    errors = []
    for i, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{i}]" if indexed else "spec.finalizers"
        errors += [field.invalid(path, name, text) for text in is_qualified_name(name)]
        if "/" not in name and name != KUBERNETES:
            errors.append(
                field.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
            )
    return errors


class NamespaceStatusStrategy(NamespaceStrategy):
    """The strategy of `namespaces/status`. The phase must be Terminating exactly if deletionTimestamp is set."""

    has_status = False
    revalidates_generate_name: Revalidation = "never"

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
        text = f"may only be '{expected}' if `deletionTimestamp` {condition}"
        return [field.invalid("status.Phase", field.TypedText(phase or ""), text)]

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",)]


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """The strategy of `namespaces/finalize`, the only way to change spec.finalizers."""

    has_status = False
    tabular = False
    revalidates_generate_name: Revalidation = "never"

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = old.get("status", {})
        finalizers = (new.get("spec") or {}).get("finalizers")
        new["spec"] = {"finalizers": finalizers} if finalizers else {}

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_finalizers(new, indexed=True)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class NamespaceStore(Store):
    """A store whose DELETE first sets deletionTimestamp and the phase Terminating of a namespace.

    The namespace is removed only once both spec.finalizers and metadata.finalizers are empty.
    """

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        entry = await self.get(ctx, name)
        namespace = entry.peek()
        requested = options.get("preconditions") or {}
        self._check_preconditions(name, namespace["metadata"], requested)
        preconditions = Preconditions(
            requested.get("uid") or namespace["metadata"].get("uid"), requested.get("resourceVersion")
        )
        options["preconditions"] = {**requested, "uid": preconditions.uid}  # admission sees it, as upstream's
        if namespace["metadata"].get("deletionTimestamp"):
            if (namespace.get("spec") or {}).get("finalizers"):
                return entry, False
            return await super().delete(ctx, name, options, validate)

        async def mark(current: Object | None, _: Entry | None) -> Updated | None:
            assert current is not None
            if validate is not None:
                await validate(current)
            meta = current["metadata"]
            meta.setdefault("deletionTimestamp", now_rfc3339())
            finalizers = deletion_finalizers(self.strategy, meta.get("finalizers") or [], options)
            if finalizers is not None:
                meta.pop("finalizers", None)
                if finalizers:
                    meta["finalizers"] = finalizers
            current.setdefault("status", {})["phase"] = "Terminating"
            return Updated(current)

        with Translated(self.resource, name, "delete", self.path(name)):
            if ctx.dry_run:
                return await dryrun.guaranteed_update(
                    self.storage, self.key(ctx, name), mark, preconditions, False
                ), False
            marked = await self.storage.guaranteed_update(self.key(ctx, name), mark, preconditions=preconditions)
        remaining_finalizers = (marked.peek().get("spec") or {}).get("finalizers") or marked.peek()["metadata"].get(
            "finalizers"
        )
        if remaining_finalizers:
            return marked, False
        return await super().delete(ctx, name, {}, None)

    def _check_preconditions(self, name: str, meta: Object, preconditions: Object) -> None:
        """Compare the preconditions of the delete options with the stored metadata.

        Raises:
            StatusError: 409, a precondition does not hold.
        """
        for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            value, actual = preconditions.get(key), meta.get(key, "")
            if value is not None and value != actual:
                message = f"Precondition failed: {label} in precondition: {value}, {label} in object meta: {actual}"
                raise conflict(self.resource, name, message)


def set_defaults(obj: Object) -> None:
    """Set a missing phase to Active and, if there is a name, the label kubernetes.io/metadata.name, in place."""
    status = obj.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Active"
    name = obj["metadata"].get("name")
    if name:  # with generateName, the label is set once the name is known
        labels = obj["metadata"].get("labels")
        if labels is None:
            labels = obj["metadata"]["labels"] = {}
        labels["kubernetes.io/metadata.name"] = name
