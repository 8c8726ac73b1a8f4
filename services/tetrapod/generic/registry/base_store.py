"""`BaseStore`: definition and storage of a resource, which the functions of the verbs take. `Store` adds the verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import KEY_ROOT
from tetrapod.generic.registry.keys import object_key
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import GroupKind, GroupResource, Object
from tetrapod.machinery.schema_node import SchemaNode


class Declared(Protocol):
    """The attributes of a `ResourceDefinition` that its store reads. See there for their meaning."""

    @property
    def strategy(self) -> Strategy: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def storage_prefix(self) -> str: ...
    @property
    def group_resource(self) -> GroupResource: ...
    @property
    def group_kind(self) -> GroupKind: ...
    @property
    def custom(self) -> bool: ...
    @property
    def storage_version(self) -> str: ...
    @property
    def stored_api_version(self) -> str: ...
    @property
    def convert(self) -> Callable[[Object, str], Object] | None: ...
    @property
    def schema(self) -> Callable[[str], SchemaNode]: ...


class BaseStore:
    """A resource over its storage: the part of a `Store` that the modules of the verbs (create.py, …) use.

    `resource` (group and plural name) and `kind` are used in error texts.

    Args:
        definition: the declaration of the resource.
        storage: its storage, which reads and writes entries.
    """

    def __init__(self, definition: Declared, storage: ResourceStorage) -> None:
        self.definition, self.storage = definition, storage
        self.strategy = definition.strategy
        self.namespaced = definition.namespaced
        self.resource, self.kind = definition.group_resource, definition.group_kind
        self._stored = "" if definition.custom else definition.stored_api_version
        strategy = type(self.strategy)
        self.allocates_on_create = (
            strategy.begin_create is not Strategy.begin_create or strategy.end_create is not Strategy.end_create
        )
        """Whether the strategy allocates something (an address, a port) before an object is stored."""

    def in_storage_version(self, obj: Object) -> Object:
        """Return a stored object in the storage version, without modifying it.

        A former release may have stored an object of a built-in kind in another version.
        """
        if not self._stored or obj.get("apiVersion") == self._stored:
            return obj
        if self.definition.convert is not None:
            return self.definition.convert(obj, self.definition.storage_version)
        return {**obj, "apiVersion": self._stored}

    def key(self, ctx: Context, name: str) -> str:
        """Return the storage key of the object `name` in the request's namespace.

        Raises:
            StatusError: 400, the name or a necessary namespace is missing or not permitted; see `object_key`.
        """
        return object_key(self.namespaced, ctx.namespace, name, self.definition.storage_prefix)

    def path(self, key: str, *, dry_run: bool = False) -> str:
        """Return the full path of a storage key for error texts.

        In a dry run, upstream's texts lack the leading `/registry`.
        """
        return f"{'' if dry_run else KEY_ROOT}/{self.definition.storage_prefix}/{key}"

    async def after_delete(self, ctx: Context, entry: Entry) -> None:
        """Call the strategy's `after_delete` hook with a copy of an object that was removed, if the kind has that hook.

        A caller must not call this method in a dry run; the method does not check that.
        """
        if type(self.strategy).after_delete is not Strategy.after_delete:
            await self.strategy.after_delete(ctx, entry.object())
