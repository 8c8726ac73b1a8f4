"""The store of jobs, which warns on DELETE that pods are preserved by default, whether or not the job has any.

Upstream: pkg/registry/batch/job/storage/storage.go, Delete and DeleteCollection.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.interface import Entry, ListPage, ListQuery
from tetrapod.machinery.gvk import Object

_ORPHANS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them"
    " or set propagationPolicy=Orphan to suppress this warning"
)


class JobStore(Store):
    """A store that adds the warning when the delete options leave the propagation policy unset."""

    async def delete(self, ctx: Context, name: str, options: Object, validate: ValidateObject | None = None) -> tuple[Entry, bool]:
        _warn(ctx, options)
        return await super().delete(ctx, name, options, validate)

    async def delete_collection(self, ctx: Context, options: Object, query: ListQuery, validate: ValidateObject | None = None) -> ListPage:
        _warn(ctx, options)
        return await super().delete_collection(ctx, options, query, validate)


def _warn(ctx: Context, options: Object) -> None:
    explicit = options.get("propagationPolicy") is not None or options.get("orphanDependents") is not None
    if not explicit and _ORPHANS not in ctx.warnings:
        ctx.warnings.append(_ORPHANS)
