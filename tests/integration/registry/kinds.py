"""Kinds for the tests of the registry: one for each way in which real kinds differ."""

from __future__ import annotations

from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import SpecStatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError, forbidden
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode


class ConfigMaps(Strategy):
    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        if old.get("immutable") and new.get("data") != old.get("data"):
            return [forbidden("data", "field is immutable when `immutable` is set")]
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return ["data: rather empty"] if obj.get("data") == {} else []


class Leases(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False


class Pods(Strategy):
    """Graceful deletion as of pods: no grace period without a node or when finished, otherwise 30 seconds."""

    has_status = True
    initial_status = {"phase": "Pending"}
    generation = ("spec",)
    return_deleted_object = True
    field_labels = ("spec.nodeName", "status.phase")

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        period = options.get("gracePeriodSeconds")
        if period is None:
            period = obj["spec"].get("terminationGracePeriodSeconds", 30)
        if not obj["spec"].get("nodeName") or obj["status"].get("phase") in ("Failed", "Succeeded"):
            period = 0
        options["gracePeriodSeconds"] = period
        return True

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.nodeName": obj["spec"].get("nodeName", ""), "status.phase": obj["status"].get("phase", "")}


class Widgets(SpecStatusStrategy):
    """A custom resource: metadata errors are repeated, and finalizers need no domain."""

    qualified_finalizers = False
    repeats_errors = True


class Services(Strategy):
    """Allocates an address before each object is stored, and records whether it was released."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.ended: list[tuple[str, bool]] = []
        self.deleted: list[str] = []

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        assert self.taken, "upstream takes addresses before it prepares the object"

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        self.taken.append(obj["metadata"]["name"])
        return self.taken[-1]

    async def end_create(self, ctx: Context, taken: Any, succeeded: bool) -> None:
        self.ended.append((taken, succeeded))

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        return f"update {new['metadata']['name']}"

    async def end_update(self, ctx: Context, taken: Any, succeeded: bool) -> None:
        self.ended.append((taken, succeeded))

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        self.deleted.append(obj["metadata"]["name"])


class Jobs(SpecStatusStrategy):
    garbage_collection_default = "Orphan"


class Events(Strategy):
    garbage_collection_default = "Unsupported"

    def ttl(self, obj: Object) -> int:
        return 3600


def define(
    kind: str, resource: str, strategy: Strategy, *, group: str = "", namespaced: bool = True, prefix: str = ""
) -> ResourceDefinition:
    return ResourceDefinition(
        group=group,
        resource=resource,
        kind=kind,
        singular=kind.lower(),
        namespaced=namespaced,
        versions=["v1"],
        storage_version="v1",
        storage_prefix=resource,
        verbs=["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        schema=lambda version: SchemaNode("object"),
        strategy=strategy,
    )


def new(kind: str, name: str = "", **metadata: Any) -> Object:
    """Return an object as an endpoint passes it on. Keyword arguments are metadata, except `data` and `spec`."""
    body: Object = {part: metadata.pop(part) for part in ("data", "spec", "status", "immutable") if part in metadata}
    meta = {"name": name, **metadata} if name else dict(metadata)
    return {"kind": kind, "apiVersion": "v1", "metadata": meta, **body}
