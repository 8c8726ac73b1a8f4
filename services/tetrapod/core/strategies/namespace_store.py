"""DELETE of a namespace: marked and set terminating first, removed once nobody holds it (upstream: namespace/storage/storage.go)."""

from __future__ import annotations

from tetrapod.generic.registry import dryrun
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.propagation import deletion_finalizers
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry, Preconditions, Updated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import conflict
from tetrapod.machinery.timestamps import now_rfc3339


class NamespaceStore(Store):
    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        entry = await self.get(ctx, name)
        found = entry.peek()
        self._check_preconditions(name, found["metadata"], options.get("preconditions") or {})
        if found["metadata"].get("deletionTimestamp"):
            if (found.get("spec") or {}).get("finalizers"):
                return entry, False
            return await super().delete(ctx, name, options, validate)
        given = options.get("preconditions") or {}
        preconditions = Preconditions(given.get("uid") or found["metadata"]["uid"], given.get("resourceVersion"))

        async def mark(current: Object | None, _: Entry | None) -> Updated | None:
            assert current is not None
            if validate is not None:
                await validate(current)
            meta = current["metadata"]
            meta.setdefault("deletionTimestamp", now_rfc3339())
            finalizers = deletion_finalizers(self.strategy, meta.get("finalizers") or [], options)
            if finalizers is not None:
                meta.pop("finalizers", None)
                if finalizers:
                    meta["finalizers"] = finalizers
            current.setdefault("status", {})["phase"] = "Terminating"
            return Updated(current)

        with Translated(self.resource, name, "delete", self.path(name)):
            if ctx.dry_run:
                return await dryrun.guaranteed_update(self.storage, self.key(ctx, name), mark, preconditions, False), False
            marked = await self.storage.guaranteed_update(self.key(ctx, name), mark, preconditions=preconditions)
        held = (marked.peek().get("spec") or {}).get("finalizers") or marked.peek()["metadata"].get("finalizers")
        if held:
            return marked, False
        return await super().delete(ctx, name, {}, None)

    def _check_preconditions(self, name: str, meta: Object, wanted: Object) -> None:
        """
        Raises:
            StatusError: 409.
        """
        for key, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            value, found = wanted.get(key), meta.get(key, "")
            if value is not None and value != found:
                why = f"Precondition failed: {shown} in precondition: {value}, {shown} in object meta: {found}"
                raise conflict(self.resource, name, why)
