"""Reads of services: internalTrafficPolicy is stored with an ExternalName, but shown with what has addresses only.

A change of type so finds the policy again that the service had before. Upstream: defaultOnReadInternalTrafficPolicy of
pkg/registry/core/service/storage/storage.go, the store's decorator; what an update changes has not passed through it.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.strategies.service_changes import needs_address
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.forwarding import ShownWatch
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery, Watch, WatchQuery
from tetrapod.machinery.gvk import Object

_SHOWN: Final = "service as it is shown"


def shown(entry: Entry) -> Entry:
    """Looks into those only that may be external names: a list of others stays a join of bytes."""
    item = entry.item
    if b'"ExternalName"' not in item or b'"internalTrafficPolicy"' not in item:
        return entry
    made: Entry | None = entry.representations.get(_SHOWN)
    if made is None:
        made = entry.representations[_SHOWN] = _without_policy(entry)
    return made


def _without_policy(entry: Entry) -> Entry:
    obj = entry.object()
    if needs_address(obj["spec"]):
        return entry
    obj["spec"].pop("internalTrafficPolicy", None)
    return Unstored(entry.key, obj, entry.revision)


class ServiceStore(Store):
    async def get(self, ctx: Context, name: str, resource_version: str = "") -> Entry:
        return await self.written(ctx, await super().get(ctx, name, resource_version))

    async def list(self, ctx: Context, query: ListQuery) -> ListPage:
        page = await super().list(ctx, query)
        return page._replace(entries=list(map(shown, page.entries)))

    async def watch(self, ctx: Context, query: WatchQuery) -> Watch:
        return ShownWatch(await super().watch(ctx, query), shown)

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        entry, gone = await super().delete(ctx, name, options, validate)
        return shown(entry), gone

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Upstream's store of the status has no decorator: there the policy shows."""
        return entry if ctx.subresource == "status" else shown(entry)
