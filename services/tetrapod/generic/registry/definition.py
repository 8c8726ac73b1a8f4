"""`ResourceDefinition`: the declaration of one resource. A server serves the resources in its list of definitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.table import TableConvertor


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource, such as `pods/status`. Either `strategy` or `rest` is set.

    Attributes:
        name: its name, such as "status".
        verbs: the verbs that it serves.
        kind: the kind of its objects if it differs from the parent's, such as autoscaling/v1 Scale.
        strategy: the rules under which requests for it read and update the parent object.
        rest: the handler of its requests, such as that of evictions, tokens or logs.
        versions: the versions of the resource that have it; empty for all.
    """

    name: str
    verbs: Sequence[str]
    kind: GroupVersionKind | None = None
    strategy: Strategy | None = None
    rest: Rest | None = None
    versions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource in all its versions.

    Attributes:
        group: the API group; "" for the core group.
        resource: the plural name.
        kind: the kind.
        singular: the singular name.
        namespaced: whether objects are in namespaces.
        versions: the served versions, in order of preference.
        storage_version: the version in which objects are stored.
        storage_prefix: the beginning of the objects' keys, below `/registry/`.
        verbs: the verbs that it serves.
        schema: returns the schema of a version, which is built at the first call.
        strategy: the rules for writing objects.
        list_kind: the kind of lists; "" for the kind with `List`.
        short_names: the short names that discovery lists.
        categories: the categories that discovery lists, such as "all".
        subresources: the subresources.
        table: makes the rows of Tables; None for the columns Name and Created At.
        rest: the handler of a resource without storage, such as a review; None for all others.
        convert: returns a copy of an object in another version, with apiVersion set; None changes only apiVersion.
        missing_fields: the paths of the fields that a version lacks, by version. A conversion to it drops them.
            Admission keeps them in an object that was changed in that version.
        convert_many: converts several objects to a version by a webhook, instead of `convert`; None without a webhook.
        custom: whether it is a custom resource. Its objects must have a kind, fields that are not in the schema are
            pruned, and list items contain kind and apiVersion.
        disabled_versions: versions that are not served (--runtime-config), but known for conversions.
        storage_version_hash: the hash that discovery lists; "" for none.
        deprecated: the texts of Warning headers, by deprecated version.
        hidden_annotations: annotations that are fields upstream, and are omitted from Tables and PartialObjectMetadata.
        empty: members, by name, that upstream's conversion from its internal version adds to an object without values.
        storage_group: the group under which it is stored; None for `group` (events).
        from_former: returns a value that was stored in a version which is no longer served in the storage version, and
            other values unchanged; None if every stored version is served.
        equivalents: returns the definitions that serve the same objects in another group (events).
        store: creates the store of a resource with storage; a subclass if a verb differs (namespaces).
    """

    group: str
    resource: str
    kind: str
    singular: str
    namespaced: bool
    versions: Sequence[str]
    storage_version: str
    storage_prefix: str
    verbs: Sequence[str]
    schema: Callable[[str], SchemaNode]
    strategy: Strategy
    list_kind: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    subresources: Sequence[Subresource] = ()
    table: TableConvertor | None = None
    rest: Rest | None = None
    convert: Callable[[Object, str], Object] | None = None
    missing_fields: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    # `convert_many` replaces `convert` (webhooks).
    convert_many: Callable[[Sequence[Object], str], Awaitable[list[Object]]] | None = None
    custom: bool = False
    disabled_versions: frozenset[str] = frozenset()
    storage_version_hash: str = ""
    deprecated: Mapping[str, str] = field(default_factory=dict)
    hidden_annotations: frozenset[str] = frozenset()
    empty: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    storage_group: str | None = None
    from_former: Callable[[bytes], bytes] | None = None
    equivalents: Callable[[], Sequence[ResourceDefinition]] = tuple
    store: Callable[[ResourceDefinition, ResourceStorage], Store] = Store

    @property
    def group_resource(self) -> GroupResource:
        """The group and the plural name, as storage and error texts use them."""
        return GroupResource(self.group, self.resource)

    @property
    def group_kind(self) -> GroupKind:
        """The group and the kind, as error texts of validation use them."""
        return GroupKind(self.group, self.kind)

    @property
    def stored_api_version(self) -> str:
        """The apiVersion of stored objects."""
        return str(GroupVersion(self.group if self.storage_group is None else self.storage_group, self.storage_version))

    @property
    def served_versions(self) -> list[str]:
        """The versions without the disabled ones, in order of preference."""
        return [version for version in self.versions if version not in self.disabled_versions]

    def subresources_in(self, version: str) -> list[Subresource]:
        """Return the subresources of a version.

        A custom resource may have several subresources of the same name, each for other versions.
        """
        return [each for each in self.subresources if not each.versions or version in each.versions]

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
