"""The store of namespaces, which deletes in two steps.

DELETE first marks the namespace as Terminating. The namespace is removed once spec.finalizers and metadata.finalizers are empty.
Upstream: pkg/registry/core/namespace/storage/storage.go.
"""

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
    """A store that marks a namespace as Terminating before it removes it."""

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        entry = await self.get(ctx, name)
        namespace = entry.peek()
        self._check_preconditions(name, namespace["metadata"], options.get("preconditions") or {})
        if namespace["metadata"].get("deletionTimestamp"):
            if (namespace.get("spec") or {}).get("finalizers"):
                return entry, False
            return await super().delete(ctx, name, options, validate)
        requested = options.get("preconditions") or {}
        preconditions = Preconditions(requested.get("uid") or namespace["metadata"]["uid"], requested.get("resourceVersion"))

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
        remaining_finalizers = (marked.peek().get("spec") or {}).get("finalizers") or marked.peek()["metadata"].get("finalizers")
        if remaining_finalizers:
            return marked, False
        return await super().delete(ctx, name, {}, None)

    def _check_preconditions(self, name: str, meta: Object, wanted: Object) -> None:
        """Compare the preconditions of the delete options with the stored metadata.

        Raises:
            StatusError: 409, a precondition does not hold.
        """
        for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            value, actual = wanted.get(key), meta.get(key, "")
            if value is not None and value != actual:
                message = f"Precondition failed: {label} in precondition: {value}, {label} in object meta: {actual}"
                raise conflict(self.resource, name, message)
