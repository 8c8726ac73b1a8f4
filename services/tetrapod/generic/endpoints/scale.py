"""`ScalePaths`: the `/scale` subresource of resources with replicas, as autoscaling/v1 Scale.

It is declared as the `rest` of a subresource, with the field paths of the replicas. An update uses the resource's own
strategy. The managers of `spec.replicas` are translated between the managedFields of the Scale and those of the
resource.
Upstream: pkg/registry/apps/deployment/storage/storage.go, ScaleREST;
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition, RestOfVersions
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions
from tetrapod.machinery import labels
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.field import invalid
from tetrapod.machinery.fieldmanager.scale import ScaleHandler
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionKind, Object
from tetrapod.machinery.metadata import validate_managed_fields
from tetrapod.machinery.status import bad_request, conflict, internal_error
from tetrapod.machinery.status import invalid as invalid_object
from tetrapod.machinery.table import CREATED_DESCRIPTION, NAME_DESCRIPTION, Column, TableConvertor
from tetrapod.machinery.timed_cells import since

SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_UNSET: Final = -(1 << 31)
"""The replicas that upstream presents to an update if the custom resource has none."""


@dataclass(frozen=True)
class ScalePaths(RestOfVersions):
    """The declaration of a scale subresource by the field paths from which a Scale is made.

    If the paths differ between versions of a resource, the resource declares one scale subresource for each.

    Attributes:
        spec_replicas: the path of the desired number of replicas.
        status_replicas: the path of the actual number of replicas.
        selector: the path of a LabelSelector, a map of labels, or a selector string; () if the kind has no such field.
        required: whether an object without the field at `spec_replicas` has no scale (custom resources).
    """

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")
    required: bool = False

    def bind(self, definition: ResourceDefinition, version: str, store: Store | None) -> Rest:
        assert store is not None
        paths: dict[str, Sequence[str] | None] = {
            definition.gvk(served).api_version: None for served in definition.versions
        }
        for declared in definition.subresources:
            if isinstance(declared.rest, ScalePaths):
                for served in declared.versions or definition.versions:
                    paths[definition.gvk(served).api_version] = declared.rest.spec_replicas
        return _BoundScale(definition, version, store, self, paths)


def _row(scale: Object) -> list[Any]:
    meta = scale["metadata"]
    return [
        meta.get("name") or "",
        scale["spec"].get("replicas") or 0,
        scale["status"]["replicas"],
        since(meta.get("creationTimestamp")),
    ]


def _custom_row(scale: Object) -> list[Any]:
    """Return the cells of a custom resource's Scale.

    Upstream makes them with JSON paths, so the cell of zero desired replicas is empty.
    """
    name, desired, *rest = _row(scale)
    return [name, desired or None, *rest]


_BUILTIN_TABLE: Final = TableConvertor(
    (
        Column("Name", description=NAME_DESCRIPTION),
        Column("Desired", "integer", description="replicas is the desired number of instances for the scaled object."),
        Column(
            "Available",
            "integer",
            description="replicas is the actual number of observed instances of the scaled object.",
        ),
        Column("Age", description=CREATED_DESCRIPTION),
    ),
    _row,
)
_CUSTOM_TABLE: Final = TableConvertor(
    (
        Column("Name", format="name", description=NAME_DESCRIPTION),
        Column("Desired", "integer", description="Number of desired replicas"),
        Column("Available", "integer", description="Number of actual replicas"),
        Column("Age", "date", description=CREATED_DESCRIPTION),
    ),
    _custom_row,
)


class _BoundScale(Rest):
    """The handler of the scale subresource of one resource in one version.

    Args:
        definition: the resource.
        version: the version of the requests.
        store: the store of the resource.
        paths: the field paths in that version.
        by_version: the path of the replicas for each apiVersion; None if the version has no scale.
    """

    def __init__(
        self,
        definition: ResourceDefinition,
        version: str,
        store: Store,
        paths: ScalePaths,
        by_version: Mapping[str, Sequence[str] | None],
    ) -> None:
        self._store = store
        self._conversion = Conversion(definition, version)
        self._paths = paths
        self._api_version = definition.gvk(version).api_version
        self._replicas_paths = by_version
        self._table = _CUSTOM_TABLE if definition.custom else _BUILTIN_TABLE

    @property
    def table(self) -> TableConvertor:
        return self._table

    async def get(self, ctx: Context, name: str) -> Object:
        return await self.get_at_version(ctx, name, "")

    async def get_at_version(self, ctx: Context, name: str, resource_version: str) -> Object:
        entry = await self._store.get(ctx, name, resource_version)
        await self._conversion.ready((entry,))
        obj = self._conversion.object(entry)
        if self._paths.required and _at(obj, self._paths.spec_replicas) is None:
            path = "." + ".".join(self._paths.spec_replicas)
            raise internal_error(f'the spec replicas field "{path}" does not exist')
        return self._scale(obj)

    async def update(
        self,
        ctx: Context,
        name: str,
        transform: Any,
        validate: Any,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> Object:
        conversion = self._conversion

        async def revise(current: Object | None) -> Object:
            assert current is not None  # a scale update cannot create objects
            obj = await conversion.from_stored(current)
            return await conversion.to_stored(await self._rescale(obj, transform))

        async def validate_update(new: Object, old: Object) -> None:
            old_scale = self._scale(await conversion.from_stored(copy_object(old)))
            new_scale = self._scale(await conversion.from_stored(copy_object(new)))
            await validate(new_scale, old_scale)

        entry, _ = await self._store.update(
            ctx, name, revise, validate_update=validate_update, preconditions=preconditions
        )
        await conversion.ready((entry,))
        return self._scale(conversion.object(entry))

    async def _rescale(self, obj: Object, transform: Any) -> Object:
        """Apply an update of the Scale of `obj` to `obj`, in place, and return `obj`.

        Its replicas, its managed fields and, if the new Scale has one, its resourceVersion are changed.

        Args:
            obj: the resource in the request's version.
            transform: `await transform(scale)` returns the new Scale for the present one.

        Raises:
            StatusError: the new Scale is invalid or belongs to another object.
        """
        handler = ScaleHandler(obj["metadata"].get("managedFields"), self._api_version, self._replicas_paths)
        old = self._scale(obj)
        if entries := handler.to_subresource():
            old["metadata"]["managedFields"] = entries
        if self._paths.required and _at(obj, self._paths.spec_replicas) is None:
            old["spec"]["replicas"] = _UNSET
        scale: Object = await transform(old)
        if self._paths.required:
            self._check_custom(scale)
        else:
            _check(scale, obj, self._store.resource)
        _set(obj, self._paths.spec_replicas, (scale.get("spec") or {}).get("replicas", 0))
        meta, scale_meta = obj["metadata"], scale["metadata"]
        if revision := scale_meta.get("resourceVersion"):  # without a resourceVersion the current resource is changed
            meta["resourceVersion"] = revision
        if entries := handler.to_parent(scale_meta.get("managedFields")):
            meta["managedFields"] = entries
        else:
            meta.pop("managedFields", None)
        return obj

    def _check_custom(self, scale: Object) -> None:
        """Check that the new Scale of a custom resource has replicas.

        Other errors are found by the validation of the changed resource. The uid is a precondition of the update; as
        upstream, a patch cannot change it.

        Raises:
            StatusError: 400, it has none.
        """
        if (scale.get("spec") or {}).get("replicas", 0) == _UNSET:
            raise bad_request(f'the spec replicas field ".{".".join(self._paths.spec_replicas)}" cannot be empty')

    def _scale(self, obj: Object) -> Object:
        """Return a new Scale for `obj`, the resource in the request's version."""
        meta = obj["metadata"]
        copied = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        replicas, ready = _at(obj, self._paths.spec_replicas), _at(obj, self._paths.status_replicas)
        selector = _selector_text(_at(obj, self._paths.selector) if self._paths.selector else None)
        return {
            "kind": SCALE.kind,
            "apiVersion": SCALE.api_version,
            "metadata": {key: meta[key] for key in copied if key in meta},
            "spec": {"replicas": replicas} if isinstance(replicas, int) and replicas else {},
            "status": {
                "replicas": ready if isinstance(ready, int) else 0,
                **({"selector": selector} if selector else {}),
            },
        }


def _check(scale: Object, obj: Object, resource: GroupResource) -> None:
    """Validate the managed fields and the replicas of the new Scale of the built-in resource `obj`.

    Upstream ignores its other metadata.

    Raises:
        StatusError: 422 for an invalid scale, 409 for the scale of another object.
    """
    meta = scale["metadata"]
    errors = validate_managed_fields(meta.get("managedFields") or [], "metadata.managedFields")
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        errors.append(invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if errors:
        raise invalid_object(GroupKind(SCALE.group, SCALE.kind), obj["metadata"]["name"], errors)
    uid, stored = meta.get("uid"), obj["metadata"].get("uid", "")
    if uid and uid != stored:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        raise conflict(GroupResource(resource.group, f"{resource.resource}/scale"), obj["metadata"]["name"], text)


def _selector_text(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if all(isinstance(value, str) for value in selector.values()):
        return str(labels.from_set(selector))
    try:
        return str(labels.from_label_selector(selector))
    except ValueError:
        return ""


def _at(obj: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def _set(obj: Object, path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        below = obj.get(name)
        if not isinstance(below, dict):
            below = obj[name] = {}
        obj = below
    obj[path[-1]] = value
