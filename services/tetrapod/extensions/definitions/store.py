"""DELETE of a definition: marked and held by our finalizer first; the finalizing controller removes what it defined.

Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go.
"""

from __future__ import annotations

from tetrapod.extensions.definitions.conditions import CLEANUP_FINALIZER, TERMINATING, condition, put
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry, Preconditions, Updated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


class CrdStore(Store):
    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        entry = await self.get(ctx, name)
        found = entry.peek()
        if found["metadata"].get("deletionTimestamp"):
            return await super().delete(ctx, name, options, validate)
        given = options.get("preconditions") or {}
        preconditions = Preconditions(given.get("uid") or found["metadata"]["uid"], given.get("resourceVersion"))

        async def mark(current: Object | None, _: Entry | None) -> Updated | None:
            assert current is not None
            if validate is not None:
                await validate(current)
            mark_for_deletion(current)
            return Updated(current)

        if ctx.dry_run:
            current = entry.object()
            await mark(current, entry)
            return Unstored(entry.key, current, entry.revision), False
        with Translated(self.resource, name, "delete", self.path(name)):
            return await self.storage.guaranteed_update(self.key(ctx, name), mark, preconditions=preconditions), False


def mark_for_deletion(crd: Object) -> None:
    meta = crd["metadata"]
    meta.setdefault("deletionTimestamp", now_rfc3339())
    finalizers = meta.setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    put(crd, condition(TERMINATING, "True", "InstanceDeletionPending", _PENDING))
