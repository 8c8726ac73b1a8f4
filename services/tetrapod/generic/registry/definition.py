"""`ResourceDefinition`: the declaration of one resource. A server serves the resources in its list of definitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.table import TableConvertor


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource (`pods/status`). `kind` is set if it differs from the parent's (`autoscaling/v1 Scale`).

    With a `strategy`, it reads and updates the parent object under the rules of that strategy. With a `rest`, that
    handler serves it (eviction, token, log). One of the two is set.
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

    - `convert(obj, version)` returns a copy of `obj` in another version (with apiVersion set); by default only
      apiVersion changes. `convert_many` replaces it if a webhook converts.
    - `schema(version)` returns the schema of a version, which is built at the first call.
    - `rest` handles the requests of a resource without storage (reviews); `store` is the class of the store of all
      others.
    - `deprecated` maps versions to texts of Warning headers.
    - `equivalents` returns the definitions that serve the same objects in another group (events).
    - A `custom` resource has no Go types: its objects must have a kind, fields that are not in its schema are pruned,
      and list items contain kind and apiVersion.
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
    rest: Rest | None = None  # a resource without storage (reviews) handles its requests itself
    convert: Callable[[Object, str], Object] | None = None
    # `convert_many` replaces `convert` (webhooks).
    convert_many: Callable[[Sequence[Object], str], Awaitable[list[Object]]] | None = None
    custom: bool = False
    disabled_versions: frozenset[str] = frozenset()  # not served (--runtime-config), but known for conversions
    storage_version_hash: str = ""
    deprecated: Mapping[str, str] = field(default_factory=dict)  # version → warning text
    hidden_annotations: frozenset[str] = frozenset()  # fields upstream; omitted from Tables and PartialObjectMetadata
    storage_group: str | None = None  # the group under which it is stored, if it differs (events)
    equivalents: Callable[[], Sequence[ResourceDefinition]] = tuple  # the same objects in another group (events)
    store: Callable[[ResourceDefinition, ResourceStorage], Store] = Store  # a subclass if a verb differs (namespaces)

    @property
    def group_resource(self) -> GroupResource:
        """The group and the plural name, as storage and error texts use them."""
        return GroupResource(self.group, self.resource)

    @property
    def group_kind(self) -> GroupKind:
        """The group and the kind, as error texts of validation use them."""
        return GroupKind(self.group, self.kind)

    @property
    def served_versions(self) -> list[str]:
        """The versions without the disabled ones, in order of preference."""
        return [version for version in self.versions if version not in self.disabled_versions]

    def gvk(self, version: str) -> GroupVersionKind:
        """Return group, version and kind for a version."""
        return GroupVersionKind(self.group, version, self.kind)


class RestOfVersions(Rest):
    """A `Rest` whose behaviour depends on the request's version and on the parent resource (scale)."""

    def bind(self, definition: ResourceDefinition, version: str, store: Store | None) -> Rest:
        """Return the handler of the subresource for requests in one version; called when the resource is installed.

        Args:
            definition: the parent resource.
            store: the store of the parent resource; None if it has no storage.
        """
        raise NotImplementedError
