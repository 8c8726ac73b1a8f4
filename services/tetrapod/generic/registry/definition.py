"""`ResourceDefinition`: the declaration of one resource. Adding a resource to a server is adding one of these to a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionKind, Object
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.table import TableConvertor


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object (`pods/status`). Where its kind differs from the parent's, `kind` says so (`autoscaling/v1 Scale`).

    `strategy` makes it an update of the parent object under other rules; `rest` is anything else (eviction, token, log).
    """

    name: str
    verbs: Sequence[str]
    kind: GroupVersionKind | None = None
    strategy: Strategy | None = None
    rest: Rest | None = None
    versions: Sequence[str] = ()  # empty: all versions of the resource


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource in all its versions.

    `convert(obj, version)` gives a copy of `obj` in another version (apiVersion set); the default only renames apiVersion.
    `schema(version)` is built on first use. A `custom` resource has no Go types behind it: its objects must say their kind,
    what its schema lacks is pruned, and list items repeat kind and apiVersion.
    """

    group: str
    resource: str
    kind: str
    singular: str
    namespaced: bool
    versions: Sequence[str]  # served, in order of preference
    storage_version: str
    storage_prefix: str
    verbs: Sequence[str]
    schema: Callable[[str], SchemaNode]
    strategy: Strategy
    list_kind: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    subresources: Sequence[Subresource] = ()
    table: TableConvertor | None = None  # None: Name and Created At
    rest: Rest | None = None  # a resource without storage (reviews): answers itself
    convert: Callable[[Object, str], Object] | None = None
    convert_many: Callable[[Sequence[Object], str], Awaitable[list[Object]]] | None = None  # instead, where it takes time (webhooks)
    custom: bool = False
    storage_version_hash: str = ""
    deprecated: Mapping[str, str] = field(default_factory=dict)  # version → warning text
    hidden_annotations: frozenset[str] = frozenset()  # that upstream keeps as fields: not there in Tables and PartialObjectMetadata
    storage_group: str | None = None  # where it is stored under another group (events)
    equivalents: Callable[[], Sequence[ResourceDefinition]] = tuple  # who serves the same objects under another group (events)
    store: Callable[[ResourceDefinition, ResourceStorage], Store] = Store  # a class of its own where a verb differs (namespaces)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, version, self.kind)


class RestOfVersions(Rest):
    """A Rest that depends on the version that it is asked in, and on what it is below of (scale)."""

    def bind(self, definition: ResourceDefinition, version: str, store: Store | None) -> Rest:
        """Called when the resource is installed, for each version: what answers there. `store` is the (parent) resource's."""
        raise NotImplementedError
