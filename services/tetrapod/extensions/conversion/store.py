"""The `Store` of a custom resource whose objects a webhook converts: a dry run asks the webhook too."""

from __future__ import annotations

from tetrapod.extensions.conversion.storage import ConvertedStorage
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hooks import NO_PRECONDITIONS, Transform, ValidateObject, ValidateUpdate
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import Entry, Preconditions
from tetrapod.machinery.gvk import Object


class ConvertedStore(CustomStore):
    def __init__(self, definition: ResourceDefinition, storage: ConvertedStorage) -> None:
        super().__init__(definition, storage)
        self._converted = storage

    async def create(self, ctx: Context, obj: Object, *, validate: ValidateObject | None = None) -> Entry:
        entry = await super().create(ctx, obj, validate=validate)
        return await self._converted.rehearsed(entry) if ctx.dry_run else entry

    async def update(
        self,
        ctx: Context,
        name: str,
        transform: Transform,
        *,
        validate_create: ValidateObject | None = None,
        validate_update: ValidateUpdate | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        strategy: Strategy | None = None,
        force_create: bool = False,
    ) -> tuple[Entry, bool]:
        entry, created = await super().update(
            ctx,
            name,
            transform,
            validate_create=validate_create,
            validate_update=validate_update,
            preconditions=preconditions,
            strategy=strategy,
            force_create=force_create,
        )
        return (await self._converted.rehearsed(entry) if ctx.dry_run else entry), created
