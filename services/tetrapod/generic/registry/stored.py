"""`Stored`: a resource over its storage, as the verbs that change it see it; each is a file beside this one, and `Store` has them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.keys import object_key
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import Entry, ResourceStorage
from tetrapod.machinery.gvk import GroupKind, GroupResource
from tetrapod.machinery.shapes.node import SchemaNode


class Declared(Protocol):
    """Of a `ResourceDefinition` what its store must know."""

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
    def schema(self) -> Callable[[str], SchemaNode]: ...


class Stored:
    """`resource` and `kind` are what refusals name."""

    def __init__(self, definition: Declared, storage: ResourceStorage) -> None:
        self.definition, self.storage = definition, storage
        self.strategy = definition.strategy
        self.namespaced = definition.namespaced
        self.resource, self.kind = definition.group_resource, definition.group_kind
        strategy = type(self.strategy)
        self.takes_on_create = strategy.begin_create is not Strategy.begin_create or strategy.end_create is not Strategy.end_create
        """Whether the strategy takes something (an address, a port) for an object before it is stored."""

    def key(self, ctx: Context, name: str) -> str:
        """
        Raises:
            StatusError: 400 for names that no path can have.
        """
        return object_key(self.namespaced, ctx.namespace, name, self.definition.storage_prefix)

    def path(self, key: str, *, dry_run: bool = False) -> str:
        """The whole key, as errors of storage show it; dry runs do not come as far as its root."""
        return f"{'' if dry_run else '/registry'}/{self.definition.storage_prefix}/{key}"

    async def after_delete(self, ctx: Context, entry: Entry) -> None:
        """Called once an object is gone, and in a dry run never."""
        if type(self.strategy).after_delete is not Strategy.after_delete:
            await self.strategy.after_delete(ctx, entry.object())
