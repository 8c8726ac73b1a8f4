"""The `Store` of a custom resource whose objects a webhook converts: a dry run asks the webhook too."""

from __future__ import annotations

from tetrapod.extensions.conversion.storage import ConvertedStorage
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.interface import Entry


class ConvertedStore(CustomStore):
    def __init__(self, definition: ResourceDefinition, storage: ConvertedStorage) -> None:
        super().__init__(definition, storage)
        self._converted = storage

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        return await self._converted.rehearsed(entry) if ctx.dry_run else entry
