"""The strategies of custom resources and of their status subresource.

Objects are in the storage version here. The schema, and whether status is a subresource, are those of the version of
the request.

Upstream: apiextensions-apiserver/pkg/registry/customresource (strategy.go, status_strategy.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.copying import copy_object, copy_value
from tetrapod.machinery.equality import identical
from tetrapod.machinery.field import FieldError, distinct
from tetrapod.machinery.golang.formatting import plain
from tetrapod.machinery.golang.json_numbers import integral
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.metadata import repeated_update_errors, validate_kube_finalizers, validate_object_meta
from tetrapod.machinery.schema import custom_resources


class CustomStrategy(Strategy):
    """The strategy of one custom resource.

    Attributes:
        stored: the version named `storage_version`.

    Args:
        versions: all versions by name.
        storage_version: the name of the version in which the hooks get objects. If versions have their own stores, it
            is the version of the requests.
        group: the API group.
        namespaced: whether the resource is namespaced.
    """

    allow_unconditional_update = False
    qualified_finalizers = False
    repeats_errors = True
    metadata_rules = "own"
    generation: tuple[str, ...] | None = ("spec",)

    def __init__(
        self, group: str, namespaced: bool, versions: Mapping[str, ServedVersion], storage_version: str
    ) -> None:
        self.group, self.namespaced = group, namespaced
        self.versions = versions
        self.stored = versions[storage_version]

    def version_of(self, ctx: Context) -> ServedVersion:
        """Return the version of the request, or `stored` if the request has none or an unknown one."""
        return self.versions.get(ctx.version, self.stored)

    def in_version(self, ctx: Context, obj: Object) -> Object:
        """Return the object with the apiVersion of the request: itself, or a shallow copy with another apiVersion.

        No other field has to change, because versions without a conversion webhook differ only in apiVersion until they
        are pruned.
        """
        version = self.version_of(ctx)
        return obj if version is self.stored else {**obj, "apiVersion": str(GroupVersion(self.group, version.name))}

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self.version_of(ctx).has_status:
            obj.pop("status", None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if self.version_of(ctx).has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = copy_value(old["status"])

    def changes_generation(self, new: Object, old: Object) -> bool:
        return new.keys() != old.keys() or any(not identical(new[key], old[key]) for key in new if key != "metadata")

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errors = distinct(validate_object_meta(obj["metadata"], self.namespaced, self.validate_name))
        return self.version_of(ctx).validator.create(self.in_version(ctx, obj), errors)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        # The registry has already reported these errors about metadata; upstream reports them twice.
        repeated = repeated_update_errors(new, old)
        return self.version_of(ctx).validator.update(
            self.in_version(ctx, new), self.in_version(ctx, old), repeated, ctx.warnings
        )

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return _finalizer_warnings(obj, {})

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return _finalizer_warnings(new, old)

    def canonicalize(self, obj: Object) -> None:
        """Convert floats without a fraction to integers, in place."""
        integral(obj)

    def read_back(self, obj: Object) -> None:
        """Prune the object in place without its nulls, and set its defaults if it is in the storage version.

        The body of a request in another version already has the defaults of that version. Fields that the strategy has
        kept from the stored object do not get them. An apply may have left nulls that the schema forbids.
        """
        custom_resources.read_back(self.stored.node, obj, defaults=self.stored.storage)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return selected_values(obj, {path for version in self.versions.values() for path in version.selectable})

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        known = ("metadata.name", "metadata.namespace") if self.namespaced else ("metadata.name",)
        if label in known or label in self.versions[version].selectable:
            return label, value
        raise ValueError(f"field label not supported: {label}")

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)] if self.versions[version].has_status else []


class CustomStatusStrategy(CustomStrategy):
    """The strategy of the status subresource, which updates only the status and managed fields.

    Args:
        main: the strategy of the resource.
    """

    generation = None

    def __init__(self, main: CustomStrategy) -> None:
        super().__init__(main.group, main.namespaced, main.versions, main.stored.name)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new_status, has_status, entries = new.get("status"), "status" in new, new["metadata"].get("managedFields")
        version = new["metadata"].get("resourceVersion")
        new.clear()
        new.update(copy_object(old))
        new.pop("status", None)
        if has_status:
            new["status"] = new_status
        meta = new["metadata"]
        for key, value in (("managedFields", entries), ("resourceVersion", version)):
            meta.pop(key, None)
            if value is not None:
                meta[key] = value

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        repeated = repeated_update_errors(new, old)
        return self.version_of(ctx).validator.status(
            self.in_version(ctx, new), self.in_version(ctx, old), repeated, ctx.warnings
        )

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return []

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("metadata",)]


def _finalizer_warnings(new: Object, old: Object) -> list[str]:
    """Return the warnings about the names of the finalizers that `new` has and `old` has not.

    Upstream: apiextensions-apiserver/pkg/registry/customresource/validator.go, validateKubeFinalizerName.
    """
    existing = set((old.get("metadata") or {}).get("finalizers") or ())
    added = sorted(set(new["metadata"].get("finalizers") or ()) - existing)
    return [_finalizer_warning(name) for name in added if validate_kube_finalizers([name], "metadata.finalizers")]


def _finalizer_warning(name: str) -> str:
    path = " including a path (/)" if "." in name else ""
    return (
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} '
        "to avoid accidental conflicts with other finalizer writers"
    )


def selected_values(obj: Object, paths: Iterable[str]) -> dict[str, str]:
    """Return the values of the fields at the given paths as text, by path.

    The text is that of Go's `%v`, and "" for a missing field and for null. The values of a stored object may be lists
    and maps if its schema has changed.

    Args:
        paths: paths with dots and without a leading one, such as "spec.size".

    Upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go, selectableFields
    """
    values = ((path, _at(obj, path)) for path in paths)
    return {path: "" if value is None else plain(value) for path, value in values}


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
