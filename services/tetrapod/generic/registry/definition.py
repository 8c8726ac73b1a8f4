"""`ResourceDefinition`: the declaration of one resource. Adding a resource to a server is adding one of these to a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionKind, Object
from tetrapod.machinery.schema.node import SchemaNode

if TYPE_CHECKING:
    from tetrapod.generic.registry.rest import Rest
    from tetrapod.generic.registry.store import Store
    from tetrapod.generic.storage.interface import ResourceStorage


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. `format` is "name" for names; `priority` above 0 shows with -o wide only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class TableConvertor:
    """How objects of a kind become rows. `row` gives the cells of a (read-only) object; `conditions` marks ended rows.

    `of_list` is for kinds whose cells depend on the other objects of a list: given them all, it makes the `row` for that list.
    """

    columns: Sequence[Column]
    row: Callable[[Object], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None
    null_rows: bool = False  # no rows at all are null, not an empty list
    of_list: Callable[[Sequence[Object]], Callable[[Object], list[Any]]] | None = None


def identity(obj: Object) -> Object:
    return obj


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
    store: Callable[[ResourceDefinition, ResourceStorage], Store] | None = None  # a Store with a verb of its own (namespaces)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, version, self.kind)
