"""The store of priority classes. Upstream: pkg/registry/scheduling/priorityclass/storage/storage.go."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import forbidden

_SYSTEM: Final = frozenset({"system-node-critical", "system-cluster-critical"})


class PriorityClassStore(Store):
    """A store that rejects the deletion of the two system priority classes."""

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        if name in _SYSTEM:
            raise forbidden(self.resource, name, "this is a system priority class and cannot be deleted")
        return await super().delete(ctx, name, options, validate)
