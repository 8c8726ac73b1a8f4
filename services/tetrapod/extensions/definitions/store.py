"""The store of CustomResourceDefinitions.

A deleted definition is first marked and kept by a finalizer; the finalizing controller then deletes its custom
resources. A write returns after this process has observed it, so that the next request is served by the new definition.

Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go.
"""

from __future__ import annotations

from contextlib import suppress

from tetrapod.extensions.conditions import CLEANUP_FINALIZER, TERMINATING, condition, put
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.registry.errors import Translated
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import TooLargeResourceVersion
from tetrapod.generic.storage.writes import Preconditions, Updated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import conflict
from tetrapod.machinery.timestamps import now_rfc3339

_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


class CrdStore(Store):
    """The store of CustomResourceDefinitions.

    DELETE only sets deletionTimestamp, the cleanup finalizer and the condition Terminating. The definition is removed
    when the finalizing controller has deleted its custom resources.
    """

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Wait until the watch cache of this process contains the written definition, and return the entry.

        Upstream does not wait: its informers lag, and clients have to retry. A dry run does not wait either. If the
        wait times out or the storage is unavailable, the entry is returned nevertheless, because the write has
        succeeded. Implements `Store.written`.
        """
        if not ctx.dry_run and entry.revision:
            with suppress(TooLargeResourceVersion, Unavailable):  # the write has succeeded in any case
                await self.storage.get(entry.key, str(entry.revision))
        return entry

    async def delete(
        self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None
    ) -> tuple[Entry, bool]:
        entry = await self.get(ctx, name)
        stored = entry.peek()
        preconditions_option = options.get("preconditions") or {}
        self._check_preconditions(name, stored["metadata"], preconditions_option)
        if stored["metadata"].get("deletionTimestamp"):
            return await super().delete(ctx, name, options, validate)
        preconditions = Preconditions(
            preconditions_option.get("uid") or stored["metadata"].get("uid"),
            preconditions_option.get("resourceVersion"),
        )

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
            marked = await self.storage.guaranteed_update(self.key(ctx, name), mark, preconditions=preconditions)
        return await self.written(ctx, marked), False

    def _check_preconditions(self, name: str, meta: Object, given: Object) -> None:
        """Compare the preconditions of the delete options with the stored metadata.

        Args:
            name: the name of the definition, for the message.
            meta: the stored metadata.
            given: the preconditions of the delete options: uid and resourceVersion, each compared only if set.

        Raises:
            StatusError: 409, with a message that only this resource has.
        """
        for key, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            value, stored = given.get(key), meta.get(key, "")
            if value is not None and value != stored:
                message = f"precondition failed: {shown} in precondition: {value}, {shown} in object meta: {stored}"
                raise conflict(self.resource, name, message)


def mark_for_deletion(crd: Object) -> None:
    """Set the deletion timestamp, the cleanup finalizer and the condition Terminating, in place."""
    meta = crd["metadata"]
    meta.setdefault("deletionTimestamp", now_rfc3339())
    finalizers = meta.setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    put(crd, condition(TERMINATING, "True", "InstanceDeletionPending", _PENDING))
